"""A server of the official SDK and what becomes of it, both started: callers see the same, and what they would notice is told."""

from __future__ import annotations

import asyncio

from mcpfactory_pipeline.migration import compare_versions, migrate_source
from mcpfactory_pipeline.migration.compare import ServerImage, compare_images
from tests.patience import PATIENCE

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
    alike = asyncio.run(compare_versions(found.before, found.after, folder=tmp_path, seconds=PATIENCE))
    assert (alike.contract, alike.calls, alike.made) == ((), (), 18)
    assert {call.partition("(")[0] for call in alike.stricter} == {"add_note", "shout"}
    broken = (
        found.after.replace("def shout", "def whisper")
        .replace("text.upper()", "text")
        .replace("len(text)", "0")
        .replace("one, two", "one")
    )
    noticed = asyncio.run(compare_versions(found.before, broken, folder=tmp_path, seconds=PATIENCE))
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
    alike = asyncio.run(compare_versions(found.before, found.after, folder=folder, seconds=PATIENCE))
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
    assert compare_images(one, other).same
