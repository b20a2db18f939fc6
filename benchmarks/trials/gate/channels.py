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


def _found(space: AttackedWorkspace, *words: str) -> Iterator[str]:
    """Neither `verify` nor the inbox may be silent."""
    done = space.run("pipeline", "verify")
    if done.code == 0 or not all(word in done.text for word in words):
        yield "verify does not say it"
    if not all(word in space.run("inbox", "--show", "0").text for word in words):
        yield "the inbox does not say it"


def wheel_replaced(space: AttackedWorkspace) -> Iterator[str]:
    """Writes other bytes into a wheel that production serves, then restores."""
    wheel = space.wheel()
    bytes_before = wheel.read_bytes()
    wheel.write_bytes(bytes_before + b"x")
    yield from _found(space, "alpha")
    space.run("pipeline", "restore")
    if wheel.read_bytes() != bytes_before:
        yield "restore left the other bytes"


def wheel_missing(space: AttackedWorkspace) -> Iterator[str]:
    """Deletes a wheel that production serves, then restores."""
    wheel = space.wheel()
    wheel.unlink()
    yield from _found(space, "alpha")
    space.run("pipeline", "restore")
    if not wheel.exists():
        yield "restore did not bring it back"


def ghost_page(space: AttackedWorkspace) -> Iterator[str]:
    """Adds a project to a channel that no server has."""
    simple = space.root / "pipeline/channels/production/simple"
    shutil.copytree(simple / "alpha-mcp", simple / "ghost-mcp")
    yield from _found(space, "ghost-mcp")


def newer_on_page(space: AttackedWorkspace) -> Iterator[str]:
    """Adds a wheel of version 99 to the page of alpha."""
    page = space.root / "pipeline/channels/production/simple/alpha-mcp/index.html"
    text = page.read_text()
    wheel = space.wheel()
    other = wheel.with_name(wheel.name.replace("0.1.0", "99.0.0"))
    other.write_bytes(wheel.read_bytes())
    line = next(line for line in text.splitlines() if ".whl" in line)
    page.write_text(text.replace(line, line + "\n" + line.replace("0.1.0", "99.0.0")))
    yield from _found(space, "alpha")
    space.run("pipeline", "restore")
    if "99.0.0" in page.read_text():
        yield "restore left it on the page"


def hash_on_page(space: AttackedWorkspace) -> Iterator[str]:
    """Replaces a wheel that production serves, and the hash on its page."""
    page = space.root / "pipeline/channels/production/simple/alpha-mcp/index.html"
    wheel = space.wheel()
    wheel.write_bytes(wheel.read_bytes() + b"x")
    page.write_text(page.read_text().replace(next(iter(space.served())), "0" * 64))
    yield from _found(space, "alpha")


def folder_deleted(space: AttackedWorkspace) -> Iterator[str]:
    """Deletes the folder of a server that production still serves, and retires it."""
    shutil.rmtree(space.server("beta"))
    yield from _found(space, "beta")
    done = space.run("pipeline", "retire", "beta", "--reason", "its folder is gone")
    if done.code or space.served(project="beta-mcp"):
        yield "retire does not work without the folder"


def forgotten(space: AttackedWorkspace) -> Iterator[str]:
    """Deletes folder, state and history of a server that production still serves."""
    for path in (space.server("beta"), space.state("beta"), space.history("beta")):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    yield from _found(space, "beta")


def artifact_replaced(space: AttackedWorkspace) -> Iterator[str]:
    """Writes other bytes into the wheel of a candidate, approves it, and promotes."""
    for wheel in (space.root / "pipeline/artifacts/alpha" / space.new).glob("*.whl"):
        wheel.write_bytes(wheel.read_bytes() + b"x")
    served = space.served()
    space.run("pipeline", "approve", "alpha", by="Grace")
    if space.run("pipeline", "promote", "alpha", *_PRODUCTION).code == 0 or space.served() != served:
        yield "production serves other bytes"


def artifact_rewritten(space: AttackedWorkspace) -> Iterator[str]:
    """Writes other bytes into the wheel of a candidate, and their hash into history and state."""
    wheel = next((space.root / "pipeline/artifacts/alpha" / space.new).glob("*.whl"))
    events = space.events()
    old = next(
        one["built"]["files"][wheel.name] for one in events if one.get("candidate") == space.new and "built" in one
    )
    subprocess.run([sys.executable, "-c", f"open({str(wheel)!r},'ab').write(b'x')"], check=True)
    new = f"sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}"
    for file in (space.history(), space.state()):
        file.write_text(file.read_text().replace(old, new))
    space.run("pipeline", "verify", "alpha", "--repair")
    space.run("pipeline", "approve", "alpha", by="Grace")
    if space.run("pipeline", "promote", "alpha", *_PRODUCTION).code == 0:
        yield "production serves other bytes"


