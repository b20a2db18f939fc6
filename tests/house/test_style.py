"""One style throughout the four wheels, as far as ruff has no rule for it. Each failure says what to write."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

_CONSTANT = re.compile(r"_{0,2}[A-Z][A-Z0-9_]*")
_TYPE_VARIABLES = {"TypeVar", "ParamSpec", "TypeVarTuple", "NewType"}


def test_every_dataclass_has_slots(modules):
    """Slots save memory and refuse a misspelled attribute."""
    without = [
        f"{module.path}:{decorator.lineno}: write `slots=True`, or the reason behind it: `# no slots: …`"
        for module in modules
        for decorator in _dataclass_decorators(module.tree)
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


def _dataclass_decorators(tree: ast.Module) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
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
