"""What a comparison alone does not show of a labeling: circularity, whether a jury is worth it, bias, gullibility.

`audit` reads a results folder (or runs an experiment), does the checks that are asked for and returns an `Audit`: one
`Card` per labeling. The package can be called, so that ``jk.audit(...)`` is `audit` and ``judgekit.audit`` the room.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from judgekit.audit.flow import Audit

__all__: list[str] = []


class _Room(ModuleType):
    def __call__(self, *arguments: Any, **options: Any) -> Audit:
        """Audit an experiment or its results, see `judgekit.audit.flow.audit`."""
        from judgekit.audit.flow import audit

        return audit(*arguments, **options)


sys.modules[__name__].__class__ = _Room
