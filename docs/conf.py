"""Settings of the site: ``make site`` builds it with Sphinx from the pages of this folder and the docstrings."""

import os
import shutil
import sys
from pathlib import Path

from docutils import nodes

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools" / "site")]
os.environ["JAX_PLATFORMS"] = "cpu"  # nothing is computed, and no other device is looked for

import site_links  # noqa: E402
import site_reference  # noqa: E402

import attnpool_ref  # noqa: E402

project = "attnpool"
author = "The attnpool authors"
version = release = attnpool_ref.__version__
language = "en"
smartquotes = False  # options begin with two hyphens

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx_click",
    "sphinx_copybutton",
    "sphinx_design",
]
source_suffix = {".rst": "restructuredtext", ".md": "markdown", ".markdown": "markdown"}
root_doc = "index"
exclude_patterns = ["README.md", "variants.md"]  # their places are the side bar and the reference

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_fence_as_directive = ["math"]
myst_heading_anchors = 4

autodoc_preserve_defaults = True
autodoc_typehints = "none"
napoleon_custom_sections = ["Source", "In JAX", "Packed"]
napoleon_use_rtype = False
python_maximum_signature_line_length = 100
toc_object_entries = False  # the sections have the same names

html_theme = "sphinx_book_theme"
html_title = "attnpool"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_search_scorer = str(ROOT / "docs" / "_static" / "scorer.js")
html_favicon = html_logo = "_static/logo.svg"
html_context = {"default_mode": "auto"}
html_theme_options = {
    "logo": {"text": "attnpool", "alt_text": "attnpool"},
    "navbar_persistent": [],  # the search is in the side bar
    "show_navbar_depth": 1,
    "show_toc_level": 2,
    "use_download_button": False,
    "use_fullscreen_button": False,
}
if address := os.environ.get("SITE_ADDRESS", ""):  # of the published site: .github/workflows/pages.yml
    html_baseurl = address
    html_theme_options |= {
        "switcher": {"json_url": f"{address}/versions.json", "version_match": os.environ["SITE_VERSION"]},
        "check_switcher": False,  # the list may not be published yet
        "primary_sidebar_end": ["version-switcher"],
    }
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
mathjax_path = "mathjax/tex-chtml.js"  # of this folder: the site asks no other host
copybutton_exclude = ".linenos, .gp, .go"


def setup(app):
    """Has the reference written before the pages are read, and links changed as they are read."""
    site_reference.write()
    app.connect("autodoc-process-signature", site_reference.readable_signature)
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
    """Copies the page of plain HTML and JavaScript, as it is."""
    if not error:
        shutil.copytree(ROOT / "docs" / "interactive", app.outdir / "interactive", dirs_exist_ok=True)
