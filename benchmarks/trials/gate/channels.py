"""Channels on disk: pages and files that nobody's state names, and decisions that a channel has to follow."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta
from pathlib import Path
from typing import Final

from benchmarks.trials.gate.attempt import Attempt
from benchmarks.trials.gate.workspace import AttackedWorkspace

_PRODUCTION: Final = ("--channel", "production")
_TOOLS_APPROVED: Final = """
[[pipeline.stages]]
name = "tools"
kind = "approval"
needs = ["generate"]
before = ["build"]
"""


def _found(field: AttackedWorkspace, *words: str) -> Iterator[str]:
    """Neither `verify` nor the inbox may be silent."""
    done = field.run("pipeline", "verify")
    if done.code == 0 or not all(word in done.text for word in words):
        yield "verify does not say it"
    if not all(word in field.run("inbox", "--show", "0").text for word in words):
        yield "the inbox does not say it"


def wheel_replaced(field: AttackedWorkspace) -> Iterator[str]:
    """Writes other bytes into a wheel that production serves, then restores."""
    wheel = field.wheel()
    bytes_before = wheel.read_bytes()
    wheel.write_bytes(bytes_before + b"x")
    yield from _found(field, "alpha")
    field.run("pipeline", "restore")
    if wheel.read_bytes() != bytes_before:
        yield "restore left the other bytes"


def wheel_missing(field: AttackedWorkspace) -> Iterator[str]:
    """Deletes a wheel that production serves, then restores."""
    wheel = field.wheel()
    wheel.unlink()
    yield from _found(field, "alpha")
    field.run("pipeline", "restore")
    if not wheel.exists():
        yield "restore did not bring it back"


def ghost_page(field: AttackedWorkspace) -> Iterator[str]:
    """Adds a project to a channel that no server has."""
    simple = field.root / "pipeline/channels/production/simple"
    shutil.copytree(simple / "alpha-mcp", simple / "ghost-mcp")
    yield from _found(field, "ghost-mcp")


def newer_on_page(field: AttackedWorkspace) -> Iterator[str]:
    """Adds a wheel of version 99 to the page of alpha."""
    page = field.root / "pipeline/channels/production/simple/alpha-mcp/index.html"
    text = page.read_text()
    wheel = field.wheel()
    other = wheel.with_name(wheel.name.replace("0.1.0", "99.0.0"))
    other.write_bytes(wheel.read_bytes())
    line = next(line for line in text.splitlines() if ".whl" in line)
    page.write_text(text.replace(line, line + "\n" + line.replace("0.1.0", "99.0.0")))
    yield from _found(field, "alpha")
    field.run("pipeline", "restore")
    if "99.0.0" in page.read_text():
        yield "restore left it on the page"


def hash_on_page(field: AttackedWorkspace) -> Iterator[str]:
    """Replaces a wheel that production serves, and the hash on its page."""
    page = field.root / "pipeline/channels/production/simple/alpha-mcp/index.html"
    wheel = field.wheel()
    wheel.write_bytes(wheel.read_bytes() + b"x")
    page.write_text(page.read_text().replace(next(iter(field.served())), "0" * 64))
    yield from _found(field, "alpha")


def folder_deleted(field: AttackedWorkspace) -> Iterator[str]:
    """Deletes the folder of a server that production still serves, and retires it."""
    shutil.rmtree(field.server("beta"))
    yield from _found(field, "beta")
    done = field.run("pipeline", "retire", "beta", "--reason", "its folder is gone")
    if done.code or field.served(project="beta-mcp"):
        yield "retire does not work without the folder"


def forgotten(field: AttackedWorkspace) -> Iterator[str]:
    """Deletes folder, state and history of a server that production still serves."""
    for path in (field.server("beta"), field.state("beta"), field.history("beta")):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    yield from _found(field, "beta")


def artifact_replaced(field: AttackedWorkspace) -> Iterator[str]:
    """Writes other bytes into the wheel of a candidate, approves it, and promotes."""
    for wheel in (field.root / "pipeline/artifacts/alpha" / field.new).glob("*.whl"):
        wheel.write_bytes(wheel.read_bytes() + b"x")
    served = field.served()
    field.run("pipeline", "approve", "alpha", by="Grace")
    if field.run("pipeline", "promote", "alpha", *_PRODUCTION).code == 0 or field.served() != served:
        yield "production serves other bytes"


def artifact_rewritten(field: AttackedWorkspace) -> Iterator[str]:
    """Writes other bytes into the wheel of a candidate, and their hash into history and state."""
    wheel = next((field.root / "pipeline/artifacts/alpha" / field.new).glob("*.whl"))
    events = field.events()
    old = next(
        one["built"]["files"][wheel.name] for one in events if one.get("candidate") == field.new and "built" in one
    )
    subprocess.run([sys.executable, "-c", f"open({str(wheel)!r},'ab').write(b'x')"], check=True)
    new = f"sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}"
    for file in (field.history(), field.state()):
        file.write_text(file.read_text().replace(old, new))
    field.run("pipeline", "verify", "alpha", "--repair")
    field.run("pipeline", "approve", "alpha", by="Grace")
    if field.run("pipeline", "promote", "alpha", *_PRODUCTION).code == 0:
        yield "production serves other bytes"


def _renamed(field: AttackedWorkspace, name: str) -> Iterator[str]:
    file = field.server("beta") / "pyproject.toml"
    field.edit(file, 'name = "beta-mcp"', f'name = "{name}"')
    plan = field.run("pipeline", "plan")
    served = field.served("staging")
    done = field.run("pipeline", "run", "beta")
    if field.served("staging") != served:
        yield "the channel serves beta under alpha's name"
    if done.code == 0:
        yield "the run has nothing to say"
    if name.lower().replace("_", "-") not in plan.text.lower().replace("_", "-"):
        yield "the plan does not say it"


def one_name(field: AttackedWorkspace) -> Iterator[str]:
    """Gives beta the distribution name of alpha, in other letters."""
    yield from _renamed(field, "Alpha_MCP")


def runtime_name(field: AttackedWorkspace) -> Iterator[str]:
    """Gives beta the distribution name of the runtime, which every server of the channel depends on."""
    served = field.served("staging", "mcpfactory-runtime")
    yield from _renamed(field, "mcpfactory-runtime")
    if field.served("staging", "mcpfactory-runtime") != served:
        yield "the channel serves another runtime"


def _promoted(field: AttackedWorkspace) -> None:
    field.run("pipeline", "approve", "alpha", by="Grace")
    done = field.run("pipeline", "promote", "alpha", *_PRODUCTION)
    assert done.code == 0, done.text


def rolled_back_again(field: AttackedWorkspace) -> Iterator[str]:
    """Rolls a candidate back out of production, lifts the hold, and promotes it again with its old approval."""
    _promoted(field)
    new = field.new
    field.run("pipeline", "rollback", "alpha", *_PRODUCTION, "--reason", "it is bad")
    field.run("pipeline", "unhold", "alpha", *_PRODUCTION)
    field.run("pipeline", "promote", "alpha", *_PRODUCTION)
    field.run("pipeline", "promote", "alpha", *_PRODUCTION, "--candidate", new)
    if field.offered() == new:
        yield "production offers what was rolled back"


def rolled_back_due(field: AttackedWorkspace) -> Iterator[str]:
    """Rolls a candidate back, lifts the hold, and lets the timer promote what is due."""
    _promoted(field)
    new = field.new
    field.run("pipeline", "rollback", "alpha", *_PRODUCTION, "--reason", "it is bad")
    field.run("pipeline", "unhold", "alpha", *_PRODUCTION)
    field.run("pipeline", "promote", "--due", *_PRODUCTION)
    if field.offered() == new:
        yield "production offers what was rolled back"


def rejected_by_rollback(field: AttackedWorkspace) -> Iterator[str]:
    """Rejects the older candidate after the newer one took its place, then rolls back."""
    old = field.old
    _promoted(field)
    field.run("pipeline", "reject", "alpha", *_PRODUCTION, "--candidate", old, "--reason", "it is bad")
    done = field.run("pipeline", "rollback", "alpha", *_PRODUCTION, "--reason", "the newer one is worse")
    if field.offered() == old:
        yield "production offers what was rejected"
    if "reject" not in done.text:
        yield "nothing is said of the rejection"


def rejected_by_name(field: AttackedWorkspace) -> Iterator[str]:
    """Rejects the older candidate, then rolls back to it by its id."""
    old = field.old
    _promoted(field)
    field.run("pipeline", "reject", "alpha", *_PRODUCTION, "--candidate", old, "--reason", "it is bad")
    field.run("pipeline", "rollback", "alpha", *_PRODUCTION, "--candidate", old, "--reason", "back")
    if field.offered() == old:
        yield "production offers what was rejected"


def racing(field: AttackedWorkspace) -> Iterator[str]:
    """Eight processes promote the same candidate at the same moment."""
    field.run("pipeline", "approve", "alpha", by="Grace")
    before = field.count("promoted")
    words = ("pipeline", "promote", "alpha", *_PRODUCTION)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: AttackedWorkspace(field.root).run(*words), range(8)))
    field.typed.append(f"8 × mcpfactory {' '.join(words)}")
    if field.count("promoted") - before != 1:
        yield f"{field.count('promoted') - before} events for one promotion"


def twice(field: AttackedWorkspace) -> Iterator[str]:
    """Promotes the same candidate twice."""
    before = field.count("promoted")
    _promoted(field)
    done = field.run("pipeline", "promote", "alpha", *_PRODUCTION, "--candidate", field.new)
    if field.count("promoted") - before != 1 or done.code not in {0, 1}:
        yield f"{field.count('promoted') - before} events for one promotion"


def rolled_back_twice(field: AttackedWorkspace) -> Iterator[str]:
    """Eight processes roll back at the same moment."""
    _promoted(field)
    before = field.count("rolled-back")
    words = ("pipeline", "rollback", "alpha", *_PRODUCTION, "--candidate", field.old, "--reason", "x")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: AttackedWorkspace(field.root).run(*words), range(4)))
    field.typed.append(f"4 × mcpfactory {' '.join(words)}")
    if field.count("rolled-back") - before != 1:
        yield f"{field.count('rolled-back') - before} events for one rollback"


def _stale(field: AttackedWorkspace, what: str) -> Iterator[str]:
    """Approves and promotes although a check is due."""
    old = field.old
    field.run("pipeline", "approve", "alpha", by="Grace")
    done = field.run("pipeline", "promote", "alpha", *_PRODUCTION)
    if done.code == 0 or field.offered() != old:
        yield "promoted although a check is due"
    elif what not in done.text:
        yield f"the refusal does not name {what}"


def tests_changed(field: AttackedWorkspace) -> Iterator[str]:
    """Adds a test after the candidate was checked, and promotes."""
    (field.server() / "tests/test_more.py").write_text("def test_more() -> None:\n    assert 1 == 2\n")
    yield from _stale(field, "test")


def waivers_changed(field: AttackedWorkspace) -> Iterator[str]:
    """Writes a waiver after the candidate was checked, and promotes."""
    until = str(date.today() + timedelta(days=30))
    done = field.run("waive", "descriptions.arguments", "--server", "alpha", "--reason", "x", "--expires", until)
    assert done.code == 0, done.text
    yield from _stale(field, "validate")


def stage_added(field: AttackedWorkspace) -> Iterator[str]:
    """Adds a check of the workspace's own that the candidate never went through, and promotes."""
    file = field.root / "mcpfactory.toml"
    file.write_text(file.read_text() + '\n[[pipeline.stages]]\nname = "licences"\ncommand = ["false"]\n')
    yield from _stale(field, "licences")


