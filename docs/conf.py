"""How the pages are built: `make docs`."""

from __future__ import annotations

import judgekit

project = "judgekit"
author = "The judgekit authors"
version = release = judgekit.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = f"judgekit {version}"
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["wide.css"]
html_show_sphinx = False
html_show_copyright = False
exclude_patterns = ["_build"]

myst_heading_anchors = 3  # links to headings, spelled as GitHub spells them
myst_url_schemes = ("http", "https")

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints_format = "short"
napoleon_use_ivar = True  # an attribute that is a function would else be described twice
default_role = "code"

linkcheck_timeout = 10
linkcheck_retries = 2
linkcheck_anchors = False  # pages that are made by scripts show none
linkcheck_ignore = [r"http://localhost"]
