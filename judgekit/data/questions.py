"""Which queries are one question: those whose conversation, text and language are equal once spelling is set aside.

Logs, benchmarks with several rows per question and repeated answers hold a question more than once. Counted row by row,
they would pass for independent questions and make a choice look too certain. Everything that resamples, counts, splits
or stops by questions uses this module.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from judgekit.data.documents import Queries, Query

PARTED: Final = "none"
"""The value of ``groups`` that makes each query its own question."""
UNKNOWN: Final = "Rows are counted as questions: their texts are not known."
"""The message if nothing tells which rows are one question."""
_END_MARKS: Final = ".?!。।؟։"
Key = tuple[object, ...]


def normalised(text: str) -> str:
    """Return a text without differences of spelling: compatible characters, case, white space and end marks."""
    # Case-folding undoes the normal form of some characters.
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    spaced = " ".join(folded.split())
    bare = spaced.rstrip(_END_MARKS + " ")
    return bare or spaced


def question_key(query: Query) -> Key:
    """Return the key of a query's question: the earlier messages, the text and the language."""
    history = [(message["role"], normalised(message["content"])) for message in query.messages]
    text = normalised(query.text)
    # The question is often the last message, too.
    if history and history[-1] == ("user", text):
        history.pop()
    return tuple(history), text, query.language.casefold()


def alike(keys: Mapping[str, Key]) -> dict[str, str]:
    """Return the id of each query's question, by query id: the first, by name, of the queries with the same key."""
    first: dict[Key, str] = {}
    for query_id in sorted(keys):
        first.setdefault(keys[query_id], query_id)
    return {query_id: first[key] for query_id, key in keys.items()}


def questions_of(queries: Queries) -> dict[str, str]:
    """Return the id of each query's question, by query id."""
    return alike({query_id: question_key(query) for query_id, query in queries.items()})


def joined(questions: Mapping[str, str], groups: Mapping[str, str]) -> dict[str, str]:
    """Return the name of each query's unit: queries that share a question or a group, directly or through others.

    A unit has the name of its first group; a single query without a group has its id after a NUL.
    """
    owner: dict[str, str] = {}

    def root(name: str) -> str:
        while owner.setdefault(name, name) != name:
            owner[name] = owner[owner[name]]
            name = owner[name]
        return name

    for query_id, question in questions.items():
        question, group = f"\0{question}", groups.get(query_id)
        ends = sorted({root(question), root(question if group is None else group)}, key=_groups_first)
        # Names of groups come before those of questions, so that declared groups keep their names and their order.
        owner[ends[-1]] = ends[0]
    return {query_id: root(f"\0{question}") for query_id, question in questions.items()}


def _groups_first(name: str) -> tuple[bool, str]:
    return name.startswith("\0"), name


@dataclass(frozen=True)
class Repeats:
    """The numbers of rows and questions.

    Attributes:
        rows: query ids.
        questions: the different questions that they ask.
        contradicting: questions whose rows have different reference answers.
        gold: questions whose rows have different relevant documents.
    """

    rows: int = 0
    questions: int = 0
    contradicting: int = 0
    gold: int = 0

    @classmethod
    def of(cls, questions: Mapping[str, str], ids: Iterable[str], contradicting: int = 0, gold: int = 0) -> Repeats:
        """Count some queries and their questions."""
        own = set(ids)
        return cls(len(own), len({questions.get(query_id, query_id) for query_id in own}), contradicting, gold)

    @property
    def any(self) -> bool:
        """Whether a question is repeated."""
        return self.questions < self.rows

    @property
    def sentence(self) -> str:
        """A sentence on what is counted; "" if every row is its own question."""
        if not self.any:
            return ""
        said = f"{self.rows:,} rows, {self.questions:,} different questions"
        return f"{said} (repeated texts are one question): all limits count {self.questions:,}."

    @property
    def contradiction(self) -> str:
        """A sentence on questions whose rows contradict each other; "" if there are none."""
        differing = {"reference answers": self.contradicting, "relevant documents": self.gold}
        parts = []
        for what, count in differing.items():
            if count:
                parts.append(f"{count:,} repeated {'text has' if count == 1 else 'texts have'} different {what}")
        return f'{"; ".join(parts)}: groups = "{PARTED}" counts them apart.' if parts else ""


def apart(questions: Mapping[str, str], said: Mapping[str, Iterable[str]]) -> int:
    """Return how many questions have rows of which something different is said; rows without anything say nothing."""
    by_question: dict[str, set[frozenset[str]]] = {}
    for query_id, words in said.items():
        by_question.setdefault(questions[query_id], set()).add(frozenset(words))
    return sum(len(different - {frozenset()}) > 1 for different in by_question.values())


def contradicting(questions: Mapping[str, str], said: Mapping[str, AbstractSet[str] | Sequence[str]]) -> int:
    """Return how many questions have rows with different texts, such as reference answers."""
    return apart(questions, {query_id: map(normalised, texts) for query_id, texts in said.items()})


def repeats_of(queries: Queries, questions: Mapping[str, str]) -> Repeats:
    """Return how often questions are repeated, and how many repeats differ in their reference answers."""
    references = {query_id: query.answers for query_id, query in queries.items()}
    return Repeats.of(questions, queries, contradicting(questions, references))
