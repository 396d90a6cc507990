"""Writes docs/study.md and its figures: `make study`."""

from __future__ import annotations

import sys

from studies import assessors, depth, experts, judged, judges, kinds, noise, page
from studies.source import COMMITS, SourceError

LICENCES = {
    "llm4eval/LLMJudge-benchmark": "MIT",
    "chaitanyamalaviya/ExpertQA": "MIT",
}


def whole() -> str:
    """Return the page."""
    credit = [
        (f"[{repo}](https://github.com/{repo}/tree/{commit})", commit[:7], LICENCES.get(repo, "none stated"))
        for repo, commit in COMMITS.items()
    ]
    return "\n\n".join(
        [
            "# Studies on public data",
            "**No LLM judge was compared with answers here.** No public repository was found that holds LLM labels of"
            " passages, runs and answers together. These commands would do it, for the"
            f" {judged.pairs():,} pairs that three retrievers found for the questions below:",
            "<!-- not run: it needs the studies' data and a large model -->\n```console\n"
            "$ python -m studies.judged judged\n"
            "$ vllm serve Qwen/Qwen3-8B --port 8000\n"
            "$ judgekit run judged/experiment.toml --dry-run\n"
            "$ judgekit run judged/experiment.toml --out judged/results\n```",
            "What public data do show is below. `make study` writes this page: every number comes from it, decisions"
            " are word for word what judgekit prints, and a sentence that the numbers do not bear out stops it."
            " Numbers in brackets are 95 % intervals. Intervals of gains hold for all labelings of a figure together,"
            " all others for one number each.",
            *(study.study() for study in (noise, kinds, depth, judges, assessors, experts)),
            "## Sources",
            "The data are fetched when the studies are run, each file is held against its SHA-256, and none is kept"
            " here.",
            page.table(["repository", "commit", "licence"], credit),
        ]
    )


if __name__ == "__main__":
    try:
        text = whole()
    except SourceError as error:
        sys.exit(str(error))
    (page.DOCS / "study.md").write_text(text + "\n")
