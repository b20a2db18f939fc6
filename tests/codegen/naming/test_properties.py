"""What holds for every API: names are total, unique, valid, and depend on nothing but the operation itself."""

from __future__ import annotations

import keyword
import random
import re
from collections import defaultdict

from hypothesis import given, settings
from hypothesis import strategies as st

from mcpfactory_codegen.inputs import Input, name_arguments
from mcpfactory_codegen.ir import Api, ApiOperation, ApiSecurityScheme
from mcpfactory_codegen.naming import name_api
from mcpfactory_codegen.naming.environment_variables import name_variables
from mcpfactory_codegen.naming.tools import name_tools
from tests.codegen.naming.strategies import APIS, INPUTS, OPERATIONS, SCHEMES

TOOL = re.compile(r"[a-z0-9_-]{1,64}\Z")
VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*\Z")


def api(operations: list[ApiOperation]) -> Api:
    return Api("Shop", operations=tuple(operations))


@given(APIS)
def test_every_operation_gets_one_valid_name_of_its_own(operations: list[ApiOperation]) -> None:
    names = name_api(api(operations)).operations
    assert names.keys() == {operation.key for operation in operations}
    assert len({one.tool for one in names.values()}) == len(operations)
    assert all(TOOL.match(one.tool) for one in names.values())


@given(APIS)
def test_functions_constants_and_modules_are_python_and_unique_in_their_module(operations: list[ApiOperation]) -> None:
    names = name_api(api(operations)).operations.values()
    modules = defaultdict(list)
    for one in names:
        modules[one.module].append(one)
        for text in (one.module, one.function, one.constant):
            assert text.isidentifier(), text
            assert text.isascii(), text
            assert not keyword.iskeyword(text), text
    for members in modules.values():
        assert len({one.function for one in members}) == len(members)
        assert len({one.constant for one in members}) == len(members)


@given(APIS, st.randoms(use_true_random=False))
def test_the_order_of_the_document_changes_no_name(operations: list[ApiOperation], shuffler: random.Random) -> None:
    shuffled = operations[:]
    shuffler.shuffle(shuffled)
    before, after = name_api(api(operations)), name_api(api(shuffled))
    assert {**before.operations} == {**after.operations}


@given(APIS, OPERATIONS)
def test_with_the_published_names_pinned_no_addition_changes_any_of_them(
    operations: list[ApiOperation], added: ApiOperation
) -> None:
    before = name_tools(operations, {})
    after = name_tools([added, *(one for one in operations if one.key != added.key)], before)
    assert {key: after[key] for key in before} == before


@given(INPUTS)
def test_arguments_are_identifiers_and_unique(items: list[Input]) -> None:
    names = name_arguments(items, ["LIMIT"])
    assert names.keys() == {item.slot for item in items}
    assert len(set(names.values())) == len(items)
    for name in names.values():
        assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,63}", name), name
        assert not keyword.iskeyword(name)
        assert name not in {"api", "LIMIT"}


@settings(max_examples=50)
@given(SCHEMES, st.sampled_from(["bookshop", "a-b", "x9", "api"]))
def test_variables_are_valid_and_no_two_schemes_share_one(schemes: list[ApiSecurityScheme], server: str) -> None:
    named = name_variables(schemes, server)
    variables = [variable for group in named.values() for variable in group]
    assert list(named) == [scheme.name for scheme in schemes]
    assert len(set(variables)) == len(variables)
    assert all(VARIABLE.match(variable) for variable in variables)
