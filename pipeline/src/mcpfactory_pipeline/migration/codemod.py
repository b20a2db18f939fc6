"""A server written with FastMCP or the official SDK, as a server of the runtime: source text in, source text and a report out. Pure.

Only the places that change are written: each edit replaces a span of the text that the parser has named, so that comments and formatting
stay. What has no equal here is left as it is and listed, by line; the result is parsed again before it is given out.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Final

from mcpfactory_pipeline.migration.forms import (
    CALLS,
    CONTEXT,
    DROPPED,
    IMPORTS,
    LIBRARIES,
    METHODS,
    RENAMED_ATTRIBUTES,
    CallForm,
)

__all__ = ["Migration", "MigrationStep", "migrate_source"]

_PACKAGE: Final = "mcpfactory_runtime"


@dataclass(frozen=True, slots=True)
class MigrationStep:
    """Something in a line: what stands there, and what became of it, or why nothing did."""

    line: int
    what: str
    says: str


@dataclass(frozen=True, slots=True)
class Migration:
    """What a source became. `moved` was carried over, `left` was not and has to be by hand, `noted` is lost or different on purpose."""

    before: str
    after: str
    moved: tuple[MigrationStep, ...] = ()
    left: tuple[MigrationStep, ...] = ()
    noted: tuple[MigrationStep, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether nothing is left to do by hand."""
        return bool(self.moved) and not self.left


