"""Sphinx configuration of the site: `make docs` builds it into build/site.

The pages are Markdown that is read as well on the forge. Nothing is fetched, neither by the build nor by a page.
"""

from __future__ import annotations

import os
import re
from importlib import import_module
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

from docs.generated import write_pages

ROOT = Path(__file__).resolve().parents[1]

project = "mcpfactory"
author = "the authors of mcpfactory"
version = release = version_of("mcpfactory")
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
exclude_patterns = ["examples"]
nitpicky = False  # annotations name types of other packages, and nothing is fetched to find them
keep_warnings = True

myst_heading_anchors = 4  # `page.md#heading` leads to headings as it does on the forge
myst_enable_extensions = ["attrs_inline"]
suppress_warnings = [
    "ref.python",  # a name in a signature that several modules have
]

autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 88
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
autodoc_class_signature = "mixed"
napoleon_numpy_docstring = False
napoleon_use_ivar = True  # attributes of a class as a list; its properties are described where they are

html_theme = "furo"
html_title = f"mcpfactory {release}"
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
html_static_path: list[str] = []
copybutton_exclude = ".linenos, .gp, .go"

# Modules whose names are loaded at first use: autodoc sees only what is there already.
LAZY = ("mcpfactory_runtime", "mcpfactory_runtime.upstream", "mcpfactory_pipeline")


class LinksOutside(SphinxTransform):
    """Links to files that are no pages lead to the forge where its address is known (in its CI), and are plain text elsewhere."""

    default_priority = 100  # before sphinx copies what pages offer for download

    def apply(self, **_: Any) -> None:
        """Replaces the links of one page."""
        folder, forge = (ROOT / "docs" / self.env.docname).parent, _forge()
        for link in list(self.document.findall(addnodes.download_reference)):
            file = Path(os.path.normpath(folder / link["reftarget"])).relative_to(ROOT)
            text = [child.deepcopy() for child in link.children]
            link.replace_self(nodes.reference("", "", *text, refuri=f"{forge}/{file.as_posix()}") if forge else text)


def _code(_app: Sphinx, _what: str, _name: str, _obj: object, _options: object, lines: list[str]) -> None:
    """Docstrings put code between single backticks, as Markdown does; reStructuredText wants two, and no letter behind them."""
    text = re.sub(
        r"(?<!`)`([^`]+)`(?!`)(?=(\w?))", lambda it: f"``{it[1]}``" + ("\\ " if it[2] else ""), "\n".join(lines)
    )
    lines[:] = text.split("\n")


def _signature(
    _app: Sphinx, _what: str, _name: str, _obj: object, _options: object, signature: str | None, returns: str | None
) -> tuple[str | None, str | None]:
    """Defaults that are made anew for each object are written so that the signature can be read as Python."""
    return (signature or "").replace("<factory>", "...") or None, returns


def _forge() -> str:
    """The address of this commit's files, from the variables of GitHub Actions; "" elsewhere."""
    parts = [os.environ.get(name, "") for name in ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_SHA")]
    return "{}/{}/blob/{}".format(*parts) if all(parts) else ""


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by sphinx."""
    write_pages(ROOT)
    for name in LAZY:
        module = import_module(name)
        for member in module.__all__:
            getattr(module, member)
    app.connect("autodoc-process-docstring", _code, priority=400)  # before napoleon reads the sections
    app.connect("autodoc-process-signature", _signature)
    app.add_transform(LinksOutside)
    return {"parallel_read_safe": True}
