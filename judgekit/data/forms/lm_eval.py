"""``lm_eval``: the samples that lm-evaluation-harness logs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from judgekit.data.forms.entry import listed_in
from judgekit.data.forms.tool import Tool, at
from judgekit.data.records import Fields, as_number


def _each(fields: Fields) -> Iterator[Fields]:
    """Yield a record for each reply of a repeated request, and for each way to choose among given choices."""
    replies = listed_in(fields.get("filtered_resps")) or []
    asked = [at(fields, f"arguments.gen_args_{number}.arg_1") for number in range(len(replies))]
    choices = list(dict.fromkeys(text.strip() for text in asked if isinstance(text, str) and text.strip()))
    if 1 < len(choices) == len(replies):
        yield from _chosen(fields, choices, replies)
    elif len(replies) == 1 and isinstance(replies[0], list) and isinstance(asked[0], Mapping):
        for number, reply in enumerate(replies[0], 1):
            yield {**fields, "reply": number, "filtered_resps": [reply]}
    else:
        yield dict(fields)


def _chosen(fields: Fields, choices: Sequence[str], replies: Sequence[Any]) -> Iterator[Fields]:
    """Yield the likeliest choice by each of the harness' ways that its sample has a value of."""
    likely = [as_number(next(iter(listed_in(reply) or []), None)) for reply in replies]
    # The harness logs the text of the right choice or its number, from 0 on.
    right = [text for place, text in enumerate(choices) if fields.get("target") in (text, str(place))]
    if any(map(math.isnan, likely)) or len(right) != 1:
        raise ValueError(
            "'filtered_resps' must hold a log-probability for each choice, and 'target' one of the choices or the"
            f" number of one, not {fields.get('target')!r:.60}"
        )
    for way in [name for name in ("acc", "acc_norm") if name in fields] or ["acc"]:
        lengths = [len(choice) if way == "acc_norm" else 1 for choice in choices]
        weighed = [number / length for number, length in zip(likely, lengths, strict=True)]
        yield {**fields, "choice": way, "filtered_resps": [choices[weighed.index(max(weighed))]], "target": right[0]}


def _only(filtered: Any) -> Any:
    """Return the filtered reply; raise a `ValueError` if there are several."""
    replies = listed_in(filtered) or []
    if len(replies) != 1 or not isinstance(replies[0], str):
        raise ValueError("'filtered_resps' must hold one text: log samples of a task that generates one answer")
    return replies[0]


def _several(target: Any) -> Any:
    """Return the targets, which the harness logs as Python shows a list of texts."""
    texts = listed_in(target) or []
    return texts if texts and all(isinstance(text, str) for text in texts) else target


LM_EVAL: Final = Tool(
    "lm_eval",
    release="0.4.13",
    exports="the samples that the harness logs, `samples_TASK_….jsonl`",
    tells=("doc_id", "doc", "filtered_resps", "target"),
    question="doc.question | doc.query | doc.input",
    id="doc.id | doc.query_id | doc.question_id | doc_hash",
    answer="filtered_resps",
    reads={"answer": _only, "reference": _several},
    reference="target",
    passages="doc.contexts | doc.passages | doc.documents",
    each=_each,
    apart=("filter", "choice", "reply"),
    scores="exact_match | acc* | f1 | em | bleu | rouge*",
    example='{"doc_id": 0, "doc": {"question": "Who?"}, "target": "Ann", "filtered_resps": ["Ann"]}\n',
)
