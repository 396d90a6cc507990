"""The inputs of a result: the files behind it, each with its SHA-256, in a manifest beside it.

A results folder holds ``manifest.json``; a single file ``OUT`` has ``OUT.manifest.json``. Hashes are those of
``sha256sum``. A manifest also holds the hashes of the results: it does not apply to a file that was changed since. If
an input has its own manifest, *its* inputs are kept, too, so that a table of scores still knows the queries behind its
labels.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from judgekit import __version__
from judgekit.data.folders import files_of, size_of
from judgekit.data.outputs import cache_folder
from judgekit.data.streams import temporary, write_atomic

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T")

MANIFEST: Final = "manifest.json"


@dataclass(frozen=True, slots=True)
class InputFile:
    """An input: a file, or a folder that is one table.

    Attributes:
        file: its path, as given.
        bytes: its size.
        sha256: the hash of its bytes; for a folder, of a ``sha256sum`` listing of its files by name.
        inputs: its own inputs by role, if its manifest names them.
    """

    file: str
    bytes: int
    sha256: str
    inputs: Mapping[str, InputFile]

    @classmethod
    def of(cls, path: Path) -> Self:
        """Hash a file, reading it once as a stream, and look for its manifest."""
        sha256 = _sha256(path)
        return cls(str(path), size_of(path), sha256, _made_from(path, sha256))


_LARGE: Final = 64 << 20


def _sha256(path: Path) -> str:
    """Return the hash of a file; hashes of large files are cached, since reading them takes longest."""
    if not path.is_file() or path.stat().st_size < _LARGE:
        return _hashed(path)
    from judgekit.data.readers import fingerprint

    kept = cache_folder() / "docs" / f"{fingerprint(path, str(path.resolve()))[:32]}.sha256"
    with suppress(OSError):
        return kept.read_text()
    sha256 = _hashed(path)
    with suppress(OSError):
        kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        partial = temporary(kept)
        partial.write_text(sha256)
        partial.replace(kept)
    return sha256


def _hashed(path: Path) -> str:
    if path.is_dir():
        listing = "".join(f"{_sha256(part)}  {part.name}\n" for part in files_of(path))
        return hashlib.sha256(listing.encode()).hexdigest()
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def by_role(queries: T | None, docs: Iterable[T], runs: Mapping[str, T] | None = None) -> dict[str, T]:
    """Return files by role: ``queries``, ``docs``, ``docs 2`` and so on, ``run NAME``."""
    files: dict[str, T] = {}
    if queries is not None:
        files["queries"] = queries
    for number, file in enumerate(docs, 1):
        files[f"docs {number}".removesuffix(" 1")] = file
    return files | {f"run {name}": file for name, file in (runs or {}).items()}


def sources(named: Mapping[str, Path], read: Iterable[Path] = ()) -> dict[str, InputFile]:
    """Hash the inputs of a command."""
    from judgekit.data.sources import located  # not needed to see whether there is a manifest

    places: dict[str, Path] = {}
    inside: set[Path] = set()
    for role, path in named.items():
        # Without the form in front of its path, and inside of a folder of several files.
        places[role] = located(path, _KINDS.get(role.split()[0], role)).path
        inside.update(part.resolve() for part in files_of(places[role]))
    for path in read:
        if path.is_file() and path.resolve() not in inside:
            places[str(path)] = path
    return {role: InputFile.of(path) for role, path in places.items()}


_KINDS: Final = {"queries": "query", "docs": "doc", "run": "run", "qrels": "qrels"}


def manifest_path(out: Path) -> Path:
    """Return the path of the manifest for a command's output file."""
    return out.with_name(f"{out.name}.{MANIFEST}")


def write_manifest(
    path: Path,
    inputs: Mapping[str, InputFile],
    results: Iterable[Path] = (),
    *,
    experiment: Path | None = None,
    command: str = "",
    made: Mapping[str, Mapping[str, Any]] | None = None,
) -> None:
    """Write which results were made from which inputs; the results lie in the manifest's folder or below it.

    ``experiment`` is the experiment file and ``command`` the command that fills the folder, if others are refused
    there; ``made`` records how labels and answers were made (`judgekit.labelers.made`).
    """
    hashes = {result.relative_to(path.parent).as_posix(): _sha256(result) for result in results}
    content: dict[str, object] = {"judgekit": __version__}
    if command:
        content["command"] = command
    content |= {
        "inputs": {role: asdict(source) for role, source in inputs.items()},
        "results": dict(sorted(hashes.items())),
    }
    if made:
        content["made"] = made
    if experiment is not None:
        content["experiment"] = str(experiment.absolute())
    write_atomic(path, json.dumps(content, indent=1, ensure_ascii=True) + "\n")


