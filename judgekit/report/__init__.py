"""Terminal tables, figures and the self-contained HTML page.

`Results` holds everything shown; `print_tables` and `write_html` show it; `save` and `load` keep it in a results
folder, from which the page can be drawn again.
"""

from judgekit.report.files import load, save, told_before, with_section
from judgekit.report.model import Results
from judgekit.report.page import render, write_html
from judgekit.report.terminal import print_tables

__all__ = ["Results", "load", "print_tables", "render", "save", "told_before", "with_section", "write_html"]
