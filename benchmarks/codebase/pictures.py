"""The pictures of docs/architecture.md, drawn from the code: `make diagrams` writes them. No browser, no font of another host.

`wheels.svg`: the folders of each wheel and who imports whom. `way.svg`: the files that one tool call and one generated server lead
through. They follow the light or dark scheme of whoever looks at them.
"""

from __future__ import annotations

import ast
import itertools
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Final

from benchmarks.codebase import graph
from benchmarks.codebase.call_trace import CallTrace, trace
from benchmarks.codebase.layout import Drawing, Point, lay_out
from benchmarks.codebase.measure import ROOT
from benchmarks.codebase.modules import WHEELS, Module, read_tree

FOLDER: Final = ROOT / "docs" / "pictures"
_MARGIN: Final = 16.0
_HEAD: Final = 34.0
_ROW: Final = 46.0
_SPACE: Final = 30.0  # between two wheels
_BOX: Final = 24.0
_STEP: Final = 42.0  # from one file of a way to the next
_FILE: Final = 380.0
_ARCS: Final = 64.0
_SAID: Final = 60  # letters of a summary that a box holds
_LETTER: Final = 7.25  # the width of a letter of the font below
_WAYS: Final = {"One tool call over stdio": "call", "One operation, from document to Python": "operation"}
_ABOUT: Final = {
    "mcpfactory": "the command line",
    "mcpfactory_pipeline": "stages, state, promotion",
    "mcpfactory_codegen": "document → server",
    "mcpfactory_runtime": "what servers run on",
}
_STYLE: Final = """
svg { color-scheme: light dark; --paper: #ffffff; --panel: #f4f6f8; --box: #ffffff; --line: #57606a; --ink: #1f2328; --soft: #59636e; --edge: #8c959f; --mark: #0969da; }
@media (prefers-color-scheme: dark) { svg { --paper: #0d1117; --panel: #161b22; --box: #21262d; --line: #8b949e; --ink: #e6edf3; --soft: #9198a1; --edge: #6e7681; --mark: #58a6ff; } }
text { font: 12px ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace; fill: var(--ink); }
.head { font-weight: bold; font-size: 13px; } .soft { fill: var(--soft); font-size: 11px; } .said { fill: var(--soft); font: 11px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; } .middle { text-anchor: middle; dominant-baseline: central; }
.paper { fill: var(--paper); } .panel { fill: var(--panel); } .box { fill: var(--box); stroke: var(--line); } .file { stroke-dasharray: 3 2; }
.edge, .back, .wheel { fill: none; stroke: var(--edge); stroke-width: 1.2; } .back { stroke: var(--mark); } .wheel { stroke: var(--mark); stroke-width: 2.2; }
.tip { fill: var(--edge); stroke: none; } .tip.back, .tip.wheel { fill: var(--mark); }
"""


def wheels(modules: Sequence[Module], orders: Mapping[str, Sequence[str]]) -> str:
    """Draw the folders of each wheel; an arrow leads to what is imported. Arrows that follow from others are left out."""
    graphs = {wheel: _folders(modules, wheel, orders.get(wheel, ())) for wheel in WHEELS.values()}
    first, *others = ("mcpfactory_pipeline", "mcpfactory", "mcpfactory_codegen", "mcpfactory_runtime")
    around = _HEAD + 2 * _MARGIN
    drawings = {wheel: lay_out(graphs[wheel], _width, row_height=_ROW, box_height=_BOX) for wheel in others}
    total = sum(drawing.height + around for drawing in drawings.values()) + (len(others) - 1) * _SPACE
    row = max(_ROW, (total - around - _BOX) / max(len(graph.layers(graphs[first])) - 1, 1))
    drawings[first] = lay_out(graphs[first], _width, row_height=row, box_height=_BOX)
    width = drawings[first].width + 2 * _MARGIN
    left = 2 * _MARGIN + width + _SPACE
    wide = max(drawings[wheel].width for wheel in others) + 2 * _MARGIN
    body = [*_panel(first, drawings[first], (_MARGIN, _MARGIN), width, modules)]
    top = _MARGIN
    for wheel in others:
        body += _panel(wheel, drawings[wheel], (left, top), wide, modules)
        line = top + _HEAD / 2
        if wheel == "mcpfactory":
            body.append(_line((left, line), (_MARGIN + width, line)))
        elif wheel == "mcpfactory_codegen":
            body.append(_line((_MARGIN + width, line), (left, line)))
        else:
            body.append(_line((left + wide / 2, top - _SPACE), (left + wide / 2, top)))
        top += drawings[wheel].height + around + _SPACE
    height = max(drawings[first].height + around + _MARGIN, top - _SPACE) + _MARGIN
    return _svg(
        (left + wide + _MARGIN, height),
        body,
        "The four wheels and their folders: imports lead down, and from wheel to wheel along the thick arrows",
    )


