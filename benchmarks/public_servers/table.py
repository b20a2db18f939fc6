"""The servers: what they are, where they come from, how they are started. To add one, add its row; `page` then asks for verdicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["SERVERS", "Server"]

SDK: Final = "2.3.0"
FASTMCP: Final = "4.1.2"
REFERENCE: Final = "2026.8.31"
OLDER_SDK: Final = ("mcp==1.30.*",)  # what servers need that pin no SDK and were written for its first major version


@dataclass(frozen=True, slots=True)
class Server:
    """A public server.

    Attributes:
        name: in the tables.
        language: that it is written in, whatever its package comes from.
        registry: `npm` or `pypi`.
        package: its name there.
        version: that is installed.
        command: words that start it; in them stand {node}, {package} (its folder),
            {bin} (the programs of its environment), {python}, {source} (its source distribution) and {playground}.
        environ: variables that it wants, `NAME=VALUE`; keys are dummies.
        beside: requirements that are installed with a package of the Python index.
    """

    name: str
    language: str
    registry: str
    package: str
    version: str
    command: tuple[str, ...]
    environ: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()


def _npm(
    name: str, package: str, version: str, *command: str, language: str = "TypeScript", environ: tuple[str, ...] = ()
) -> Server:
    """A server of npm; the first word of its command is its program below the package's folder."""
    program, *rest = command
    return Server(name, language, "npm", package, version, ("{node}", "{package}/" + program, *rest), environ)


def _pypi(
    name: str,
    package: str,
    version: str,
    *command: str,
    language: str = "Python",
    environ: tuple[str, ...] = (),
    beside: tuple[str, ...] = (),
) -> Server:
    """A server of the Python index; its command is the program of its package's name, unless the words say another."""
    return Server(name, language, "pypi", package, version, command or (f"{{bin}}/{package}",), environ, beside)


_KUBECONFIG: Final = "KUBECONFIG={playground}/kubeconfig.json"

SERVERS: Final[tuple[Server, ...]] = (
    # what the SDKs show
    _pypi(
        "python-sdk-everything",
        "mcp",
        SDK,
        "{python}",
        "-c",
        "import sys; sys.path.insert(0, '{source}/examples/servers/everything-server'); "
        "from mcp_everything_server.server import mcp; mcp.run()",
        beside=("click", "httpx2"),
    ),
    _pypi(
        "fastmcp-everything",
        "fastmcp",
        FASTMCP,
        "{bin}/fastmcp",
        "run",
        "{source}/tests/conformance/server.py:server",
        "--no-banner",
        beside=("fastmcp-tasks",),
    ),
    _npm(
        "typescript-sdk-example",
        "@modelcontextprotocol/sdk",
        "1.32.2",
        "dist/esm/examples/server/mcpServerOutputSchema.js",
    ),
    # the reference servers
    _npm("everything", "@modelcontextprotocol/server-everything", REFERENCE, "dist/index.js"),
    _npm("filesystem", "@modelcontextprotocol/server-filesystem", REFERENCE, "dist/index.js", "{playground}"),
    _npm(
        "memory",
        "@modelcontextprotocol/server-memory",
        REFERENCE,
        "dist/index.js",
        environ=("MEMORY_FILE_PATH={playground}/memory.jsonl",),
    ),
    _npm("sequential-thinking", "@modelcontextprotocol/server-sequential-thinking", REFERENCE, "dist/index.js"),
    _pypi("fetch", "mcp-server-fetch", "2026.10.24"),
    _pypi("git", "mcp-server-git", "2026.10.19", "{bin}/mcp-server-git", "--repository", "{playground}"),
    _pypi("time", "mcp-server-time", "2026.10.19"),
    _pypi(
        "sqlite",
        "mcp-server-sqlite",
        "2025.4.25",
        "{bin}/mcp-server-sqlite",
        "--db-path",
        "{playground}/sqlite.db",
        beside=OLDER_SDK,
    ),
    # TypeScript and JavaScript
    _npm("context7", "@upstash/context7-mcp", "4.1.1", "dist/index.js"),
    _npm("playwright", "@playwright/mcp", "0.0.83", "cli.js", "--headless"),
    _npm("notion", "@notionhq/notion-mcp-server", "2.5.2", "bin/cli.mjs", environ=("NOTION_TOKEN=ntn_dummy",)),
    _npm("tavily", "tavily-mcp", "0.2.22", "build/index.js", environ=("TAVILY_API_KEY=tvly-dummy",)),
    _npm("firecrawl", "firecrawl-mcp", "3.26.0", "dist/index.js", environ=("FIRECRAWL_API_KEY=fc-dummy",)),
    _npm("brave-search", "@brave/brave-search-mcp-server", "2.1.4", "dist/index.js", environ=("BRAVE_API_KEY=dummy",)),
    _npm("figma", "figma-developer-mcp", "0.13.2", "dist/bin.js", "--stdio", environ=("FIGMA_API_KEY=figd-dummy",)),
    _npm("eslint", "@eslint/mcp", "0.3.13", "src/mcp-cli.js", language="JavaScript"),
    # Python
    _pypi("duckduckgo", "duckduckgo-mcp-server", "0.7.0"),
    _pypi("arxiv", "arxiv-mcp-server", "0.8.2"),
    _pypi("aws-documentation", "awslabs.aws-documentation-mcp-server", "1.2.3"),
    _pypi("calculator", "mcp-server-calculator", "0.2.1"),
    _pypi(
        "motherduck",
        "mcp-server-motherduck",
        "1.1.0",
        "{bin}/mcp-server-motherduck",
        "--db-path",
        ":memory:",
        "--read-write",
    ),
    # Go
    _npm("kubernetes", "kubernetes-mcp-server", "0.0.67", "bin/index.js", language="Go", environ=(_KUBECONFIG,)),
    _npm(
        "toolbox",
        "@toolbox-sdk/server",
        "1.12.0",
        "bin/run.js",
        "--prebuilt=sqlite",
        "--stdio",
        language="Go",
        environ=("SQLITE_DATABASE={playground}/toolbox.db",),
    ),
    _pypi("grafana", "mcp-grafana", "2.1.1", language="Go", environ=("GRAFANA_URL=http://127.0.0.1:9",)),
    # Rust; newer versions of its package have no MCP server
    _npm("codex", "@openai/codex", "0.98.0", "bin/codex.js", "mcp-server", language="Rust"),
    # C#
    _npm("azure", "@azure/mcp", "2.0.5", "index.js", "server", "start", language="C#"),
)