def failed_since(field: AttackedWorkspace) -> Iterator[str]:
    """A check of what production offers fails afterwards; what waits for a person?"""
    last = next(one for one in reversed(field.events("beta")) if one.get("stage") == "test" and "outcome" in one)
    run = field.event("beta")["id"]
    started = {key: value for key, value in last.items() if key in {"actor", "at", "stage"}}
    field.forge("beta", **{**started, "event": "stage.started", "run": run, "pid": 1, "reasons": ["tests changed"]})
    again = {**last, "id": field.event("beta")["id"], "run": run, "outcome": "failed", "message": "1 of 4 failed"}
    field.write_events([*field.events("beta"), again], "beta")
    field.run("pipeline", "verify", "beta", "--repair")
    items = json.loads(field.run("inbox", "beta", "--json").out or "[]")
    if not any("production" in item["message"] and "fail" in item["message"] for item in items):
        yield "the inbox does not say that production offers it"


def link_in_channel(field: AttackedWorkspace) -> Iterator[str]:
    """Replaces a wheel that production serves by a link to another file."""
    wheel, other = field.wheel(), Path(field.root.parent / "other.whl")
    other.write_bytes(wheel.read_bytes() + b"x")
    wheel.unlink()
    wheel.symlink_to(other)
    yield from _found(field, "alpha")


