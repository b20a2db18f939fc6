"""What the official clients are made to do with servers/everything, and how it must come out.

Each client gets TASKS as JSON, does all of them and prints one line: its version, transport, revision, how often it was
asked for what (`asked`), and the text of every outcome (`heard`). It judges nothing: `faults` does, alike for all.

Whoever is asked answers so: a form with each field's default, else its first choices, else "Ann", 7 or true, unless the message
says "decline"; a sample with "Paris"; roots with file:///work.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from mcpfactory_runtime.revisions import LEGACY, MODERN

Json = dict[str, Any]


@dataclass(frozen=True)
class ClientTask:
    """One thing to do: of which kind, with what, and the pieces that the outcome's text must have, in this order."""

    name: str
    kind: str  # tools, call, read or prompt
    target: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    pieces: tuple[str, ...] = ()


def _ask(name: str, tool: str, *pieces: str, **arguments: str) -> ClientTask:
    return ClientTask(name, "call", tool, arguments, pieces)


TASKS = (
    ClientTask("list", "tools", pieces=("test_simple_text", "test_sampling")),
    _ask("call", "test_simple_text", "simple text response"),
    _ask("error", "test_error_handling", "isError "),
    _ask("progress", "test_tool_with_progress", "progress 0,50,100 "),
    ClientTask("read", "read", "test://static-text", pieces=("static text resource",)),
    ClientTask("prompt", "prompt", "test_prompt_with_arguments", {"arg1": "a", "arg2": "b"}, ("arg1='a', arg2='b'",)),
    _ask("elicit", "test_elicitation", "action=accept, content={'username': 'Ann', 'email': 'Ann'}", message="Name?"),
    _ask("decline", "test_elicitation", "action=decline", message="decline this"),
    _ask(
        "defaults",
        "test_elicitation_sep1034_defaults",
        "'name': 'John Doe', 'age': 30, 'score': 95.5, 'status': 'active', 'verified': True",
    ),
    _ask(
        "choices",
        "test_elicitation_sep1330_enums",
        "'untitledSingle': 'option1', 'titledSingle': 'value1', 'legacyEnum': 'opt1'",
        "'untitledMulti': ['option1'], 'titledMulti': ['value1']",
    ),
    _ask("after progress", "test_streaming_elicitation", "action=accept"),
    _ask("sample", "test_sampling", "LLM response: Paris", prompt="Capital?"),
    _ask("roots", "test_input_required_result_list_roots", "Roots: file:///work"),
    _ask("state", "test_input_required_result_request_state", "state-ok"),
    _ask("at once", "test_input_required_result_multiple_inputs", "Paris (accept, 1 roots)"),
    _ask("rounds", "test_input_required_result_multi_round", "{'name': 'Ann'} likes {'color': 'Ann'}"),
    ClientTask("asking prompt", "prompt", "test_input_required_result_prompt", {}, ("Use this context: Ann",)),
)
ASKED = {"elicitation": 10, "sampling": 2, "roots": 2}  # what TASKS make the server ask, in all


def client_tasks() -> list[Json]:
    """The tasks as the clients read them."""
    return [{key: value for key, value in asdict(task).items() if key != "pieces"} for task in TASKS]


def faults(line: Json, era: str) -> list[str]:
    """What is wrong with the line of a client that was to speak the `era` (legacy or modern); empty when nothing is."""
    found = []
    heard = line.get("heard", {})
    for task in TASKS:
        text = str(heard.get(task.name, "nothing"))
        if any(piece not in text for piece in task.pieces):
            found.append(f"{task.name}: {text[:200]}")
    if line.get("asked") != ASKED:
        found.append(f"asked {line.get('asked')}, not {ASKED}")
    if line.get("revision") not in (MODERN if era == "modern" else LEGACY):
        found.append(f"revision {line.get('revision')} is not of the {era} lifecycle")
    return found


def describe_result(line: Json, era: str, wrong: list[str]) -> str:
    """A line for people: who spoke what, how often was asked, what was done."""
    good = [task.name for task in TASKS if not any(fault.startswith(f"{task.name}: ") for fault in wrong)]
    asked = ", ".join(f"{kind} {count}" for kind, count in line.get("asked", {}).items())
    said = f"{line.get('client')}, {line.get('transport')}, {line.get('revision')} ({era}): {len(good)} of {len(TASKS)} right: "
    said += f"{', '.join(good)}; answered: {asked}"
    return said + "".join(f"\n  wrong: {fault}" for fault in wrong)