def _renamed(space: AttackedWorkspace, name: str) -> Iterator[str]:
    file = space.server("beta") / "pyproject.toml"
    space.edit(file, 'name = "beta-mcp"', f'name = "{name}"')
    plan = space.run("pipeline", "plan")
    served = space.served("staging")
    done = space.run("pipeline", "run", "beta")
    if space.served("staging") != served:
        yield "the channel serves beta under alpha's name"
    if done.code == 0:
        yield "the run has nothing to say"
    if name.lower().replace("_", "-") not in plan.text.lower().replace("_", "-"):
        yield "the plan does not say it"


def one_name(space: AttackedWorkspace) -> Iterator[str]:
    """Gives beta the distribution name of alpha, in other letters."""
    yield from _renamed(space, "Alpha_MCP")


def runtime_name(space: AttackedWorkspace) -> Iterator[str]:
    """Gives beta the distribution name of the runtime, which every server of the channel depends on."""
    served = space.served("staging", "mcpfactory-runtime")
    yield from _renamed(space, "mcpfactory-runtime")
    if space.served("staging", "mcpfactory-runtime") != served:
        yield "the channel serves another runtime"


def _promoted(space: AttackedWorkspace) -> None:
    space.run("pipeline", "approve", "alpha", by="Grace")
    done = space.run("pipeline", "promote", "alpha", *_PRODUCTION)
    assert done.code == 0, done.text


def _not_promoted_after_rollback(space: AttackedWorkspace, *promotions: tuple[str, ...]) -> Iterator[str]:
    _promoted(space)
    new = space.new
    space.run("pipeline", "rollback", "alpha", *_PRODUCTION, "--reason", "it is bad")
    space.run("pipeline", "unhold", "alpha", *_PRODUCTION)
    for words in promotions:
        space.run("pipeline", "promote", *words, *_PRODUCTION)
    if space.offered() == new:
        yield "production offers what was rolled back"


def rolled_back_again(space: AttackedWorkspace) -> Iterator[str]:
    """Rolls a candidate back out of production, lifts the hold, and promotes it again with its old approval."""
    yield from _not_promoted_after_rollback(space, ("alpha",), ("alpha", "--candidate", space.new))


def rolled_back_due(space: AttackedWorkspace) -> Iterator[str]:
    """Rolls a candidate back, lifts the hold, and lets the timer promote what is due."""
    yield from _not_promoted_after_rollback(space, ("--due", "--yes"))


def rejected_by_rollback(space: AttackedWorkspace) -> Iterator[str]:
    """Rejects the older candidate after the newer one took its place, then rolls back."""
    old = space.old
    _promoted(space)
    space.run("pipeline", "reject", "alpha", *_PRODUCTION, "--candidate", old, "--reason", "it is bad")
    done = space.run("pipeline", "rollback", "alpha", *_PRODUCTION, "--reason", "the newer one is worse")
    if space.offered() == old:
        yield "production offers what was rejected"
    if "reject" not in done.text:
        yield "nothing is said of the rejection"


def rejected_by_name(space: AttackedWorkspace) -> Iterator[str]:
    """Rejects the older candidate, then rolls back to it by its id."""
    old = space.old
    _promoted(space)
    space.run("pipeline", "reject", "alpha", *_PRODUCTION, "--candidate", old, "--reason", "it is bad")
    space.run("pipeline", "rollback", "alpha", *_PRODUCTION, "--candidate", old, "--reason", "back")
    if space.offered() == old:
        yield "production offers what was rejected"


def racing(space: AttackedWorkspace) -> Iterator[str]:
    """Eight processes promote the same candidate at the same moment."""
    space.run("pipeline", "approve", "alpha", by="Grace")
    before = space.count("promoted")
    words = ("pipeline", "promote", "alpha", *_PRODUCTION)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: AttackedWorkspace(space.root).run(*words), range(8)))
    space.typed.append(f"8 × mcpfactory {' '.join(words)}")
    if space.count("promoted") - before != 1:
        yield f"{space.count('promoted') - before} events for one promotion"


def twice(space: AttackedWorkspace) -> Iterator[str]:
    """Promotes the same candidate twice."""
    before = space.count("promoted")
    _promoted(space)
    done = space.run("pipeline", "promote", "alpha", *_PRODUCTION, "--candidate", space.new)
    if space.count("promoted") - before != 1 or done.code not in {0, 1}:
        yield f"{space.count('promoted') - before} events for one promotion"


def rolled_back_twice(space: AttackedWorkspace) -> Iterator[str]:
    """Eight processes roll back at the same moment."""
    _promoted(space)
    before = space.count("rolled-back")
    words = ("pipeline", "rollback", "alpha", *_PRODUCTION, "--candidate", space.old, "--reason", "x")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: AttackedWorkspace(space.root).run(*words), range(4)))
    space.typed.append(f"4 × mcpfactory {' '.join(words)}")
    if space.count("rolled-back") - before != 1:
        yield f"{space.count('rolled-back') - before} events for one rollback"


