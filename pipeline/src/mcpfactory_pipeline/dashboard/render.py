"""Views into HTML: the only module that imports Jinja2.

Autoescape is on for everything, for names and texts come from API documents that nobody vouches for. There is neither
inline script nor inline style, so that the content-security policy can forbid both.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Final

import jinja2

from mcpfactory_pipeline.dashboard.board import Board
from mcpfactory_pipeline.dashboard.server import ServerPage

__all__ = ["ASSETS", "POLICY", "asset", "render_board", "render_problem", "render_server"]

_PACKAGE = files("mcpfactory_pipeline.dashboard")
ASSETS: Final = {"style.css": "text/css", "page.js": "text/javascript"}
POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'"
)

_templates = jinja2.Environment(
    loader=jinja2.FunctionLoader(lambda name: (_PACKAGE / "templates" / name).read_text("utf-8")),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def render_board(board: Board, *, static: bool = False) -> str:
    """The board as a page. `static` pages link to files and carry the policy in themselves."""
    return _render("board.html", board=board, up="", static=static)


def render_server(page: ServerPage, *, static: bool = False) -> str:
    """The page of one server, two folders below the board."""
    return _render("server.html", page=page, up="../../", static=static)


def render_problem(title: str, message: str, hint: str, *, up: str = "/") -> str:
    """A page that says what is wrong and what to do."""
    return _render("problem.html", title=title, message=message, hint=hint, up=up, static=False)


def asset(name: str) -> bytes:
    """The bytes of one of `ASSETS`."""
    return (_PACKAGE / "assets" / name).read_bytes()


def _render(template: str, **view: object) -> str:
    index = "index.html" if view["static"] else ""
    return _templates.get_template(template).render(index=index, policy=POLICY, **view)
