"""Edits by the person and by the API, in every combination that can meet: none is lost, conflicts are marked, the report is right."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from mcpfactory_codegen.servers.create import create_server
from mcpfactory_codegen.servers.generation import CreateError
from mcpfactory_codegen.servers.scaffold import template_version
from mcpfactory_codegen.servers.server_files import Lockfile
from mcpfactory_codegen.servers.update import UpdatedServer, update_server
from tests.codegen.execution.documents import written
from tests.codegen.update.edits import API, BOOKS, CONFLICTS, PAIRS, PERSON, UNSEEN
from tests.subtest_table import parametrize_subtests
from tests.system import contents

MARKS = ("<<<<<<< yours\n", "||||||| as generated before\n", "=======\n", ">>>>>>> as generated now\n")
README = "README.md"


def actions(updated: UpdatedServer) -> dict[str, str]:
    return {file.path: file.action for file in updated.files if file.action != "same"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A server as it was made, to be copied."""
    folder = tmp_path_factory.mktemp("made")
    return create_server(folder, source=written(folder)).path


@pytest.fixture
def server(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "bookshop"))


@parametrize_subtests("person, api", PAIRS)
def test_no_edit_is_lost(person: str, api: str, made: Path, tmp_path: Path) -> None:
    server = Path(shutil.copytree(made, tmp_path / "bookshop"))
    edit, news = PERSON[person], API[api]
    edit.edit(server)
    updated = update_server(server, source=news.write(tmp_path), accept_origin=True)
    expected = CONFLICTS.get((person, api), ())
    assert updated.conflicts == expected
    for path, texts in edit.kept.items():
        text = (server / path).read_bytes().decode()
        assert [one for one in texts if one not in text] == []
        assert [mark for mark in MARKS if mark in text] == (list(MARKS) if path in expected else [])
    assert [path for path in edit.gone if (server / path).exists()] == []
    assert {change.code for change in updated.changes} == {*edit.codes, *news.codes} - {UNSEEN.get((person, api))}
    if person == next(iter(PERSON)):
        machine = ("src/bookshop_mcp/_generated/", "tests/_generated/", "api/", ".mcpfactory/")
        assert {path for path in actions(updated) if not path.startswith(machine)} == set(news.follow)
    if expected or person == next(iter(PERSON)) or api == next(iter(API)):
        _settled(server, expected)


def _settled(server: Path, conflicts: tuple[str, ...]) -> None:
    """Once more changes nothing, and reminds of what is still to be decided."""
    before = contents(server)
    again = update_server(server)
    assert (again.conflicts, again.changes, again.problems) == (conflicts, (), ())
    assert contents(server) == before


def test_a_decided_conflict_is_settled(server: Path, tmp_path: Path) -> None:
    PERSON["an edited row of the table"].edit(server)
    update_server(server, source=API["other titles"].write(tmp_path))
    (server / README).write_text("decided\n", "utf-8")
    assert update_server(server).conflicts == ()
    assert (server / README).read_text("utf-8") == "decided\n"


def test_a_dry_run_says_the_same_and_writes_nothing(server: Path, tmp_path: Path) -> None:
    PERSON["an edited row of the table"].edit(server)
    news = API["other titles"].write(tmp_path)
    before = contents(server)
    foretold = update_server(server, source=news, dry_run=True)
    assert contents(server) == before
    done = update_server(server, source=news)
    assert (foretold.files, foretold.changes) == (done.files, done.changes)
    assert foretold.conflicts == (README,)


def test_a_file_that_cannot_be_merged_stays_and_is_reported(server: Path, tmp_path: Path) -> None:
    (server / README).write_bytes(b"\xff\xfe not text")
    updated = update_server(server, source=API["an operation more"].write(tmp_path))
    assert updated.conflicts == (README,)
    assert (server / README).read_bytes() == b"\xff\xfe not text"


