"""The model's own words: its reply without what it repeats of the prompt."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Final

from judgekit.reading.ambiguity import MASK

_WORD: Final = re.compile(r"\w+")
_SPAN: Final = 4
_STOP: Final = re.compile(r"[.!?]\s")
# Not parts of a name or a number: "No. 1", "3 The passage".
_COMMON: Final = frozenset({"yes", "no", "the", "it", "this"})

_HUNDRED: Final = "100"
"""The one number of more than two digits that people grade by."""

_QUOTED: Final = re.compile(r"[\"“”„«»]([^\"“”„«»\n]{1,400})[\"“”„«»]|(?<!\w)['‘]([^'‘’\n]{1,400})['’](?!\w)")


@dataclass(frozen=True)
class PromptEcho:
    """What a model was shown, to tell its own words from what they repeat.

    Attributes:
        text: what may be repeated.
        except_for: a text whose spans count as the model's own.
    """

    text: str
    except_for: str = ""

    @cached_property
    def _words(self) -> tuple[str, str]:
        return f" {' '.join(self._tokens)} ", _prompt_words(self.except_for)

    @cached_property
    def _tokens(self) -> list[str]:
        return _folded(self.text)

    @cached_property
    def _spans(self) -> frozenset[tuple[str, ...]]:
        return _spans(self._tokens) - _prompt_spans(self.except_for)

    @cached_property
    def words(self) -> frozenset[str]:
        """The words that were shown, case-folded."""
        return frozenset(self._tokens)

    def holds(self, text: str) -> bool:
        """Whether the words of a text stand there, in this order."""
        said, excepted = self._words
        words = _joined(text)
        return words in said and words not in excepted

    @cached_property
    def _masked(self) -> dict[str, str]:
        """What `own` returned, by text: a reply is looked at line by line, and again as a whole."""
        return {}

    def own(self, text: str) -> str:
        """Return a text in which each span that repeats what was shown is one ``MASK``."""
        if text not in self._masked:
            self._masked[text] = self._mask(text)
        return self._masked[text]

    def _mask(self, text: str) -> str:
        parts: list[str] = []
        done = 0
        for start, end in sorted(self._repeated(text)):
            if start >= done:
                parts += (text[done:start], MASK)
            done = max(done, end)
        return "".join((*parts, text[done:]))

    def _repeated(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield where a text repeats what was shown: spans of words, names of two words, large numbers, quotations."""
        matches = list(_WORD.finditer(text))
        words = _folded(text)
        run = 0
        for place, said in enumerate(words):
            run = run + 1 if said in self.words else 0
            if run < _SPAN:
                continue  # most spans hold a word that was not shown
            start, end = matches[place - _SPAN + 1].start(), matches[place].end()
            # A span over the end of a question would hide that the reply asks one.
            if tuple(words[place - _SPAN + 1 : place + 1]) in self._spans and not _STOP.search(text, start, end):
                yield start, end
        for first, second in pairwise(matches):
            # Two capitals are most often a name from the passage, which a hedge or a number inside of it must not
            # taint.
            if text[first.start()].islower() or text[second.start()].islower():
                continue
            is_name = _COMMON.isdisjoint((first[0].casefold(), second[0].casefold()))
            if is_name and self.holds(f"{first[0]} {second[0]}"):
                yield first.start(), second.end()
        for word in matches:
            # Years and amounts are the passage's; a small number may be the grade itself.
            if word[0].isdecimal() and len(word[0]) > 2 and word[0] != _HUNDRED and self.holds(word[0]):
                yield word.span()
        for quoted in _QUOTED.finditer(text):
            quotation = quoted[quoted.lastindex or 0].strip()
            if " " in quotation and self.holds(quotation):
                yield quoted.span(quoted.lastindex or 0)


def _spans(words: list[str]) -> frozenset[tuple[str, ...]]:
    return frozenset(zip(*(words[start:] for start in range(_SPAN)), strict=False))


# A prompt's own text is the same for all pairs.
@lru_cache(maxsize=64)
def _prompt_spans(text: str) -> frozenset[tuple[str, ...]]:
    return _spans(_folded(text))


@lru_cache(maxsize=64)
def _prompt_words(text: str) -> str:
    return _joined(text)


def _folded(text: str) -> list[str]:
    # Folded as one text: a call for each word would take longer than finding them.
    return " ".join(_WORD.findall(text)).casefold().split()


def _joined(text: str) -> str:
    return f" {' '.join(_folded(text))} "
