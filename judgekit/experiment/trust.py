"""What an experiment file would import, read from the environment and contact, and what its user has confirmed.

A file from somebody else can do harm: its labelers may be code, its variables may hold any secret, and its addresses
receive passages and keys. So it does nothing until the user has seen the list and confirmed each entry once, as with
direnv and mise.

Servers on this machine that get no key need no confirmation, and neither do experiments that `judgekit init` wrote on
this machine. Installing a package confirms its code.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from judgekit.data.streams import open_atomic
from judgekit.errors import ConfigError
from judgekit.wire.access import is_local, origin, variables_of

VARIABLE: Final = "JUDGEKIT_TRUST"
"""The environment variable that confirms a list by its hash, for example in CI."""

_FILE: Final = "trust.json"
_CODE: Final = re.compile(r"\.py(?=:)")
_BEGINS: Final = re.compile(r"[\s=,;|()'\":]")
"""The characters that may precede a file's name in a spelling."""


@dataclass(frozen=True, order=True)
class Entry:
    """One thing that an experiment would do.

    Attributes:
        does: ``import`` a file, ``read`` a variable, or ``contact`` a server.
        what: the file as the experiment names it, the variable, or the address.
        whom: the SHA-256 of the file, or the address that receives the variable's value; empty for a server.
        place: the absolute path of the file; empty for all else.
    """

    does: Literal["import", "read", "contact"]
    what: str
    whom: str = ""
    place: str = ""

    @property
    def kept(self) -> list[str]:
        """The fields to store when the user confirms the entry."""
        return [self.does, self.place or self.what, self.whom]

    def __str__(self) -> str:
        if self.does == "import":
            return f"import {self.what} (SHA-256 {self.whom})"
        if self.does == "read":
            return f"read the environment variable {self.what} and send it to {self.whom or 'your application'}"
        return f"contact {self.what}"


def listed(content: Mapping[str, Any], folder: Path) -> tuple[Entry, ...]:
    """Return what an experiment would import, read and contact, from its file's content, without doing any of it."""
    found: set[Entry] = set()
    # Search every text: a user's own metric or carrier is code just as a labeler is.
    for text in _texts(content):
        for name in _code_files(text, folder):
            path = folder / os.path.expanduser(name)
            code = hashlib.sha256(path.read_bytes()).hexdigest()
            found.add(Entry("import", name, code, str(path.resolve())))
    endpoints = content.get("endpoints")
    if isinstance(endpoints, Mapping):
        for endpoint in endpoints.values():
            if isinstance(endpoint, Mapping):
                found.update(_of_endpoint(endpoint))
    return tuple(sorted(found))


def _of_endpoint(endpoint: Mapping[str, Any]) -> Iterator[Entry]:
    base_url = str(endpoint.get("base_url", ""))
    for name in variables_of(endpoint.get("api_key_env"), endpoint.get("headers")):
        yield Entry("read", name, origin(base_url))
    if origin(base_url) and not is_local(base_url):
        yield Entry("contact", origin(base_url))


def _texts(value: Any) -> Iterator[str]:
    """Yield every text in a file's content, keys included: code is recognised by its form, not by its place."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield str(key)
            yield from _texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)


def _code_files(text: str, folder: Path) -> Iterator[str]:
    """Yield the Python files that a text may name, also in nested spellings."""
    # A nested spelling is quoted, and quotes in its file name are escaped: try each reading, and take every file.
    for match in _CODE.finditer(text):
        before = text[: match.end()]
        for start in (0, *(begin.end() for begin in _BEGINS.finditer(before))):
            for name in {before[start:], re.sub(r"\\(.)", r"\1", before[start:])}:
                if _is_file(folder / os.path.expanduser(name)):
                    yield name


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # the name is too long or has an invalid character
        return False


def hash_of(entries: Iterable[Entry]) -> str:
    """Return a hash of a list that is the same on every machine."""
    # Leave out the place: CI checks out the same files elsewhere than a developer does.
    lines = sorted({json.dumps([entry.does, entry.what, entry.whom]) for entry in entries})
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def check(content: Mapping[str, Any], path: Path, source: Path | None = None) -> None:
    """Refuse an experiment file until the user has confirmed everything that it would do.

    ``source`` is the results folder that the user gave in place of the file, if any.

    Raises:
        ConfigError: something is not confirmed; the message names the command that shows and confirms it.
    """
    entries = listed(content, path.parent)
    if not entries or os.environ.get(VARIABLE, "").strip() == hash_of(entries):
        return
    kept = _Kept.read()
    if str(path.resolve()) in kept.own:
        # Confirm the entries along with the user's own file, since its results folder will name the same ones.
        kept.confirm(entries)
        return
    lacking = [str(entry) for entry in entries if tuple(entry.kept) not in kept.confirmed]
    if lacking:
        would = "; ".join(lacking)
        command = f"judgekit trust {shlex.quote(str(source or path))}"
        reason = f"would {would}. Nothing of this was done. If you want it, confirm it: {command}"
        raise ConfigError(reason, source or path)


def confirm(entries: Collection[Entry]) -> Path:
    """Confirm entries for this user, and return the file that stores them."""
    return _Kept.read().confirm(entries)


def own(path: Path) -> None:
    """Record that judgekit wrote an experiment file here, so that it needs no confirmation."""
    kept = _Kept.read()
    kept.own.add(str(path.resolve()))
    kept.write()


def folder() -> Path:
    """Return this user's configuration folder for judgekit."""
    import typer

    return Path(typer.get_app_dir("judgekit"))


@dataclass
class _Kept:
    """The entries that the user confirmed, and the experiment files that judgekit wrote here."""

    confirmed: set[tuple[str, ...]]
    own: set[str]

    @classmethod
    def read(cls) -> _Kept:
        path = folder() / _FILE
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            confirmed = {tuple(map(str, entry)) for entry in content["confirmed"]}
            return cls(confirmed, {str(name) for name in content["own"]})
        except FileNotFoundError:
            return cls(set(), set())
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            raise ConfigError("cannot be read: delete it, and confirm again what you trust", path) from None

    def confirm(self, entries: Iterable[Entry]) -> Path:
        more = {tuple(entry.kept) for entry in entries} - self.confirmed
        if more:
            self.confirmed |= more
            self.write()
        return folder() / _FILE

    def write(self) -> None:
        path = folder() / _FILE
        content = {"confirmed": sorted(self.confirmed), "own": sorted(self.own)}
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with open_atomic(path) as stream:
                stream.write(json.dumps(content, indent=1).encode())
            # Anyone who can write this file can confirm any code for this user.
            path.chmod(0o600)
        except OSError as problem:
            raise ConfigError(f"cannot be written: {problem.strerror}", path) from None
