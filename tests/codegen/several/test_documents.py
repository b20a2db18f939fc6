"""Servers of several documents: made, made anew, and given one more or one less."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from mcpfactory_codegen.curation import Selection
from mcpfactory_codegen.servers.config import ApiConfig, parse_config, read_config
from mcpfactory_codegen.servers.create import create_server, regenerate
from mcpfactory_codegen.servers.documents import ApiSource, choose_labels, replace_api_tables
from mcpfactory_codegen.servers.generation import CreateError
from mcpfactory_codegen.servers.update import UpdatedServer, update_server
from mcpfactory_codegen.settings import CONFIG, SettingsError
from tests.codegen.several.documents import document, read, written
from tests.subtest_table import parametrize_subtests

ORDERS = document("Acme - Orders", "https://orders.acme.test/v1", "GET /items listItems", "POST /orders createOrder")
STOCK = document("Acme - Stock", "https://stock.acme.test/v1", "GET /items listItems", "GET /shelves listShelves")
VIDEO = document("Acme - Video", "https://video.acme.test", "GET /films listFilms")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A server of two documents, made once."""
    folder = tmp_path_factory.mktemp("several")
    paths = written(folder, orders=ORDERS, stock=STOCK)
    sources = [f"{label}={path}" for label, path in paths.items()]
    return create_server(folder / "servers", name="acme", source=sources).path


@pytest.fixture
def acme(made: Path, tmp_path: Path) -> Path:
    """A copy of it that a test may change."""
    return shutil.copytree(made, tmp_path / "acme")


def names(folder: Path) -> dict[str, str]:
    """The operation of each tool, with the label of its document."""
    tools = read(folder, ".mcpfactory/report.json")["tools"]
    return {tool["name"]: f"{tool['operation'].get('document', '')}: {tool['operation']['path']}" for tool in tools}


def variables(folder: Path) -> set[str]:
    return {row["name"] for row in read(folder, ".mcpfactory/report.json")["environment"]}


def changed(updated: UpdatedServer) -> set[tuple[str, str]]:
    return {(change.code, change.tool) for change in updated.changes}


def test_a_server_of_two_documents_keeps_them_apart(acme: Path) -> None:
    assert names(acme) == {
        "orders_list_items": "orders: /items", "create_order": "orders: /orders",
        "stock_list_items": "stock: /items", "list_shelves": "stock: /shelves",
    }  # fmt: skip
    assert variables(acme) == {
        "MCPF_ACME_ORDERS_BASE_URL",
        "MCPF_ACME_STOCK_BASE_URL",
        "MCPF_ACME_ORDERS_TOKEN",
        "MCPF_ACME_STOCK_TOKEN",
    }
    assert [(api.label, api.document) for api in read_config(acme).apis] == [
        ("orders", "api/orders/openapi.json"), ("stock", "api/stock/openapi.json"),
    ]  # fmt: skip
    assert read(acme, "api/stock/openapi.json") == STOCK
    cases = read(acme, "tests/_generated/cases.json")
    assert {case["tool"] for case in cases["cases"]} == set(names(acme)), "each tool has a generated test"


def test_one_document_is_replaced_and_the_others_stay(acme: Path, tmp_path: Path) -> None:
    new = document("Acme - Stock", "https://stock2.acme.test", "GET /items listItems", "GET /racks listRacks")
    path = written(tmp_path, new=new)["new"]
    for source, labels in ((f"stock={path}", ()), (path, ("stock",))):
        updated = update_server(acme, source=source, labels=labels, dry_run=True)
        assert changed(updated) == {
            ("tool-removed", "list_shelves"),
            ("tool-added", "list_racks"),
            ("origin-changed", ""),
        }
    with pytest.raises(CreateError, match=r"is now at https://stock2\.acme\.test:443") as refused:
        update_server(acme, source=f"stock={path}")
    assert (refused.value.code, read(acme, "api/stock/openapi.json")) == ("origin", STOCK)
    update_server(acme, source=f"stock={path}", accept_origin=True)
    assert read(acme, "api/stock/openapi.json") == new
    assert read(acme, "api/orders/openapi.json") == ORDERS


def test_a_label_that_is_new_adds_a_document(acme: Path, tmp_path: Path) -> None:
    updated = update_server(acme, source=f"video={written(tmp_path, video=VIDEO)['video']}")
    assert changed(updated) == {("tool-added", "list_films")}
    assert [api.label for api in read_config(acme).apis] == ["orders", "stock", "video"]
    assert "MCPF_ACME_VIDEO_TOKEN" in variables(acme)
    assert update_server(acme).changes == ()


@pytest.mark.parametrize(
    "report",
    ['{"address": {"servers": 3}}', '{"address": {"servers": [3, {}], "further": 3}}', '{"environment": 3}'],
)
def test_a_report_that_was_merged_by_hand_is_written_anew(acme: Path, report: str) -> None:
    file = acme / ".mcpfactory/report.json"
    before = file.read_bytes()
    file.write_text(report)
    update_server(acme)
    assert file.read_bytes() == before


