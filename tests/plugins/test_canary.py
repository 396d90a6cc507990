"""Canaries: what the options of ``[canary]`` may be. What they find: tests/cli/test_cli_models.py."""

import pytest

from judgekit.errors import UsageError
from judgekit.plugins.canary import CanaryConfig


def test_a_canary_looks_at_one_pair_or_more() -> None:
    with pytest.raises(UsageError, match="pairs must be at least 1, not 0"):
        CanaryConfig(pairs=0)
