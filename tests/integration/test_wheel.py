"""What is shipped: the sdist and the wheel hold what they should, and the wheel works where it is installed."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = {"benchmarks", "docs", "examples", "judgekit", "prompts", "studies", "tests", "notebooks", "Makefile"}
SHIPPED |= {"CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "README.md", "SECURITY.md"}
FRAME = {"pyproject.toml", "LICENSE", ".gitignore"}
CLUTTER = (".env", "notes.txt", "env/lib/tests/test_x.py", "env/lib/judgekit/x.py", "judgekit-demo/report.html")
JUNK = shutil.ignore_patterns("__pycache__", ".*", "*.pyc")


def run(*command: str | Path, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV", "COV_", "JUDGEKIT"))}
    done = subprocess.run(list(map(str, command)), cwd=cwd, env={**kept, **env}, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the sdist and the wheel that was built from it, out of a checkout with clutter in it."""
    checkout, dist = tmp_path_factory.mktemp("checkout"), tmp_path_factory.mktemp("dist")
    for name in sorted(SHIPPED | FRAME):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, checkout / name, ignore=JUNK)
        elif (ROOT / name).exists():
            shutil.copy2(ROOT / name, checkout / name)
    for clutter in CLUTTER:
        (checkout / clutter).parent.mkdir(parents=True, exist_ok=True)
        (checkout / clutter).write_text("no part of the project")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", dist, cwd=checkout)
    return dist


def files(folder: str) -> set[str]:
    """Return the files of a folder of the checkout that are to be shipped."""
    paths = (p.relative_to(ROOT) for p in (ROOT / folder).rglob("*") if p.is_file())
    return {p.as_posix() for p in paths if not any(part.startswith((".", "__pycache__")) for part in p.parts)}


def test_the_sdist_holds_the_project_and_nothing_else(dist: Path) -> None:
    (sdist,) = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {name.partition("/")[0] for name in names} <= SHIPPED | FRAME | {"PKG-INFO"}
    for folder in ("judgekit", "prompts", "examples", "tests", "notebooks", "docs"):
        assert names >= files(folder) - {"docs/commands.txt"}  # which `make docs` writes
    assert sdist.stat().st_size < 5_000_000


def test_the_wheel_holds_the_package_and_an_index_shows_the_readme_without_links_that_lead_nowhere(dist: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {name.split("/")[0].split("-")[0] for name in names} == {"judgekit", "judgekit_qrels"}
    inside = {name for name in names if name.startswith("judgekit/")}
    assert inside == files("judgekit") | {f"judgekit/{name}" for name in files("prompts")}
    sample = ("experiment.toml", "replies.jsonl.gz", "queries.jsonl", "docs.jsonl", "runs/bm25.trec")
    assert inside >= {f"judgekit/{name}" for name in ("py.typed", *(f"sample/{name}" for name in sample))}
    assert any(name.endswith("licenses/LICENSE") for name in names)
    (about,) = (name for name in names if name.endswith(".dist-info/METADATA"))
    with zipfile.ZipFile(wheel) as archive:
        shown = archive.read(about).decode().partition("\n\n")[2]
    assert shown.startswith("# judgekit")
    assert "judgekit init" in shown
    assert re.findall(r"\]\((?!https://)|<!--|\.svg", shown) == []


@pytest.fixture(scope="module")
def installed(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs' folder of a fresh environment with the wheel and what it asks for."""
    home = tmp_path_factory.mktemp("clean")
    venv.create(home, with_pip=True)
    programs = home / ("Scripts" if os.name == "nt" else "bin")
    (wheel,) = dist.glob("*.whl")
    pip = [programs / "python", "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    try:
        run(*pip, "--no-deps", "tomli-w", cwd=home)
    except AssertionError as error:
        pytest.skip(f"needs a package index: {str(error).strip().splitlines()[-1]}")
    run(*pip, wheel, cwd=home)
    return programs


def test_the_installed_wheel_runs_the_demo_elsewhere_and_finds_its_prompts(installed: Path, tmp_path: Path) -> None:
    home, here = tmp_path / "home", tmp_path / "here"
    home.mkdir()
    here.mkdir()
    where = run(installed / "python", "-c", "import judgekit; print(judgekit.__file__)", cwd=here).stdout
    assert Path(where.strip()).is_relative_to(installed.parent)
    shown = run(installed / "judgekit", "demo", cwd=here, HOME=str(home), COLUMNS="160").stdout
    (report,) = here.rglob("report.html")
    assert report.name in shown.replace("\n", "")
    assert "Replayed: the recorded replies of a small real model" in report.read_text(encoding="utf-8")
    assert sum(1 for _ in here.rglob("*.qrels")) >= 4
    assert not list(home.iterdir()), "the demo keeps everything inside its results folder"
    code = "from judgekit.reading.prompts import list_prompts; print(*(p.name for p in list_prompts()))"
    shown = run(installed / "python", "-c", code, cwd=tmp_path).stdout
    assert sorted(shown.split()) == sorted(Path(name).stem for name in files("prompts"))
