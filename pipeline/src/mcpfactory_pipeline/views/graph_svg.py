"""Draw the graph of the pipeline as SVG.

In a page, colors are variables of the style sheet, and chips are links. A standalone image contains both themes.
Symbol, word and color show the status of a node. Symbol and border show the kind of a node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from typing import Final

from mcpfactory_pipeline.base.ids import Clock, utc_now
from mcpfactory_pipeline.base.text import escape_invisible, pluralize, truncate
from mcpfactory_pipeline.views.graph import (
    GraphPlace,
    PlaceChip,
    ServerPosition,
    server_graph,
    server_positions,
    stage_graph,
    workspace_graph,
)
from mcpfactory_pipeline.views.inbox import InboxReader
from mcpfactory_pipeline.workspace.workspace import Workspace, WorkspaceServer, isolate_server_errors

_Link = Callable[[str], str]

# Status → word, color, and symbol (of `_SHAPES`). The dashboard uses the same words, colors and symbols.
SIGNS: Final[Mapping[str, tuple[str, str, str]]] = {
    "running": ("running", "busy", "play"), "failed": ("failed", "bad", "cross"),
    "errored": ("errored", "bad", "alert"), "interrupted": ("interrupted", "warn", "pause"),
    "inconclusive": ("inconclusive", "warn", "question"), "gate": ("gate closed", "warn", "lock"),
    "held": ("held", "warn", "lock"), "approval": ("to approve", "warn", "hand"),
    "rejected": ("rejected", "bad", "cross"), "waiting": ("waiting", "warn", "hand"),
    "blocked": ("blocked", "none", "dash"), "ready": ("ready", "good", "play"),
    "stale": ("stale", "warn", "redo"), "run": ("will run", "warn", "redo"),
    "never": ("not run", "none", "dash"), "passed": ("passed", "good", "check"),
    "offered": ("offered", "good", "check"), "broken": ("unreadable", "bad", "alert"),
    "retired": ("retired", "none", "lock"),
}  # fmt: skip
_KINDS: Final[Mapping[str, str]] = {"approval": "hand", "gates": "lock"}
_SHAPES: Final[Mapping[str, str]] = {
    "check": "M3 8.5l3.2 3.2L13 4.8",
    "cross": "M4 4l8 8M12 4l-8 8",
    "alert": "M8 2.5L14.3 13H1.7zM8 6.5v3M8 11.2v.3",
    "pause": "M5.5 3.5v9M10.5 3.5v9",
    "question": "M5.5 6a2.5 2.5 0 1 1 3.6 2.2C8.3 8.6 8 9 8 9.8M8 12.2v.3",
    "play": "M5 3.5v9L12.5 8z",
    "redo": "M13 8a5 5 0 1 1-1.6-3.7M13 2.5v3h-3",
    "dash": "M4 8h8",
    "lock": "M4 7.5h8v6H4zM5.5 7.5V5a2.5 2.5 0 0 1 5 0v2.5",
    "hand": "M8 2.5a2.5 2.5 0 1 1 0 5 2.5 2.5 0 1 1 0-5M3 13.5c0-3 2-4.5 5-4.5s5 1.5 5 4.5",
}

# The colors of assets/style.css, repeated for pictures that are shown without the page.
LIGHT: Final[Mapping[str, str]] = {
    "ground": "#f6f7f9", "card": "#ffffff", "ink": "#171a1f", "quiet": "#565d6b", "line": "#dfe3e9", "link": "#1f56b8",
    "good": "#14643a", "bad": "#a3151f", "bad-ground": "#fde7e8", "warn": "#7a4a00", "busy": "#1f56b8", "busy-ground": "#e4edfb",
    "none": "#565d6b",
}  # fmt: skip
DARK: Final[Mapping[str, str]] = {
    "ground": "#101216", "card": "#181b21", "ink": "#e8eaee", "quiet": "#a2a9b6", "line": "#2d323c", "link": "#8ab4ff",
    "good": "#7fdba6", "bad": "#ff9a9f", "bad-ground": "#401a1d", "warn": "#f3c26b", "busy": "#9dc0ff", "busy-ground": "#182a4a",
    "none": "#a2a9b6",
}  # fmt: skip


def _style(color: Callable[[str], str]) -> str:
    ink, quiet, line, card = (color(name) for name in ("ink", "quiet", "line", "card"))
    rules = [
        f".flow text{{fill:{ink};font-size:12px}}",
        f".flow .name{{font-size:13px;font-weight:600}}.flow .said{{fill:{quiet}}}",
        f".flow .ground{{fill:{color('ground')}}}",
        f".flow .way{{fill:none;stroke:{quiet};stroke-width:1.25}}",
        f".flow .card{{fill:{card};stroke:{line};stroke-width:1.25}}.flow .channel>.card{{stroke:{quiet};stroke-width:2}}",
        f".flow .chip rect{{fill:{color('ground')};stroke:{line}}}",
        f".flow .sign{{fill:none;stroke:{quiet};stroke-width:1.6;stroke-linecap:round;stroke-linejoin:round}}",
        f".flow .busy>.card,.flow .chip.busy rect{{stroke:{color('busy')};stroke-width:2.5}}.flow .chip.busy rect{{fill:{color('busy-ground')}}}",
        f".flow .bad>.card,.flow .chip.bad rect{{stroke:{color('bad')}}}.flow .chip.bad rect{{fill:{color('bad-ground')}}}",
        f".flow .chip.warn rect{{stroke:{color('warn')}}}",
        f".flow .chip.warn .said{{fill:{color('warn')}}}.flow .chip.bad .said{{fill:{color('bad')}}}.flow .chip.busy .said{{fill:{color('busy')}}}",
    ]
    rules += [
        f".flow .{tone}>.said{{fill:{color(tone)}}}.flow .{tone}>.sign,.flow .chip.{tone} .sign{{stroke:{color(tone)}}}"
        for tone in ("bad", "warn", "busy")
    ]
    return "\n".join(rules)


PICTURE_STYLE: Final = (
    "\n/* The picture of the graph: mcpfactory_pipeline.views.graph_svg */\n"
    + _style(lambda name: f"var(--{name})")
    + "\n.flow a:hover rect{stroke:var(--link)}.flow a:hover .name{text-decoration:underline}"
    + ".flow a:focus-visible{outline:2px solid var(--link);outline-offset:1px}\n"
)

_EDGE: Final = 16  # pixels; width of the margin for connections
_WIDTH: Final = 160  # width of a card in pixels
_COLUMN: Final = 192
_COLUMNS: Final = 7  # maximum number of cards per line; more would not fit on a page
_NARROW: Final = 320  # pixels; total width of the vertical layout on phones (390 pixels, minus margins)
_LANE: Final = 11
_GUTTER: Final = 4
_GAP: Final = 20  # pixels between cards in a column
_HEAD: Final = 46
_CHIP: Final = 26
_TALL_CHIP: Final = 38  # pixels; height of a chip that has a word below its label
_CHIP_GAP: Final = 4
_PAD: Final = 8
_TITLE: Final = 200  # maximum characters of a tooltip
_LETTERS: Final = {"name": 7.8}  # kind of text → pixels per letter, rounded up
_LETTER: Final = 6.2


@dataclass(frozen=True, slots=True)
class _Card:
    place: GraphPlace
    x: int
    y: int
    width: int

    @property
    def height(self) -> int:
        return _height(self.place, self.width)

    @property
    def middle(self) -> int:
        """Return the y coordinate at which connections start and end."""
        return self.y + _HEAD // 2


def draw_graph_svg(
    places: Sequence[GraphPlace], *, title: str, link: _Link | None = None, down: bool = False, extra: str = ""
) -> str:
    """Return the graph as one SVG element, from left to right; if `down` is True, from top to bottom.

    `link` converts a dashboard path into a URL. If `link` is None, the element is one image without links. `extra` is a
    text with more attributes of the element.
    """
    cards, ways, width, height = _down(places) if down else _across(places)
    opening = f'<svg class="flow" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    body = "".join(f'<path class="way" d="{way}"/>' for way in ways)
    shapes = "".join(_drawn(card, link) for card in cards)
    name = escape(title)
    if link is None:
        said = escape("\n".join(_sentence(place) for place in places))
        return f'{opening} role="img"{extra}><title>{name}</title><desc>{said}</desc>{body}{shapes}</svg>'
    return (
        f'{opening} role="group" aria-label="{name}"{extra}><g aria-hidden="true">{body}</g>'
        f'<g role="list" aria-label="{name}">{shapes}</g></svg>'
    )


def graph_svg_file(places: Sequence[GraphPlace], title: str) -> str:
    """Return the graph as a standalone SVG file with a light and a dark theme."""
    style = f"{_style(LIGHT.__getitem__)}\n@media (prefers-color-scheme:dark){{\n{_style(DARK.__getitem__)}\n}}"
    fonts = "system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans',sans-serif"
    svg = draw_graph_svg(places, title=title, extra=f' xmlns="http://www.w3.org/2000/svg" font-family="{fonts}"')
    ground = '<rect class="ground" width="100%" height="100%" rx="8"/>'
    return escape_invisible(svg.replace("</desc>", f"</desc><style>\n{style}\n</style>{ground}", 1)) + "\n"


def _height(place: GraphPlace, width: int) -> int:
    chips = len(place.chips)
    return _HEAD + (chips * (_chip_height(place, width) + _CHIP_GAP) - _CHIP_GAP + _PAD if chips else 0)


def _chip_height(place: GraphPlace, width: int) -> int:
    """Return the height of each chip of a node. All chips are tall if one chip needs a second line."""
    room = width - 2 * _PAD - 30
    fits = all(
        int(len(SIGNS[chip.status][0]) * _LETTER) + 6 + len(chip.label) * _LETTER <= room for chip in place.chips
    )
    return _CHIP if fits else _TALL_CHIP


def _across(places: Sequence[GraphPlace]) -> tuple[list[_Card], list[str], int, int]:
    """Return cards, connections, width and height of the layout. Each level is a column; columns wrap into lines."""
    levels = 1 + max((place.node.level for place in places), default=0)
    columns = -(-levels // -(-levels // _COLUMNS))
    used: Counter[int] = Counter()
    rows: dict[str, tuple[int, int]] = {}  # place → number of its line, and its row in this line
    heights: dict[tuple[int, int], int] = {}
    for place in places:
        level = place.node.level
        row = rows[place.node.name] = (level // columns, used[level])
        heights[row] = max(heights.get(row, 0), _height(place, _WIDTH))
        used[level] += 1
    tops, y = {}, _EDGE
    for row in sorted(heights):
        tops[row] = y
        y += heights[row] + _GAP
    bottoms = {line: tops[line, row] + heights[line, row] + _GAP // 2 for line, row in sorted(heights)}
    cards = {
        place.node.name: _Card(place, _EDGE + place.node.level % columns * _COLUMN, tops[rows[place.node.name]], _WIDTH)
        for place in places
    }
    ways = []
    for place in places:
        end = place.node
        for need in end.needs:
            start = cards[need].place.node
            row = rows[need]
            below = tops[row] + heights[row] + _GAP // 2 if row[0] == rows[end.name][0] else bottoms[row[0]]
            near = end.level == start.level + 1 and row[0] == rows[end.name][0]
            ways.append(_way(cards[need], cards[end.name], None if near else below))
    return list(cards.values()), ways, 2 * _EDGE + (columns - 1) * _COLUMN + _WIDTH, y - _GAP // 2


def _way(start: _Card, end: _Card, below: int | None) -> str:
    """Return the SVG path data of a connection to another column.

    If `below` is set, the connection skips columns and runs at this height.
    """
    turn = end.x - (_COLUMN - _WIDTH) // 2
    over = "" if below is None else f"H{start.x + start.width + 8}V{below}"
    return f"M{start.x + start.width} {start.middle}{over}H{max(turn, 2)}V{end.middle}H{end.x}m-5 -4l5 4l-5 4"


def _down(places: Sequence[GraphPlace]) -> tuple[list[_Card], list[str], int, int]:
    order = {place.node.name: number for number, place in enumerate(places)}
    last: dict[str, int] = {}
    for place in places:
        for need in place.node.needs:
            if order[place.node.name] > order[need] + 1:
                last[need] = order[place.node.name]
    lanes = _lanes({order[name]: end for name, end in last.items()})
    left, y = _GUTTER + (max(lanes.values(), default=-1) + 1) * _LANE, _GUTTER
    cards = []
    for place in places:
        cards.append(_Card(place, left, y, _NARROW - left - _GUTTER))
        y += cards[-1].height + _GAP
    ways = []
    for place in places:
        end = cards[order[place.node.name]]
        for need in place.node.needs:
            start = cards[order[need]]
            if order[place.node.name] == order[need] + 1:
                ways.append(f"M{start.x + 24} {start.y + start.height}V{end.y}m-4 -5l4 5l4 -5")
            else:
                lane = left - (lanes[order[need]] + 1) * _LANE
                ways.append(f"M{start.x} {start.middle}H{lane}V{end.middle}H{end.x}m-5 -4l5 4l-5 4")
    return cards, ways, _NARROW, y - _GAP + _GUTTER


def _lanes(spans: Mapping[int, int]) -> dict[int, int]:
    ends: list[int] = []
    lanes = {}
    for start, end in sorted(spans.items()):
        lane = next((number for number, until in enumerate(ends) if until < start), len(ends))
        ends[lane : lane + 1] = [end]
        lanes[start] = lane
    return lanes


def _tone(place: GraphPlace) -> str:
    if any(chip.status == "running" for chip in place.chips):
        return "busy"
    return SIGNS[place.node.status][1] if place.node.status in SIGNS else "none"


def _said(place: GraphPlace, room: float = float("inf")) -> str:
    """Return the line below the name. The line has fewer words if it is wider than `room` pixels."""
    node = place.node
    note = node.note if node.kind in {"gates", "approval"} and not node.status else ""
    words = [SIGNS[node.status][0] if node.status in SIGNS else node.status]
    if place.number is not None:
        words = [pluralize(place.number, "server"), f"{place.number:,} here"] if place.number else ["no server", "none"]
    said = [" · ".join(filter(None, (word, note))) for word in words]
    return next((one for one in said if len(one) * _LETTER <= room), said[-1])


def _drawn(card: _Card, link: _Link | None) -> str:
    place, node = card.place, card.place.node
    radius = 14 if node.kind == "approval" else 6
    kind = _KINDS.get(node.kind, "")
    sign = SIGNS[node.status][2] if node.status in SIGNS else ""
    room = card.width - 20 - (19 if kind else 0)
    # If the name does not fit, show only its first part.
    fits = len(node.name) * _LETTERS["name"] <= room
    short = node.name if fits or node.kind != "approval" else node.name.partition(" for ")[0]
    name = _text(card.x + 10 + (19 if kind else 0), card.y + 19, "name", short, room)
    inline = card.x + 10 + (17 if sign else 0)
    left = card.x + card.width - 10 - inline
    parts = [
        f'<g class="{node.kind} {_tone(place)}"{" role=" + chr(34) + "listitem" + chr(34) if link else ""}>',
        f"<title>{escape(truncate(_sentence(place), _TITLE))}</title>",
        f'<rect class="card" x="{card.x}" y="{card.y}" width="{card.width}" height="{card.height}" rx="{radius}"/>',
        _sign(kind, card.x + 9, card.y + 7),
        name,
        _sign(sign, card.x + 9, card.y + 25),
        _text(inline, card.y + 36, "said", _said(place, left), left),
    ]
    y, height = card.y + _HEAD, _chip_height(place, card.width)
    for chip in place.chips:
        parts.append(_chip(chip, card.x + _PAD, y, (card.width - 2 * _PAD, height), link))
        y += height + _CHIP_GAP
    return "".join([*parts, "</g>"])


def _chip(chip: PlaceChip, x: int, y: int, size: tuple[int, int], link: _Link | None) -> str:
    word, tone, sign = SIGNS[chip.status]
    width, height = size
    inline = height == _CHIP
    room = width - 30 - int(len(word) * _LETTER) if inline else width - 34
    place = f'x="{x + width - 10}" y="{y + 17}" text-anchor="end"' if inline else f'x="{x + 26}" y="{y + 31}"'
    inner = (
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="{_CHIP // 2}"/>{_sign(sign, x + 7, y + 5)}'
        + _text(x + 26, y + 17, "label", chip.label, room)
        + f'<text class="said" {place}>{escape(word)}</text>'
    )
    about = f"<title>{escape(truncate(f'{chip.label}, {word}: {chip.about}', _TITLE))}</title>"
    if link is None or not chip.path:
        return f'<g class="chip {tone}">{about}{inner}</g>'
    return f'<a class="chip {tone}" href="{escape(link(chip.path))}">{about}{inner}</a>'


def _sign(name: str, x: int, y: int) -> str:
    return f'<path class="sign" transform="translate({x} {y})" d="{_SHAPES[name]}"/>' if name else ""


def _text(x: int, y: int, kind: str, text: str, room: int) -> str:
    if not text:
        return ""
    shown = truncate(text, max(3, int(room / _LETTERS.get(kind, _LETTER))))
    # Set the width of truncated text, because the reader's font may have wider letters.
    fit = f' textLength="{int(room)}" lengthAdjust="spacingAndGlyphs"' if shown != text else ""
    return f'<text class="{kind}" x="{x}" y="{y}"{fit}>{escape(shown)}</text>'


def _sentence(place: GraphPlace) -> str:
    node = place.node
    said = f"{node.name}: {_said(place)}" if _said(place) else node.name
    note = f" – {node.note}" if node.note and node.note not in said else ""
    there = "; ".join(f"{chip.label}, {SIGNS[chip.status][0]}" for chip in place.chips)
    return said + note + (f" ({there})" if there else "")


def render_graph_svg(workspace: Workspace, server: str = "", *, clock: Clock = utc_now) -> str:
    """Return the SVG file of one server's graph; if `server` is "", the graph shows all servers.

    Unreadable servers are left out; `mcpfactory pipeline status` reports their errors.

    Raises:
        NotFoundError: the server is unknown.
        ConfigError: the workspace cannot be read, or the named server is broken.
    """
    reader = InboxReader.open(workspace, clock=clock)
    if server:
        known = workspace.server(server)
        row, state = reader.status(known)
        places = server_graph(row, reader.of(known, row, state), reader.stages, reader.channels)
        return graph_svg_file(places, f"Pipeline of {server}")
    found: list[ServerPosition] = []
    servers, broken = workspace.load_servers(None)
    for one in servers:
        positions = isolate_server_errors(one.name, partial(_positions, reader, one))
        found += positions if isinstance(positions, tuple) else ()
    nodes = stage_graph(reader.stages, None, reader.channels)
    return graph_svg_file(workspace_graph(nodes, found, len(servers) + len(broken)), f"Pipeline of {workspace.name}")


def _positions(reader: InboxReader, server: WorkspaceServer) -> tuple[ServerPosition, ...]:
    row, state = reader.status(server)
    return server_positions(row, reader.of(server, row, state), reader.stages, reader.channels)
