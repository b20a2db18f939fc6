"""One style throughout the four wheels, as far as ruff has no rule for it. Each failure says what to write."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from benchmarks.codebase.source import Source

_CONSTANT = re.compile(r"_{0,2}[A-Z][A-Z0-9_]*")
_TYPE_VARIABLES = {"TypeVar", "ParamSpec", "TypeVarTuple", "NewType"}


def test_every_dataclass_has_slots(modules):
    """Slots save memory and refuse a misspelled attribute."""
    without = [
        f"{module.path}:{decorator.lineno}: write `slots=True`, or the reason behind it: `# no slots: …`"
        for module in modules
        for decorator in _dataclass_decorators(module)
        if "slots=True" not in ast.unparse(decorator)
        and "# no slots: " not in module.text.splitlines()[decorator.lineno - 1]
    ]
    assert not without, "\n".join(without)


def test_every_constant_of_a_module_is_final(modules):
    """Strict mypy then refuses a second assignment."""
    changeable = [
        f"{module.path}:{line}: write `{name}: Final = …`"
        for module in modules
        for name, line in _changeable_constants(module.tree)
    ]
    assert not changeable, "\n".join(changeable)


def test_only_tables_keep_a_form_of_their_own(modules):
    """A table is a literal of several lines, or calls and decorators of a module that register a row each: rows read better side by side."""
    others = [
        f"{module.path}:{line}: take `# fmt: skip` away and run `make format`; only behind the closing bracket of a table or a row it may stay"
        for module in modules
        if "# fmt: skip" in module.text
        for line in _skips_outside_tables(module)
    ]
    assert not others, "\n".join(others)


def _skips_outside_tables(module: Source) -> Iterator[int]:
    lines = module.text.splitlines()
    tables = {
        node.end_lineno
        for node in module.statements
        if (isinstance(node, ast.Assign | ast.AnnAssign | ast.Return) and _is_table(node.value))
        or (isinstance(node, ast.Expr) and node in module.tree.body)  # a row that registers itself
    }
    rows = {call.end_lineno for call in _registering(module.tree) if call.lineno != call.end_lineno}
    for number, line in enumerate(lines, 1):
        code, skip, _ = line.partition("# fmt: skip")
        alone = re.fullmatch(r"\s*[)\]}]+\s*", code) is not None
        if skip and not (number in tables and alone) and not (number in rows and code.endswith(")  ")):
            yield number


def _registering(tree: ast.Module) -> Iterator[ast.Call]:
    """Calls with named arguments that decorate a function of a module, or stand there alone."""
    for node in tree.body:
        calls = node.decorator_list if isinstance(node, ast.FunctionDef) else []
        for call in [node.value] if isinstance(node, ast.Expr) else calls:
            if isinstance(call, ast.Call) and call.keywords:
                yield call


def _is_table(value: ast.expr | None) -> bool:
    """Whether a value is a literal of several lines, or a call of which such a literal is the only argument: `frozenset({…})`."""
    if isinstance(value, ast.Call) and len(value.args) == 1 and not value.keywords:
        value = value.args[0]
    return isinstance(value, ast.Tuple | ast.List | ast.Set | ast.Dict) and value.lineno != value.end_lineno


def _dataclass_decorators(module: Source) -> Iterator[ast.expr]:
    for node in module.statements:
        if isinstance(node, ast.ClassDef):
            yield from (one for one in node.decorator_list if _called(one) == "dataclass")


def _called(node: ast.expr) -> str:
    """The last part of the name of what is called, or of a name itself."""
    return ast.unparse(node.func if isinstance(node, ast.Call) else node).rpartition(".")[2]


def _changeable_constants(tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in tree.body:
        if isinstance(node, ast.AnnAssign):
            targets = [] if "Final" in ast.unparse(node.annotation) else [node.target]
        else:
            targets = node.targets if isinstance(node, ast.Assign) else []
        if targets and isinstance(node.value, ast.Call) and _called(node.value) in _TYPE_VARIABLES:
            continue
        for name in (name for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)):
            if isinstance(name.ctx, ast.Store) and _CONSTANT.fullmatch(name.id):
                yield name.id, node.lineno
