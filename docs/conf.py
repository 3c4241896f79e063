"""Configuration of the documentation site: Sphinx with MyST (Markdown), the Furo theme and autodoc.

`./dev docs` builds it. The source directory is the root of the repository, so that links between pages and to source files
are the same on the site and in a checkout. `docs/_toc.yml` is the table of contents.
"""

import pathlib

from docutils import nodes

project = "Tamis"
author = "the authors of Tamis"
copyright = author

root = pathlib.Path(__file__).parent.parent

extensions = [
    "myst_parser",
    "sphinx_external_toc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx_copybutton",
]

# Nothing is downloaded while the site is built, so links to NumPy and SciPy are plain links.
intersphinx_mapping: dict[str, object] = {}

external_toc_path = "docs/_toc.yml"
include_patterns = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/**"]
exclude_patterns = [
    ".*",
    "target",
    "crates",
    "tests",
    "benches",
    "python",
    "examples",
    "docs/_static",
    "docs/_templates",
    "docs/*.py",
]

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
# Pages of the API are in no table of contents but that of `docs/reference/api.md`.
suppress_warnings = ["myst.header", "etoc.toctree"]

# Quotes of programs stay as they are.
smartquotes = False

# Blocks of the level pages are tests (see tests/src/filetest.rs); they are shown as plain text.
highlight_language = "text"

autodoc_typehints = "signature"
autodoc_member_order = "groupwise"
autosummary_generate = True
autosummary_imported_members = True
# The pages of modules list what is public there, not what they import.
autosummary_ignore_module_all = False
templates_path = [str(root / "docs" / "_templates")]
add_module_names = False
nitpicky = False

html_theme = "furo"
html_title = "Tamis"
html_static_path = ["_static"]
html_css_files = ["tamis.css"]
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
pygments_style = "friendly"
pygments_dark_style = "monokai"


#: Pages of single functions.
API = "docs/reference/api/"


def pass_over_functions(app, page, template, context, doctree):
    """Lets *Next* and *Previous* of other pages pass over those of single functions."""
    if page.startswith(API):
        return
    relations = app.builder.relations
    for direction, place in (("prev", 1), ("next", 2)):
        other = relations.get(page, (None, None, None))[place]
        while other and other.startswith(API):
            other = relations[other][place]
        title = other and app.builder.render_partial(app.env.titles[other])["title"]
        context[direction] = {"link": app.builder.get_relative_uri(page, other), "title": title} if other else None


def name_diagnostics(app, doctree):
    """Gives the headings of diagnostics, which are codes, the titles that follow them, for the contents beside the page."""
    if app.env.docname != "docs/reference/diagnostics":
        return
    for section in doctree.findall(nodes.section):
        heading, *rest = section.children
        named = next(rest[0].findall(nodes.strong), None) if rest else None
        if named is not None and isinstance(rest[0], nodes.paragraph) and rest[0].astext() == named.astext():
            heading += [nodes.Text(": "), *named.children]
            section.remove(rest[0])


def setup(app):
    """Registers the languages of code blocks that Pygments does not know."""
    from pygments.lexers.python import PythonLexer
    from pygments.lexers.rust import RustLexer
    from pygments.lexers.special import TextLexer

    # Before the collector of contents reads the headings.
    app.connect("doctree-read", name_diagnostics, priority=400)
    app.connect("html-page-context", pass_over_functions)
    app.add_lexer("rust,ignore", RustLexer)
    for name in ("program", "scheduled"):
        app.add_lexer(name, PythonLexer)
    for name in ("inputs", "storage", "result", "notation", "looplets", "kernel", "error"):
        app.add_lexer(name, TextLexer)
