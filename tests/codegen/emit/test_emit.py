"""The machine's files: what they say, that they are Python, and that nothing of a document is code in them."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from mcpfactory_codegen.describe.tools import make_api_tools
from mcpfactory_codegen.emit.python import literal
from mcpfactory_codegen.ir import (
    Api,
    ApiBody,
    ApiOperation,
    ApiParameter,
    ApiSecurityScheme,
    Encoding,
    Response,
)
from mcpfactory_codegen.naming import name_api
from mcpfactory_codegen.servers.server_files import format_python_files
from mcpfactory_runtime.upstream.operation import OAuthFlow
from tests.codegen.emit.apis import BOOKSHOP, files_of
from tests.codegen.server_checks import check_types
from tests.subtest_table import parametrize_subtests

ROOT = Path(__file__).parents[3]
TOOLS = "src/bookshop_mcp/_generated/tools/books.py"


def test_the_files_are_those_of_the_layout() -> None:
    assert set(files_of(BOOKSHOP)) == {
        "src/bookshop_mcp/_generated/__init__.py",
        "src/bookshop_mcp/_generated/api.py",
        "src/bookshop_mcp/_generated/manifest.json",
        "src/bookshop_mcp/_generated/tools/__init__.py",
        TOOLS,
        "tests/_generated/__init__.py",
        "tests/_generated/cases.json",
        "tests/_generated/test_tools.py",
    }


def test_an_operation_is_a_record_and_a_typed_function() -> None:
    text = format_python_files(files_of(BOOKSHOP))[TOOLS]
    assert (
        """GET_BOOK = Operation(
    "GET",
    "/books/{bookId}",
    parameters=(
        Parameter("bookId", "path", "bookId"),
        Parameter("fields", "query", "fields", explode=False),
        Parameter("x_request_id", "header", "X-Request-Id"),
    ),
    security=(("apiKey",),),
)
"""
        in text
    )
    assert (
        '''async def get_book(
    api: Upstream, /, *, bookId: int, fields: list[str] | Unset = UNSET, x_request_id: str | Unset = UNSET
) -> ToolResult:
    """Get a book.

    GET /books/{bookId}

    Args:
        api: the connection to the API.
        bookId: `bookId` in the path.
        fields: `fields` in the query.
        x_request_id: `X-Request-Id` in the headers.
    """
    return await api.send(GET_BOOK, {"bookId": bookId, "fields": fields, "x_request_id": x_request_id})
'''
        in text
    )


def test_the_manifest_lists_the_tools_as_models_see_them() -> None:
    manifest = json.loads(files_of(BOOKSHOP)["src/bookshop_mcp/_generated/manifest.json"])
    assert manifest["manifest"] == 1
    assert manifest["server"] == {
        "name": "bookshop",
        "version": "0.1.0",
        "title": "Bookshop",
        "instructions": "Books, and who wrote them.",
    }
    tools = make_api_tools(BOOKSHOP, name_api(BOOKSHOP)).tools
    assert manifest["tools"] == [
        {**tool.listed(), "handler": f"books:{tool.name}", "operation": tool.key} for tool in tools
    ]


def test_the_order_of_the_document_only_reorders() -> None:
    turned = replace(BOOKSHOP, operations=BOOKSHOP.operations[::-1])
    before, after = files_of(BOOKSHOP), files_of(turned)
    assert before.keys() == after.keys()
    assert {path: sorted(text) for path, text in before.items()} == {path: sorted(text) for path, text in after.items()}


def test_generated_code_passes_type_checker_and_linter(tmp_path: Path) -> None:
    for path, text in format_python_files(files_of(BOOKSHOP)).items():
        place = tmp_path / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, "utf-8")
    (tmp_path / "src/bookshop_mcp/__init__.py").write_text('"""A package."""\n', "utf-8")
    check_types(tmp_path, "src")
    for command in (
        ["ruff", "check", f"--config={ROOT / 'pyproject.toml'}", "--no-cache", "--ignore=TID252", "src"],
        ["ruff", "check", "--isolated", "--no-cache", "--select=E,F,I,N,A,B,W,UP,RUF", "--line-length=120", "src"],
        ["ruff", "format", "--isolated", "--no-cache", "--line-length=120", "--check", "."],
    ):
        ran = subprocess.run(
            [sys.executable, "-m", *command], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr


# --- a hostile document ---

HOSTILE = [
    '"; import os; os.system("touch /tmp/owned") #',
    '"""\nimport os\n"""',
    "'''\nraise SystemExit(3)\n'''",
    "a\\",
    'ends with a quote"',
    "line\nbreak\r\n\tand\x00nul\x1b[31m",
    "{{ 7 * 7 }}{% raw %}{{ cycler.__init__ }}",
    "\u202eevil\u2066\u200b\ufeff",
    "\ud800 lone surrogate",
    "$(touch /tmp/owned)`id`",
    "-->\n</script><script>alert(1)</script>",
    "# coding: rot13",
    "%s {0} \\N{BULLET} \\x41 \\u0041",
]

NODES = (
    "Module Expr Constant ImportFrom alias Assign Name Store Load Call keyword Tuple AsyncFunctionDef FunctionDef arguments "
    "arg Return Await Dict Attribute Subscript BinOp BitOr"
)


def _poisoned(value: Any, text: str) -> Any:
    """The record with every text in it replaced, apart from those that the reader chooses from a closed list."""
    if isinstance(value, str):
        return text
    if isinstance(value, tuple):
        return tuple(_poisoned(item, text) for item in value)
    if isinstance(value, dict):
        return {
            (text if key not in KEYWORDS else key): (item if key in CLOSED else _poisoned(item, text))
            for key, item in value.items()
        }
    if is_dataclass(value) and not isinstance(value, type):
        return replace(
            value,
            **{
                field.name: _poisoned(getattr(value, field.name), text)
                for field in fields(value)
                if field.name not in CLOSED
            },
        )
    return value


RECORDS = {"Operation", "Parameter", "Body", "Field", "OAuthFlow", "SecurityScheme"}
CLOSED = {"place", "kind", "style", "level", "type", "status", "required", "grant"}
KEYWORDS = {"type", "properties", "items", "description", "default", "enum", "const", "title", "required", "format"}


def hostile_api(text: str) -> Api:
    schema = {
        "type": "object",
        "title": "t",
        "description": "d",
        "properties": {"p": {"type": "string", "description": "d", "default": "d", "enum": ["a", "b"]}},
    }
    operation = ApiOperation(
        "POST",
        "/p",
        "pointer",
        operation_id="id",
        summary="s",
        description="d",
        tags=("t",),
        parameters=(
            ApiParameter(
                "query", "q", {"type": "string", "description": "d", "const": "c"}, description="d", example="e"
            ),
            ApiParameter("header", "h", {"type": "string"}, content_type="c"),
        ),
        body=ApiBody("multipart/form-data", schema, description="d", encoding={"p": Encoding("c")}),
        responses=(Response("200", "d", "c", schema),),
        security=(("s",),),
        scopes=(("o", ("read",)),),
        server="s",
        external_docs="e",
    )
    api = Api(
        "t",
        version="v",
        description="d",
        servers=("s",),
        operations=(operation, replace(operation, method="GET", body=ApiBody("application/json", schema))),
        schemas={"S": schema},
        security_schemes=(
            ApiSecurityScheme("s", "apiKey", "header", "p", "d", "n"),
            ApiSecurityScheme("o", "oauth2", flows=(OAuthFlow("discovery", "t", "a", "d", "r", "m"),), links=("l",)),
        ),
        tag_descriptions={"t": "d"},
    )
    poisoned: Api = _poisoned(api, text)
    assert poisoned.title == text
    assert poisoned.operations[0].parameters[0].name == text
    return replace(poisoned, operations=(replace(poisoned.operations[0], method="GET"), poisoned.operations[1]))


@pytest.fixture(scope="module")
def hostile() -> dict[str, dict[str, str]]:
    """The files of each hostile API, formatted in one run."""
    found = format_python_files(
        {
            f"{number}/{path}": content
            for number, text in enumerate(HOSTILE)
            for path, content in files_of(hostile_api(text)).items()
        }
    )
    return {
        text: {path.removeprefix(start): content for path, content in found.items() if path.startswith(start)}
        for text, start in ((text, f"{number}/") for number, text in enumerate(HOSTILE))
    }


@parametrize_subtests("text", HOSTILE)
def test_a_hostile_document_becomes_data_and_nothing_else(text: str, hostile: dict[str, dict[str, str]]) -> None:
    for path, content in hostile[text].items():
        content.encode("utf-8")
        if path.startswith("src/") and path.endswith(".py"):
            tree = ast.parse(content)
            assert {type(node).__name__ for node in ast.walk(tree)} <= set(NODES.split()), path
            calls = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
            assert calls <= RECORDS | {"Upstream", "api.send"}, calls
            assert not set(content) & set("\u202e\u2066\u200b\ufeff\x00\x1b")
        elif path.endswith(".json"):
            json.loads(content)


IMPORT_ALL = """
import importlib, pathlib, sys
for root in sorted(pathlib.Path.cwd().iterdir()):
    sys.path.insert(0, str(root / "src"))
    for file in root.rglob("_generated/**/*.py"):
        if file.is_relative_to(root / "src"):
            importlib.import_module(".".join(file.relative_to(root / "src").with_suffix("").parts))
    for name in [name for name in sys.modules if name.split(".")[0] == "bookshop_mcp"]:
        del sys.modules[name]
    sys.path.pop(0)
    print(root.name)
