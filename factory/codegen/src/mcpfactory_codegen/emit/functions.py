"""One operation as Python: the record that binds it, and the function that a tool call ends in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, dataclass
from dataclasses import fields as fields_of
from typing import Any, Final

from mcpfactory_codegen.describe.tools import ApiTool
from mcpfactory_codegen.emit.python import annotation, call, docstring, literal, sequence
from mcpfactory_codegen.inputs import Input
from mcpfactory_codegen.ir import ApiBody, ApiOperation, ApiParameter, Encoding, is_json
from mcpfactory_codegen.naming import OperationNames
from mcpfactory_codegen.text import one_line
from mcpfactory_runtime.upstream.operation import Paging, Xml

__all__ = ["Function", "accepted", "constant", "function"]

_JSON: Final = "application/json"


@dataclass(frozen=True, slots=True)
class Function:
    """What is needed to write one operation."""

    operation: ApiOperation
    named: OperationNames
    tool: ApiTool
    items: Sequence[Input]


def constant(one: Function) -> str:
    """`GET_BOOK = Operation(…)`."""
    operation = one.operation
    keywords: dict[str, str] = {}
    parameters = [item for item in one.items if item.parameter is not None]
    if parameters:
        keywords["parameters"] = sequence([_parameter(item, one.named) for item in parameters])
    if operation.body is not None:
        fields = [item for item in one.items if item.parameter is None]
        keywords["body"] = _body(operation.body, fields, one.named)
    if operation.security:
        keywords["security"] = literal(operation.security)
    if operation.scopes:
        keywords["scopes"] = literal(operation.scopes)
    if operation.server:
        keywords["server"] = literal(operation.server)
    if (accept := accepted(operation, structured=one.tool.output.schema is not None)) != _JSON:
        keywords["accept"] = literal(accept)
    paging = one.tool.paging
    if paging is not None and paging.argument in one.tool.input_schema["properties"]:  # it may be hidden
        keywords["paging"] = _paging(paging)
    if one.tool.select:
        keywords["select"] = literal(one.tool.select)
    record = call("Operation", literal(operation.method), literal(operation.path), **keywords)
    return f"{one.named.constant} = {record}"


def _paging(paging: Paging) -> str:
    given = {
        one.name: getattr(paging, one.name)
        for one in fields_of(paging)
        if one.default is not MISSING and getattr(paging, one.name) != one.default
    }
    keywords = {name: literal(value) for name, value in given.items()}
    return call("Paging", literal(paging.kind), literal(paging.argument), **keywords)


def accepted(operation: ApiOperation, *, structured: bool = False) -> str:
    """Return the Accept header: the media type of the first success that has one; with JSON where that label is on JSON."""
    success = sorted((one for one in operation.responses if one.status.startswith("2")), key=lambda one: one.status)
    types = [one.content_type for one in success if one.content_type]
    json = [one for one in types if one.split(";")[0].strip().lower() == _JSON]
    if json or not types:
        return _JSON
    return f"{types[0]}, {_JSON};q=0.9" if structured and not is_json(types[0]) else types[0]


def _stated(record: ApiParameter | Encoding, *names: str) -> dict[str, str]:
    """Return the fields that say something, as keywords."""
    values = {name: getattr(record, name) for name in names}
    return {name: literal(value) for name, value in values.items() if value or (name == "explode" and value is False)}


def _parameter(item: Input, named: OperationNames) -> str:
    parameter = item.parameter
    assert parameter is not None
    texts = [literal(text) for text in (named.arguments[item.slot], parameter.place, parameter.name)]
    return call("Parameter", *texts, **_stated(parameter, "style", "explode", "allow_reserved", "content_type"))


def _body(body: ApiBody, fields: Sequence[Input], named: OperationNames) -> str:
    keywords = {"required": "True"} if body.required else {}
    if body.xml is not None:
        keywords["xml"] = _xml(body.xml)
    if body.shapes:
        keywords["shapes"] = sequence([sequence([literal(name), _xml(shape)]) for name, shape in body.shapes])
    if body.graphql:
        keywords["graphql"] = literal(body.graphql)
    return call("Body", literal(body.content_type), sequence([_field(item, named) for item in fields]), **keywords)


def _xml(xml: Xml) -> str:
    given = {one.name: getattr(xml, one.name) for one in fields_of(xml) if getattr(xml, one.name) != one.default}
    keywords = {name: literal(value) for name, value in given.items() if name not in {"members", "items"}}
    if xml.members:
        keywords["members"] = sequence([sequence([literal(name), _xml(member)]) for name, member in xml.members])
    if xml.items is not None:
        keywords["items"] = _xml(xml.items)
    return call("Xml", **keywords)


def _field(item: Input, named: OperationNames) -> str:
    encoding = item.encoding or Encoding()
    arguments = [literal(named.arguments[item.slot])]
    names: tuple[str, ...] = ("file",)
    if item.name:
        arguments.append(literal((item.name,)))
        names = ("content_type", "style", "explode", "allow_reserved", "file")
    return call("Field", *arguments, **_stated(encoding, *names))


def function(one: Function) -> str:
    """`async def get_book(api, /, *, …) -> ToolResult`."""
    properties: dict[str, Any] = one.tool.input_schema["properties"]
    required = set(one.tool.input_schema.get("required", ()))
    defs = one.tool.input_schema.get("$defs", {})
    signature = ["api: Upstream", "/"]
    if properties:
        signature.append("*")
    for name, schema in properties.items():
        kind = annotation(schema, defs)
        if name in required:
            signature.append(f"{name}: {kind}")
        else:
            signature.append(f"{name}: {_optional(kind)} = UNSET")
    given = ", ".join([*(entry for name in properties for entry in _entries(name, one.tool)), *_fixed(one.tool)])
    return (
        f"async def {one.named.function}({', '.join(signature)}) -> ToolResult:\n"
        f"{_docstring(one, properties)}\n"
        f"    return await api.send({one.named.constant}, {{{given}}})"
    )


def _given(name: str, tool: ApiTool) -> str:
    """Return an argument's value; the person's default where it is left out."""
    value = f"{literal(tool.defaults[name])} if {name} is UNSET else {name}" if name in tool.defaults else name
    return f"{literal(name)}: {value}"


def _entries(name: str, tool: ApiTool) -> list[str]:
    """Return what an argument is sent as: itself, or each of the several that it stands for."""
    merged = tool.merged.get(name)
    if merged is None:
        return [_given(name, tool)]
    if not merged.separator:
        return [f"{literal(member)}: {name}" for member in merged.members]
    count, cut = len(merged.members), literal(merged.separator)
    return [
        f"{literal(member)}: {call('piece', name, cut, str(index), str(count), literal(kind))}"
        for index, (member, kind) in enumerate(zip(merged.members, merged.kinds, strict=True))
    ]


def _fixed(tool: ApiTool) -> list[str]:
    return [f"{literal(name)}: {literal(value)}" for name, value in tool.fixed.items()]


def _optional(kind: str) -> str:
    """Return the annotation of an argument that may be left out; None stands last."""
    if kind == "Any":
        return kind
    return f"{kind.removesuffix(' | None')} | Unset | None" if kind.endswith(" | None") else f"{kind} | Unset"


def _docstring(one: Function, properties: dict[str, Any]) -> str:
    operation = one.operation
    summary = one_line(operation.summary or one.tool.description, 90).rstrip(".")
    paragraphs = [f"{summary}.", f"{operation.method} {one_line(operation.path, 300)}"]
    if operation.deprecated:
        paragraphs.append("Deprecated.")
    if properties:
        described = [f"    {name}: {_about(name, schema, one.tool)}" for name, schema in properties.items()]
        paragraphs.append("\n".join(["Args:", "    api: the connection that the tools share.", *described]))
    return docstring(paragraphs, "    ")


def _about(name: str, schema: Any, tool: ApiTool) -> str:
    text = one_line(str(schema.get("description", "")), 160) if isinstance(schema, dict) else ""
    if text:
        return text
    binding = tool.bindings[name]
    where = "headers" if binding.place == "header" else binding.place
    return f"`{one_line(binding.name, 80)}` in the {where}." if binding.name else f"the whole {where}."
