"""Everything that a page, a notebook, an example or a docstring calls exists; `tests/mentions.py` reads them."""

from pathlib import Path

import pytest

from tests import mentions

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "page.md"
DOCSTRING = 'def plain():\n    """{}"""\n'

PLANTED = {
    "fence: a function": ("page", "```python\nimport judgekit as jk\n\njk.relabel(runs)\n```", "relabel"),
    "fence: an argument": ("page", "```python\njk.score(runs, labels, ['P@1'], cutoff=5)\n```", "score(cutoff"),
    "fence: a method of what a call returns": (
        "page",
        "```python\nfound = jk.compare(scores, quality)\nfound.best_at_once('tau_b')\n```",
        "best_at_once",
    ),
    "fence: an attribute of what an attribute is": (
        "page",
        "```python\nprint(jk.compare(scores, quality).decision.winner)\n```",
        "winner",
    ),
    "fence: an import": ("page", "```python\nfrom judgekit.metrics import ndcg_of\n```", "ndcg_of"),
    "fence: a module": ("page", "```python\nimport judgekit.scores\n```", "judgekit.scores"),
    "fence: a command": ("page", "```console\n$ judgekit evaluate runs.trec\n```", "evaluate"),
    "fence: an option": ("page", "```console\n$ judgekit run experiment.toml \\\n      --speed 3\n```", "--speed"),
    "fence: an option of another command": ("page", "```bash\njudgekit score --people p.qrels\n```", "--people"),
    "fence: an extra": ("page", "```console\n$ pip install 'judgekit-qrels[pdf]'\n```", "pdf"),
    "fence: a target": ("page", "```console\n$ make everything\n```", "everything"),
    "text: a name": ("page", "Call `jk.model_matrix` for that.", "model_matrix"),
    "text: a member": ("page", "`Comparison.best_at_once(…)` has the numbers.", "best_at_once"),
    "text: a command": ("page", "Then `judgekit verify results` says so.", "verify"),
    "text: a command of a group": ("page", "Then `judgekit annotate count sheet.jsonl`.", "annotate count"),
    "text: an option": ("page", "With `--no-labels` nothing is asked.", "--no-labels"),
    "text: an extra": ("page", "Install `.[parquet]` first.", "parquet"),
    "text: a file": ("page", "See `examples/kilt/table.py`.", "examples/kilt/table.py"),
    "text: a target": ("page", "Run `make figures` again.", "figures"),
    "link: a file": ("page", "[the page](measurements.md)", "measurements.md"),
    "link: a heading": ("page", "# One\n\n[there](#two)", "#two"),
    "link: a heading of another page": ("page", "[there](install.md#on-mars)", "install.md#on-mars"),
    "set up: a name": ("page", "<!-- set up\nimport judgekit as jk\njk.mock()\n-->", "mock"),
    "cell: a member": ("cell", "import judgekit as jk\nrun = jk.read_run('a.trec')\nrun.best(3)", "best"),
    "cell: an argument": ("cell", "import judgekit as jk\njk.Endpoint('a', kind='callable')", "kind"),
    "cell: a member of one of two": (
        "cell",
        "import judgekit as jk\ncomparison, n = jk.compare(s, q), 3\ncomparison.matrix",
        "matrix",
    ),
    "cell of text: a name": ("text cell", "It is what `jk.trace` gives.", "trace"),
    "cell: a comment": ("cell", "x = 1  # as `jk.unlabel` does", "unlabel"),
    "docstring: a name": ("python", DOCSTRING.format("As `judgekit.metrics.rank` has it."), "judgekit.metrics.rank"),
    "docstring: a command": ("python", DOCSTRING.format("What ``judgekit grade`` does."), "grade"),
    "docstring: an option": ("python", DOCSTRING.format("With ``--fast`` at once."), "--fast"),
    "docstring: an example": (
        "python",
        DOCSTRING.format("Run.\n\n    Examples:\n        judgekit run experiment.toml --again\n    "),
        "--again",
    ),
    "docstring: a file": ("python", DOCSTRING.format("Read ``docs/manual.md``."), "docs/manual.md"),
    "message: a page": ("python", "raise ValueError('see docs/manual.md')\n", "docs/manual.md"),
    "message: an extra": ("python", "raise ImportError(\"pip install 'judgekit-qrels[plot]'\")\n", "plot"),
    "example: a name": ("example", "import judgekit as jk\n\nprint(jk.fuse)\n", "fuse"),
    "walk: a function": ("walk", "`client.session._Resolve.depart` gives it away.", "depart"),
}
"""Of each kind of place, something false: how it is read, the text, and what the finding names."""


def lies(kind: str, text: str) -> list[mentions.Lie]:
    """Return the false mentions of a text that stands in a kind of place."""

    def where(line: int) -> str:
        return f"page:{line}"

    if kind == "page":
        return [*mentions.page_lies(text, PAGE, where)]
    if kind in ("cell", "text cell"):
        cell = {"cell_type": "code" if kind == "cell" else "markdown", "source": text.splitlines(keepends=True)}
        return [*mentions.notebook_lies([cell], ROOT / "notebooks" / "page.ipynb", "page")]
    if kind == "python":
        return [*mentions.docstring_lies(text, ROOT / "judgekit" / "page.py", "page")]
    if kind == "example":
        return [*mentions.python_lies(text, where)]
    return [*mentions.walk_lies(text, where)]


@pytest.mark.parametrize("plant", PLANTED)
def test_a_false_mention_is_found_once(plant: str) -> None:
    kind, text, named = PLANTED[plant]
    (lie,) = lies(kind, text)
    assert named in f"{lie.says} {lie.why}"
    assert lie.where.startswith("page")


TRUE = {
    "page": """# One

[there](#one), [a page](install.md), [a site](https://example.org/x.md). `jk.label`, `judgekit.rules.Rules`,
`Comparison.plot()`, `judgekit run experiment.toml --limit 3`, `--dry-run`, `make test`, `docs/install.md`,
`judgekit-qrels[excel]`, `judgekit.NAME`.

```python
import judgekit as jk

run = jk.read_run("a.trec")
print([run.strip() for run in ("a", "b")], run.name)
scores = jk.score({"a": run}, {"l": labels}, ["P@1"], depth=5).scores()
scores.anything.of_pandas()
jk = other()
```

```console
$ judgekit run experiment.toml | tee --append log && make demo
$ pip install --no-deps 'judgekit-qrels[excel]'
```
""",
    "cell": "import judgekit as jk\n%matplotlib inline\n!judgekit run e.toml\njk.run('e.toml').comparison.table.x",
    "python": DOCSTRING.format("As `judgekit.compare` and ``judgekit cache stats`` do; ``--json`` in ``docs/cli.md``."),
    "walk": "`client.session._Resolve.arrive` and `data.frames.as_runs`, `analysis.py`.",
}


@pytest.mark.parametrize("kind", TRUE)
def test_nothing_is_said_of_what_exists(kind: str) -> None:
    assert lies(kind, TRUE[kind]) == []


def test_everything_that_is_mentioned_exists() -> None:
    read = mentioning = mentions.mentioning()
    assert {path.suffix for path in mentioning} >= {".md", ".py", ".ipynb", ".toml", ".yml"}
    assert len(read) > 300
    found = [lie for path in mentioning for lie in mentions.file_lies(path)]
    assert not found, "\n".join(f"{lie.where}: {lie.says}: {lie.why}" for lie in found)
