"""Has real tools write their exports again: ``python -m tests.exports [OPTION ...] [TOOL ...]`` (``make exports``).

Each script beside this file names its tool's release as inline script metadata. It is run in an environment of its own
below ``build/exports``, against a stand-in for an LLM on 127.0.0.1, in an empty folder; what it leaves there is put in
normal form and takes the place of ``tests/exports/TOOL-VERSION``. What changed is shown; any change is exit status 1.
With ``--newest`` the newest release is installed, and nothing in the tree is replaced. With ``--forget`` each
environment is removed after its use: all together take more than ten gigabytes.
"""

from __future__ import annotations

import argparse
import filecmp
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from tests.exports.endpoint import serving
from tests.exports.normal import normalise

HERE = Path(__file__).resolve().parent
BUILD = HERE.parent.parent / "build" / "exports"
_METADATA = re.compile(r"(?m)^# /// script\n((?:#.*\n)+?)# ///$")


def scripts() -> dict[str, Path]:
    """Return the scripts by the name of their tool."""
    return {path.stem.removeprefix("by_"): path for path in sorted(HERE.glob("by_*.py"))}


def metadata(script: Path) -> dict[str, Any]:
    """Return the inline metadata of a script: ``dependencies``, the tool first, and what ``tool`` may hold.

    ``durations`` and ``installer``; ``bare``, the packages that are installed without what they depend on.
    """
    block = _METADATA.search(script.read_text(encoding="utf-8"))
    if block is None:
        raise SystemExit(f"{script.name} has no inline metadata")
    lines = [line.removeprefix("#").removeprefix(" ") for line in block[1].splitlines()]
    held = tomllib.loads("\n".join(lines))
    return {
        "durations": [],
        "installer": "pip",
        "bare": [],
        **held.get("tool", {}),
        "dependencies": held["dependencies"],
    }


def version_of(script: Path) -> str:
    """Return the release that a script's export is of."""
    return metadata(script)["dependencies"][0].split("==")[1]


def environment(script: Path, *, newest: bool) -> Path:
    """Return the Python that has a script's tool, installed if it is not there."""
    dependencies = metadata(script)["dependencies"]
    if newest:
        dependencies = [dependencies[0].split("==")[0], *dependencies[1:]]
    place = BUILD / (script.stem.removeprefix("by_") + ("-newest" if newest else ""))
    marker = place / "installed.txt"
    wanted = "\n".join(dependencies)
    if not newest and marker.is_file() and marker.read_text(encoding="utf-8") == wanted:
        return place / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
    if metadata(script)["installer"] == "npm":
        packages = [dependency.replace("==", "@") for dependency in dependencies]
        subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--prefix", str(place), *packages], check=True)
    else:
        python = str(place / "bin" / "python")
        install = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--upgrade"]
        if shutil.which("uv"):  # a tenth of the time
            install = ["uv", "pip", "install", "-q", "--python", python, "--upgrade"]
        bare = [package for package in dependencies if package.split("==")[0] in metadata(script)["bare"]]
        whole = [package for package in dependencies if package not in bare]
        for packages in (whole, bare and ["--no-deps", *bare]):
            if packages:
                subprocess.run([*install, *packages], check=True)
    marker.write_text(wanted, encoding="utf-8")
    return place / "bin" / "python"


def installed(script: Path, python: Path) -> str:
    """Return the release of its tool that a script's environment has."""
    tool = metadata(script)["dependencies"][0].split("==")[0]
    if metadata(script)["installer"] == "npm":
        package = python.parent.parent / "node_modules" / tool / "package.json"
        return str(json.loads(package.read_text(encoding="utf-8"))["version"])
    asked = [str(python), "-c", f"from importlib.metadata import version; print(version({tool!r}))"]
    return subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()


def written(script: Path, python: Path, endpoint: str, folder: Path) -> None:
    """Run a script in an empty folder and put what it leaves in normal form."""
    variables = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    programs = [str(python.parent), str(python.parent.parent / "node_modules" / ".bin"), variables["PATH"]]
    variables |= {"PATH": os.pathsep.join(programs), "ENDPOINT": endpoint, "TZ": "UTC", "PYTHONDONTWRITEBYTECODE": "1"}
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run([str(python), str(script), str(folder)], check=True, cwd=scratch, env=variables)
    normalise(folder, metadata(script)["durations"])


def differences(old: Path, new: Path) -> list[str]:
    """Return a line for each file that is new, gone or changed."""
    before = {str(path.relative_to(old)) for path in old.rglob("*") if path.is_file()} if old.is_dir() else set()
    after = {str(path.relative_to(new)) for path in new.rglob("*") if path.is_file()}
    said = [f"gone: {name}" for name in sorted(before - after)]
    said += [f"new: {name}" for name in sorted(after - before)]
    for name in sorted(before & after):
        if not filecmp.cmp(old / name, new / name, shallow=False):
            said.append(f"changed: {name}")
    return said


def main() -> int:
    """Make exports, say what changed, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.exports")
    parser.add_argument("--newest", action="store_true", help="install the newest release, and replace nothing")
    parser.add_argument("--forget", action="store_true", help="remove each environment after its use")
    parser.add_argument("tools", nargs="*", help="all by default")
    asked = parser.parse_args()
    status = 0
    with serving() as endpoint:
        for name in asked.tools or scripts():
            script = scripts()[name]
            with tempfile.TemporaryDirectory() as made:
                folder = Path(made) / "out"
                folder.mkdir()
                python = None
                try:
                    python = environment(script, newest=asked.newest)
                    written(script, python, endpoint, folder)
                    release = installed(script, python)
                except subprocess.CalledProcessError as error:
                    print(f"{name}: {error}", flush=True)
                    status = 1
                    continue
                finally:
                    if asked.forget and python:
                        shutil.rmtree(python.parent.parent)
                kept = HERE / f"{name}-{version_of(script)}"
                changed = differences(kept, folder)
                print(f"{name} {release}: {', '.join(changed) or 'as before'}", flush=True)
                status |= bool(changed)
                if changed and not asked.newest:
                    shutil.rmtree(kept, ignore_errors=True)
                    shutil.copytree(folder, kept)
    return status


if __name__ == "__main__":
    sys.exit(main())
