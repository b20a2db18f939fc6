"""Each operation is declared once: command line, dashboard and agents offer its fields with one name, default and text."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, get_origin

import pytest

from mcpfactory.commands.pipeline import COMMANDS as PIPELINE
from mcpfactory.main import COMMANDS, build_command_tree
from mcpfactory_pipeline.dashboard.actions import ACTIONS
from mcpfactory_pipeline.maintenance.workspace_setup import apply_setup, plan_workspace_setup
from mcpfactory_pipeline.operations.decisions import DECISIONS
from mcpfactory_pipeline.operations.operation import (
    FullAccess,
    Operation,
    OperationContext,
    field_presentation,
    is_list_field,
    option_names,
)
from mcpfactory_pipeline.operations.publish import Publish
from mcpfactory_pipeline.operations.table import OPERATIONS, parse_operation_command
from mcpfactory_pipeline.serve import resources
from mcpfactory_pipeline.serve.factory_server import make_factory_server
from mcpfactory_pipeline.workspace.policy import AGENT_ACTIONS
from mcpfactory_pipeline.workspace.workspace import Workspace
from mcpfactory_runtime.testing import connect
from tests.pipeline.staged_workspace import settings_of
from tests.subtest_table import parametrize_subtests

PLACE = ("factory/cli/src/mcpfactory/commands/pipeline.py", "factory/cli/src/mcpfactory/main.py")
ASKED_OF_AGENTS = {"reason", "server"}  # an agent always names the server, and a reason for each decision


def command_of(operation: type[Operation]) -> Any:
    found = build_command_tree()
    for word in operation.command.split():
        found = found.get_command(None, word)
        assert found is not None, f"{operation.command}: add it to COMMANDS in {PLACE[word == operation.command]}"
    return found


def test_help_texts_list_commands_by_the_first_sentence_of_their_help():
    for places, group in ((COMMANDS, build_command_tree()), (PIPELINE, build_command_tree().commands["pipeline"])):
        for name, place in places.items():
            first = " ".join(group.commands[name].help.partition("\n\n")[0].split())
            assert place.summary == first.rstrip("."), name
            assert len(place.summary) <= 60, name


def test_help_has_sections_and_names_no_python_types():
    help_of = {}
    groups = [(build_command_tree(), "")]
    for group, path in groups:
        for name, command in group.commands.items():
            if hasattr(command, "commands"):
                groups.append((command, f"{path}{name} "))
            help_of[path + name] = command.get_help(command.make_context(name, [], resilient_parsing=True))
    assert len(help_of) > 40
    words = ("<str>", "<int>", "<float", "<list", "<path>")
    assert [(name, word) for name, text in help_of.items() for word in words if word in text] == []
    text = help_of["new"]
    at = [text.index(f"\n{name}") for name in ("Options:", "Selection:", "  --include-tag", "Output:", "  --json")]
    assert at == sorted(at)


@parametrize_subtests("operation", OPERATIONS)
def test_the_command_has_an_option_for_each_field(operation):
    command = command_of(operation)
    assert command.help.split() == operation.help().split()
    options = {name: one for one in command.params for name in (*one.opts, one.name)}
    for name, info, param in operation.fields("cli"):
        flag = name if param.argument else option_names(name, info, param)[0]
        option = options[flag]
        assert option.help == info.description, flag
        assert option.required == info.is_required(), flag
        if not (info.is_required() or is_list_field(info)):
            assert option.default == (None if info.default == "" else info.default), flag


@parametrize_subtests("operation", [one for one in OPERATIONS if "dashboard" not in one.omit])
def test_the_dashboard_has_a_form_with_each_field(operation):
    fields = {one.name: one for one in ACTIONS[operation.id()].fields}
    for name, info, param in operation.fields("dashboard"):
        if param.names != "servers":  # the page is about one server
            assert fields[name].about == info.description


@pytest.mark.anyio
async def test_agents_have_a_tool_with_each_field(tmp_path):
    async with connect(make_factory_server(apply_setup(plan_workspace_setup(tmp_path), git=False).root)) as client:
        listed = await client.list_tools()
    tools = {tool["name"]: tool["inputSchema"] for tool in listed}
    hints = {tool["name"]: tool["annotations"] for tool in listed}
    offered = [one.id() for one in OPERATIONS if one.id() in tools]
    assert (
        {"update", "run"} <= {name for name in offered if hints[name]["idempotentHint"]} <= set(offered) - {"approve"}
    )
    outside = {name for name in offered if hints[name]["openWorldHint"]}
    assert {"new", "update", "run", "publish", "install"} <= outside <= set(offered) - {"approve", "promote"}
    for operation in OPERATIONS:
        if "mcp" in operation.omit:
            assert operation.id() not in tools
            continue
        schema = tools[operation.id()]
        for name, info, _ in operation.fields("mcp"):
            told = schema["properties"][name]
            assert told["description"] == info.description
            if name not in ASKED_OF_AGENTS:
                assert (name in schema.get("required", ())) == info.is_required()
            if not info.is_required() and name not in ASKED_OF_AGENTS:
                default = list(info.default) if is_list_field(info) else info.default
                assert told.get("default", default) == default


@parametrize_subtests("operation", OPERATIONS)
def test_what_a_surface_leaves_out_has_a_reason(operation):
    omitted = [operation.omit, *(field_presentation(info).omit for info in operation.model_fields.values())]
    assert all(len(reason.split()) >= 3 for one in omitted for reason in one.values())


@parametrize_subtests("operation", OPERATIONS)
def test_a_command_line_is_read_as_the_operation_that_it_came_from(operation):
    values = {name: sample(name, info) for name, info, _ in operation.fields("cli")}
    made = operation.read(values)
    assert parse_operation_command(made.command_line()) == made


def sample(name: str, info: Any) -> Any:
    """Return a value of the field that is not its default."""
    kind = info.annotation
    if kind is bool:
        return True
    if kind is int:
        return 3
    if get_origin(kind) is Literal:
        return "search"
    if is_list_field(info):
        return (f"{name}-a", f"{name} b")
    return "2031-01-31" if "date" in str(kind) else f"{name}-x"


@parametrize_subtests("operation", OPERATIONS)
def test_each_field_has_an_effect(operation, monkeypatch, tmp_path):
    """A field that `run` does not read reaches nothing. What it reads it passes on; unused parameters are a lint error."""
    read: set[str] = set()

    class Watched(operation):  # type: ignore[misc,valid-type]
        def __getattribute__(self, name: str) -> Any:
            if name in operation.model_fields:
                read.add(name)
            return super().__getattribute__(name)

    given = {name: sample(name, info) for name, info in operation.model_fields.items()}
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))  # configurations of clients
    server = SimpleNamespace(name="x", folder=Path("x"), adopted=None, document=None)
    monkeypatch.setattr(Workspace, "server", lambda *_: server)
    for alternative, dry in product(ALTERNATIVES, (True, False)):
        values = {**given, **{name: value for name, value in alternative.items() if name in given}}
        context = OperationContext(
            Workspace(Path("nowhere"), "nowhere", settings_of()), dry_run=dry, access=FullAccess()
        )
        try:
            Watched.read(values).run(context)
        except TypeError:  # the function does not take a field
            raise
        except Exception:  # noqa: BLE001 - there is no such workspace; what was read until then counts
            pass
    assert set(operation.model_fields) - read == set()


ALTERNATIVES = (
    {"stage": "", "due": False, "template": "", "answers": ("a=b",)},
    {"due": True, "server": "", "candidate": "", "reason": ""},
    {"sources": (), "mode": "", "overlays": ()},
    {"clients": ("cursor",), "env": (), "token_variable": ""},
    {
        "clients": ("cursor",),
        "server": "https://a.test/mcp",
        "source": "",
        "env": (),
        "token_variable": "",
        "show": False,
    },
    {"server": ""},
    {"options": ("pypi.url=x",), "check": False},
)


def test_a_policy_can_leave_each_decision_to_agents():
    assert tuple(operation.id() for operation in (*DECISIONS, Publish)) == AGENT_ACTIONS, "see workspace/policy.py"


def test_prompts_name_tools_that_there_are(tmp_path):
    factory = make_factory_server(apply_setup(plan_workspace_setup(tmp_path), git=False).root)
    text = Path(resources.__file__).read_text("utf-8")
    prompts = text[text.index("def bring_to_production") :]
    called = set(re.findall(r"`([a-z_]+)`(?= (?:with|of|without))", prompts))
    assert called - factory.registry.tools.keys() == set()