"""


def test_the_modules_of_a_hostile_document_can_be_imported_and_do_nothing(
    hostile: dict[str, dict[str, str]], tmp_path: Path
) -> None:
    for number, files in enumerate(hostile.values()):
        for path, content in {**files, "src/bookshop_mcp/__init__.py": '"""A package."""\n'}.items():
            place = tmp_path / str(number) / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(content, "utf-8")
    command = [sys.executable, "-c", IMPORT_ALL]
    ran = subprocess.run(command, cwd=tmp_path, env={}, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert sorted(ran.stdout.split()) == sorted(map(str, range(len(HOSTILE)))), ran.stdout


@parametrize_subtests("text", [text for text in HOSTILE if "\x00" not in text and "\ud800" not in text])
def test_a_literal_is_the_text_that_went_in(text: str) -> None:
    assert ast.literal_eval(literal(text)) == text
    value = (text, (text,), True, None, 3, [text, [2.5]], {text: {text: []}})
    assert ast.literal_eval(literal(value)) == value


def test_only_plain_values_are_written_as_literals() -> None:
    class Sly(str):
        __slots__ = ()

        def __repr__(self) -> str:
            return "__import__('os')"

    for value in (Sly("a"), [Sly("a")], {Sly("a"): 1}, object()):
        with pytest.raises(TypeError):
            literal(value)


@pytest.mark.parametrize(("kinds", "said"), [(("text/xml",), True), (("text/xml", "application/json"), False)])
def test_an_operation_of_xml_alone_knows_the_lists_of_its_answer(kinds: tuple[str, ...], said: bool) -> None:
    schema = {"type": "object", "properties": {"Key": {"type": "array"}}}
    lists = {"text/xml": (("", "Key"),)}
    answers = tuple(Response(f"20{at}", "", kind, schema, lists=lists.get(kind, ())) for at, kind in enumerate(kinds))
    files = files_of(Api("S3", operations=(ApiOperation("GET", "/", "", responses=answers),)))
    written = "".join(text for name, text in files.items() if "/tools/" in name)
    assert ("lists=(('', 'Key'),)" in written) is said