def test_a_link_is_neither_followed_nor_replaced(server: Path, tmp_path: Path) -> None:
    outside = tmp_path / "elsewhere.md"
    outside.write_text("elsewhere", "utf-8")
    (server / README).unlink()
    (server / README).symlink_to(outside)
    updated = update_server(server, source=API["an operation more"].write(tmp_path))
    assert updated.conflicts == (README,)
    assert ((server / README).is_symlink(), outside.read_text("utf-8")) == (True, "elsewhere")


def test_a_change_of_the_machines_file_is_reported_and_rewritten(server: Path) -> None:
    before = contents(server)
    (server / BOOKS).write_text("# mine\n", "utf-8")
    assert [problem.code for problem in update_server(server).problems] == ["file-edited"]
    assert contents(server) == before


# --- the document ---


def test_a_document_edited_in_its_place_is_the_document(server: Path) -> None:
    place = server / "api/openapi.json"
    data = json.loads(place.read_bytes())
    data["paths"]["/orders"]["delete"]["operationId"] = "forget"
    del data["paths"]["/books/{bookId}"]
    place.write_text(json.dumps(data), "utf-8")
    updated = update_server(server)
    assert [(change.code, change.tool) for change in updated.changes] == [("tool-removed", "get_book")]
    assert json.loads(place.read_bytes()) == data


def test_a_document_edited_by_hand_is_not_replaced(server: Path, tmp_path: Path) -> None:
    place = server / "api/openapi.json"
    place.write_text(place.read_text("utf-8") + "\n", "utf-8")
    before = contents(server)
    with pytest.raises(CreateError) as caught:
        update_server(server, source=API["an operation more"].write(tmp_path))
    assert (caught.value.code, bool(caught.value.hint)) == ("edited", True)
    assert contents(server) == before
    assert update_server(server, source=place).conflicts == ()
    place.unlink()
    assert update_server(server, source=API["an operation more"].write(tmp_path)).tools == 5


def test_the_recorded_source_is_read_again(server: Path, tmp_path: Path) -> None:
    API["an operation more"].write(tmp_path)
    config = server / "mcpfactory.toml"
    line = 'source = "../openapi.json" # where it comes from\n'
    config.write_text(config.read_text("utf-8").replace("include_tags", f"{line}include_tags"), "utf-8")
    assert update_server(server).tools == 5
    assert line in config.read_text("utf-8")


# --- errors leave everything as it was ---


def _no_document(server: Path, tmp_path: Path) -> Any:
    return tmp_path / "nowhere.json"


def _not_one(server: Path, tmp_path: Path) -> Any:
    place = tmp_path / "bad.json"
    place.write_text("[]", "utf-8")
    return place


def _damaged_lock(server: Path, tmp_path: Path) -> Any:
    (server / ".mcpfactory/lock.json").write_text("{", "utf-8")


def _broken_config(server: Path, tmp_path: Path) -> Any:
    (server / "mcpfactory.toml").write_text("<<<<<<< yours", "utf-8")


def _misspelt_decision(server: Path, tmp_path: Path) -> Any:
    with (server / "mcpfactory.toml").open("a") as file:
        file.write('[tools.list_books]\nrenmae = "x"\n')


def _file_in_the_way(server: Path, tmp_path: Path) -> Any:
    """Found only when half of the files are written."""
    shutil.rmtree(server / "tests/_generated")
    (server / "tests/_generated").write_text("not a folder", "utf-8")
    return API["stricter arguments"].write(tmp_path)


FAULTS = {
    "document": (_no_document, _not_one),
    "damaged": (_damaged_lock,),
    "config": (_broken_config, _misspelt_decision),
    "write": (_file_in_the_way,),
}


@pytest.mark.parametrize(("code", "fault"), [(code, fault) for code, faults in FAULTS.items() for fault in faults])
def test_an_error_leaves_everything_as_it_was(code: str, fault: Any, server: Path, tmp_path: Path) -> None:
    source = fault(server, tmp_path)
    before = contents(server)
    with pytest.raises(CreateError) as caught:
        update_server(server, source=source)
    assert (caught.value.code, bool(caught.value.hint)) == (code, True)
    assert contents(server) == before


# --- the template ---


# A template of the user's own is rendered in a process that takes half a second, so that one update shows several cases.


