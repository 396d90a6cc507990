"""``python -m judgekit`` is the command line."""

from judgekit.cli import main

main()