def test_a_label_that_is_a_folder_of_another_document_is_refused(tmp_path: Path) -> None:
    shared = tmp_path / "stock" / "openapi.json"
    shared.parent.mkdir()
    shared.write_text('{"q": {"name": "q", "in": "query", "schema": {"type": "string"}}}')
    orders = document("Acme - Orders", "https://orders.acme.test/v1", "GET /items listItems")
    orders["paths"]["/items"]["parameters"] = [{"$ref": "stock/openapi.json#/q"}]
    paths = written(tmp_path, openapi=orders, other=STOCK)
    shop = create_server(tmp_path / "servers", name="acme", source=paths["openapi"]).path
    with pytest.raises(CreateError, match=r"api/stock/openapi\.json would belong to two API documents"):
        update_server(shop, source=f"stock={paths['other']}")
    assert (shop / "api/stock/openapi.json").read_bytes() == shared.read_bytes()
    assert [tool for _, tool in changed(update_server(shop, source=f"shelf={paths['other']}"))]


def test_a_document_whose_table_is_gone_goes_with_its_files_and_its_tools(acme: Path) -> None:
    config = acme / CONFIG
    config.write_text(config.read_text("utf-8").partition('\n[[api]]\nlabel = "stock"')[0], "utf-8")
    updated = update_server(acme)
    assert changed(updated) == {("tool-removed", "stock_list_items"), ("tool-removed", "list_shelves")}
    assert {file.path for file in updated.files if file.action == "remove" and file.owner == "document"} == {
        "api/stock/openapi.json"
    }
    assert not (acme / "api/stock/openapi.json").exists()
    assert names(acme)["orders_list_items"] == "orders: /items", "its name was published"


def test_a_server_of_one_document_takes_a_second_and_keeps_what_it_had(tmp_path: Path) -> None:
    paths = written(tmp_path, orders=ORDERS, stock=STOCK)
    shop = create_server(tmp_path / "servers", name="acme", source=paths["orders"]).path
    before, had = names(shop), variables(shop)
    config = shop / CONFIG
    config.write_text(
        "# mine\n" + config.read_text("utf-8") + '\n[names]\n"stock: GET /shelves" = "see_shelves"\n', "utf-8"
    )
    updated = update_server(shop, source=f"stock={paths['stock']}")
    assert changed(updated) == {("tool-added", "stock_list_items"), ("tool-added", "see_shelves")}
    assert before.items() <= names(shop).items()
    assert variables(shop) - had == {"MCPF_ACME_STOCK_BASE_URL", "MCPF_ACME_STOCK_TOKEN"}
    text = config.read_text("utf-8")
    assert text.startswith("# mine\n")
    assert (text.count("[[api]]"), text.count("\n[api]")) == (2, 0)
    assert [api.label for api in read_config(shop).apis] == ["", "stock"]
    assert {step.action for step in regenerate(shop).steps} == {"same"}


@pytest.mark.parametrize(
    ("source", "labels", "words"),
    [
        ("new.json", (), r"label of the document new\.json is missing"),
        (None, ("shop",), "no API document 'shop'"),
        (["stock=a.json", "stock=b.json"], (), "was given twice"),
    ],
)
def test_what_is_not_plain_is_asked_with_the_labels_that_there_are(
    acme: Path, source: Any, labels: tuple[str, ...], words: str
) -> None:
    with pytest.raises(CreateError, match=words) as raised:
        update_server(acme, source=source, labels=labels)
    assert raised.value.hint


def test_problems_are_found_in_their_document(tmp_path: Path) -> None:
    broken = json.loads(json.dumps(STOCK))
    broken["paths"]["/shelves"]["get"]["parameters"] = [{"in": "nowhere", "name": "x"}]
    paths = written(tmp_path, orders=ORDERS)
    (tmp_path / "stock.json").write_text(json.dumps(broken, indent=1), "utf-8")
    sources = [f"orders={paths['orders']}", f"stock={tmp_path / 'stock.json'}"]
    made = create_server(tmp_path / "servers", name="acme", source=sources, dry_run=True)
    (problem,) = made.problems
    lines = (tmp_path / "stock.json").read_text("utf-8").splitlines()
    assert problem.pointer.startswith("stock: /paths/~1shelves/get/parameters/0")
    assert problem.line == 1 + next(number for number, line in enumerate(lines) if '"parameters"' in line) + 1


def test_a_selection_is_a_problem_only_when_it_fits_no_document(tmp_path: Path) -> None:
    sources = [f"{label}={path}" for label, path in written(tmp_path, orders=ORDERS, stock=STOCK).items()]
    selection = Selection(include_operations=("listShelves", "orders: createOrder", "noSuch"))
    made = create_server(tmp_path / "servers", name="acme", source=sources, selection=selection)
    assert set(names(made.path)) == {"list_shelves", "create_order"}
    assert {problem.message for problem in made.problems} == {"no operation matches the operation 'noSuch'"}