def tool_swapped(field: AttackedWorkspace) -> Iterator[str]:
    """Replaces a generated tool by another one after the approval stage was approved, and runs."""
    document = field.root.parent / f"{field.root.name}-api.json"
    document.write_text(_document("listBooks"))
    config = field.root / "mcpfactory.toml"
    config.write_text(config.read_text() + _TOOLS_APPROVED)
    field.run("new", "shop", "--from-openapi", str(document))
    field.run("pipeline", "run", "shop", "--until", "tools")
    if field.run("pipeline", "approve", "shop", "--stage", "tools", by="Grace").code:
        yield "nobody can approve the stage"
    next((field.server("shop") / "api").glob("*.json")).write_text(_document("listOrders"))
    field.run("pipeline", "run", "shop")
    if field.offered("staging", "shop"):
        yield "staged, with a tool that nobody approved"


def _document(operation: str) -> str:
    get = {"operationId": operation, "summary": "Return what there is", "responses": {"200": {"description": "All"}}}
    head = {"openapi": "3.1.0", "info": {"title": "Shop", "version": "1"}, "servers": [{"url": "http://127.0.0.1:9"}]}
    return json.dumps({**head, "paths": {f"/{operation}": {"get": get}}})


def honest_promotion(field: AttackedWorkspace) -> Iterator[str]:
    """Approves a candidate that passed, and promotes it."""
    field.run("pipeline", "approve", "alpha", by="Grace")
    done = field.run("pipeline", "promote", "alpha", *_PRODUCTION)
    if done.code or field.offered() != field.new:
        yield done.text