@pytest.fixture(scope="module")
def thing_made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A template of the user's own, and a server made from it, to be copied."""
    folder = tmp_path_factory.mktemp("thing") / "kept"
    (folder / "template/template").mkdir(parents=True)
    (folder / "template/copier.yml").write_text("_subdirectory: template\nname:\n  type: str\n  default: x\n", "utf-8")
    (folder / "template/template/one.txt.jinja").write_text("a\nb {{ name }}\nc\nd\ne\n", "utf-8")
    for name in ("two", "left", "edited"):
        (folder / f"template/template/{name}.txt").write_text(f"{name}\n", "utf-8")
    create_server(folder, name="thing", template=str(folder / "template"))
    return folder


@pytest.fixture
def thing(thing_made: Path, tmp_path: Path) -> Path:
    """The server; its template is the folder `template` beside it."""
    return Path(shutil.copytree(thing_made, tmp_path / "kept")) / "thing"


def test_a_changed_template_is_merged_with_what_the_person_made_of_it(thing: Path) -> None:
    template = thing.parent / "template/template"
    (template / "one.txt.jinja").write_text("new\nb {{ name }}\nc\nd\ne\n", "utf-8")
    for name in ("added", "taken", "two"):
        (template / f"{name}.txt").write_text(f"new {name}\n", "utf-8")
    for name in ("left", "edited"):
        (template / f"{name}.txt").unlink()
    (thing / "one.txt").write_text("a\nb thing\nc\nd\nmine\n", "utf-8")
    for name in ("taken", "edited"):
        (thing / f"{name}.txt").write_text("mine\n", "utf-8")
    two = (thing / "two.txt").read_bytes()
    (thing / "two.txt").unlink()
    assert actions(update_server(thing)) == {
        "one.txt": "merge",
        "added.txt": "create",
        "taken.txt": "collision",
        "left.txt": "remove",
        "edited.txt": "keep",
        "two.txt": "deleted",
    }
    assert (thing / "one.txt").read_text("utf-8") == "new\nb thing\nc\nd\nmine\n"
    assert (thing / "added.txt").read_text("utf-8") == "new added\n"
    assert [name for name in ("left", "two") if (thing / f"{name}.txt").exists()] == []
    (thing / "two.txt").write_bytes(two)
    expected = {"taken.txt": "collision", "two.txt": "rewrite"}
    assert {path: action for path, action in actions(update_server(thing)).items() if path != "one.txt"} == expected
    assert [(thing / f"{name}.txt").read_text("utf-8") for name in ("taken", "edited")] == ["mine\n"] * 2


def test_the_lock_says_which_template_the_persons_files_have_until_an_update_took_all_of_it(thing: Path) -> None:
    template, source = thing.parent / "template/template", "../template"
    first = template_version(source, thing)
    assert first.startswith("sha256:")
    assert Lockfile.read(thing).template == first
    (template / "two.txt").write_text("zwei\n", "utf-8")
    (thing / "two.txt").write_text("deux\n", "utf-8")
    assert template_version(source, thing) != first
    update_server(thing, dry_run=True)
    assert Lockfile.read(thing).template == first
    assert update_server(thing).conflicts == ("two.txt",)
    second = Lockfile.read(thing).template
    assert second == template_version(source, thing), "what is new is in the file, between marks"
    (template / "two.txt").write_text("dos\n", "utf-8")
    assert update_server(thing).conflicts == ("two.txt",)
    assert Lockfile.read(thing).template == second, "the file was left alone"


def test_a_conflict_shows_both_texts_and_the_one_before(server: Path, tmp_path: Path) -> None:
    PERSON["an edited row of the table"].edit(server)
    update_server(server, source=API["other titles"].write(tmp_path))
    ours, rest = (server / README).read_text("utf-8").split(MARKS[0])[1].split(MARKS[1])
    base, rest = rest.split(MARKS[2])
    theirs = rest.split(MARKS[3])[0]
    assert ("List ALL books" in ours, "List books" in base, "Find books" in theirs) == (True, True, True)


def test_there_are_thirty_edits() -> None:
    assert len(PERSON) + len(API) >= 30
