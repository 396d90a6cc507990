"""The help of commands: options under headings, examples, and each command with its whole first sentence."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import chain
from textwrap import dedent
from typing import Any, Final, TypeVar

import typer
import typer.core

from judgekit.settings import docstring

T = TypeVar("T", bound="Callable[..., Any]")

_KINDS: Final = {
    "int": "N",
    "int range": "N",
    "list[int]": "N",
    "float range": "X",
    "float": "X",
    "path": "PATH",
    "list[Path]": "FILE",
    "str": "TEXT",
    "list[str]": "TEXT",
}
"""Typer's names for option values, and our words for them in the help."""


def sections_of(command: Any, ctx: Any) -> dict[str, list[tuple[str, str]]]:
    """Return the names and texts of the parameters of a command or group, by heading, as shown in the help."""
    headings: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
    for param in command.get_params(ctx):
        if record := param.get_help_record(ctx):
            panel = getattr(param, "rich_help_panel", None)
            heading = "Arguments" if param.param_type_name == "argument" else panel or "Options"
            # Typer names a value by its Python type, which not every user knows.
            name = re.sub(r"<(.+?)>", lambda found: _KINDS.get(found[1], found[0]), record[0])
            text = re.sub(r"x>=(\S+?)(?=[];])", r"at least \1", record[1])
            headings.setdefault(heading, []).append((name, text))
    return {heading: rows for heading, rows in headings.items() if rows}


class Command(typer.core.TyperCommand):
    """A command whose help shows its options under headings and ends with the examples of its docstring."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        # click would wrap examples as a paragraph, and nobody could copy them.
        text, _, examples = (settings.get("help") or "").partition("Examples:\n")
        super().__init__(*args, **settings | {"help": text.rstrip()})
        self.examples = dedent(examples).splitlines()

    def names(self) -> Iterator[tuple[str, list[tuple[str, str]]]]:
        """Yield names that the command takes, by heading, each with a line about it."""
        yield from ()

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the parameters by heading, and the examples."""
        for heading, rows in chain(sections_of(self, ctx).items(), self.names()):
            with formatter.section(heading):
                formatter.write_dl(rows)
        if self.examples:
            with formatter.section("Examples"):
                formatter.write("".join(f"{'':>{formatter.current_indent}}{line}\n" for line in self.examples))


def command_with(names: Callable[[], Iterator[tuple[str, list[tuple[str, str]]]]]) -> type[Command]:
    """Return the class of a command whose help ends with the names that it takes."""

    class Naming(Command):
        """A command that takes names."""

        def names(self) -> Iterator[tuple[str, list[tuple[str, str]]]]:
            """Yield the names."""
            return names()

    return Naming


class App(typer.Typer):
    """An app that makes each of its commands a `Command`."""

    def command(self, name: str | None = None, **settings: Any) -> Callable[[T], T]:
        """Return a decorator that adds a function as a command."""
        add = super().command

        def added(function: T) -> T:
            told: dict[str, Any] = {"cls": Command, "help": docstring(function), **settings}
            return add(name, **told)(function)

        return added


class Commands(typer.core.TyperGroup):
    """Commands under their headings, each with its whole first paragraph (typer cuts it off without rich)."""

    def get_params(self, ctx: Any) -> Any:
        """Return the options, with typer's own switches set to False: to read None, it would load pydantic."""
        params = super().get_params(ctx)
        for param in params:
            if getattr(param, "is_flag", False) and param.default is None:
                param.default = False
        return params

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands (typer uses click's types, or its own copy of them)."""
        # Keep the order of use instead of sorting by name, since newcomers read from the top.
        headings: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            one = self.get_command(ctx, name)
            if one is not None and not one.hidden:
                panel = getattr(one, "rich_help_panel", None)
                heading = panel if isinstance(panel, str) else "Commands"
                text = " ".join((one.help or "").split("\n\n")[0].split())
                headings.setdefault(heading, []).append((name, text))
        for heading, texts in headings.items():
            with formatter.section(heading):
                formatter.write_dl(texts)


def group(about: str, **settings: Any) -> App:
    """Return an app whose help is plain text, since importing rich takes longer than the rest."""
    return App(
        help=about,
        cls=Commands,
        no_args_is_help=not settings.get("invoke_without_command", False),
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        **settings,
    )
