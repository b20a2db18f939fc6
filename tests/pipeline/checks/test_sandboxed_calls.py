"""Tools without `readOnlyHint` are called in a process that can change nothing outside its own folder."""

from __future__ import annotations

import os
import socket
import sys

import pytest

from mcpfactory_pipeline.checks.exchange import ValidationTarget, WireExchange
from mcpfactory_pipeline.checks.samples import sample_arguments, second_guesses
from mcpfactory_pipeline.checks.validation import validate
from tests.skip_conditions import needs

pytestmark = pytest.mark.anyio

SERVER = """
import os, signal, socket
from mcpfactory_runtime import Server
server = Server("attempts", version="1.0.0")

def attempt(action):
    try:
        action()
        return "done"
    except OSError as error:
        return type(error).__name__

@server.tool
def change() -> dict[str, str]:
    "Try to change something outside of this process."
    return {
        "file": attempt(lambda: open("written", "w")),
        "home": attempt(lambda: open(os.path.expanduser("~/written"), "w")),
        "network": attempt(lambda: socket.create_connection(("127.0.0.1", %d))),
        "datagram": attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)),
        "mode": attempt(lambda: os.chmod(__file__, 0o600)),
        "times": attempt(lambda: os.utime(__file__)),
        "signal": attempt(lambda: os.kill(%d, signal.SIGUSR1)),
    }

@server.tool(annotations={"destructiveHint": True})
def evaluate(expression: str) -> float:
    "Evaluate an expression."
    return float(expression)

server.run()
"""


@needs("side-effect-free")
async def test_calls_are_made_and_change_nothing(tmp_path, monkeypatch):
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    monkeypatch.setenv("HOME", str(home))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.2)
        (tmp_path / "server.py").write_text(SERVER % (listener.getsockname()[1], os.getpid()))
        environ = {"PYTHONPATH": os.pathsep.join(sys.path)}
        command = (sys.executable, str(tmp_path / "server.py"))
        report = await validate(ValidationTarget(command=command, cwd=work, environ=environ))
        with pytest.raises(TimeoutError):
            listener.accept()
    assert report.verdict == "passed", report.to_text()
    assert report.uncalled == {}
    assert {call["tool"] for call in report.called} >= {"change", "evaluate"}
    assert [*work.iterdir(), *home.iterdir()] == []


@needs("side-effect-free")
async def test_the_attempts_in_the_sandbox_are_refused(tmp_path):
    """The same attempts succeed without the sandbox, so the test above can fail."""
    from mcpfactory_pipeline.checks.sandboxed_calls import side_effect_free_sandbox
    from mcpfactory_runtime.client import connect_stdio

    with socket.create_server(("127.0.0.1", 0)) as listener, side_effect_free_sandbox() as sandbox:
        (tmp_path / "server.py").write_text(SERVER % (listener.getsockname()[1], os.getppid()))
        command = [sys.executable, str(tmp_path / "server.py")]
        environ = {"PYTHONPATH": os.pathsep.join(sys.path)}
        async with connect_stdio(sandbox.command(command), cwd=tmp_path, env={**environ, **sandbox.environ}) as client:
            inside = (await client.call_tool("change", {}))["structuredContent"]
    assert inside == {
        "file": "PermissionError",
        "home": "done",
        "network": "PermissionError",
        "datagram": "PermissionError",
        "mode": "PermissionError",
        "times": "PermissionError",
        "signal": "PermissionError",
    }


@needs("side-effect-free")
async def test_the_process_behind_a_launcher_is_called(tmp_path):
    """A launcher such as npx could not start in the sandbox, because it writes to a cache."""
    (tmp_path / "server.py").write_text(SERVER % (9, os.getppid()))
    launcher = tmp_path / "launcher.sh"
    launcher.write_text(f"#!/bin/sh\ntouch {tmp_path}/cache || exit 1\n{sys.executable} {tmp_path}/server.py\n")
    launcher.chmod(0o755)
    environ = {"PYTHONPATH": os.pathsep.join(sys.path)}
    report = await validate(ValidationTarget(command=(str(launcher),), cwd=tmp_path, environ=environ))
    assert report.uncalled == {}, report.to_text()


def test_examples_in_descriptions_become_arguments():
    def guess(description: str) -> str:
        part = {"type": "string", "description": description}
        return sample_arguments({"type": "object", "properties": {"a": part}, "required": ["a"]})[0]["a"]

    assert guess("IANA time zone (e.g., 'Europe/Berlin')") == "Europe/Berlin"
    assert guess("City, e.g. Oslo, in any language") == "Oslo"
    assert guess("The user's name in the host's directory") == "value"
    assert guess("") == "value"


def test_second_guesses_come_from_results_and_obey_the_schema():
    schema = {"type": "object", "properties": {"board_id": {"type": "string"}, "text": {"type": "string"}}}
    listing = WireExchange(
        {}, {"result": {"content": [], "structuredContent": {"boards": [{"id": "b7", "name": "x"}]}}}
    )
    made = {"board_id": "value", "text": "value"}
    assert second_guesses(schema, made, [listing]) == [{"board_id": "b7", "text": "1"}]
    schema["properties"]["text"]["pattern"] = "^v"
    assert second_guesses(schema, made, [listing]) == []
    assert second_guesses(schema, {"board_id": "known"}, []) == []
