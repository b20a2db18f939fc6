"""MCP clients that a server can be installed into, with one row per client.

`docs/reference/clients.md` is generated from these rows. A path begins with `~` (the home folder) or `{config}` (the
settings folder of programs: `~/.config` or `$XDG_CONFIG_HOME`, `~/Library/Application Support`, `%APPDATA%`). A path in
a project is relative to the project folder.

An entry is a template with placeholders. If a placeholder has no value, the entry omits the key. Placeholders with an
unusual meaning:

- `<command line>`: command and arguments in one list
- `<literals>`: environment variables with plain values
- `<names>`: names of the variables that the client passes on
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

Format = Literal["json", "toml", "yaml", "yaml list"]
System = Literal["linux", "mac", "windows"]


@dataclass(frozen=True, slots=True)
class ClientConfigFile:
    """A client's configuration file: its paths, its format, and the content of a new file.

    The first existing path is used. If no path exists, the first path is used. `systems` replaces `paths` on some
    operating systems.
    """

    paths: tuple[str, ...]
    format: Format = "json"
    blank: str = "{}\n"
    systems: Mapping[System, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ConfigLayout:
    """Location and form of servers in a client's file. `http` is None if the client does not support URLs."""

    container: tuple[str, ...]
    stdio: Mapping[str, Any]
    http: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class ClientProfile:
    """An MCP client.

    Attributes:
        user: file for all projects of a user.
        project: file in a project; None if the client does not support project files.
        forms: layouts of the file. A later layout is used only if the file already contains the container of that
            layout.
        reference: notation for a reference to the environment variable `VAR`; None without support for references.
        header: value of the `Authorization` header, with a reference to `VAR`; None without support for references.
        folder: value for the project folder, such as `.`; None if the client cannot start servers from a project.
        gui: True if the client is started from a desktop, without the PATH of a shell.
        moved: environment variable that sets another folder for the user's file.
    """

    id: str
    title: str
    user: ClientConfigFile
    project: ClientConfigFile | None
    forms: tuple[ConfigLayout, ...]
    reference: str | None = None
    header: str | None = None
    folder: str | None = None
    gui: bool = False
    moved: str | None = None
    note: str = ""
    project_note: str = ""


_STDIO: Final = {"command": "<command>", "args": "<args>", "env": "<env>"}
_TYPED_STDIO: Final = {"type": "stdio", **_STDIO}
_PLAIN_HTTP: Final = {"url": "<url>", "headers": "<headers>"}
_TYPED_HTTP: Final = {"type": "http", **_PLAIN_HTTP}
_SERVERS: Final = ("mcpServers",)


def _project(path: str) -> ClientConfigFile:
    return ClientConfigFile((path,))


