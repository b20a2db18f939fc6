"""What both versions of a server are asked, from what the first one offers."""

from __future__ import annotations

from mcpfactory_pipeline.migration.requests import UNKNOWN, CallPermission, plan_requests

SCHEMA = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "stars": {"type": "integer", "default": 3},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["text"],
}


def asked(**offers):
    given = {"tools": (), "resources": (), "templates": (), "prompts": (), **offers}
    return {one.name: one for one in plan_requests(**given, permission=CallPermission(all_tools=True))}


def test_a_tool_is_called_with_right_and_wrong_arguments_and_one_that_it_does_not_have():
    found = asked(tools=[{"name": "f", "inputSchema": SCHEMA}])
    made = [dict(one.params["arguments"]) for one in found.values()]
    assert made[0] == {"text": "text"}
    assert {"text": "text", "stars": 3, "tags": ["text"]} in made
    assert {"text": "text", "stars": "3", "tags": ["text"]} in made
    assert {} in made
    assert {"text": {"mcpfactory": []}} in made
    assert [one.params["arguments"] for one in found.values() if one.stray] == [{"text": "text", UNKNOWN: 1}]
    assert len({one["text"] for one in made if isinstance(one.get("text"), str)}) == 3


def test_nothing_is_asked_twice_and_a_tool_without_arguments_is_called_all_the_same():
    found = asked(tools=[{"name": "f", "inputSchema": {"type": "object", "properties": {}}}])
    assert list(found) == ["f({})", f'f({{"{UNKNOWN}": 1}})']


def test_resources_templates_and_prompts_are_read():
    found = asked(
        resources=[{"uri": "notes://all"}],
        templates=[{"uriTemplate": "notes://{id}/{path*}{?limit,page}"}],
        prompts=[{"name": "p", "arguments": [{"name": "a", "required": True}, {"name": "b"}]}],
    )
    assert list(found) == [
        "read notes://all",
        "read notes://text/text",
        "read notes://7/7",
        'prompt p({"a": "text"})',
        'prompt p({"a": "7", "b": "7"})',
        "prompt p({})",
    ]
