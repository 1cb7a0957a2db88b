"""Sphinx's settings.  Build with ``sphinx-build -W --keep-going -n -c docs . docs/_build/html``.

The source folder is the repository, so that links between README, docs and tutorials are the
same here as in an editor.  Nothing is fetched, when building or when reading.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from api_pages import write_api_pages  # noqa: E402

project = "minivllm"
author = "the minivllm authors"
copyright = "the minivllm authors, Apache-2.0"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "docs/index"
include_patterns = ["README.md", "docs/**.md", "tutorials/**.md", "minivllm/exercises/**.md"]
exclude_patterns = ["docs/_build/**"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
source_suffix = {".md": "markdown"}
default_role = "code"
smartquotes = False  # it turns --options into dashes

html_theme = "furo"
html_title = "minivllm"
html_copy_source = False
html_show_sphinx = False
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_theme_options = {"source_view_link": ""}

add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
# Types in NumPy-style docstrings are prose ("callable", "(num_tokens,) int32"): they become links
# where they happen to name one thing.
napoleon_preprocess_types = False
nitpick_ignore_regex = [("py:.*", r".*")]
suppress_warnings = ["ref.python"]

REDIRECT = ('<!doctype html><meta charset="utf-8"><title>minivllm</title>'
            '<meta http-equiv="refresh" content="0; url=docs/index.html">'
            '<a href="docs/index.html">minivllm</a>\n')


def write_redirect(app, exception):
    """Let the top of the site lead to its first page."""
    if exception is None and app.builder.format == "html":
        (Path(app.outdir) / "index.html").write_text(REDIRECT, encoding="utf-8")


def setup(app):
    """Make the API pages before reading, the redirect after writing."""
    app.connect("builder-inited", lambda app: write_api_pages(Path(app.srcdir)))
    app.connect("build-finished", write_redirect)
