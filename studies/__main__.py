"""Writes docs/study.md, its figures and its table of pairs: `make study`."""

from __future__ import annotations

import sys
from itertools import chain

from studies import page, sections, small_model
from studies.source import COMMITS, SourceError

LICENCES = {
    "bbucksch/RAGs-for-Complex-QA": "Apache-2.0",
    "webis-de/clef24-mibi-bioasq-": "MIT",
    "TonicAI/tonic_validate": "MIT",
    "chaitanyamalaviya/ExpertQA": "MIT",
}


def whole() -> str:
    """Write the figures and the table of pairs, and return the page."""
    found = sections.Found.read()
    page.numbers(found.pairs, "study-pairs.csv")
    credit = [
        (f"[{repo}](https://github.com/{repo}/tree/{commit})", commit[:7], LICENCES.get(repo, "none stated"))
        for repo, commit in COMMITS.items()
    ]
    parts = chain(
        ["# Studies on public data"],
        sections.headline(found),
        sections.judging(),
        sections.choosing(found),
        sections.indexes(found),
        sections.twice(found),
        sections.snippets(),
        sections.construction(found),
        sections.unanswerable(),
        sections.usefulness(),
        small_model.place(),
        sections.gap(),
        ["## Tables"],
        sections.repositories(found),
        sections.gains(found),
        sections.prompts(found),
        sections.constructed(found),
        sections.judged_by_people(),
        sections.little(found),
        sections.method(),
        [
            "## Sources",
            "The data are fetched when the studies are run, checked by their SHA-256, and none are kept here. BioASQ's"
            " questions are CC BY 2.5.",
            page.table(["repository", "commit", "licence"], credit),
        ],
    )
    return "\n\n".join(parts)


if __name__ == "__main__":
    try:
        text = whole()
    except SourceError as error:
        sys.exit(str(error))
    (page.DOCS / "study.md").write_text(text + "\n")
