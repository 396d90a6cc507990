"""The files that a command writes: their names, what they are made from, and the manifest that says so.

What speaks against writing is said before anything is asked. A folder gets its manifest before the first file, so that
it is known as ours also after a kill, and once more after the last one, with the hash of each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from judgekit.data.streams import check_outputs, note_read, recording_inputs
from judgekit.errors import UsageError

if TYPE_CHECKING:
    from judgekit.data.manifest import InputFile


def _nothing(_: ResultFiles) -> None:
    """Refuse nothing."""


@dataclass(frozen=True)
class ResultFiles:
    """What a command writes.

    Attributes:
        folder: where the files lie; None for a command that writes none.
        names: of all files that it may write there, beside the manifest.
        command: that fills the folder, where the results of another command are refused.
        owner: the file beside which the manifest stands, where the folder holds other things too; else "".
        roles: the inputs by role, as they were named.
        read: all files that were read when the job was made.
        loose: those names whose files get no hash, because they are drawn again or tell of this session.
        experiment: the experiment file, which the manifest names.
        overwrite: whether files that judgekit did not write may be replaced; None where nobody was asked.
        refuse: what else may speak against writing; it raises a UsageError.
        made: how the labels and answers in the files came about, which whoever writes them adds.
    """

    folder: Path | None = None
    names: tuple[str, ...] = ()
    command: str = ""
    owner: str = ""
    roles: Mapping[str, Path] = field(default_factory=dict)
    read: tuple[Path, ...] = ()
    loose: tuple[str, ...] = ()
    experiment: Path | None = None
    overwrite: bool | None = None
    refuse: Callable[[ResultFiles], None] = _nothing
    made: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def beside(
        cls,
        out: Path,
        more: Iterable[Path] = (),
        *,
        roles: Mapping[str, Path],
        read: Iterable[Path] = (),
        loose: Iterable[Path] = (),
    ) -> Self:
        """Return the files of a command that writes ``out``, others beside it, and a manifest of its own."""
        hashed = (out.name, *(path.name for path in more))
        others = tuple(path.name for path in loose)
        return cls(out.parent, (*hashed, *others), owner=out.name, roles=roles, read=tuple(read), loose=others)

    @property
    def is_folder(self) -> bool:
        """Whether the files fill a folder of their own, which holds nothing else."""
        return not self.owner

    @property
    def writes(self) -> bool:
        """Whether anything is written."""
        return self.folder is not None

    @property
    def place(self) -> Path:
        """The folder of a command that writes files."""
        assert self.folder is not None
        return self.folder

    @property
    def manifest(self) -> Path:
        """Where the manifest lies."""
        from judgekit.data.manifest import MANIFEST, manifest_path

        return manifest_path(self.place / self.owner) if self.owner else self.place / MANIFEST

    @cached_property
    def inputs(self) -> dict[str, InputFile]:
        """What the files are made from, by role; hashed at the first look."""
        from judgekit.data.manifest import sources

        return sources(self.roles, self.read)

    def check(self) -> None:
        """Refuse to write over an input, over a user's file, or over other results."""
        from judgekit.data.outputs import check_folder

        if self.folder is None:
            return
        with recording_inputs():
            for path in self.read:
                note_read(path)
            if self.is_folder:
                check_folder(self.folder, (self.manifest.name, *self.names), self.overwrite)
            else:
                check_outputs(*(self.folder / name for name in self.names), self.manifest)
        self._check_command()
        self.refuse(self)

    def _check_command(self) -> None:
        from judgekit.data.outputs import command_of

        other = command_of(self.place) if self.command and not self.overwrite else ""
        if other not in ("", self.command):
            raise UsageError(
                f"{self.folder} holds what `judgekit {other}` wrote, and `judgekit {self.command}` would make it"
                " unusable: choose another --out"
            )

    def begin(self) -> None:
        """Make a folder ours, also if we are killed."""
        self._write_manifest()

    def file(self, name: str) -> Path:
        """Return where a file goes that was declared."""
        if name not in self.names:
            raise KeyError(f"{name} is not declared")
        return self.place / name

    def close(self) -> None:
        """Write the manifest with the hashes of the files that are there."""
        made = [self.place / name for name in self.names if name not in self.loose and (self.place / name).exists()]
        self._write_manifest(made)

    def _write_manifest(self, made: Iterable[Path] = ()) -> None:
        from judgekit.data.manifest import write_manifest

        write_manifest(
            self.manifest, self.inputs, made, experiment=self.experiment, command=self.command, made=self.made
        )


NOWHERE = ResultFiles()
"""Of a command that writes no files."""
