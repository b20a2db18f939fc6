"""A generated server as data that can be broken: the bindings of its tools, its manifest and its cases."""

from __future__ import annotations

import ast
import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

__all__ = ["Broken", "Mutant", "Server", "Tool", "entries", "keyword"]

Json = dict[str, Any]


@dataclass(frozen=True)
class Mutant:
    """One thing done to the server: `tool` is whose tests must notice, `what` says what was done, `files` are the new texts."""

    tool: str
    what: str
    files: dict[Path, str]


@dataclass(frozen=True)
class Tool:
    """A tool that has a case: its entry in the manifest, its case, and where its code is."""

    name: str
    entry: Json
    case: Json
    module: Path
    function: str

    def kind(self, argument: str) -> str:
        """The JSON type of an argument, "" when it is not one plain type."""
        schema = self.entry["inputSchema"]["properties"].get(argument, {})
        reference = schema.get("$ref", "").removeprefix("#/$defs/") if isinstance(schema, dict) else ""
        schema = self.entry["inputSchema"].get("$defs", {}).get(reference, schema)
        kind = schema.get("type", "") if isinstance(schema, dict) else ""
        return kind if isinstance(kind, str) else ""


class Broken:
    """A copy of a tool's module that may be changed: `record` is its `Operation(…)`, `function` what sends it."""

    def __init__(self, tool: Tool, tree: ast.Module) -> None:
        self.tree = copy.deepcopy(tree)
        self.tool = tool
        self.function = next(
            node for node in self.tree.body if isinstance(node, ast.AsyncFunctionDef) and node.name == tool.function
        )
        self.send = next(
            node
            for node in ast.walk(self.function)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "send"
        )
        name = ast.unparse(self.send.args[0])
        self.record = next(
            node.value
            for node in self.tree.body
            if isinstance(node, ast.Assign)
            and ast.unparse(node.targets[0]) == name
            and isinstance(node.value, ast.Call)
        )
        given = self.send.args[1]
        assert isinstance(given, ast.Dict)
        self.given = given

    @property
    def body(self) -> ast.Call | None:
        """`Body(…)`, when the operation has one."""
        value = keyword(self.record, "body")
        return value if isinstance(value, ast.Call) else None

    def text(self) -> str:
        """The module as it is now."""
        text = ast.unparse(ast.fix_missing_locations(self.tree)) + "\n"
        compile(text, self.tool.name, "exec")  # a module that is no Python would be noticed for that alone
        return text

    def needs(self, name: str) -> None:
        """Import a name of the runtime's upstream calls."""
        at = next(at for at, node in enumerate(self.tree.body) if ast.unparse(node).startswith("from __future__"))
        self.tree.body.insert(at + 1, ast.parse(f"from mcpfactory_runtime.upstream import {name}").body[0])


class Server:
    """A generated server in a folder."""

    def __init__(self, folder: Path, package: str) -> None:
        self.folder = folder
        generated = folder / "src" / package / "_generated"
        self.manifest_path, self.api_path = generated / "manifest.json", generated / "api.py"
        self.manifest: Json = json.loads(self.manifest_path.read_bytes())
        self.data: Json = json.loads((folder / "tests/_generated/cases.json").read_bytes())
        self._tools = generated / "tools"
        self._trees: dict[Path, ast.Module] = {}

    @cached_property
    def tools(self) -> list[Tool]:
        """Those that have a case."""
        cases = {case["tool"]: case for case in self.data["cases"]}
        found = []
        for entry in self.manifest["tools"]:
            module, _, function = entry["handler"].partition(":")
            if entry["name"] in cases:
                path = self._tools / f"{module}.py"
                found.append(Tool(entry["name"], entry, cases[entry["name"]], path, function))
        return found

    def open(self, tool: Tool) -> Broken:
        """The tool's module, to be changed."""
        if tool.module not in self._trees:
            self._trees[tool.module] = ast.parse(tool.module.read_text("utf-8"))
        return Broken(tool, self._trees[tool.module])

    def in_code(self, broken: Broken, what: str) -> Mutant:
        """The mutant that this changed module is."""
        return Mutant(broken.tool.name, what, {broken.tool.module: broken.text()})

    def in_list(self, tool: Tool, what: str, change: Callable[[Json], Any]) -> Mutant:
        """The mutant whose entry in the manifest was changed in place."""
        manifest = {**self.manifest, "tools": [copy.deepcopy(one) for one in self.manifest["tools"]]}
        change(next(one for one in manifest["tools"] if one["name"] == tool.name))
        return Mutant(tool.name, what, {self.manifest_path: json.dumps(manifest)})


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    """The value of a keyword argument."""
    return next((one.value for one in call.keywords if one.arg == name), None)


def entries(call: ast.Call | None, name: str, position: int | None = None) -> Iterator[ast.Call]:
    """The records in a tuple that is a keyword, or at a position, of a call."""
    if call is None:
        return
    value = keyword(call, name)
    if value is None and position is not None and len(call.args) > position:
        value = call.args[position]
    if isinstance(value, ast.Tuple):
        yield from (one for one in value.elts if isinstance(one, ast.Call))
