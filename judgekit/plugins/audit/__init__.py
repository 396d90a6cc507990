"""What a comparison alone does not show of a labeling: circularity, bias, gullibility.

`flow.audit` reads a results folder, does the checks and returns an `Audit`: `Number`s by labeling.
"""

from judgekit.plugins.audit import command  # noqa: F401 - it registers
from judgekit.registry import register

register.names("judgekit.plugins.audit.flow", "Audit", "audit")
