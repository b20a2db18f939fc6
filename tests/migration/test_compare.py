"""A server of the official SDK and what becomes of it, both started: callers see the same, and what they would notice is told."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.migration import CallPermission, Likeness, Migration, compare_versions, migrate_source
from mcpfactory_pipeline.migration.compare import ServerImage, compare_images
from tests.patience import PATIENCE

EVERY = CallPermission(all_tools=True)
NOTES = '''\
from mcp.server.mcpserver import Context, MCPServer

mcp = MCPServer("notes", instructions="Search first.")


@mcp.tool()
async def add_note(text: str, ctx: Context, stars: int = 1) -> dict[str, int]:
    """Keep a note."""
    await ctx.report_progress(1, 1)
    return {"length": len(text), "stars": stars}


@mcp.tool()
def shout(text: str) -> str:
    """Say it loudly."""
    return text.upper()


@mcp.resource("notes://all")
def all_notes() -> str:
    """Every note."""
    return "one, two"


@mcp.prompt()
def summarise(style: str) -> str:
    """Ask for a summary."""
    return f"Summarise in {style} words."
'''


def test_callers_see_the_same_and_what_is_broken_on_purpose_is_told(tmp_path):
    found = migrate_source(NOTES)
    assert found.complete
    alike = asyncio.run(
        compare_versions(found.before, found.after, folder=tmp_path, seconds=PATIENCE, permission=EVERY)
    )
    assert (alike.contract, alike.calls, alike.made) == ((), (), 18)
    assert {call.partition("(")[0] for call in alike.stricter} == {"add_note", "shout"}
    broken = (
        found.after.replace("def shout", "def whisper")
        .replace("text.upper()", "text")
        .replace("len(text)", "0")
        .replace("one, two", "one")
    )
    noticed = asyncio.run(compare_versions(found.before, broken, folder=tmp_path, seconds=PATIENCE, permission=EVERY))
    assert any("shout" in text for text in noticed.contract)
    assert {text.partition("(")[0].partition(":")[0] for text in noticed.calls} == {"add_note", "shout", "read notes"}
    assert list(tmp_path.iterdir()) == []


def test_answers_that_differ_by_themselves_are_not_held_against_anybody():
    one, other = (ServerImage(answers={"now({})": {"content": [{"type": "text", "text": text}]}}) for text in "ab")
    assert compare_images(one, other, other).unsteady == ("now({})",)
    assert compare_images(one, other, one).calls != ()


def test_a_server_in_a_package_that_reads_arguments_is_started_as_it_is_by_itself(tmp_path):
    folder = tmp_path / "shop/till"
    folder.mkdir(parents=True)
    for name, text in (("shop/__init__.py", "NAME = 'shop'\n"), ("shop/till/__init__.py", "")):
        (tmp_path / name).write_text(text)
    text = NOTES.replace(
        "mcp = ", "import argparse\n\nfrom shop import NAME\n\nargparse.ArgumentParser().parse_args()\nmcp = "
    ).replace("text.upper()", "NAME + text")
    found = migrate_source(text)
    alike = asyncio.run(compare_versions(found.before, found.after, folder=folder, seconds=PATIENCE, permission=EVERY))
    assert (alike.same, alike.made) == (True, 18)


def test_an_argument_that_only_the_first_version_takes_is_named_and_counts_for_nothing():
    good, refused = {"content": [{"type": "text", "text": "a"}]}, {"isError": True, "content": []}
    name = 'f({"mcpfactory_unknown": 1})'
    first = ServerImage(answers={name: good}, strays=frozenset({name}))
    alike = compare_images(first, ServerImage(answers={name: refused}))
    assert (alike.same, alike.stricter) == (True, (name,))
    assert not compare_images(ServerImage(answers={name: good}), ServerImage(answers={name: refused})).same
    assert not compare_images(
        ServerImage(answers={name: refused}, strays=first.strays), ServerImage(answers={name: good})
    ).same


def test_an_empty_result_that_is_the_same_may_be_told_in_other_words():
    one = ServerImage(answers={"f({})": {"content": [], "structuredContent": {"result": []}}})
    other = ServerImage(
        answers={"f({})": {"content": [{"type": "text", "text": "[]"}], "structuredContent": {"result": []}}}
    )
    assert compare_images(one, other).same
    wrong = ServerImage(answers={"f({})": {"content": [], "structuredContent": {"result": [0]}}})
    assert not compare_images(one, wrong).same


def test_json_in_a_text_may_be_spelt_otherwise():
    one, other = (
        ServerImage(answers={"f({})": {"content": [{"type": "text", "text": text}]}})
        for text in ('{"a": 1}', '{\n  "a": 1\n}')
    )
    alike = compare_images(one, other)
    assert (alike.same, alike.wording) == (True, (f"f({{}}): {SPELT}",))


SPELT = "its text is JSON that is spelt otherwise; the data are the same"


def told(first: dict[str, Any], second: dict[str, Any], call: str = "f({})") -> Likeness:
    """What is said of two answers to one call, each of which is steady."""
    one, other = (ServerImage(answers={call: answer}) for answer in (first, second))
    return compare_images(one, other, one)


def contents(text: str, **more: Any) -> dict[str, Any]:
    return {"contents": [{"uri": "a://b", "mimeType": "application/json", "text": text, **more}]}


@pytest.mark.parametrize(
    ("text", "other"),
    [('{"ABC": 3, "\\u00fc": "\\u00e9"}', '{"ABC":3,"ü":"é"}'), ('{"a":  1}', '{"a":1}'), (" [1]", "[1]")],
)
def test_the_text_of_a_resource_that_is_spelt_otherwise_is_named(text, other):
    found = told(contents(text), contents(other), "read a://b")
    assert (found.calls, found.wording) == ((), (f"read a://b: {SPELT}",))


def structured(data: Any) -> dict[str, Any]:
    return {"content": [], "structuredContent": data}


@pytest.mark.parametrize(
    ("data", "other"),
    [
        ({"n": 0}, {}), ({"n": 0}, {"n": False}), ({"n": 1}, {"n": True}), ({"n": None}, {}), ({"n": []}, {"n": {}}), ({"n": False}, {}), ({}, None),
        ({"in": {"description": "a"}}, {"in": {"description": "b"}}), ({"annotations": [1]}, {"annotations": [2]}),
        ({"resultType": "a"}, {"resultType": "b"}), ({"_meta": {"a": 1}}, {}), ({"text": "[1]"}, {"text": "[ 1]"}), ({"content": [{"n": 0}]}, {"content": [{}]}),
    ],
)  # fmt: skip
def test_data_of_answers_are_compared_whole(data, other):
    for first, second in ((data, other), (other, data)):
        found = told(structured(first), structured(second))
        assert (len(found.calls), found.wording) == (1, ())
    assert told(structured(data), structured(data)) == told(structured(other), structured(other))
    first, second = (contents(json.dumps(one)) for one in (data, other))
    assert len(told(first, second).calls) == 1


def test_an_image_that_differs_beside_equal_data_is_no_wording():
    def picture(data: str) -> dict[str, Any]:
        return {"content": [{"type": "image", "data": data, "mimeType": "image/png"}], "structuredContent": {"a": 1}}

    assert len(told(picture("AA=="), picture("BB==")).calls) == 1
    assert told(picture("AA=="), picture("AA==")).wording == ()


def test_a_number_that_is_no_number_is_the_same_as_itself():
    nan = {"content": [{"type": "text", "text": '{"a": NaN}'}]}
    assert told(nan, nan) == compare_images(ServerImage(answers={"f({})": nan}), ServerImage(answers={"f({})": nan}))
    assert (told(nan, nan).unsteady, told(nan, nan).calls) == ((), ())


@pytest.mark.parametrize("key", ["_meta", "annotations"])
def test_what_stands_beside_the_data_is_named_once_for_a_tool(key):
    def answer(value: Any) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": "a", key: value}]}

    calls = [f'f({{"a": {at}}})' for at in range(3)]
    one, other = (
        ServerImage(answers={call: answer(value) for call in calls}, called=dict.fromkeys(calls, "f"))
        for value in ({"priority": 1}, {"priority": 0})
    )
    found = compare_images(one, other, one)
    assert (found.calls, found.wording) == ((), (f"f: the {key} of its answer differs (3 calls)",))
    assert told(answer({}), answer(None)).wording == ()


def prompt(**argument: Any) -> dict[str, Any]:
    return {"p": {"name": "p", "arguments": [{"name": "style", "required": True, **argument}]}}


def test_words_of_prompts_resources_and_the_server_are_named():
    first = ServerImage(
        prompts=prompt(description="How it sounds", title="Style"),
        resources={"a://b": {"uri": "a://b", "name": "b", "title": "B", "size": 3}},
        server={"name": "s", "version": "4.2.3", "instructions": "Search first."},
    )
    second = ServerImage(
        prompts=prompt(title="A style"),
        resources={"a://b": {"uri": "a://b", "name": "b", "title": "C", "_meta": {"fastmcp": {"tags": []}}}},
        server={"name": "s", "version": "0.0.0", "instructions": "Search first."},
    )
    found = compare_images(first, second)
    assert found.contract == ()
    assert found.wording == (
        "resource a://b: its size is gone",
        "resource a://b: its title differs",
        "prompt p: the description of its argument style is gone",
        "prompt p: the title of its argument style differs",
        "server: its version was '4.2.3' and is '0.0.0'",
    )
    assert compare_images(first, first).wording == ()


KEPT = '''\
from pathlib import Path

from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations

mcp = MCPServer("disk")
HERE = Path(__file__).parent


@mcp.tool(annotations=ToolAnnotations(read_only_hint=True))
def size(text: str) -> int:
    """Say how long a text is."""
    return len(text)


@mcp.tool()
def wipe(name: str) -> str:
    """Take a file away."""
    with (HERE / "wiped").open("a") as log:
        log.write(name + " ")
    return f"{name} is gone"


@mcp.tool()
def forget() -> str:
    """Forget everything."""
    (HERE / "forgotten").touch()
    return "gone"
'''


@pytest.fixture(scope="module")
def disk() -> Migration:
    found = migrate_source(KEPT)
    assert found.complete
    return found


def _alike(found: Migration, folder: Path, **permission: Any) -> Likeness:
    made = compare_versions(
        found.before, found.after, folder=folder, seconds=PATIENCE, permission=CallPermission(**permission)
    )
    return asyncio.run(made)


def test_only_tools_that_are_marked_as_reading_are_called_and_the_others_are_named(disk, tmp_path):
    alike = _alike(disk, tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert [one.partition(":")[0] for one in alike.unshown] == ["wipe", "forget"]
    assert alike.made > 0
    assert (alike.same, alike.verdict) == (
        True,
        "they list the same, and these answers are the same; nothing was shown of 2 tools",
    )


def test_a_tool_is_called_as_a_person_said_and_in_no_other_way(disk, tmp_path):
    alike = _alike(disk, tmp_path, examples=({"tool": "wipe", "arguments": {"name": "mine"}},))
    assert (tmp_path / "wiped").read_text() == "mine mine mine "
    assert [one.partition(":")[0] for one in alike.unshown] == ["forget"]
    with pytest.raises(ConfigError, match="of tools that the server does not list: nothing"):
        _alike(disk, tmp_path, examples=({"tool": "nothing"},))


def test_every_tool_is_called_when_a_person_says_so(disk, tmp_path):
    alike = _alike(disk, tmp_path, all_tools=True)
    assert (tmp_path / "forgotten").exists()
    assert (alike.unshown, alike.verdict) == ((), "callers see the same")


def test_a_tool_that_always_fails_or_answers_anew_each_time_is_not_shown_to_be_equal():
    tools = ({"name": "keyed"}, {"name": "now"}, {"name": "fine"})
    answers = {
        "keyed({})": {"isError": True, "content": []},
        "now({})": {"content": [{"type": "text", "text": "1"}]},
        "fine({})": {"content": []},
    }
    again = {**answers, "now({})": {"content": [{"type": "text", "text": "2"}]}}
    called = {f"{one['name']}({{}})": one["name"] for one in tools}
    first, second = (ServerImage(tools, answers=one, called=called) for one in (answers, again))
    alike = compare_images(first, first, second)
    assert alike.unshown == ("keyed: no call of it succeeded", "now: it answers differently each time")
