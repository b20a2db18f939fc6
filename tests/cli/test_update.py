from __future__ import annotations

from pathlib import Path

import pytest

from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.workspace import Workspace
from tests.cli.conftest import InProcessCli


@pytest.fixture
def shop(tmp_path, workspace_cache, document):
    new = ("new", "--from-openapi", document, "--name", "shop")
    return InProcessCli(workspace_cache.copy(tmp_path / "ws", ("--factory", "index"), new))


@pytest.fixture
def changed(document, tmp_path):
    """The bookshop's document without its stock, and with another title for its catalogue."""
    text = (
        Path(document).read_text("utf-8").replace("/stock:", "/supply:").replace("summary: Find books", "summary: Look")
    )
    place = tmp_path / "changed.yaml"
    place.write_text(text, "utf-8")
    return str(place)


def test_an_update_without_news_says_so(shop):
    done = shop("update", "shop")
    assert (done.code, done.out) == (0, "shop is up to date\n")
    assert "servers/shop/api/openapi.yaml" in done.err
    assert "mcpfactory update shop --from-openapi FILE" in done.err


def test_an_update_names_the_next_commands(shop, changed, document):
    done = shop("update", "shop", "--from-openapi", changed)
    assert "next: mcpfactory pipeline run shop\n" in done.err
    with Store(Workspace.find(shop.folder)).transaction("shop") as transaction:
        transaction.append("promoted", channel="staging", candidate="c", version="0.1.0")
    done = shop("update", "shop", "--from-openapi", document)
    chain = "mcpfactory diff shop, git commit, mcpfactory release apply shop, then mcpfactory pipeline run shop"
    assert f"next: {chain}\n" in done.err


def test_an_update_tells_what_changes_for_callers(shop, changed):
    told = shop("update", "shop", "--from-openapi", changed, "--json").data
    assert {key: told[key] for key in ("server", "dry_run", "conflicts", "breaking")} == {
        "server": "shop",
        "dry_run": False,
        "conflicts": [],
        "breaking": 0,
    }
    assert [(change["kind"], change["code"], change["tool"]) for change in told["changes"]] == [
        ("cosmetic", "text-changed", "list_books")
    ]
    assert {"path": "README.md", "action": "rewrite", "owner": "person", "note": ""} in told["files"]


def test_a_breaking_change_is_printed_first(shop, document, tmp_path):
    place = tmp_path / "stricter.yaml"
    place.write_text(Path(document).read_text("utf-8").replace("maximum: 50", "maximum: 5"), "utf-8")
    out = shop("update", "shop", "--from-openapi", str(place)).out
    assert "breaking: 1\n  constraint-narrowed  list_books: limit: maximum 50 → 5" in out


def test_a_conflict_ends_in_exit_code_1_until_it_is_decided(shop, changed):
    readme = shop.folder / "servers/shop/README.md"
    text = readme.read_text("utf-8")
    assert "| Find books |" in text
    readme.write_text(text.replace("| Find books |", "| Mine |"), "utf-8")
    assert shop("update", "shop", "--from-openapi", changed, "--dry-run").code == 1
    assert "<<<<<<<" not in readme.read_text("utf-8")
    done = shop("update", "shop", "--from-openapi", changed)
    assert (done.code, "README.md" in done.err) == (1, True)
    assert shop("update", "shop").code == 1
    readme.write_text("decided\n", "utf-8")
    assert shop("update", "shop").code == 0


def test_workflow_is_in_the_readme_and_in_inspect(shop):
    with (shop.folder / "servers/shop/mcpfactory.toml").open("a") as file:
        step = '[{id = "found", tool = "list_books", arguments = {}}]'
        file.write(f'\n[workflows.browse]\ndescription = "Look around."\nsteps = {step}\nresult = "$.found"\n')
    assert shop("update", "shop").code == 0
    assert "| `browse` | Look around" in (shop.folder / "servers/shop/README.md").read_text("utf-8")
    shown = shop("inspect", "shop").out
    assert [line.split() for line in shown.splitlines() if line.startswith("browse")] == [["browse", "list_books"]]