def experiment_in(manifest: Path) -> Path | None:
    """Return the experiment file that a manifest names, or None."""
    try:
        return Path(json.loads(manifest.read_bytes())["experiment"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


@cache
def _validator() -> TypeAdapter[dict[str, InputFile]]:
    from pydantic import TypeAdapter  # importing it takes as long as a command's whole help

    return TypeAdapter(dict[str, InputFile])


def _made_from(path: Path, sha256: str) -> Mapping[str, InputFile]:
    """Return the inputs of a file, if a manifest lists it with exactly this content."""
    for content in _listing(path, sha256):
        with suppress(ValueError, KeyError):
            return _validator().validate_python(content["inputs"])
    return {}


def replaced(paths: Iterable[Path]) -> Iterator[str]:
    """Yield a sentence for each file that writing would replace, unless a manifest says that judgekit wrote it."""
    for path in paths:
        if path.is_file() and not any(_listing(path)):
            yield f"{path} is replaced, although no manifest says that judgekit wrote it"


def made_in(path: Path) -> dict[str, dict[str, Any]]:
    """Return how a file's labels and answers were made, if a manifest lists it with exactly this content."""
    if not path.exists():
        return {}
    for content in _listing(path):
        with suppress(ValueError, KeyError, TypeError, AttributeError):
            return {kind: dict(content["made"].get(kind, {})) for kind in ("labels", "answers", "pools")}
    return {}


def made_of(path: Path) -> dict[str, Any]:
    """Return how the labels in a file of one labeling were made; {} if unknown."""
    made = list(made_in(path).get("labels", {}).values())
    return made[0] if len(made) == 1 else {}


def _listing(path: Path, sha256: str = "") -> Iterator[dict[str, Any]]:
    """Yield the contents of the manifests that list a file with exactly this content; its hash may be known."""
    for manifest in _manifests(path):
        try:
            content = json.loads(manifest.read_bytes())
            listed = content["results"].get(path.absolute().relative_to(manifest.parent).as_posix())
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue  # it is somebody else's
        # Hashed last: the file may be large, and most manifests do not list it.
        if listed is not None and listed == (sha256 or _sha256(path)):
            yield content


def _manifests(path: Path) -> list[Path]:
    """Return the manifests that may list a file: its own, that of its folder, that of the folder above."""
    path = path.absolute()
    beside = (manifest_path(path), path.parent / MANIFEST, path.parent.parent / MANIFEST)
    return [manifest for manifest in beside if manifest.is_file()]


def has_manifest(path: Path) -> bool:
    """Return whether some manifest may list a file, without reading anything."""
    return bool(_manifests(path))


def mismatches(inputs: Mapping[str, InputFile], roles: Collection[str] = ()) -> list[str]:
    """Return a sentence for each role (queries, docs, a run) whose inputs come from different files."""
    # The same data in another form, compressed for example, counts as another file.
    versions: dict[str, dict[str, str]] = {}
    for role, source, user in _all(inputs, "this command"):
        if role in roles or (not roles and (role in ("queries", "docs") or role.startswith("run "))):
            used = f"{user} from {source.file} (SHA-256 {source.sha256[:12]})"
            versions.setdefault(role, {}).setdefault(source.sha256, used)
    sentences = []
    for role, used_by in versions.items():
        if len(used_by) > 1:
            what = role if role in ("queries", "docs") else f"files of {role}"
            sentences.append(
                f"these files were made from different {what}: {', '.join(used_by.values())}. Unless both hold the same"
                " in different forms, their numbers cannot be combined"
            )
    return sentences


def _all(inputs: Mapping[str, InputFile], user: str) -> Iterator[tuple[str, InputFile, str]]:
    for role, source in inputs.items():
        yield role, source, user
        yield from _all(source.inputs, source.file)
