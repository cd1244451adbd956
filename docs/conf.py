"""Settings of the site: ``make site`` builds it with Sphinx from the pages of this folder and the docstrings."""

import os
import sys
import tomllib
from pathlib import Path

from docutils import nodes

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools" / "site"), str(ROOT / "tools" / "generate")]
os.environ["JAX_PLATFORMS"] = "cpu"  # no other device is looked for
os.environ["MPLBACKEND"] = "svg"  # no window is opened

import site_interactive  # noqa: E402
import site_links  # noqa: E402
import site_notebooks  # noqa: E402
import site_reference  # noqa: E402

import attnpool_ref  # noqa: E402

project = "attnpool"
author = "The attnpool authors"
version = release = attnpool_ref.__version__
address = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["metadata"]["hooks"]["custom"][
    "address"
]
language = "en"
smartquotes = False  # options begin with two hyphens

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_click",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinxext.opengraph",
]
source_suffix = {".rst": "restructuredtext", ".md": "markdown", ".markdown": "markdown"}
root_doc = "index"
exclude_patterns = ["README.md"]  # its place is the side bar

myst_enable_extensions = ["attrs_inline", "colon_fence", "dollarmath"]
myst_fence_as_directive = ["math"]
myst_heading_anchors = 4

autodoc_preserve_defaults = True
autodoc_typehints = "none"
napoleon_custom_sections = ["Source", "In JAX", "Packed"]
napoleon_use_rtype = False
toc_object_entries = False  # the sections have the same names

html_theme = "sphinx_book_theme"
html_title = "attnpool"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_search_scorer = str(ROOT / "docs" / "_static" / "scorer.js")
html_favicon = html_logo = "_static/logo.svg"
html_context = {"default_mode": "auto"}
html_theme_options = {
    "logo": {"text": f"attnpool {version}", "alt_text": "attnpool"},
    "repository_url": address,
    "use_repository_button": bool(address),
    "search_as_you_type": True,
    "collapse_navbar": True,
    "footer_content_items": ["extra-footer", "sourcelink"],
    "extra_footer": f"attnpool {release}, by its authors. Apache License 2.0.",
    "navbar_persistent": [],  # the search is in the side bar
    "show_navbar_depth": 1,
    "show_toc_level": 2,
    "use_download_button": False,
    "use_fullscreen_button": False,
}
html_baseurl = os.environ.get("SITE_ADDRESS", "")  # of the published site: .github/workflows/pages.yml
ogp_site_url = html_baseurl and f"{html_baseurl}/"
ogp_social_cards = {"enable": False}
if html_baseurl:
    html_theme_options |= {
        "switcher": {"json_url": f"{html_baseurl}/versions.json", "version_match": os.environ["SITE_VERSION"]},
        "check_switcher": False,  # the list may not be published yet
        "primary_sidebar_end": ["version-switcher"],
    }
mathjax_path = "mathjax/tex-chtml.js"  # of this folder: the site asks no other host
copybutton_exclude = ".linenos, .gp, .go"


def setup(app):
    """Has generated pages and pictures written before the pages are read, and links changed as they are read."""
    site_reference.write()
    site_notebooks.write()
    app.connect("autodoc-process-signature", site_reference.readable_signature)
    app.connect("autodoc-process-docstring", site_reference.tabulated, priority=400)  # before napoleon, which is at 500
    app.connect("source-read", site_links.of_page)
    app.connect("include-read", site_links.of_included)
    app.connect("doctree-read", draw_dashes)
    app.connect("build-finished", copy_interactive_page)


def draw_dashes(app, doctree):
    """Makes a dash of the two hyphens that Sphinx writes behind the name of an argument."""
    del app
    for text in list(doctree.findall(nodes.Text)):
        if text.startswith(" -- "):
            text.parent.replace(text, nodes.Text(f" \N{EN DASH} {text[4:]}"))


def copy_interactive_page(app, error):
    """Copies the page of plain HTML and JavaScript, and writes the numbers with which it is compared."""
    if not error:
        site_interactive.write(app.outdir / "interactive")
