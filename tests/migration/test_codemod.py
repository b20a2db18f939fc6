"""What a source of FastMCP or of the official SDK becomes: text in, text out."""

from __future__ import annotations

import ast

import pytest

from mcpfactory_pipeline.migration import migrate_source

SDK = "from mcp.server.fastmcp import FastMCP\n"
CASES = {
    "import": ("from fastmcp import FastMCP\nmcp = FastMCP('a')\n", "from mcpfactory_runtime import Server\nmcp = Server('a')\n"),
    "import as": ("from fastmcp import FastMCP as F\nmcp = F('a')\n", "from mcpfactory_runtime import Server as F\nmcp = F('a')\n"),
    "several": (
        "from mcp.server.mcpserver import Context, MCPServer  # both\nm = MCPServer('a')  # mine\n",
        "from mcpfactory_runtime import Context, Server  # both\nm = Server('a')  # mine\n",
    ),
    "a taken name": (
        SDK + "class Server: ...\nmcp = FastMCP('a')\n",
        "from mcpfactory_runtime import Server as McpServer\nclass Server: ...\nmcp = McpServer('a')\n",
    ),
    "no name": (SDK + "mcp = FastMCP()\n", 'from mcpfactory_runtime import Server\nmcp = Server("mcp-server")\n'),
    "dropped": (
        SDK + "mcp = FastMCP('a', debug=True, instructions='b')\n",
        "from mcpfactory_runtime import Server\nmcp = Server('a', instructions='b')\n",
    ),
    "tool": (
        SDK + "mcp = FastMCP('a')\n@mcp.tool()\ndef f() -> str:\n    '''FastMCP.'''  # é\n    return 'x'\n",
        "from mcpfactory_runtime import Server\nmcp = Server('a')\n@mcp.tool()\ndef f() -> str:\n    '''FastMCP.'''  # é\n    return 'x'\n",
    ),
    "structured": (
        SDK + "mcp = FastMCP('é')\n@mcp.tool(structured_output=False)\ndef f(): ...\n",
        "from mcpfactory_runtime import Server\nmcp = Server('é')\n@mcp.tool(structured=False)\ndef f(): ...\n",
    ),
    "annotations": (
        SDK + "from mcp.types import ToolAnnotations\nmcp = FastMCP('a')\n@mcp.tool(annotations=ToolAnnotations(read_only_hint=True))\ndef f(): ...\n",
        "from mcpfactory_runtime import Server\nmcp = Server('a')\n@mcp.tool(annotations=dict(readOnlyHint=True))\ndef f(): ...\n",
    ),
    "resource": (
        SDK + "mcp = FastMCP('a')\n@mcp.resource(uri='x://y')\ndef f(): ...\n",
        "from mcpfactory_runtime import Server\nmcp = Server('a')\n@mcp.resource('x://y', mime_type=\"text/plain\")\ndef f(): ...\n",
    ),
    "run": (SDK + "mcp = FastMCP('a')\nmcp.run(transport='stdio')\n", "from mcpfactory_runtime import Server\nmcp = Server('a')\nmcp.run_stdio()\n"),
    "run http": (
        "from fastmcp import FastMCP\nmcp = FastMCP('a')\nmcp.run(transport='http', host='h', port=1)\n",
        "from mcpfactory_runtime import Server\nmcp = Server('a')\nmcp.run_http(host='h', port=1)\n",
    ),
    "mount": (
        "from fastmcp import FastMCP\na = FastMCP('a')\nb = FastMCP('b')\na.mount(server=b, namespace='n')\n",
        "from mcpfactory_runtime import Server\na = Server('a')\nb = Server('b')\na.mount(b, prefix='n')\n",
    ),
    "context": (
        "from mcp.server.mcpserver import Context, MCPServer\nm = MCPServer[int]('a')\n@m.tool()\ndef f(ctx: Context[int, str]) -> int:\n"
        "    ctx.info('x')\n    return ctx.request_context.lifespan_context.size\n",
        "from mcpfactory_runtime import Context, Server\nm = Server('a')\n@m.tool()\ndef f(ctx: Context) -> int:\n    ctx.info('x')\n    return ctx.state.size\n",
    ),
    "image": (
        SDK + "from mcp.server.fastmcp import Image\ndef f():\n    return Image(data=b'', format='png')\n",
        "from mcpfactory_runtime import Server\nfrom mcpfactory_runtime import Image\ndef f():\n    return Image(b'', mime_type=\"image/png\")\n",
    ),
    "messages": (
        "from mcp.server.mcpserver.prompts.base import AssistantMessage, UserMessage\ndef f():\n    return [UserMessage('x'), AssistantMessage('y')]\n",
        "from mcpfactory_runtime import Message\ndef f():\n    return [Message('x'), Message('y', role=\"assistant\")]\n",
    ),
    "typed dicts": (
        "from typing import Any, TypedDict\n" + SDK + "class A(TypedDict):\n    b: Any\n",
        "from typing import Any\nfrom typing_extensions import TypedDict\nfrom mcpfactory_runtime import Server\nclass A(TypedDict):\n    b: Any\n",
    ),
    "errors": (
        "from fastmcp.exceptions import ToolError\ndef f():\n    raise ToolError('x')\n",
        "from mcpfactory_runtime import ToolError\ndef f():\n    raise ToolError('x')\n",
    ),
}  # fmt: skip
LEFT = {
    "auth": ("from fastmcp import FastMCP\nm = FastMCP('a', auth=x)\n", 2),
    "client": ("from fastmcp import Client, FastMCP\n", 1),
    "module": ("import fastmcp\nfrom fastmcp import FastMCP\n", 1),
    "elicit": ("from fastmcp import Context\nasync def f(ctx: Context):\n    await ctx.elicit('x', str)\n", 3),
    "sse": ("from fastmcp import FastMCP\nm = FastMCP('a')\nm.run(transport='sse')\n", 3),
    "unpacked": ("from fastmcp import FastMCP\nm = FastMCP('a', **x)\n", 2),
    "transform": ("from fastmcp import FastMCP\nm = FastMCP('a')\nm.add_transform(x)\n", 3),
    "version": ("from fastmcp import FastMCP\nm = FastMCP('a')\n@m.tool(version='1')\ndef f(): ...\n", 3),
    "a plain class": (
        "from fastmcp import FastMCP\nm = FastMCP('a')\nclass A:\n    b: int\n@m.tool\ndef f() -> list[A]: ...\ndef g() -> A: ...\n",
        6,
    ),
    "a type in a text": ("from fastmcp import FastMCP\ndef f(x: 'FastMCP'): ...\n", 2),
}  # fmt: skip


@pytest.mark.parametrize(("before", "after"), CASES.values(), ids=CASES)
def test_the_usual_forms_become_those_of_the_runtime_and_the_rest_stays(before, after):
    found = migrate_source(before)
    assert found.after == after
    assert found.complete
    ast.parse(found.after)
    assert migrate_source(after).after == after


@pytest.mark.parametrize(("text", "line"), LEFT.values(), ids=LEFT)
def test_what_has_no_equal_is_listed_by_its_line(text, line):
    found = migrate_source(text)
    assert [step.line for step in found.left] == [line]
    assert not found.complete


def test_what_is_left_out_is_told():
    found = migrate_source("from fastmcp import FastMCP\nm = FastMCP('a')\n@m.tool(tags={'x'})\ndef f(): ...\n")
    assert [step.line for step in found.noted] == [3]
    assert "@m.tool()" in found.after


def test_other_sources_stay_as_they_are():
    for text in ("", "import os\n", "from .mcp import FastMCP\n", "class FastMCP: ...\nmcp = FastMCP('a')\n"):
        assert migrate_source(text).after == text
    with pytest.raises(SyntaxError):
        migrate_source("def f(:\n")
