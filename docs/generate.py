"""Write what the pages take from the code: `python docs/generate.py` (`make docs` runs it).

Tables of pages stand between ``<!-- made: NAME -->`` and ``<!-- /made -->``; a test holds them against the code. The
help of all commands is a file of its own, ``commands.txt``, which ``cli.md`` includes and which is not kept.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

import typer
from pydantic import BaseModel, BeforeValidator
from pydantic_core import PydanticUndefined

from judgekit.analysis.flags import FLAGS
from judgekit.analysis.money import Money
from judgekit.answers.quality import catalog as answer_metrics
from judgekit.cli.app import app_for
from judgekit.console.help import Command, sections_of
from judgekit.data.forms.own import TOOLS
from judgekit.data.forms.tool import either
from judgekit.experiment.file import SECTIONS, Config
from judgekit.labelers.base import catalog as labelers
from judgekit.metrics import catalog
from judgekit.reading.prompts import list_prompts
from judgekit.settings import attributes
from judgekit.wire.types import Endpoint

OK: Final = 200

HERE: Final = Path(__file__).parent
_MADE: Final = re.compile(r"(<!-- made: ([\w-]+) -->\n).*?(<!-- /made -->)", re.S)
_KEYS: Final = ("key", "type", "default", "what it is")
_TITLES: Final = {"endpoints": "[endpoints.NAME]", "prices": "[prices.MODEL]", "labelers": "[[labelers]]"}
_PLAIN: Final = {str: "text", int: "whole number", float: "number", bool: "true or false"}
_LIMITS: Final = {"ge": "from {:g}", "gt": "above {:g}", "le": "to {:g}", "lt": "below {:g}"}
Row = Sequence[str]


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("``", "`").replace("|", r"\|").removesuffix(".")


def _choice(words: Iterable[str]) -> str:
    *most, last = dict.fromkeys(words)
    return f"{', '.join(most)} or {last}" if most else last


def _table(head: Row, rows: Iterable[Row]) -> str:
    lines = [head, ["---"] * len(head), *(map(_cell, row) for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _kind(hint: Any, limits: Sequence[Any] = ()) -> str:
    """Return a type in the words of somebody who writes TOML."""
    args = [one for one in get_args(hint) if one is not NoneType]
    match get_origin(hint):
        case origin if origin is Annotated:
            found = [one for extra in args[1:] for one in getattr(extra, "metadata", [extra])]
            return _kind(args[0], [*found, *limits])
        case origin if origin is Literal:
            return _choice(f"`{word}`" for word in args)
        case origin if origin in (Union, UnionType):
            return _choice(_kind(one, limits) for one in args)
        case origin if origin in (list, tuple):
            kind, comma, rest = _kind(args[0]).partition(", ")
            return f"list of {kind}s{comma}{rest}"
        case None:
            said = [
                text.format(getattr(one, key)) for one in limits for key, text in _LIMITS.items() if hasattr(one, key)
            ]
            return ", ".join([_PLAIN.get(hint, "text"), *said])
    return "table"


def _value(value: Any) -> str:
    """Return a default as TOML, nothing where there is none."""
    match value:
        case bool():
            return f"`{str(value).lower()}`"
        case str() if value:
            return f'`"{value}"`'
        case int():
            return f"`{value}`"
        case float():
            return f"`{value:g}`"
        case list() | tuple():
            return "`[" + ", ".join(_value(one).strip("`") for one in value) + "]`"
    return ""


def _keys(model: type[BaseModel], told: Mapping[str, str], names: Iterable[str] = ()) -> str:
    """Return the table of the keys of a model.

    Raises:
        LookupError: nothing says what a key means.
    """
    rows = []
    for name in names or model.model_fields:
        info = model.model_fields[name]
        key = info.alias or name
        if not told.get(key):
            raise LookupError(f"{model.__name__}: its docstring does not say, under Attributes, what {key} is")
        default = "" if info.default is PydanticUndefined else _value(info.default)
        several = any(isinstance(one, BeforeValidator) for one in info.metadata)
        kind = _kind(str | info.annotation if several else info.annotation, info.metadata)
        rows.append((f"`{key}`", kind, "needed" if info.is_required() else default, told[key]))
    return _table(_KEYS, rows)


def _experiment() -> str:
    text = _keys(Config, attributes(Config), ("title", "accept_missing", "runs"))
    for name, model in SECTIONS.items():
        told = {"endpoints": attributes(Endpoint), "money": attributes(Money)}.get(name, {})
        told = told | attributes(model)
        first = (model.__doc__ or "").partition("\n")[0]
        about = (
            first.partition(": ")[2] or first
            if name != "endpoints"
            else ("An OpenAI-compatible server and the model to ask there, or an application that answers.")
        )
        text += f"\n## {_TITLES.get(name, f'[{name}]')}\n\n{about[:1].upper()}{about[1:]}\n\n{_keys(model, told)}"
    return text


def _plugins(entries: Mapping[str, Any], what: str) -> str:
    return _table(
        (what, "what it says", "scale", "needs", "cost"),
        ((f"`{name}`", one.does, one.scale, one.needs, one.cost) for name, one in entries.items()),
    )


def _options(entries: Mapping[str, Any], what: str) -> str:
    rows = [(f"`{name}`", f"`{key}`", text) for name, one in entries.items() for key, text in one.options.items()]
    return _table((what, "option", "what it is"), rows)


def _own() -> list[Any]:
    return [one for one in catalog() if not one.author]


def _measures() -> str:
    rows = []
    for one in _own():
        span = (
            ""
            if one.low is None is one.high
            else " to ".join("…" if e is None else f"{e:g}" for e in (one.low, one.high))
        )
        names = "".join(f", `{alias}`" for alias in one.aliases)
        rows.append((f"`{one.name}`{names}", one.formula, span, one.rewards, one.source))
    return _table(("measure, other names", "formula", "range", "rewards", "source"), rows)


def _parameters() -> str:
    rows = {(key, param.what): None for one in _own() for key, param in one.params.items()}
    of = {
        row: [one.name for one in _own() if row[0] in one.params and one.params[row[0]].what == row[1]] for row in rows
    }
    return _table(("parameter", "what it is", "of"), ((f"`{k}`", what, ", ".join(of[k, what])) for k, what in rows))


def _prompts() -> str:
    return _table(
        ("prompt", "kind", "what it asks"), ((f"`{one.name}`", one.kind, one.about) for one in list_prompts())
    )


def _flags() -> str:
    return _table(("flag", "what it says"), ((f"`{name}`", text) for name, text in FLAGS.items()))


_TAKEN: Final = ("question", "id", "answer", "reference", "passages", "gold", "run")


def _tools() -> str:
    rows = []
    for tool in TOOLS:
        taken = ", ".join(what for what in _TAKEN if getattr(tool, what) or getattr(tool, f"{what}_ids", ""))
        left = ", ".join(f"`{name}`" for name in either(tool.scores) if name != "*")
        if not left and tool.scores:
            left = "further columns of numbers"
        rows.append((f"`{tool.name}` {tool.release}", tool.exports, taken, left))
    return _table(("tool, tested release", "what you save", "what is taken", "scores, listed and not used"), rows)


_ALTERNATIVES: Final = "20 alternatives"
_FEATURES: Final = {
    "log-probabilities": _ALTERNATIVES,
    "list of words": "list of words",
    "words by schema": "words by schema",
    "grammar": "grammar",
    "object by schema": "object by schema",
    "completions: log-probabilities": "completion with alternatives",
    "completions: grammar": "completion by grammar",
}
"""What the table of servers shows, and the recorded request that shows it."""


def _servers() -> str:
    """Return what recorded servers do with what judges ask for."""
    rows = []
    for path in sorted((HERE.parent / "tests" / "servers").glob("*.jsonl")):
        records = {record["name"]: record for record in map(json.loads, path.read_text("utf-8").splitlines())}
        name, _, version = path.stem.rpartition("-")
        rows.append((f"{name} {version}", *(_outcome(records[asked]) for asked in _FEATURES.values())))
    return _table(("server, version", *_FEATURES), rows)


def _outcome(record: Mapping[str, Any]) -> str:
    """Return whether a recorded request was held, ignored or refused."""
    if record["status"] != OK:
        return f"refused ({record['status']})"
    choice = json.loads(record["body"])["choices"][0]
    if "logprobs" in record["sent"]:
        return "held" if choice.get("logprobs") else "ignored"
    said = choice["message"]["content"] if "message" in choice else choice["text"]
    return "held" if re.search(r"Purple|Green|\"score\": *7", said) else "ignored"


def _peers() -> str:
    """Return how the numbers of other tools are spelled."""
    declared = tomllib.loads((HERE / "peers.toml").read_text("utf-8"))["peers"]
    head = (
        "tool",
        "its measure: judgekit's",
        "options",
        "ties",
        "queries of the mean",
        "query's own document",
        "digits",
    )
    rows = []
    for row in declared:
        (folder,) = (HERE.parent / "tests" / "exports").glob(f"{row['export']}-*")
        pairs = [f"`{theirs}`: {f'`{ours}`' if ours else 'none'}" for theirs, ours in row["measures"].items()]
        rows.append(
            (
                row.get("named", " ".join(folder.name.rsplit("-", 1))),
                "; ".join(pairs),
                "; ".join(
                    [f"`{row['options']}`"] * bool(row["options"]) + ["labels 0 and 1"] * row.get("binary", False)
                ),
                row["ties"],
                row["queries"],
                row["own"],
                str(row.get("digits", "6" if "within" in row else "all")),
                row["why"],
            )
        )
    return _table((*head, "why trec_eval's differs"), rows)


MADE: Final[Mapping[str, Callable[[], str]]] = {
    "experiment": _experiment,
    "labelers": lambda: _plugins(labelers(), "labeler"),
    "labeler-options": lambda: _options(labelers(), "labeler"),
    "answer-metrics": lambda: _plugins(answer_metrics(), "metric"),
    "answer-metric-options": lambda: _options(answer_metrics(), "metric"),
    "measures": _measures,
    "parameters": _parameters,
    "prompts": _prompts,
    "flags": _flags,
    "tools": _tools,
    "servers": _servers,
    "peers": _peers,
}
"""What pages may take from the code, by name."""


def made(text: str) -> str:
    """Return a page with what it takes from the code as the code is now."""
    return _MADE.sub(lambda found: f"{found[1]}{MADE[found[2]]()}{found[3]}", text)


def _linked(text: str) -> str:
    pages = "|".join(page.name for page in HERE.glob("*.md"))
    return re.sub(rf"docs/({pages})", r"[\1](\1)", text)


def _commands(command: Any, name: str) -> Iterator[str]:
    context = command.make_context(name, [], resilient_parsing=True)
    usage = " ".join([name, *command.collect_usage_pieces(context)])
    yield f"### {name}\n\n{_linked(command.help)}\n\n```text\n{usage}\n```\n"
    for heading, records in sections_of(command, context).items():
        rows = [(f"`{head}`", re.sub(r"\s+\[", " [", _linked(text))) for head, text in records]
        shown = [row for row in rows if not re.search(r"--(help|install-completion|show-completion)", row[0])]
        if shown:
            yield _table((heading.lower(), "what it is"), shown)
    if isinstance(command, Command) and command.examples:
        yield "```bash\n" + "\n".join(command.examples) + "\n```\n"
    for sub, one in getattr(command, "commands", {}).items():
        if not one.hidden:  # spellings of earlier releases
            yield from _commands(one, f"{name} {sub}")


def command_line() -> str:
    """Return the help of all commands with their options, which the page of the command line includes."""
    return "\n".join(_commands(typer.main.get_command(app_for()), "judgekit"))


def main() -> None:
    """Write the pages."""
    for page in sorted(HERE.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        if made(text) != text:
            page.write_text(made(text), encoding="utf-8")
    (HERE / "commands.txt").write_text(command_line(), encoding="utf-8")


if __name__ == "__main__":
    main()
