"""The ways in which a generated server is broken. Each yields every place of a server where it can be done."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.mutations.source import Broken, Json, Mutant, Server, Tool, entries, keyword

__all__ = ["KINDS"]

Kind = Callable[[Server, Tool], Iterator[Mutant]]
_OTHER_METHOD = {"GET": "POST", "POST": "PUT", "PUT": "PATCH", "PATCH": "PUT", "DELETE": "GET"}
_FORM, _JSON = "application/x-www-form-urlencoded", "application/json"


def _parameters(broken: Broken) -> list[ast.Call]:
    return list(entries(broken.record, "parameters", 2))


def _fields(broken: Broken) -> list[ast.Call]:
    return list(entries(broken.body, "fields", 1))


def _text(call: ast.Call, position: int) -> str:
    return str(ast.literal_eval(call.args[position]))


def _set(call: ast.Call, name: str, value: Any) -> None:
    call.keywords = [one for one in call.keywords if one.arg != name]
    call.keywords.append(ast.keyword(name, ast.Constant(value)))


def _remove(call: ast.Call, name: str, which: ast.Call, position: int | None = None) -> None:
    value = keyword(call, name)
    value = call.args[position] if value is None and position is not None else value
    assert isinstance(value, ast.Tuple)
    value.elts = [one for one in value.elts if one is not which]


def _given(tool: Tool) -> set[str]:
    """The arguments that some call of the tests has."""
    return {name for case in (tool.case, *tool.case["variants"]) for name in case["arguments"]}


# --- what is sent ---


def _each(server: Server, tool: Tool) -> Iterator[tuple[Broken, int]]:
    """A fresh copy of the module for each parameter, with its number."""
    for number in range(len(_parameters(server.open(tool)))):
        yield server.open(tool), number


def drop_parameter(server: Server, tool: Tool) -> Iterator[Mutant]:
    for broken, number in _each(server, tool):
        one = _parameters(broken)[number]
        if _text(one, 0) in _given(tool):
            _remove(broken.record, "parameters", one, 2)
            yield server.in_code(broken, f"parameter {_text(one, 2)} is not sent")


def drop_field(server: Server, tool: Tool) -> Iterator[Mutant]:
    for number in range(len(_fields(server.open(tool)))):
        broken = server.open(tool)
        one, body = _fields(broken)[number], broken.body
        if body is not None and _text(one, 0) in _given(tool):
            _remove(body, "fields", one, 1)
            yield server.in_code(broken, f"field {_text(one, 0)} of the body is not sent")


def wrong_name(server: Server, tool: Tool) -> Iterator[Mutant]:
    for broken, number in _each(server, tool):
        one = _parameters(broken)[number]
        if _text(one, 1) != "path" and _text(one, 0) in _given(tool):
            name = _text(one, 2)
            one.args[2] = ast.Constant(f"{name}s")
            yield server.in_code(broken, f"{_text(one, 1)} {name} is sent as {name}s")


def wrong_style(server: Server, tool: Tool) -> Iterator[Mutant]:
    for broken, number in _each(server, tool):
        one = _parameters(broken)[number]
        place, argument = _text(one, 1), _text(one, 0)
        if place == "path":
            _set(one, "style", "matrix")
            yield server.in_code(broken, f"path {argument} has style matrix")
        elif place == "query" and _several(tool, argument):
            _set(one, "style", "pipeDelimited")
            _set(one, "explode", False)
            yield server.in_code(broken, f"query {argument} has style pipeDelimited")
    for number, old in enumerate(_fields(server.open(tool))):
        style = keyword(old, "style")
        if style is not None and tool.kind(_text(old, 0)) == "object" and tool.case["arguments"].get(_text(old, 0)):
            broken = server.open(tool)
            _set(_fields(broken)[number], "style", "form")
            yield server.in_code(broken, f"field {_text(old, 0)} has style form")


def _several(tool: Tool, argument: str) -> bool:
    """Whether the tests give the argument more than one item: how one is written is no question of style."""
    value = tool.case["arguments"].get(argument)
    return isinstance(value, list) and len(value) > 1


def wrong_explode(server: Server, tool: Tool) -> Iterator[Mutant]:
    for broken, number in _each(server, tool):
        one = _parameters(broken)[number]
        argument, style = _text(one, 0), keyword(one, "style")
        deep = style is not None and ast.literal_eval(style) == "deepObject"  # which is always exploded
        if _text(one, 1) == "query" and _several(tool, argument) and not deep:
            old = keyword(one, "explode")
            exploded = True if old is None else bool(ast.literal_eval(old))
            _set(one, "explode", not exploded)
            yield server.in_code(broken, f"query {argument} has explode {not exploded}")


def wrong_method(server: Server, tool: Tool) -> Iterator[Mutant]:
    broken = server.open(tool)
    method = _text(broken.record, 0)
    if method in _OTHER_METHOD:
        broken.record.args[0] = ast.Constant(_OTHER_METHOD[method])
        yield server.in_code(broken, f"{method} is sent as {_OTHER_METHOD[method]}")


def wrong_path(server: Server, tool: Tool) -> Iterator[Mutant]:
    broken = server.open(tool)
    path = _text(broken.record, 1)
    broken.record.args[1] = ast.Constant(path + "s")
    yield server.in_code(broken, f"{path} is sent as {path}s")


def swapped_arguments(server: Server, tool: Tool) -> Iterator[Mutant]:
    names = [ast.literal_eval(key) for key in server.open(tool).given.keys if key is not None]
    for at, (one, other) in enumerate(pairwise(names)):
        if tool.kind(one) == tool.kind(other) and {one, other} <= _given(tool):
            broken = server.open(tool)
            values = broken.given.values
            values[at], values[at + 1] = values[at + 1], values[at]
            yield server.in_code(broken, f"{one} and {other} are swapped")


def ignored_argument(server: Server, tool: Tool) -> Iterator[Mutant]:
    for at, key in enumerate(server.open(tool).given.keys):
        broken = server.open(tool)
        if key is not None and ast.literal_eval(key) in tool.case["arguments"]:
            broken.given.values[at] = ast.Constant("constant")
            yield server.in_code(broken, f"{ast.literal_eval(key)} is always 'constant'")


def query_instead_of_body(server: Server, tool: Tool) -> Iterator[Mutant]:
    broken = server.open(tool)
    body, fields = broken.body, _fields(broken)
    if body is not None and fields and _text(fields[0], 0) in _given(tool):
        name = _text(fields[0], 0)
        _remove(body, "fields", fields[0], 1)
        moved = ast.Call(ast.Name("Parameter"), [ast.Constant(one) for one in (name, "query", name)], [])
        old = [ast.copy_location(one, one) for one in _parameters(broken)]
        broken.record.args = broken.record.args[:2]
        broken.record.keywords = [one for one in broken.record.keywords if one.arg != "parameters"]
        broken.record.keywords.append(ast.keyword("parameters", ast.Tuple([*old, moved])))
        broken.needs("Parameter")
        yield server.in_code(broken, f"{name} goes into the query instead of the body")


def wrong_content_type(server: Server, tool: Tool) -> Iterator[Mutant]:
    broken = server.open(tool)
    if broken.body is not None and _fields(broken):
        new = _FORM if "json" in _text(broken.body, 0) else _JSON
        broken.body.args[0] = ast.Constant(new)
        yield server.in_code(broken, f"the body is {new}")


def sent_twice(server: Server, tool: Tool) -> Iterator[Mutant]:
    broken = server.open(tool)
    broken.function.body.insert(-1, ast.Expr(ast.Await(broken.send)))
    yield server.in_code(broken, "the request is sent twice")


def not_sent(server: Server, tool: Tool) -> Iterator[Mutant]:
    broken = server.open(tool)
    broken.function.body[-1] = ast.parse("async def f():\n return ToolResult('done')").body[0].body[0]  # type: ignore[attr-defined]  # the statement within
    yield server.in_code(broken, "nothing is sent")


# --- who asks, and whom ---


def no_credentials(server: Server, tool: Tool) -> Iterator[Mutant]:
    broken = server.open(tool)
    if tool.case["request"].get("credentials"):
        broken.record.keywords = [one for one in broken.record.keywords if one.arg != "security"]
        yield server.in_code(broken, "no credentials are sent")


def wrong_credentials(server: Server, tool: Tool) -> Iterator[Mutant]:
    if not tool.case["request"].get("credentials"):
        return
    source = server.api_path.read_text("utf-8")
    for old, new in (('"bearer"', '"basic"'), ('"basic"', '"bearer"'), ('parameter="', 'parameter="X-')):
        if old in source:
            changed = source.replace(old, new)
            yield Mutant(tool.name, f"credentials: {old} is {new}", {server.api_path: changed})


def wrong_base_url(server: Server, tool: Tool) -> Iterator[Mutant]:
    source = server.api_path.read_text("utf-8")
    url = json.dumps(server.data["base_url"])
    if url in source:
        changed = source.replace(url, json.dumps(server.data["base_url"] + "/v0"), 1)
        yield Mutant("", "the base URL ends in /v0", {server.api_path: changed})


# --- what comes back ---


def swallowed_error(server: Server, tool: Tool) -> Iterator[Mutant]:
    broken = server.open(tool)
    handler = "async def f():\n try:\n  pass\n except Exception as error:\n  return ToolResult(str(error))"
    attempt = ast.parse(handler).body[0].body[0]  # type: ignore[attr-defined]  # the statement within
    attempt.body = [broken.function.body[-1]]
    broken.function.body[-1] = attempt
    yield server.in_code(broken, "errors are answered as results")


def wrong_output(server: Server, tool: Tool) -> Iterator[Mutant]:
    broken = server.open(tool)
    if tool.case["response"]["body"] not in (None, {}, []):
        broken.function.body[-1] = ast.Expr(ast.Await(broken.send))
        broken.function.body.append(
            ast.parse("async def f():\n return ToolResult('{}', structured={})").body[0].body[0]  # type: ignore[attr-defined]  # the statement within
        )
        yield server.in_code(broken, "the answer is thrown away")


def wrong_output_schema(server: Server, tool: Tool) -> Iterator[Mutant]:
    body = tool.case["response"]["body"]
    members = (body if isinstance(body, dict) else {"result": body}).keys()
    for name in tool.entry.get("outputSchema", {}).get("properties", {}).keys() & members:
        yield server.in_list(
            tool,
            f"outputSchema: {name} is null",
            partial(_put, schema="outputSchema", name=name, value={"type": "null"}),
        )


def _put(entry: Json, schema: str, name: str, value: Any) -> None:
    entry[schema]["properties"][name] = value


# --- what is offered and checked ---


def missing_tool(server: Server, tool: Tool) -> Iterator[Mutant]:
    manifest = {**server.manifest, "tools": [one for one in server.manifest["tools"] if one["name"] != tool.name]}
    yield Mutant(tool.name, "the tool is not listed", {server.manifest_path: json.dumps(manifest)})


def wrong_handler(server: Server, tool: Tool) -> Iterator[Mutant]:
    for other in server.tools:
        if other.module == tool.module and other.function != tool.function:
            yield server.in_list(
                tool, f"the tool calls {other.function}", partial(_update, handler=other.entry["handler"])
            )
            return


def _update(entry: Json, **changes: Any) -> None:
    entry.update(changes)


def dropped_required(server: Server, tool: Tool) -> Iterator[Mutant]:
    for name in tool.entry["inputSchema"].get("required", ()):
        listed = server.in_list(tool, "", partial(_optional, name=name))
        broken = server.open(tool)
        at = next((at for at, one in enumerate(broken.function.args.kwonlyargs) if one.arg == name), None)
        if at is not None:
            broken.function.args.kw_defaults[at] = ast.Name("UNSET")
            broken.needs("UNSET")
            files: dict[Path, str] = {**listed.files, tool.module: broken.text()}
            yield Mutant(tool.name, f"{name} is not required", files)


def _optional(entry: Json, name: str) -> None:
    entry["inputSchema"]["required"].remove(name)


def renamed_argument(server: Server, tool: Tool) -> Iterator[Mutant]:
    for name in tool.case["arguments"]:
        yield server.in_list(tool, f"argument {name} is called {name}_", partial(_rename, name=name))


def _rename(entry: Json, name: str) -> None:
    schema = entry["inputSchema"]
    schema["properties"] = {(f"{key}_" if key == name else key): value for key, value in schema["properties"].items()}
    schema["required"] = [f"{key}_" if key == name else key for key in schema.get("required", ())]


def dropped_bound(server: Server, tool: Tool) -> Iterator[Mutant]:
    for name, schema in tool.entry["inputSchema"]["properties"].items():
        tested = any(name in one.get("set", {}) for one in tool.case["refused"])
        if tested and isinstance(schema, dict) and set(schema) - {"description", "type", "title", "default"}:
            yield server.in_list(
                tool, f"{name} takes anything", partial(_put, schema="inputSchema", name=name, value={})
            )


def any_argument(server: Server, tool: Tool) -> Iterator[Mutant]:
    if tool.entry["inputSchema"].get("additionalProperties") is False and tool.case["refused"]:
        yield server.in_list(
            tool, "unknown arguments are let through", lambda one: one["inputSchema"].pop("additionalProperties")
        )


KINDS: tuple[Kind, ...] = (
    drop_parameter, wrong_style, wrong_explode, wrong_method, wrong_path, swapped_arguments, no_credentials,
    wrong_credentials, query_instead_of_body, wrong_content_type, swallowed_error, wrong_output, dropped_required,
    renamed_argument, wrong_base_url, missing_tool, wrong_name, ignored_argument, sent_twice, not_sent, drop_field,
    wrong_output_schema, wrong_handler, dropped_bound, any_argument,
)  # fmt: skip
"""In the order in which they are used, each once before any is used again."""