def _folders(modules: Sequence[Module], wheel: str, order: Sequence[str]) -> dict[str, set[str]]:
    """Return what each folder of one wheel imports, and each module that stands beside them.

    Folders that import each other, each from the middle of the other, are drawn in parts, in the order of the wheel's contract.
    """
    inner = {module.name: module for module in modules if module.wheel == wheel and module.name != wheel}
    imports = {name: [each for each in module.imports if each in inner] for name, module in inner.items()}
    box = {name: name.split(".")[1] for name in inner if name != f"{wheel}.__main__"}
    imports = {name: [each for each in imports[name] if each in box] for name in box}
    tangled = {folder for circle in graph.cycles(graph.contract(imports, box.__getitem__)) for folder in circle}
    for name, folder in list(box.items()):
        unit = next((unit for unit in order if f"{name}.".startswith(f"{wheel}.{unit}.")), "")
        if folder in tangled and unit:
            box[name] = unit
        elif folder in tangled and inner[name].is_package:
            del box[name]  # a folder that is drawn in parts
    imports = {name: [each for each in imports[name] if each in box] for name in box}
    for folder in sorted(tangled):
        box = _joined(imports, box, [unit for unit in order if unit.partition(".")[0] == folder])
    return graph.without_shortcuts(graph.contract(imports, box.__getitem__))


def _joined(imports: graph.Graph[str], box: dict[str, str], units: Sequence[str]) -> dict[str, str]:
    """Put the units of one folder into as few boxes as their order allows without a circle, and name each box by what it holds."""
    groups: list[list[str]] = []
    for unit in units:
        together = {name: groups[-1][0] if groups and old == unit else old for name, old in box.items()}
        if groups and len(graph.cycles(graph.contract(imports, together.__getitem__))) <= len(
            graph.cycles(graph.contract(imports, box.__getitem__))
        ):
            box = together
            groups[-1].append(unit)
        else:
            groups.append([unit])
    titles = (
        {group[0]: _title(group) for group in groups} if len(groups) > 1 else {units[0]: units[0].partition(".")[0]}
    )
    return {name: titles.get(old, old) for name, old in box.items()}


def _title(units: Sequence[str]) -> str:
    """Return the name of a folder with the first of what a box holds of it."""
    folder = units[0].partition(".")[0]
    names = [unit.partition(".")[2] for unit in units]
    return f"{folder}: {', '.join(names[:2])}{', …' if len(names) > 2 else ''}"


def _contracts(root: Path) -> dict[str, list[str]]:
    """Return for each wheel the order of its folders and modules that import-linter checks, from the one that imports the others on."""
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    return {
        contract["containers"][0]: [unit.strip() for layer in contract["layers"] for unit in layer.split("|")]
        for contract in settings["tool"]["importlinter"]["contracts"]
        if contract["type"] == "layers" and contract.get("containers")
    }


def _width(name: str) -> float:
    return len(name) * _LETTER + 16


def _panel(wheel: str, drawing: Drawing, corner: Point, width: float, modules: Sequence[Module]) -> Iterator[str]:
    """Draw one wheel with its title."""
    left, top = corner
    files = {
        module.name.split(".")[1]
        for module in modules
        if module.wheel == wheel and not module.folder and "." in module.name
    }
    yield _rectangle("panel", (left, top), (width, drawing.height + _HEAD + 2 * _MARGIN))
    yield f'<text class="head" x="{left + _MARGIN:g}" y="{top + 22:g}">{wheel}</text>'
    yield f'<text class="soft" x="{left + _MARGIN + 10 + len(wheel) * 7.85:g}" y="{top + 22:g}">{_ABOUT[wheel]}</text>'
    x, y = left + (width - drawing.width) / 2, top + _HEAD + _MARGIN
    yield from (_curve([(px + x, py + y) for px, py in points]) for points in drawing.edges.values())
    for name, (px, py) in drawing.nodes.items():
        yield _box(name, (px + x, py + y), "box file" if name in files else "box")


def _box(name: str, middle: Point, kind: str) -> str:
    width = _width(name)
    box = _rectangle(kind, (middle[0] - width / 2, middle[1] - _BOX / 2), (width, _BOX))
    return f'{box}<text class="middle" x="{middle[0]:.1f}" y="{middle[1]:.1f}">{escape(name)}</text>'


def _rectangle(kind: str, corner: Point, size: Point) -> str:
    place = f'x="{corner[0]:.1f}" y="{corner[1]:.1f}" width="{size[0]:.1f}" height="{size[1]:.1f}"'
    return f'<rect class="{kind}" {place} rx="5"/>'


def _curve(points: Sequence[Point], kind: str = "edge") -> str:
    """Draw a smooth line downwards through some points, with a tip at its end."""
    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for (x0, y0), (x1, y1) in itertools.pairwise(points):
        half = (y1 - y0) / 2
        path += f" C{x0:.1f} {y0 + half:.1f} {x1:.1f} {y1 - half:.1f} {x1:.1f} {y1:.1f}"
    return _path(path, kind)


def _line(start: Point, end: Point) -> str:
    """Draw an arrow between two wheels."""
    return _path(f"M{start[0]:.1f} {start[1]:.1f} L{end[0]:.1f} {end[1]:.1f}", "wheel")


