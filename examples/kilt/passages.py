"""Cuts KILT's knowledge source into passages of 100 words, with the ids that BERGEN's runs have.

    python passages.py kilt_knowledgesource.json passages.jsonl

Lists are left out and passages numbered over all pages in their order, as BERGEN (naver/bergen) does. Each passage has
the page it is from (`page_id`), which is what KILT's provenance names.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from itertools import count

WORDS = 100


def passages(pages: Iterable[str]) -> Iterator[dict[str, str]]:
    """Yield the passages of pages, each a line of the knowledge source."""
    number = count()
    for line in pages:
        page = json.loads(line)
        paragraphs = [text.strip() for text in page["text"] if "BULLET::::" not in text]
        words = " ".join(paragraphs).replace("Section::::", "Section:").split()
        for start in range(0, len(words), WORDS):
            yield {
                "doc_id": str(next(number)),
                "title": page["wikipedia_title"],
                "text": " ".join(words[start : start + WORDS]),
                "page_id": str(page["wikipedia_id"]),
            }


def main(source: str, target: str) -> None:
    """Convert a file, a page at a time: it holds 35 GB."""
    with open(source, encoding="utf-8") as pages, open(target, "w", encoding="utf-8") as file:
        for passage in passages(pages):
            file.write(json.dumps(passage, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
