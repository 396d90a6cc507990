"""The gate: did the answers get worse, and would these labels have noticed?"""

from judgekit.plugins.guard import command  # noqa: F401 - it registers
from judgekit.registry import register

register.names("judgekit.plugins.guard.gate", "Guarded", "guard")
register.names("judgekit.plugins.guard.passing", "Gate")