def test_an_overlay_changes_the_document_that_it_is_for(tmp_path: Path) -> None:
    overlay = {"overlay": "1.0.0", "info": {"title": "x", "version": "1"}, "actions": []}
    overlay["actions"] = [{"target": "$.paths['/items']", "remove": True}]
    (tmp_path / "fix.json").write_text(json.dumps(overlay), "utf-8")
    sources = [f"{label}={path}" for label, path in written(tmp_path, orders=ORDERS, stock=STOCK).items()]
    made = create_server(tmp_path / "servers", name="acme", source=sources, overlays=[f"stock={tmp_path / 'fix.json'}"])
    assert set(names(made.path)) == {"list_items", "create_order", "list_shelves"}
    assert read_config(made.path).apis[1].overlays == ("api/stock/overlays/fix.json",)
    assert update_server(made.path).changes == ()
    with pytest.raises(CreateError, match=r"fix\.json is not assigned to a document"):
        create_server(tmp_path / "more", name="acme", source=sources, overlays=[tmp_path / "fix.json"])


def test_credentials_are_one_where_the_person_says_so(tmp_path: Path) -> None:
    sources = [f"{label}={path}" for label, path in written(tmp_path, orders=ORDERS, stock=STOCK).items()]
    own = create_server(tmp_path / "servers", name="own", source=sources, dry_run=True)
    assert own.alike == ("bearerAuth",), "the person is told that they may be"
    created = create_server(tmp_path / "servers", name="acme", source=sources, credentials="shared")
    made = created.path
    assert created.alike == ()
    assert {api.credentials for api in read_config(made).apis} == {"shared"}
    assert {name for name in variables(made) if not name.endswith("BASE_URL")} == {"MCPF_ACME_TOKEN"}


# --- labels and configuration ---


@parametrize_subtests(
    "documents, expected",
    [
        ([("twilio_messaging_v1.json", ""), ("twilio_verify_v2.json", "")], ("messaging", "verify")),
        ([("lookups_v1.json", ""), ("lookups_v2.json", "")], ("v1", "v2")),
        ([("a/openapi.yaml", "Orders"), ("b/openapi.yaml", "Stock API")], ("orders", "stock")),
        ([("orders/openapi.yaml", ""), ("stock/openapi.yaml", "")], ("orders", "stock")),
        ([("https://x.test/orders.json?a=1", ""), ("https://x.test/stock.json", "")], ("orders", "stock")),
        ([(f"https://{one}.acme.test/openapi.json", "") for one in ("orders", "stock")], ("orders", "stock")),
        ([("PayoutService.json", ""), ("GrantService-v3.json", ""), ("a.json", "")], ("payout", "grant", "a")),
        (
            [("GrantService.json", ""), ("GrantService-v3.json", ""), ("a.json", "")],
            ("grant", "grant-v3", "a"),
        ),
        ([("notification_configuration_of_devices.json", ""), ("a.json", "")], ("notification-configuration-of", "a")),
        ([("same.json", ""), ("same.json", "")], ("same", "same-2")),
        ([("本.json", "本"), ("2fa.json", "")], ("api", "fa")),
    ],
)
def test_a_label_is_what_tells_a_document_from_the_others(
    documents: list[tuple[str, str]], expected: tuple[str, ...]
) -> None:
    assert choose_labels([(ApiSource(place), title) for place, title in documents]) == expected


SERVER = '[server]\nname = "a"\npackage = "a"\n'


@parametrize_subtests(
    "text",
    [
        '[[api]]\nlabel = "a"\n',
        '[[api]]\ndocument = "a"\n[[api]]\ndocument = "b"\n',
        '[[api]]\ndocument = "a"\nlabel = "x"\n[[api]]\ndocument = "b"\nlabel = "x"\n',
        '[[api]]\ndocument = "a"\n[[api]]\ndocument = "a"\nlabel = "x"\n',
        '[[api]]\ndocument = "a"\nlabel = "X Y"\n',
        '[[api]]\ndocument = "a"\ncredentials = "mine"\n',
        '[[api]]\ndocument = "a"\nlable = "x"\n',
    ],
)
def test_tables_that_cannot_be_used_say_what_to_change(text: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as raised:
        parse_config(SERVER + text, tmp_path / CONFIG)
    assert raised.value.hint


def test_a_table_is_brought_up_to_date_where_it_stands(tmp_path: Path) -> None:
    text = (
        SERVER
        + '\n[[api]] # first\nlabel = "x"\ndocument = "a" # mine\n\n[[api]]\ndocument = "b"\nlabel = "y"\n\n[names]\n"GET /" = "root"\n'
    )
    apis = (
        ApiConfig(document="c", source="https://c.test/", label="x"),
        ApiConfig(document="b", label="y", allow_private=("h:1",)),
        ApiConfig(document="d", label="z"),
    )
    done = replace_api_tables(text, apis)
    found = parse_config(done, tmp_path / CONFIG)
    assert [(api.label, api.document, api.source, api.allow_private) for api in found.apis] == [
        ("x", "c", "https://c.test/", ()), ("y", "b", "", ("h:1",)), ("z", "d", "", ()),
    ]  # fmt: skip
    assert found.names == {"GET /": "root"}
    assert "[[api]] # first\n" in done
    assert replace_api_tables(done, apis) == done
