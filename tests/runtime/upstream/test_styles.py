"""A parameter style that a writer does not know is refused before anything is sent, and the message says where its row belongs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import mcpfactory_codegen
import mcpfactory_runtime
from mcpfactory_runtime.upstream import Parameter
from tests.subtest_table import parametrize_subtests

STYLE_LIST = "runtime/upstream/operation.py"
EXPLODE = (STYLE_LIST, "EXPLODED", '"cookie": True,', '"cookie": True, "starred": False,')
# Per place: where the name is listed, then file, table, and what a row for "starred" changes in it.
STEPS = {
    "path": (
        ('"matrix", "segments"]', '"matrix", "segments", "starred"]'),
        EXPLODE,
        ("runtime/upstream/encoding.py", "_PATH", '"segments": _segments}', '"segments": _segments, "starred": partial(_prefixed, "*")}'),
        ("codegen/cases/expected.py", "_PATH", '{"simple": ("", ",")', '{"starred": ("*", ","), "simple": ("", ",")'),
    ),
    "query": (
        ('"deepObject", "tabDelimited"]', '"deepObject", "tabDelimited", "starred"]'),
        EXPLODE,
        ("runtime/upstream/encoding.py", "DELIMITERS", '"deepObject": ","', '"deepObject": ",", "starred": "*"'),
        ("codegen/cases/expected.py", "_QUERY", '"deepObject": (None, True),', '"deepObject": (None, True), "starred": ("*", False),'),
    ),
    "header": (
        ('HeaderStyle = Literal["simple"]', 'HeaderStyle = Literal["simple", "starred"]'),
        EXPLODE,
        ("runtime/upstream/request.py", "_HEADERS", '{"simple": _simple_header}', '{"simple": _simple_header, "starred": _simple_header}'),
        ("codegen/cases/expected.py", "_HEADERS", '{"simple": _header}', '{"simple": _header, "starred": _header}'),
    ),
    "cookie": (
        ('Literal["form", "cookie"]', 'Literal["form", "cookie", "starred"]'),
        EXPLODE,
        ("runtime/upstream/request.py", "_COOKIES", '"cookie": _plain_cookies}', '"cookie": _plain_cookies, "starred": _plain_cookies}'),
        ("codegen/cases/expected.py", "_COOKIES", '"cookie": _cookie}', '"cookie": _cookie, "starred": _cookie}'),
    ),
}  # fmt: skip
LOAD = "import mcpfactory_runtime.upstream.request, mcpfactory_codegen.cases.expected"


def edit(folder: Path, name: str, before: str, after: str) -> None:
    file = folder / f"mcpfactory_{name}"
    text = file.read_text("utf-8")
    assert text.count(before) == 1, (name, before)
    file.write_text(text.replace(before, after), "utf-8")


def run(folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("place", STEPS)
def test_a_new_style_is_refused_until_each_writer_has_its_row(tmp_path: Path, place: str) -> None:
    for package in (mcpfactory_runtime, mcpfactory_codegen):
        source = Path(package.__file__).parent
        shutil.copytree(source, tmp_path / source.name, ignore=shutil.ignore_patterns("_templates", "__pycache__"))
    listed, *steps = STEPS[place]
    edit(tmp_path, STYLE_LIST, *listed)
    for name, table, before, after in steps:
        refused = run(tmp_path, LOAD)
        short = name.partition("/")[2]
        assert f"NotImplementedError: internal error: {short} {table} has no row for 'starred'" in refused.stderr
        edit(tmp_path, name, before, after)
    assert run(tmp_path, LOAD).stderr == ""
    shown = run(
        tmp_path,
        "from mcpfactory_runtime.upstream.request import build_request, Operation, Parameter\n"
        f"call = Operation('GET', '/{{v}}' if {place!r} == 'path' else '/', (Parameter('v', {place!r}, 'v', style='starred'),))\n"
        "print(build_request(call, {'v': [1, 2]}, 'http://x').url)",
    )
    wanted = {"path": "http://x/*1,2", "query": "http://x/?v=1%2A2", "header": "http://x/", "cookie": "http://x/"}
    assert (shown.stdout.strip(), shown.stderr) == (wanted[place], "")


@parametrize_subtests(
    "place, style, said",
    [
        ("path", "form", "unknown style 'form' of a path parameter; known styles: simple, label, matrix, segments"),
        ("query", "starred", "unknown style 'starred' of a query parameter"),
        ("querystring", "form", "unknown style 'form' of a querystring parameter; known styles: none"),
        ("header", "form", "unknown style 'form' of a header parameter"),
        ("matrix", "form", "'matrix' is not a valid parameter location"),
    ],
)
def test_a_parameter_in_a_style_that_its_place_lacks_is_not_made(place: Any, style: Any, said: str) -> None:
    with pytest.raises(ValueError, match=r"one of|unknown style") as failed:
        Parameter("a", place, "a", style=style)
    assert said in str(failed.value)
