"""An experiment's requests asked by batch services or through batch files, at half the price, within a day."""

from judgekit.plugins.batch import command  # noqa: F401 - it registers
