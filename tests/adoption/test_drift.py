"""What is known to be no longer what was adopted goes on nowhere before a person accepts it, and on again once it is what it was."""

from __future__ import annotations

import json

import pytest

from tests.adoption.conftest import done, state
from tests.adoption.test_packages import with_node
from tests.adoption.test_url import HONEST, running
from tests.days import NEXT_MONTH

pytestmark = pytest.mark.xdist_group("adopted_drift")
OTHER = "Greet a person, whose name is given, and say how long it is."
WAIVE = ("waive", "security.drift", "--reason", "it is a test", "--expires", NEXT_MONTH, "--server")
APPROVE = ("pipeline", "approve", "--channel", "production")
PROMOTE = ("pipeline", "promote", "--channel", "production")


def inbox(space, *words: str) -> list[dict[str, str]]:
    return json.loads(done(space, "inbox", *words, "--json"))


def adopted(space, what: str, name: str) -> None:
    done(space, "adopt", what, "--name", name, "--yes")
    done(space, "pipeline", "run", name)
    assert state(space, name)["channels"]["staging"]["candidate"]
    assert [one["kind"] for one in inbox(space)] == ["approval"]


def refused(space, name: str, what: str, hint: str) -> None:
    """Neither approved nor promoted, and none of it is suggested."""
    for command in (APPROVE, PROMOTE):
        found = space(*command, name)
        assert found.code == 1, found
        assert what in found.err
        assert "adopt what is there now, or waive security.drift" in found.err
        assert f"hint: {hint}" in found.err
    assert not [one for one in inbox(space) if "approve" in one["command"] or "promote" in one["command"]]


def test_a_url_that_offers_something_else_is_stopped_until_it_is_accepted(space, tmp_path):
    with running(tmp_path, "0") as port:
        url, file = f"http://127.0.0.1:{port}/mcp", space.folder / "servers/remote/drift.json"
        adopted(space, url, "remote")
    with running(tmp_path, port, OTHER):
        assert "nothing to do" in done(space, "pipeline", "run", "remote")  # nobody looked yet
        kinds = [(one["kind"], one["about"]) for one in inbox(space, "--refresh")]
        assert kinds == [("drift", "offers")]
        assert json.loads(file.read_bytes())["found"][0]["kind"] == "offers"
        hint = f"mcpfactory adopt {url} --name remote"
        refused(
            space, "remote", f"{url} offers something else than was adopted: tool greet has another description", hint
        )
        turned = space("install", "remote", "--client", "cursor")
        assert (turned.code, "remote is not what was adopted" in turned.err) == (1, True)
        assert not (space.folder.parent / "home/.cursor/mcp.json").exists()
        assert "drift added" in done(space, "pipeline", "plan", "remote")
        listed = (space.folder / "pipeline/artifacts/remote").glob("*/validate/tools.json")
        before = {path: path.read_text() for path in listed}
        assert space("pipeline", "run", "remote").code == 1
        failed = state(space, "remote")["stages"]["validate"]
        assert failed["summary"]["gates"] == ["security.drift"]
        assert failed["message"].startswith("it offers something else than was adopted: tool greet has another")
        assert all(HONEST in text and path.read_text() == text for path, text in before.items())
        assert not [one for one in inbox(space) if "approve" in one["command"] or "promote" in one["command"]]
        done(space, *WAIVE, "remote")
        done(space, "pipeline", "run", "remote")
        assert state(space, "remote")["stages"]["validate"]["summary"]["waived_rules"] == ["security.drift"]
        done(space, *APPROVE, "remote")
        done(space, *PROMOTE, "remote")
        done(space, "install", "remote", "--client", "cursor")
        (space.folder / "servers/remote/waivers.toml").unlink()
    with running(tmp_path, port):
        assert "offers" not in [one["about"] for one in inbox(space, "--refresh")]
        assert not file.exists()
        done(space, "pipeline", "run", "remote")
    with running(tmp_path, port, OTHER):
        inbox(space, "--refresh")
        assert file.exists()
        done(space, "adopt", url, "--yes")
        assert not file.exists()
        done(space, "pipeline", "run", "remote")
        done(space, *APPROVE, "remote")


def test_a_pinned_file_that_was_replaced_is_stopped_until_it_is_waived(space, registry):
    with_node(registry, "1.0.0", "1.1.0")
    space.environ.update(registry[1])
    adopted(space, "npm:@acme/greeter@1.0.0", "greeter")
    registry[0].tarballs["@acme/greeter"]["1.0.0"] = registry[0].tarballs["@acme/greeter"]["1.1.0"]
    space.environ["npm_config_cache"] += "2"
    assert ("drift", "replaced") in [(one["kind"], one["about"]) for one in inbox(space, "--refresh")]
    what = "for @acme/greeter 1.0.0, and "
    refused(space, "greeter", what, "mcpfactory adopt npm:@acme/greeter --name greeter")
    assert what in space("install", "greeter", "--client", "cursor").err
    assert space("pipeline", "run", "greeter").code == 1
    failed = state(space, "greeter")["stages"]["validate"]
    assert failed["summary"]["gates"] == ["security.drift"]
    assert what in failed["message"]
    done(space, *WAIVE, "greeter")
    done(space, "pipeline", "run", "greeter")
    done(space, *APPROVE, "greeter")
    done(space, *PROMOTE, "greeter")


def test_what_is_known_and_cannot_be_read_stops_too_and_is_written_anew(space, tmp_path):
    with running(tmp_path, "0") as port:
        adopted(space, f"http://127.0.0.1:{port}/mcp", "remote")
        file = space.folder / "servers/remote/drift.json"
        file.write_text("<<<<<<< HEAD")
        found = space(*APPROVE, "remote")
        assert found.code != 0
        assert "remote/drift.json cannot be read" in found.err
        assert "mcpfactory inbox --refresh remote writes it anew" in found.err
        assert "drift.json cannot be read" in inbox(space)[0]["message"]
        inbox(space, "--refresh")
        assert not file.exists()
        done(space, *APPROVE, "remote")
