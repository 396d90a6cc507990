"""The names that the data room gives to others."""

from __future__ import annotations

import subprocess
import sys

import pytest

import judgekit.data


def test_every_exported_name_can_be_had() -> None:
    assert judgekit.data.__all__ == sorted(judgekit.data.__all__)
    for name in judgekit.data.__all__:
        assert getattr(judgekit.data, name).__name__ == name


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"module 'judgekit\.data' has no attribute 'read_everything'"):
        judgekit.data.read_everything  # noqa: B018 - the access is what is tested


def test_reading_queries_docs_and_runs_does_not_import_pandas() -> None:
    code = "import judgekit.data as d, sys; d.read_queries, d.read_docs, d.read_run; print('pandas' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