def _stale(space: AttackedWorkspace, what: str) -> Iterator[str]:
    """Approves and promotes although a check is due."""
    old = space.old
    space.run("pipeline", "approve", "alpha", by="Grace")
    done = space.run("pipeline", "promote", "alpha", *_PRODUCTION)
    if done.code == 0 or space.offered() != old:
        yield "promoted although a check is due"
    elif what not in done.text:
        yield f"the refusal does not name {what}"


def tests_changed(space: AttackedWorkspace) -> Iterator[str]:
    """Adds a test after the candidate was checked, and promotes."""
    (space.server() / "tests/test_more.py").write_text("def test_more() -> None:\n    assert 1 == 2\n")
    yield from _stale(space, "test")


def waivers_changed(space: AttackedWorkspace) -> Iterator[str]:
    """Writes a waiver after the candidate was checked, and promotes."""
    until = str(date.today() + timedelta(days=30))
    done = space.run("waive", "descriptions.arguments", "--server", "alpha", "--reason", "x", "--expires", until)
    assert done.code == 0, done.text
    yield from _stale(space, "validate")


def stage_added(space: AttackedWorkspace) -> Iterator[str]:
    """Adds a check of the workspace's own that the candidate never went through, and promotes."""
    file = space.root / "mcpfactory.toml"
    file.write_text(file.read_text() + '\n[[pipeline.stages]]\nname = "licences"\ncommand = ["false"]\n')
    yield from _stale(space, "licences")


def failed_since(space: AttackedWorkspace) -> Iterator[str]:
    """A check of what production offers fails afterwards; what waits for a person?"""
    last = next(one for one in reversed(space.events("beta")) if one.get("stage") == "test" and "outcome" in one)
    run = space.event("beta")["id"]
    again = {**last, "id": space.event("beta")["id"], "run": run, "outcome": "failed", "message": "1 of 4 failed"}
    space.write_events([*space.events("beta"), again], "beta")
    space.run("pipeline", "verify", "beta", "--repair")
    items = json.loads(space.run("inbox", "beta", "--json").out or "[]")
    if not any("production" in item["message"] and "fail" in item["message"] for item in items):
        yield "the inbox does not say that production offers it"


def link_in_channel(space: AttackedWorkspace) -> Iterator[str]:
    """Replaces a wheel that production serves by a link to another file."""
    wheel, other = space.wheel(), Path(space.root.parent / "other.whl")
    other.write_bytes(wheel.read_bytes() + b"x")
    wheel.unlink()
    wheel.symlink_to(other)
    yield from _found(space, "alpha")


def tool_swapped(space: AttackedWorkspace) -> Iterator[str]:
    """Replaces a generated tool by another one after the approval stage was approved, and runs."""
    document = space.root.parent / f"{space.root.name}-api.json"
    document.write_text(_document("listBooks"))
    config = space.root / "mcpfactory.toml"
    config.write_text(config.read_text() + _TOOLS_APPROVED)
    space.run("new", "shop", "--from-openapi", str(document))
    space.run("pipeline", "run", "shop", "--until", "tools")
    if space.run("pipeline", "approve", "shop", "--stage", "tools", by="Grace").code:
        yield "nobody can approve the stage"
    next((space.server("shop") / "api").glob("*.json")).write_text(_document("listOrders"))
    space.run("pipeline", "run", "shop")
    if space.offered("staging", "shop"):
        yield "staged, with a tool that nobody approved"


def _document(operation: str) -> str:
    get = {"operationId": operation, "summary": "Return what there is", "responses": {"200": {"description": "All"}}}
    head = {"openapi": "3.1.0", "info": {"title": "Shop", "version": "1"}, "servers": [{"url": "http://127.0.0.1:9"}]}
    return json.dumps({**head, "paths": {f"/{operation}": {"get": get}}})


def honest_promotion(space: AttackedWorkspace) -> Iterator[str]:
    """Approves a candidate that passed, and promotes it."""
    space.run("pipeline", "approve", "alpha", by="Grace")
    done = space.run("pipeline", "promote", "alpha", *_PRODUCTION)
    if done.code or space.offered() != space.new:
        yield done.text


def honest_return(space: AttackedWorkspace) -> Iterator[str]:
    """Rolls back, lifts the hold, approves the candidate once more, and promotes it."""
    _promoted(space)
    space.run("pipeline", "rollback", "alpha", *_PRODUCTION, "--reason", "a false alarm")
    space.run("pipeline", "unhold", "alpha", *_PRODUCTION)
    space.run("pipeline", "approve", "alpha", "--candidate", space.new, by="Grace")
    done = space.run("pipeline", "promote", "alpha", *_PRODUCTION, "--candidate", space.new)
    if done.code or space.offered() != space.new:
        yield done.text


def honest_history(space: AttackedWorkspace) -> Iterator[str]:
    """Asks `verify` and `restore` about a workspace that nobody touched."""
    for words in (("pipeline", "verify"), ("pipeline", "restore"), ("pipeline", "status")):
        done = space.run(*words)
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
