"""HTML rendering of views.

Autoescape is always on, because names and texts come from untrusted API documents. Scripts and styles are never inline,
so that the content security policy can forbid inline code. All pages escape invisible and bidirectional characters.
"""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Final
from urllib.parse import parse_qsl, quote, urlencode

import jinja2

from mcpfactory_pipeline.base.text import escape_invisible
from mcpfactory_pipeline.dashboard.actions import ACTIONS, action_for_command
from mcpfactory_pipeline.dashboard.board import GROUPS
from mcpfactory_pipeline.dashboard.decision_log import DECISIONS
from mcpfactory_pipeline.dashboard.facts import STATUSES, shorten
from mcpfactory_pipeline.dashboard.inbox import batch_choice_value
from mcpfactory_pipeline.dashboard.pages import PAGES, Page
from mcpfactory_pipeline.dashboard.runs import RunPage, gantt_chart
from mcpfactory_pipeline.views.graph import candidate_anchor
from mcpfactory_pipeline.views.graph_svg import PICTURE_STYLE, SIGNS, draw_graph_svg
from mcpfactory_pipeline.views.suggestions import hinted_command

_PACKAGE: Final = files("mcpfactory_pipeline.dashboard")
ASSETS: Final = {"style.css": "text/css", "page.js": "text/javascript", "live.js": "text/javascript"}
POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; form-action 'self'; "
    "base-uri 'none'"
)


def _exact(text: object) -> object:
    """Escape invisible characters in a form value. Browsers would change unescaped characters."""
    escaped = escape_invisible(html.escape(str(text)), lambda one: f"&#{ord(one)};")
    return _templates.filters["safe"](escaped)


_templates = jinja2.Environment(
    loader=jinja2.FunctionLoader(lambda name: (_PACKAGE / "templates" / name).read_text("utf-8")),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_templates.filters["thousands"] = lambda number: f"{number:,}"
_templates.filters["exact"] = _exact
# Jinja's `truncate` drops the last word completely, even a very long word.
_templates.filters["shorten"] = shorten
del _templates.filters["truncate"]
_templates.globals |= {
    "ACTIONS": ACTIONS,
    "hinted_command": hinted_command,
    "action_for_command": action_for_command,
    "batch_choice_value": batch_choice_value,
    "gantt": gantt_chart,
    "draw": draw_graph_svg,
    "candidate_anchor": candidate_anchor,
    "SIGNS": SIGNS,
    "pretty": lambda value, size: shorten(json.dumps(value, indent=1, ensure_ascii=False), size),
    "policy": POLICY,
    "STATUSES": STATUSES,
    "GROUPS": tuple(GROUPS),
    "DECISIONS": DECISIONS,
    "NAVIGATION": [page for page in PAGES if "{" not in page.path],
}


def _filled(template: str, **facts: object) -> str:
    """Render a template. Invisible and bidirectional characters are escaped."""
    return escape_invisible(_templates.get_template(template).render(**facts))


@dataclass(frozen=True, slots=True)
class Links:
    """Relative links from a page to other pages. `static` is True in the export. Links in the export point to files."""

    path: str
    static: bool = False
    page: int = 1
    query: Mapping[str, str] = field(default_factory=dict)

    @property
    def json(self) -> str:
        """Return the link to the JSON data of this page."""
        return "index.json" if self.static else f"?{urlencode({**self.query, 'format': 'json'})}"

    @property
    def up(self) -> str:
        """Return the relative path to the root."""
        return "../" * (self.path.count("/") - 1 + (self.static and self.page > 1))

    def to(self, path: str, query: Mapping[str, object] | None = None, *, page: int = 1) -> str:
        """Return the link to a page. The export omits `query`, because all exported pages are unfiltered."""
        target = f"{self.up}{quote(path.removeprefix('/'))}"
        if self.static:
            return f"{target}{page_folder(page)}index.html"
        wanted = {key: value for key, value in (query or {}).items() if value} | ({"page": page} if page > 1 else {})
        return (target or "./") + (f"?{urlencode(wanted)}" if wanted else "")

    def link_with_query(self, target: str) -> str:
        """Return the link to a path with query or fragment, such as `/board/?q=x` or `/servers/x/#now`."""
        path, _, part = target.partition("#")
        path, _, query = path.partition("?")
        if part and path == self.path:
            return f"#{part}"
        return self.to(path, dict(parse_qsl(query))) + (f"#{part}" if part else "")

    def asset(self, name: str) -> str:
        """Return the link to one of `ASSETS`."""
        return f"{self.up}assets/{name}"


def page_folder(page: int) -> str:
    """Return the folder of a page of a list in the export, relative to page 1; "" for page 1."""
    return f"page-{page}/" if page > 1 else ""


@dataclass(frozen=True, slots=True)
class Visitor:
    """The visitor of a dashboard with actions.

    Attributes:
        runs: active runs that this dashboard started.
        proxied: True if a proxy manages login and logout.
    """

    actor: str = ""
    message: str = ""
    runs: frozenset[str] = frozenset()
    proxied: bool = False


def render(page: Page, view: object, links: Links, *, live: str = "", visitor: Visitor | None = None) -> str:
    """Render a view as a page. Without a `visitor`, the page has no actions.

    `live` is the path of the page's event stream, or "".
    """
    return _filled(page.template, view=view, page=page, links=links, static=links.static, live=live, visitor=visitor)


def render_state(view: RunPage, links: Links) -> str:
    """Return the part of a run's page that changes while the run is active."""
    return _filled("run_state.html", view=view, links=links, static=False)


def render_form(template: str, links: Links, visitor: Visitor, **facts: object) -> str:
    """Return a page with a form."""
    return _filled(template, page=None, links=links, static=False, live="", visitor=visitor, **facts)


def render_problem(title: str, message: str, hint: str, path: str, ways: Sequence[tuple[str, str]] = ()) -> str:
    """Return an error page."""
    facts = {"title": title, "message": message, "hint": hint, "links": Links(path), "ways": ways}
    return _filled("problem.html", **facts, page=None, static=False, live="", visitor=None)


def asset(name: str) -> bytes:
    """Return the content of one of `ASSETS`."""
    content = (_PACKAGE / "assets" / name).read_bytes()
    return content + PICTURE_STYLE.encode() if name == "style.css" else content
