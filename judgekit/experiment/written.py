"""The experiment file that `judgekit init` writes: each choice with its reason, the alternatives as comments."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

MODEL = "my-model"


@dataclass
class KnownOutcome:
    """What is known of answers.

    Attributes:
        files: of ratings or of answers, as the experiment names them.
        metrics: what files of ratings rate.
        depths: from how many documents the answers were made.
        columns: the columns of the answers that say where they belong.
        rated: people's ratings by metric, each with the scale to declare.
        cluster: the column of the ratings with the users that gave them, "" if there is none.
    """

    files: list[str] = field(default_factory=list)
    metrics: list[str] = field(default_factory=list)
    depths: list[int] = field(default_factory=list)
    columns: set[str] = field(default_factory=set)
    rated: dict[str, str | None] = field(default_factory=dict)
    cluster: str = ""


@dataclass(frozen=True)
class Planned:
    """What an experiment is made of; paths as the experiment names them.

    Attributes:
        queries: the questions.
        docs: the passages.
        depth: how many documents of each run are labelled, and answered from.
        runs: the runs by name.
        qrels: existing judgments by name, each with how they name passages (``page``, ``title`` or "").
        referenced: whether questions have reference answers.
        outcome: what is known of answers.
    """

    queries: str
    docs: Sequence[str]
    depth: int
    runs: Mapping[str, str]
    qrels: Mapping[str, tuple[str, str]]
    referenced: bool
    outcome: KnownOutcome

    @property
    def asks(self) -> bool:
        """Whether it asks a server."""
        free = self.referenced or bool(self.qrels)
        return not free or not (self.outcome.rated or (self.outcome.files and self.referenced))

    def toml(self) -> str:
        """Return the experiment file."""
        out = [
            "# Written by `judgekit init`. Paths are relative to this file.",
            "",
            "[data]",
            f"queries = {_quoted(self.queries)}",
            f"docs = {_quoted(self.docs[0] if len(self.docs) == 1 else list(self.docs))}",
            _line(f"depth = {self.depth}", f"the first {self.depth} documents of each run are labelled, each once"),
            "",
            "[runs]",
            *(f"{_key(name)} = {_quoted(file)}" for name, file in self.runs.items()),
            "",
        ]
        server, judge = [*_server()], [*_labeler("judge", "an LLM reads each passage", name="judge")]
        if self.asks:
            out += [*server, ""]
        else:
            out += ["# An LLM as judge: fill in a server, and take the # away."]
            out += [*map(_commented, server), *map(_commented, judge), ""]
        if self.referenced:
            out += [*_labeler("containment", "a reference answer stands in the passage; free"), ""]
        for name, (file, expand) in self.qrels.items():
            options = {"qrels": file, **({"expand": expand} if expand else {})}
            out += [*_labeler("provenance", "existing judgments; free", options, name), ""]
        if self.asks:
            out += [*judge, ""]
            if self.referenced:
                out += [*_labeler("utility", "an LLM answers from each passage alone", name="erag"), ""]
        primary = f"nDCG@{max(self.outcome.depths)}"
        out += [
            *self._answers(),
            "",
            "[analysis]",
            _line(f"primary = {_quoted(primary)}", "the measure that the decision is about"),
        ]
        return "\n".join(out) + "\n"

    def _answers(self) -> Iterator[str]:
        """Yield the table of the outcome: people's ratings, references, judgments, else an LLM."""
        known = self.outcome
        yield _line("[answers]", "the outcome: which labels follow the quality of the answers?")
        if known.metrics:
            yield f"ratings = {_quoted(known.files)}"
        elif known.files:
            yield f"import = {_quoted(known.files if len(known.files) > 1 else known.files[0])}"
            yield _line('# answered_by = "…"', "the model that gave them: labels of the same model are marked")
        chosen = False
        for rated, scale in known.rated.items():
            shown = f"outcome = {_quoted(rated)}"
            yield _line(f"# {shown}" if chosen else shown, "people's ratings")
            if scale is not None:
                declared = f"scale = {_quoted(scale)}"
                yield _line(f"# {declared}" if chosen else declared, "by the values; correct it if it is another")
            chosen = True
        if known.rated and known.cluster:
            yield _line(f"cluster = {_quoted(known.cluster)}", "a user's ratings go together")
            yield _line('# assigned = "random"', "if each rating is about the one run that was drawn for a user")
        trusted = next(iter(self.qrels), "") if not (known.files or self.referenced) else ""
        if trusted:
            chosen = True
            yield _line(f"outcome = {_quoted(trusted)}", "no answers: the order of the runs under these judgments")
        elif not known.rated:
            metrics = ["em", "f1"] if self.referenced else ["grounded"]
            yield f"metrics = {_quoted(metrics)}"
        if self.referenced and not known.metrics:
            shown = 'outcome = "em"'
            yield _line(f"# {shown}" if chosen else shown, "the reference answer, word by word; f1 counts common words")
            yield _line('# outcome = "correct"', 'an LLM compares with the reference: add "correct" to metrics')
        elif not known.metrics and not known.rated:
            what = "an LLM checks answers, not whether they are right"
            yield _line(f'{"# " if chosen else ""}outcome = "grounded"', what)
            if chosen:
                yield '# metrics = ["grounded"]'
        yield _line(f"depths = {known.depths}", "how many documents an answer was made from")


def _server() -> Iterator[str]:
    yield _line("[endpoints.local]", "any OpenAI-compatible server: fill in its address and model")
    yield 'base_url = "http://localhost:8000/v1"'
    yield f"model = {_quoted(MODEL)}"
    yield _line('# api_key_env = "MY_KEY"', "the name of the variable that holds the key, not the key")
    yield ""
    yield _line(f"# [prices.{MODEL}]", "money for a million tokens; then `judgekit plan` tells the costs")
    yield "# prompt = 0.15"
    yield "# completion = 0.60"


def _labeler(kind: str, does: str, options: Mapping[str, str] | None = None, name: str = "") -> Iterator[str]:
    yield "[[labelers]]"
    if name:
        yield f"name = {_quoted(name)}"
    yield _line(f"kind = {_quoted(kind)}", does)
    for key, value in (options or {}).items():
        yield f"{key} = {_quoted(value)}"


def _commented(line: str) -> str:
    return line if not line or line.startswith("#") else f"# {line}"


def _quoted(value: str | list[str]) -> str:
    return json.dumps(value, ensure_ascii=False)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _quoted(name)


def _line(line: str, comment: str) -> str:
    return f"{line:<31} # {comment}"