def migrate_source(text: str) -> Migration:
    """Return what a source becomes.

    Raises:
        SyntaxError: it is not Python.
    """
    tree = ast.parse(text)
    work = _SourceEdits(text, tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            work.take_import(node)
        elif isinstance(node, ast.Import):
            work.refuse_module(node)
    if not work.roles:
        return Migration(text, text, left=tuple(work.left))
    work.find_objects()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "typing":
            work.take_typed_dict(node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            work.refuse_plain_results(node)
        work.take(node)
    after = work.written()
    ast.parse(after)
    return Migration(text, after, _in_order(work.moved), _in_order(work.left), _in_order(work.noted))


def _in_order(steps: list[MigrationStep]) -> tuple[MigrationStep, ...]:
    return tuple(dict.fromkeys(sorted(steps, key=lambda step: step.line)))


@dataclass(slots=True)
class _SourceEdits:
    """One source while it is changed. `roles` maps a local name to what it is, `servers` and `contexts` are names of objects."""

    text: str
    tree: ast.Module
    edits: list[tuple[int, int, str]] = field(default_factory=list)
    moved: list[MigrationStep] = field(default_factory=list)
    left: list[MigrationStep] = field(default_factory=list)
    noted: list[MigrationStep] = field(default_factory=list)
    roles: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    servers: set[str] = field(default_factory=set)
    contexts: set[str] = field(default_factory=set)
    starts: list[int] = field(default_factory=list)
    handled: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.starts = [0]
        for line in self.text.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))

    # --- places ---

    def place(self, line: int, column: int) -> int:
        """Return where a line and a column of UTF-8 bytes are in the text."""
        start = self.starts[line - 1]
        end = self.starts[line] if line < len(self.starts) else len(self.text)
        return start + len(self.text[start:end].encode()[:column].decode())

    def span(self, node: ast.expr | ast.stmt | ast.keyword) -> tuple[int, int]:
        """Return where a node begins and ends."""
        return self.place(node.lineno, node.col_offset), self.place(node.end_lineno or 0, node.end_col_offset or 0)

    def replace(self, node: ast.expr | ast.stmt | ast.keyword, new: str) -> None:
        """Have something else stand in the place of a node."""
        self.edits.append((*self.span(node), new))

    def written(self) -> str:
        """Return the text with all edits."""
        text = self.text
        for start, end, new in sorted(set(self.edits), reverse=True):
            text = text[:start] + new + text[end:]
        return text

    # --- imports ---

    def take_import(self, node: ast.ImportFrom) -> None:
        """Replace the names that have an equal here; the others stay where they are."""
        module = node.module or ""
        if node.level or not any(module == name or module.startswith(f"{name}.") for name in LIBRARIES):
            return
        ours, others, dropped = [], [], []
        for alias in node.names:
            role = IMPORTS.get(alias.name)
            local = alias.asname or alias.name
            if role is None:
                others.append(ast.unparse(alias))
                self.left.append(
                    MigrationStep(node.lineno, f"from {module} import {alias.name}", "it has no equal here")
                )
            elif role == "dict":
                dropped.append(alias.name)
                self.roles[local] = alias.name
            else:
                new = self._free(role)
                self.roles[local] = alias.name
                self.names[local] = alias.asname or new
                ours.append(f"{role} as {alias.asname or new}" if (alias.asname or new) != role else role)
        if not ours and not dropped:
            return
        indent = " " * node.col_offset
        lines = [f"from {_PACKAGE} import {', '.join(sorted(set(ours)))}"] if ours else []
        lines += [f"from {module} import {', '.join(others)}"] if others else []
        if lines:
            self.replace(node, f"\n{indent}".join(lines))
        else:
            self._remove_statement(node)
        self.moved.append(
            MigrationStep(node.lineno, f"from {module} import …", lines[0] if lines else "it is not needed")
        )

    def take_typed_dict(self, node: ast.ImportFrom) -> None:
        """`TypedDict` comes from `typing_extensions`: below Python 3.12 pydantic makes no schema of the other one."""
        wanted = [ast.unparse(alias) for alias in node.names if alias.name == "TypedDict"]
        if wanted:
            others = [ast.unparse(alias) for alias in node.names if alias.name != "TypedDict"]
            lines = [f"from typing import {', '.join(others)}"] if others else []
            lines.append(f"from typing_extensions import {wanted[0]}")
            self.replace(node, f"\n{' ' * node.col_offset}".join(lines))
            self.moved.append(MigrationStep(node.lineno, "from typing import TypedDict", lines[-1]))

    def _free(self, name: str) -> str:
        """Return a name for what is imported that means nothing else in the source."""
        taken = {
            node.name
            for node in ast.walk(self.tree)
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        }
        taken |= {
            node.id for node in ast.walk(self.tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        return f"Mcp{name}" if name in taken else name

    def _remove_statement(self, node: ast.stmt) -> None:
        start, end = self.span(node)
        line_end = self.text.find("\n", end)
        if not node.col_offset and self.text[end : line_end if line_end >= 0 else len(self.text)].strip() == "":
            self.edits.append((start, line_end + 1 if line_end >= 0 else len(self.text), ""))
        else:
            self.edits.append((start, end, "pass"))

    def refuse_module(self, node: ast.Import) -> None:
        """List modules that are used by their whole name."""
        for alias in node.names:
            if alias.name.partition(".")[0] in {name.partition(".")[0] for name in LIBRARIES}:
                self.left.append(
                    MigrationStep(node.lineno, f"import {alias.name}", "what is used of it is not followed")
                )

    # --- objects ---

    def role(self, node: ast.AST | None) -> str:
        """Return the imported name that an expression is, also with types in brackets; "" for another one."""
        if isinstance(node, ast.Subscript):
            return self.role(node.value) if self.role(node.value) in {"FastMCP", "MCPServer", "Context"} else ""
        if isinstance(node, ast.BinOp):  # Context | None
            return self.role(node.left)
        return self.roles.get(node.id, "") if isinstance(node, ast.Name) else ""

    def find_objects(self) -> None:
        """Find the names that servers and contexts have."""
        for node in ast.walk(self.tree):
            if (
                isinstance(node, ast.Assign | ast.AnnAssign)
                and isinstance(node.value, ast.Call)
                and self._is_server(node.value.func)
            ):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                self.servers |= {one.id for one in targets if isinstance(one, ast.Name)}
            elif isinstance(node, ast.arg) and self._is_server(node.annotation):
                self.servers.add(node.arg)
            elif isinstance(node, ast.arg) and self.role(node.annotation) == "Context":
                self.contexts.add(node.arg)

    def refuse_plain_results(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """List tools whose results are objects of a class that is neither a model, a dataclass nor a dict: here they have no schema."""
        makers = [one.func if isinstance(one, ast.Call) else one for one in node.decorator_list]
        is_tool = any(
            isinstance(one, ast.Attribute)
            and one.attr == "tool"
            and isinstance(one.value, ast.Name)
            and one.value.id in self.servers
            for one in makers
        )
        if node.returns is None or not is_tool:
            return
        plain = {
            one.name
            for one in self.tree.body
            if isinstance(one, ast.ClassDef) and not one.bases and not one.decorator_list
        }
        for name in dict.fromkeys(
            one.id for one in ast.walk(node.returns) if isinstance(one, ast.Name) and one.id in plain
        ):
            self.left.append(
                MigrationStep(
                    node.lineno, f"{node.name}() -> {name}", "its results have no schema: make it a dataclass"
                )
            )

    def _is_server(self, node: ast.AST | None) -> bool:
        return self.role(node) in {"FastMCP", "MCPServer"}

    # --- forms ---

    def take(self, node: ast.AST) -> None:
        """Change one node, where it is one of the known forms."""
        if isinstance(node, ast.Subscript) and self.role(node) and isinstance(node.value, ast.Name):
            self.replace(node, self.names.get(node.value.id, node.value.id))
            self.handled.add(id(node.value))
        elif isinstance(node, ast.Name) and id(node) not in self.handled and isinstance(node.ctx, ast.Load):
            new = self.names.get(node.id)
            if new is not None and new != node.id:
                self.replace(node, new)
        if isinstance(node, ast.Call):
            self._take_call(node)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and id(node) not in self.handled:
            if node.value.id in self.servers:
                self._take_server_attribute(node)
            elif node.value.id in self.contexts:
                self._take_context(node)
        elif isinstance(node, ast.Attribute):
            self._take_chain(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in self.roles:
            self.left.append(MigrationStep(node.lineno, f'"{node.value}"', "a type in a text is not followed"))

    def _take_call(self, node: ast.Call) -> None:
        func = node.func
        role = self.role(func)
        if role and (form := CALLS.get(role)) is not None:
            if form.becomes:
                self.handled.add(id(func))
                self.edits.append((*self.span(func), form.becomes))
            self._arguments(node, form, role)
        elif isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id in self.servers:
            known = METHODS.get(func.attr)
            if known is not None:
                self.handled.add(id(func))
                if known.becomes:
                    self._rename_attribute(func, known.becomes)
                self._arguments(node, known, f"{func.value.id}.{func.attr}")

    def _take_server_attribute(self, node: ast.Attribute) -> None:
        form = METHODS.get(node.attr)
        if form is None and node.attr not in {"name", "instructions"}:
            self.left.append(
                MigrationStep(node.lineno, f"{ast.unparse(node)}", "a server of the runtime has it not, or otherwise")
            )
        elif form is not None:
            self.moved.append(MigrationStep(node.lineno, ast.unparse(node), "as it is"))

    def _take_context(self, node: ast.Attribute) -> None:
        if node.attr in RENAMED_ATTRIBUTES:
            self._rename_attribute(node, RENAMED_ATTRIBUTES[node.attr])
        elif node.attr not in CONTEXT and node.attr != "request_context":
            self.left.append(MigrationStep(node.lineno, ast.unparse(node), "the context has it not, or otherwise"))

    def _take_chain(self, node: ast.Attribute) -> None:
        """`ctx.request_context.lifespan_context` is `ctx.state`."""
        inner = node.value
        if not (
            isinstance(inner, ast.Attribute) and inner.attr == "request_context" and isinstance(inner.value, ast.Name)
        ):
            return
        if inner.value.id not in self.contexts:
            return
        new = {
            "lifespan_context": "state",
            "request_id": "request_id",
            "meta": "meta",
            "protocol_version": "revision",
        }.get(node.attr)
        if new is None:
            self.left.append(MigrationStep(node.lineno, ast.unparse(node), "the context has it not, or otherwise"))
        else:
            self.replace(node, f"{inner.value.id}.{new}")
            self.moved.append(MigrationStep(node.lineno, ast.unparse(node), f"{inner.value.id}.{new}"))

    def _rename_attribute(self, node: ast.Attribute, new: str) -> None:
        end = self.place(node.end_lineno or 0, node.end_col_offset or 0)
        self.edits.append((end - len(node.attr), end, new))
        self.moved.append(MigrationStep(node.lineno, ast.unparse(node), new))

    # --- arguments of calls ---

    def _arguments(self, node: ast.Call, form: CallForm, name: str) -> None:
        """Bring the arguments of a call into the form that the runtime has."""
        if form.literal is not None:
            self._run(node, form, name)
            return
        if any(isinstance(one, ast.Starred) for one in node.args) or any(one.arg is None for one in node.keywords):
            self.left.append(MigrationStep(node.lineno, f"{name}(…)", "arguments that are unpacked are not followed"))
            return
        if len(node.args) > form.positional:
            self.left.append(MigrationStep(node.lineno, f"{name}(…)", "its arguments stand in another order here"))
        if not node.args and form.default and not any(one.arg == "name" for one in node.keywords):
            at = self.span(node.func)[1] + 1
            self.edits.append((at, at, form.default + (", " if node.keywords else "")))
        for word in node.keywords:
            self._keyword(node, word, form, name)
        for key, value in form.added.items():
            parts: list[ast.expr | ast.keyword] = [*node.args, *node.keywords]
            if parts and not any(word.arg == key for word in node.keywords):
                end = self.span(parts[-1])[1]
                self.edits.append((end, end, f", {key}={value}"))
        self.moved.append(MigrationStep(node.lineno, f"{name}(…)", form.becomes or "as it is"))

    def _keyword(self, node: ast.Call, word: ast.keyword, form: CallForm, name: str) -> None:
        assert word.arg is not None
        start = self.place(word.lineno, word.col_offset)
        if word.arg == form.first:
            value = self.span(word.value)[0]
            if word is node.keywords[0] and not node.args:
                self.edits.append((start, value, ""))
            else:
                self.left.append(MigrationStep(word.lineno, f"{name}({word.arg}=…)", "it has to be the first argument"))
        elif word.arg in form.renamed:
            new = form.renamed[word.arg]
            self.edits.append((start, start + len(word.arg), new))
            if new == "mime_type" and word.arg == "format":
                self._format(word, name)
        elif word.arg in form.kept:
            return
        elif word.arg in {*form.dropped, *DROPPED}:
            self._drop(node, word, name)
        else:
            self.left.append(MigrationStep(word.lineno, f"{name}({word.arg}=…)", "there is no such keyword here"))

    def _format(self, word: ast.keyword, name: str) -> None:
        if isinstance(word.value, ast.Constant) and isinstance(word.value.value, str):
            kind = "audio" if name == "Audio" else "image"
            self.replace(word.value, f'"{kind}/{word.value.value}"')
        else:
            self.left.append(MigrationStep(word.lineno, f"{name}(format=…)", "write the whole MIME type"))

    def _drop(self, node: ast.Call, word: ast.keyword, name: str) -> None:
        parts: list[ast.expr | ast.keyword] = [*node.args, *node.keywords]
        at = parts.index(word)
        start, end = self.span(word)
        if at + 1 < len(parts):
            end = self.span(parts[at + 1])[0]
        elif at:
            start = self.span(parts[at - 1])[1]
        if "#" in self.text[start:end]:
            self.left.append(
                MigrationStep(
                    word.lineno, f"{name}({word.arg}=…)", "there is no such keyword here, and a comment beside it"
                )
            )
            return
        self.edits.append((start, end, ""))
        self.noted.append(
            MigrationStep(word.lineno, f"{name}({word.arg}=…)", "it is left out: there is no such keyword here")
        )

    def _run(self, node: ast.Call, form: CallForm, name: str) -> None:
        """`run(transport="stdio")` is `run_stdio()`, with `http` it is `run_http(host=, port=)`."""
        assert form.literal is not None
        words = {word.arg: word for word in node.keywords}
        first = node.args[0] if node.args else words["transport"].value if "transport" in words else None
        if first is None and not words:
            self.moved.append(MigrationStep(node.lineno, f"{name}()", "as it is"))
            return
        kind = first.value if isinstance(first, ast.Constant) else "stdio" if first is None else None
        new = form.literal.get(str(kind))
        kept = {key: word for key, word in words.items() if key != "transport"}
        if (
            new is None
            or not set(kept) <= {"host", "port", "show_banner", "log_level"}
            or not isinstance(node.func, ast.Attribute)
        ):
            self.left.append(
                MigrationStep(node.lineno, ast.unparse(node), "serve it by run_stdio(), run_http() or http_app()")
            )
            return
        method, lead = new
        given = [
            f"{key}={ast.unparse(word.value)}"
            for key, word in kept.items()
            if key in {"host", "port"} and kind != "stdio"
        ]
        end = self.span(node)[1]
        self.edits.append(
            (self.span(node.func)[1] - len(node.func.attr), end, f"{method}({', '.join([*lead, *given])})")
        )
        self.moved.append(MigrationStep(node.lineno, ast.unparse(node), f"{method}({', '.join([*lead, *given])})"))