def honest_return(field: AttackedWorkspace) -> Iterator[str]:
    """Rolls back, lifts the hold, approves the candidate once more, and promotes it."""
    _promoted(field)
    field.run("pipeline", "rollback", "alpha", *_PRODUCTION, "--reason", "a false alarm")
    field.run("pipeline", "unhold", "alpha", *_PRODUCTION)
    field.run("pipeline", "approve", "alpha", "--candidate", field.new, by="Grace")
    done = field.run("pipeline", "promote", "alpha", *_PRODUCTION, "--candidate", field.new)
    if done.code or field.offered() != field.new:
        yield done.text


def honest_history(field: AttackedWorkspace) -> Iterator[str]:
    """Asks `verify` and `restore` about a workspace that nobody touched."""
    for words in (("pipeline", "verify"), ("pipeline", "restore"), ("pipeline", "status")):
        done = field.run(*words)
        if done.code:
            yield done.text


ATTEMPTS: Final = (
    Attempt("replaced wheel in a channel", "verify, inbox, restore", wheel_replaced),
    Attempt("missing wheel in a channel", "verify, inbox, restore", wheel_missing),
    Attempt("ghost page in a channel", "verify and inbox", ghost_page),
    Attempt("version 99 on a channel's page", "verify, inbox, restore", newer_on_page),
    Attempt("wheel and hash replaced in a channel", "verify and inbox", hash_on_page),
    Attempt("link in the place of a wheel", "verify and inbox", link_in_channel),
    Attempt("deleted folder of a server that is served", "verify, inbox, retire", folder_deleted),
    Attempt("served, and nobody knows it", "verify and inbox", forgotten),
    Attempt("replaced wheel of a candidate", "production stays", artifact_replaced),
    Attempt("replaced wheel with its hash in the history", "production stays", artifact_rewritten),
    Attempt("two servers with one distribution name", "plan and channel refuse", one_name, slow=True),
    Attempt("a server named like the runtime", "plan and channel refuse", runtime_name, slow=True),
    Attempt("rolled back, then promoted again", "production stays", rolled_back_again),
    Attempt("rolled back, then promoted by the timer", "production stays", rolled_back_due),
    Attempt("rejected, then rolled back to", "skipped, and said", rejected_by_rollback),
    Attempt("rejected, then rolled back to by name", "production stays", rejected_by_name),
    Attempt("eight promote at once", "one event", racing),
    Attempt("promoted twice", "one event", twice),
    Attempt("four roll back at once", "one event", rolled_back_twice),
    Attempt("tests changed, then promoted", "refused, names test", tests_changed),
    Attempt("waivers changed, then promoted", "refused, names validate", waivers_changed),
    Attempt("check added, then promoted", "refused, names it", stage_added),
    Attempt("tool swapped after its stage was approved", "not staged", tool_swapped, slow=True),
    Attempt("offered, and a check failed since", "the inbox says so", failed_since),
    Attempt("an approved candidate", "promoted", honest_promotion, honest=True),
    Attempt("approved again after a rollback", "promoted", honest_return, honest=True),
    Attempt("a history that nobody touched", "nothing is found", honest_history, honest=True),
)