def _path(path: str, kind: str) -> str:
    return f'<path class="{kind}" d="{path}" marker-end="url(#tip-{kind})"/>'


def _svg(size: Point, body: Sequence[str], title: str) -> str:
    """Put a picture together."""
    tips = "".join(
        f'<marker id="tip-{kind}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="{width}" markerHeight="{width}" '
        f'markerUnits="userSpaceOnUse" orient="auto"><path class="tip {kind}" d="M0 0.6 L8 4 L0 7.4 z"/></marker>'
        for kind, width in (("edge", 8), ("back", 8), ("wheel", 12))
    )
    lines = "\n".join(body)
    width, height = (f"{each:.0f}" for each in size)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n<defs>{tips}</defs>\n"
        f'<rect class="paper" width="{width}" height="{height}"/>\n{lines}\n</svg>\n'
    )


def way(ways: Mapping[str, CallTrace], summaries: Mapping[str, str]) -> str:
    """Draw the files that each of some ways leads through, in the order in which they are entered.

    A line on the left leads from the file that calls to one further down, a line on the right back to one further up.
    """
    body: list[str] = []
    left, height = _MARGIN, 0.0
    for title, traced in ways.items():
        width = _ARCS + _FILE + _ARCS
        rows = len(traced.files)
        size = _HEAD + rows * _STEP + _MARGIN
        body.append(_rectangle("panel", (left, _MARGIN), (width, size)))
        body.append(f'<text class="head" x="{left + _MARGIN:g}" y="{_MARGIN + 22:g}">{title}: {rows} files</text>')
        top = _MARGIN + _HEAD
        middle = {file: top + number * _STEP + _STEP / 2 for number, file in enumerate(traced.files)}
        for caller, callee in sorted(traced.calls, key=lambda pair: (middle[pair[0]], middle[pair[1]])):
            body.append(_arc(left, middle[caller], middle[callee]))
        for file, y in middle.items():
            folder, _, name = file.partition("/")[2].rpartition("/")
            corner = (left + _ARCS, y - _STEP / 2 + 4)
            body.append(_rectangle("box", corner, (_FILE, _STEP - 8)))
            body.append(
                f'<text x="{corner[0] + 10:g}" y="{corner[1] + 15:g}"><tspan class="soft">{folder + "/" if folder else ""}</tspan>{escape(name)}</text>'
                f'<text class="said" x="{corner[0] + 10:g}" y="{corner[1] + 29:g}">{escape(summaries.get(file, ""))}</text>'
            )
        left += width + _MARGIN
        height = max(height, size)
    return _svg((left, height + 2 * _MARGIN), body, "The files that one call and one generated server lead through")


def _arc(left: float, start: float, end: float) -> str:
    """Draw a call from the height of one file to that of another."""
    distance = abs(end - start) / _STEP
    if end > start:
        x, bulge, kind = left + _ARCS, -min(_ARCS - 8, 6 + 11 * distance**0.7), "edge"
    else:
        x, bulge, kind = left + _ARCS + _FILE, min(_ARCS - 8, 6 + 11 * distance**0.7), "back"
    start, end = start + (4 if end > start else -4), end + (-4 if end > start else 4)
    control = x + bulge * 4 / 3
    return _path(f"M{x:.1f} {start:.1f} C{control:.1f} {start:.1f} {control:.1f} {end:.1f} {x:.1f} {end:.1f}", kind)


def summaries(root: Path) -> dict[str, str]:
    """Return for each source file, from its import package on, as much of its docstring's first sentence as a box holds."""
    found = {}
    for folder in WHEELS:
        for file in sorted((root / folder).rglob("*.py")):
            text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
            found[file.relative_to(root / folder).as_posix()] = _shortened(
                re.split(r"\.\s", " ".join(text.split()))[0].rstrip(".")
            )
    return found


def _shortened(sentence: str) -> str:
    """Cut a sentence to what fits into a box: behind its first part if that is long enough, else behind a word."""
    sentence = sentence.replace("`", "")
    if len(sentence) <= _SAID:
        return sentence
    parts = [cut.start() for cut in re.finditer(r"[;:](?= )| \(", sentence) if _SAID / 3 <= cut.start() <= _SAID]
    return sentence[: parts[-1]] if parts else sentence[:_SAID].rpartition(" ")[0].rstrip(",") + " …"


def ways_picture(trace: Callable[[str], CallTrace] = trace) -> str:
    """Draw the ways of one call and one operation, as a tracer gives them."""
    return way({title: trace(subject) for title, subject in _WAYS.items()}, summaries(ROOT))


PICTURES: Final[dict[str, Callable[[], str]]] = {
    "wheels.svg": lambda: wheels(read_tree(ROOT), _contracts(ROOT)),
    "way.svg": ways_picture,
}


def main(folder: Path = FOLDER) -> None:
    """Write every picture."""
    for name, draw in PICTURES.items():
        (folder / name).write_text(draw(), encoding="utf-8")
        print(f"{folder.name}/{name}")


if __name__ == "__main__":
    main()
