"""What others' code may use: `judgekit` and `judgekit.extend`, and nothing else is shown to them."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from judgekit import extend

ROOT = Path(__file__).resolve().parent.parent
PUBLIC = {"judgekit", "judgekit.extend", "judgekit.sample"}
OURS = {
    "examples/sample/record.py",  # records the replies of the bundled sample: a tool of the project
    "studies/pairs.py",  # asks what the analysis itself asks, by its functions
    "studies/rules.py",  # runs the rules of the analysis themselves, as the simulations do
    "docs/conf.py",
    "docs/generate.py",
}
"""What is shown to nobody as an example."""

PLACES = ["README.md", "docs/*.md", "notebooks/*.ipynb", "examples/**/*.py", "examples/**/*.md", "studies/**/*.py"]
FILES = [path for place in PLACES for path in sorted(ROOT.glob(place)) if path.relative_to(ROOT).as_posix() not in OURS]
BLOCK = re.compile(r"(?:^|\n)```python\n(.*?)\n```|<!-- set up\n(.*?)\n-->", re.S)


def pieces(path: Path) -> Iterator[str]:
    """Yield the Python of a file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        yield text
    elif path.suffix == ".ipynb":
        for cell in json.loads(text)["cells"]:
            if cell["cell_type"] == "code":
                lines = "".join(cell["source"]).splitlines()
                yield "\n".join(line for line in lines if not line.lstrip().startswith(("%", "!")))
    else:
        for block in BLOCK.finditer(text):
            yield block[1] or block[2]


def imported(path: Path) -> set[str]:
    """Return the modules of judgekit that a file's Python imports."""
    found: set[str] = set()
    for piece in pieces(path):
        for node in ast.walk(ast.parse(piece)):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module)
    return {name for name in found if name.split(".")[0] == "judgekit"}


def test_the_names_for_extensions_are_these() -> None:
    assert extend.__all__ == sorted(extend.__all__)
    assert extend.__all__ == [
        "Answer",
        "Answered",
        "Asker",
        "Claim",
        "Collection",
        "ConfigError",
        "Context",
        "DataError",
        "Event",
        "Failure",
        "Fields",
        "Label",
        "ListAsker",
        "Needs",
        "Prepared",
        "Progress",
        "Prompt",
        "Question",
        "Reply",
        "Request",
        "Response",
        "Score",
        "Section",
        "Session",
        "State",
        "StoppedError",
        "Unit",
        "Unread",
        "UsageError",
        "chat",
        "check_settings",
        "find_prompt",
        "load_prompt",
        "neutral",
        "passages",
        "render",
        "setting",
        "where",
    ]
    assert dir(extend) == extend.__all__


@pytest.mark.parametrize("name", extend.__all__)
def test_a_name_for_extensions_is_there_and_described(name: str) -> None:
    assert getattr(extend, name) is not None
    assert f"`{name}`" in (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")


def test_importing_the_names_imports_none_of_their_homes() -> None:
    code = "import sys, judgekit.extend; print([name for name in sys.modules if name.startswith('judgekit.')])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "['judgekit.extend']"


def test_an_unknown_name_is_an_error() -> None:
    with pytest.raises(ImportError, match="evaluate"):
        from judgekit.extend import evaluate  # type: ignore[attr-defined]  # noqa: F401


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_pages_and_examples_import_public_names_only(path: Path) -> None:
    assert imported(path) <= PUBLIC
