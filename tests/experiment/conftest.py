"""The small experiment, and the command line in its folder."""

from tests.small import folder, judgekit

__all__ = ["folder", "judgekit"]  # a fixture is found where its name is
