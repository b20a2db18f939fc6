"""`diff` says what the source of a server changes for its callers, and which version says so."""

from __future__ import annotations

import json


def contract(shop, tmp_path, change):
    """The tool list of the source, changed: what callers had before."""
    listed = shop(
        "diff", "bookshop", "--against", "servers/bookshop/src/bookshop_mcp/_generated/manifest.json", "--json"
    )
    assert (listed.code, listed.data["needed"]) == (0, "none"), listed.err
    manifest = json.loads((shop.folder / "servers/bookshop/src/bookshop_mcp/_generated/manifest.json").read_text())
    change(manifest["tools"])
    file = tmp_path / "before.json"
    file.write_text(json.dumps({"version": "0.1.0", "tools": manifest["tools"]}))
    return str(file)


def test_a_tool_that_is_gone_breaks_and_a_version_is_proposed(shop, tmp_path):
    before = contract(
        shop, tmp_path, lambda tools: tools.append({"name": "burn_book", "inputSchema": {"type": "object"}})
    )
    done = shop("diff", "bookshop", "--against", before)
    assert done.code == 1
    assert "tool-removed  burn_book is gone" in done.out
    assert "proposed: 0.2.0 (major)" in done.out


def test_a_new_tool_breaks_nobody(shop, tmp_path):
    before = contract(shop, tmp_path, lambda tools: tools.pop())
    found = shop("diff", "bookshop", "--against", before, "--json")
    assert found.code == 0
    assert (found.data["needed"], found.data["kept"], found.data["proposed"]) == ("minor", True, "0.1.1")
    assert [change["code"] for change in found.data["changes"]] == ["tool-added"]


def test_without_a_promoted_candidate_there_is_no_contract(shop):
    done = shop("diff", "bookshop")
    assert done.code == 3
    assert "has no contract yet" in done.err


def test_configuration_changed_after_generate_has_its_own_exit_code(shop, tmp_path):
    before = contract(shop, tmp_path, lambda tools: None)
    with (shop.folder / "servers/bookshop/mcpfactory.toml").open("a") as file:
        file.write('\n[tools.list_books]\nrename = "browse_books"\n')
    done = shop("diff", "bookshop", "--against", before)
    assert done.code == 8
    assert "mcpfactory pipeline run bookshop --until generate" in done.err
    assert shop("diff", "bookshop", "--against", before, "--json").data["stale"]
