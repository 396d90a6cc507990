"""The files that a command writes: their names, their inputs, and the manifest of both.

Obstacles to writing are reported before anything is asked. A folder gets its manifest before the first file, so that it
is known as ours even after a kill, and again after the last one, with all hashes.
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
    """The output files of a command.

    Attributes:
        folder: the folder of the files; None for a command without files.
        names: the names of all files that it may write there, beside the manifest.
        command: the command that fills the folder, if results of others are refused.
        owner: the file beside the manifest, if the folder holds other things, too; else "".
        roles: the inputs by role, as named.
        read: all files that were read when the job was made.
        loose: names of files without a hash, because they are drawn again or belong to this session.
        experiment: the experiment file, which the manifest names.
        overwrite: whether foreign files may be replaced; None if nobody was asked.
        refuse: a further check before writing; it raises a UsageError.
        made: how the labels and answers in the files were made, added by their writers.
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
        """Return the files of a command that writes ``out``, further files beside it, and its own manifest."""
        hashed = (out.name, *(path.name for path in more))
        others = tuple(path.name for path in loose)
        return cls(out.parent, (*hashed, *others), owner=out.name, roles=roles, read=tuple(read), loose=others)

    @property
    def is_folder(self) -> bool:
        """Whether the files have a folder to themselves."""
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
        """The path of the manifest."""
        from judgekit.data.manifest import MANIFEST, manifest_path

        return manifest_path(self.place / self.owner) if self.owner else self.place / MANIFEST

    @cached_property
    def inputs(self) -> dict[str, InputFile]:
        """The inputs of the files, by role; hashed at first use."""
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
        """Mark a folder as ours, even if the process is killed later."""
        self._write_manifest()

    def file(self, name: str) -> Path:
        """Return the path of a declared file."""
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
"""For a command without output files."""
