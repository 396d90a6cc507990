"""What a real browser makes of a hostile page."""

from __future__ import annotations

import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest

from judgekit import report
from judgekit.report.page import SCRIPTS
from tests.report.conftest import HOSTILE, make_results, parse_page, poisoned

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
TSC = Path(__file__).parents[2] / "node_modules/typescript/bin/tsc"
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--dump-dom",
)  # fmt: skip


@pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")
def test_a_browser_builds_the_same_elements_from_hostile_texts(tmp_path):
    trees = []
    for name, results in (("plain", make_results(note="a")), ("hostile", poisoned(make_results(note="a"), HOSTILE))):
        page = tmp_path / f"{name}.html"
        report.write_html(results, page)
        command = [str(BROWSER), *FLAGS, f"--user-data-dir={tmp_path / name}", page.as_uri()]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        trees.append(parse_page(done.stdout))
    plain, dumped = trees
    assert set(dumped.tags) <= set(plain.tags)
    assert {name for _, name, _ in dumped.attributes} <= {name for _, name, _ in plain.attributes}
    assert "<script>alert(1)</script>" in dumped.whole


@pytest.mark.skipif(not TSC.exists(), reason="TypeScript is not installed (npm install --no-save typescript@5.9)")
def test_the_types_that_the_scripts_declare_hold(tmp_path):
    folder = files("judgekit.report") / "templates"
    text = "".join((folder / name).read_text(encoding="utf-8") for name in SCRIPTS)
    (tmp_path / "page.js").write_text(text, encoding="utf-8")
    options = ["--checkJs", "--noEmit", "--target", "es2024", "--lib", "dom,dom.iterable,es2024"]
    done = subprocess.run(["node", TSC, *options, tmp_path / "page.js"], capture_output=True, text=True, timeout=120)
    assert done.stdout == ""
