from tests.small import folder, judgekit

__all__ = ["folder", "judgekit"]  # a fixture is found where its name is