CLIENTS: Final = (
    ClientProfile(
        "claude-desktop", "Claude Desktop",
        ClientConfigFile(("{config}/Claude/claude_desktop_config.json",)), None,
        (ConfigLayout(_SERVERS, _STDIO, None),),
        gui=True,
        note="Quit and start it again. URLs are added in the app: Settings, Connectors.",
    ),
    ClientProfile(
        "claude-code", "Claude Code",
        ClientConfigFile(("~/.claude.json",)), _project(".mcp.json"),
        (ConfigLayout(_SERVERS, _TYPED_STDIO, _TYPED_HTTP),),
        reference="${VAR:-}", header="Bearer ${VAR:-}", folder=".", moved="CLAUDE_CONFIG_DIR",
        project_note="The client asks about the servers of a project when you open the project.",
    ),
    ClientProfile(
        "cursor", "Cursor",
        ClientConfigFile(("~/.cursor/mcp.json",)), _project(".cursor/mcp.json"),
        (ConfigLayout(_SERVERS, _TYPED_STDIO, _PLAIN_HTTP),),
        reference="${env:VAR}", header="Bearer ${env:VAR}", folder="${workspaceFolder}", gui=True,
        project_note="Enable servers of a project in its settings: MCP.",
    ),
    ClientProfile(
        "vscode", "VS Code",
        ClientConfigFile(("{config}/Code/User/mcp.json",)), _project(".vscode/mcp.json"),
        (ConfigLayout(("servers",), _TYPED_STDIO, _TYPED_HTTP),),
        reference="${env:VAR}", folder="${workspaceFolder}", gui=True, note="It logs in to URLs itself; headers cannot refer to the environment.",
    ),
    ClientProfile(
        "windsurf", "Windsurf",
        ClientConfigFile(("~/.codeium/windsurf/mcp_config.json",)), None,
        (ConfigLayout(_SERVERS, _STDIO, {"serverUrl": "<url>", "headers": "<headers>"}),),
        reference="${env:VAR}", header="Bearer ${env:VAR}", gui=True,
        note="Versions that are named Devin Desktop read another file: --client devin.",
    ),
    ClientProfile(
        "devin", "Devin Desktop and CLI",
        ClientConfigFile(
            ("~/.config/devin/mcp_config.json",),
            systems={"linux": ("{config}/devin/mcp_config.json",), "windows": ("{config}/devin/mcp_config.json",)},
        ),
        _project(".devin/mcp_config.json"),
        (ConfigLayout(_SERVERS, _STDIO, {"url": "<url>", "transport": "http", "headers": "<headers>"}),),
        folder=".", gui=True,
    ),
    ClientProfile(
        "zed", "Zed",
        ClientConfigFile(("~/.config/zed/settings.json",), systems={"linux": ("{config}/zed/settings.json",), "windows": ("{config}/Zed/settings.json",)}),
        _project(".zed/settings.json"),
        (ConfigLayout(("context_servers",), {"source": "custom", **_STDIO}, {"source": "custom", **_TYPED_HTTP}),),
        folder=".", gui=True, project_note="Settings of a project apply only in trusted projects.",
    ),
    ClientProfile(
        "codex", "Codex CLI",
        ClientConfigFile(("~/.codex/config.toml",), "toml", ""), ClientConfigFile((".codex/config.toml",), "toml", ""),
        (
            ConfigLayout(
                ("mcp_servers",),
                {
                    "command": "<command>", "args": "<args>", "env": "<literals>", "env_vars": "<names>",
                    "startup_timeout_sec": 60,
                },
                {"url": "<url>", "bearer_token_env_var": "<token variable>"},
            ),
        ),
        folder=".", moved="CODEX_HOME", project_note="Files of a project apply only in trusted projects.",
    ),
    ClientProfile(
        "gemini", "Gemini CLI",
        ClientConfigFile(("~/.gemini/settings.json",)), _project(".gemini/settings.json"),
        (ConfigLayout(_SERVERS, _STDIO, {"httpUrl": "<url>", "headers": "<headers>"}),),
        reference="${VAR}", header="Bearer ${VAR}", folder=".", project_note="Settings of a project apply only in trusted folders.",
    ),
    ClientProfile(
        "antigravity", "Antigravity",
        ClientConfigFile(("~/.gemini/config/mcp_config.json",)), _project(".agents/mcp_config.json"),
        (ConfigLayout(_SERVERS, _STDIO, {"serverUrl": "<url>", "headers": "<headers>"}),),
        gui=True,
    ),
    ClientProfile(
        "goose", "Goose",
        ClientConfigFile(
            ("~/.config/goose/config.yaml",), "yaml", "",
            {"linux": ("{config}/goose/config.yaml",), "windows": ("{config}/Block/goose/config/config.yaml",)},
        ),
        None,
        (
            ConfigLayout(
                ("extensions",),
                {
                    "enabled": True, "type": "stdio", "name": "<name>", "cmd": "<command>", "args": "<args>",
                    "envs": "<literals>", "env_keys": "<names>", "timeout": 300,
                },
                {
                    "enabled": True, "type": "streamable_http", "name": "<name>", "uri": "<url>", "headers": "<headers>",
                    "env_keys": "<names>", "timeout": 300,
                },
            ),
        ),
        header="Bearer ${VAR}", gui=True, note="`env_keys` are read from the environment, the system's keyring or `secrets.yaml`.",
    ),
    ClientProfile(
        "continue", "Continue",
        ClientConfigFile(("~/.continue/config.yaml",), "yaml list", "name: Local Assistant\nversion: 1.0.0\nschema: v1\n"),
        _project(".continue/mcpServers/mcpfactory.json"),
        (
            ConfigLayout(
                _SERVERS, {"name": "<name>", "type": "stdio", **_STDIO},
                {"name": "<name>", "type": "streamable-http", "url": "<url>", "requestOptions": {"headers": "<headers>"}},
            ),
        ),
        reference="${{ secrets.VAR }}", header="Bearer ${{ secrets.VAR }}", gui=True,
        note="Secrets are in `.continue/.env` or `~/.continue/.env`.",
    ),
    ClientProfile(
        "cline", "Cline",
        ClientConfigFile(
            (
                "~/.cline/data/settings/cline_mcp_settings.json",
                "{config}/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
            )
        ),
        None,
        (
            ConfigLayout(
                _SERVERS, {**_TYPED_STDIO, "disabled": False},
                {"type": "streamableHttp", "url": "<url>", "headers": "<headers>", "disabled": False},
            ),
        ),
        gui=True, note="Versions before 2026 have the file in the settings of VS Code; that file is changed if it is the only one.",
    ),
    ClientProfile(
        "lm-studio", "LM Studio",
        ClientConfigFile(("~/.lmstudio/mcp.json",)), None,
        (ConfigLayout(_SERVERS, _STDIO, _PLAIN_HTTP),),
        gui=True,
    ),
    ClientProfile(
        "opencode", "opencode",
        ClientConfigFile(
            ("~/.config/opencode/opencode.json", "~/.config/opencode/opencode.jsonc"),
            systems={"linux": ("{config}/opencode/opencode.json", "{config}/opencode/opencode.jsonc")},
        ),
        ClientConfigFile(("opencode.json", "opencode.jsonc")),
        (
            ConfigLayout(
                ("mcp",),
                {"type": "local", "command": "<command line>", "environment": "<env>", "enabled": True},
                {"type": "remote", "url": "<url>", "headers": "<headers>", "enabled": True},
            ),
            ConfigLayout(
                ("mcp", "servers"),
                {"type": "local", "command": "<command line>", "environment": "<env>", "disabled": False},
                {"type": "remote", "url": "<url>", "headers": "<headers>", "disabled": False},
            ),
        ),
        reference="{env:VAR}", header="Bearer {env:VAR}", folder=".",
    ),
    ClientProfile(
        "copilot-cli", "GitHub Copilot CLI",
        ClientConfigFile(("~/.copilot/mcp-config.json",)), _project(".github/mcp.json"),
        (ConfigLayout(_SERVERS, {**_TYPED_STDIO, "tools": ["*"]}, {**_TYPED_HTTP, "tools": ["*"]}),),
        reference="${VAR:-}", header="Bearer ${VAR}", folder=".", moved="COPILOT_HOME",
        note="References need version 1.0.10.", project_note="Servers of a project are used only in trusted folders; `.mcp.json` is also read.",
    ),
    ClientProfile(
        "kiro", "Kiro",
        ClientConfigFile(("~/.kiro/settings/mcp.json",)), _project(".kiro/settings/mcp.json"),
        (ConfigLayout(_SERVERS, _STDIO, _PLAIN_HTTP),),
        reference="${VAR}", header="Bearer ${VAR}", gui=True,
        note="It asks which variables may be used, or lists them in its settings: Approved Environment Variables.",
    ),
    ClientProfile(
        "junie", "JetBrains Junie",
        ClientConfigFile(("~/.junie/mcp/mcp.json",)), _project(".junie/mcp/mcp.json"),
        (ConfigLayout(_SERVERS, _STDIO, _PLAIN_HTTP),),
        gui=True,
    ),
    ClientProfile(
        "warp", "Warp",
        ClientConfigFile(("~/.warp/.mcp.json",)), _project(".warp/.mcp.json"),
        (ConfigLayout(_SERVERS, _STDIO, _PLAIN_HTTP),),
        gui=True, project_note="Start servers of a project by hand: Settings, Agents, MCP servers.",
    ),
)  # fmt: skip


def find_client(name: str) -> ClientProfile | None:
    """Return the client with this ID, or None."""
    return next((row for row in CLIENTS if row.id == name), None)
