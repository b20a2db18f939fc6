"""The MCP server everything, which registers all features."""

from __future__ import annotations

from pathlib import Path

from mcpfactory_runtime import Server

from . import __version__, changes, content, prompts, questions, resources, tasks

server = Server(
    "everything",
    version=__version__,
    title="Everything",
    instructions="A fixture for testing clients: every tool shows one feature of the protocol.",
)

_READS = {"readOnlyHint": True}

for reading in (*content.TOOLS, content.test_x_mcp_header):
    server.tool(annotations=_READS)(reading)
for tool in (*questions.TOOLS, *changes.TOOLS):
    server.tool(tool)
server.tool(input_schema=content.JSON_SCHEMA, annotations=_READS)(content.json_schema_2020_12_tool)
tasks.add_to(server)
resources.add_to(server)
server.add_skills(Path(__file__).parent / "skills")
for prompt in prompts.PROMPTS:
    server.prompt(prompt)
server.completion(prompts.complete)
server.offer(dialect="standard")  # clients under test compare the schemas


def main() -> None:
    """Serve MCP on stdin and stdout, or over HTTP with --http."""
    server.run()
