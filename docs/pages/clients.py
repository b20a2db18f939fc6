"""Generate the page `docs/reference/clients.md` from the table of clients when the site is built."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from mcpfactory_pipeline.delivery.clients import config_edits
from mcpfactory_pipeline.delivery.clients.client_profiles import CLIENTS, ClientConfigFile, ClientProfile, ConfigLayout
from mcpfactory_pipeline.delivery.clients.entry import LaunchEntry, RemoteEntry, build_entry

_HEAD: Final = """\
# Clients

To use this table, see [install a server into clients](../how-to/install-into-clients.md).

- `{config}` is `~/.config` (or `$XDG_CONFIG_HOME`) on Linux, `~/Library/Application Support` on macOS, `%APPDATA%` on Windows.
- **secrets**: how an entry refers to a variable `VAR`. "file": the client has no references, and the entry names a file with the value (`VAR_FILE`).
- **in a project**: how an entry in a project's file refers to the project's folder, to start a server from its sources. `.`: the client starts servers
  in that folder. "-": the client has no such reference and accepts only published servers.
- An entry in the user's file starts a program by absolute path, an entry in a project's file by name.
- Clients marked with * are started from the desktop and do not have the `PATH` of a shell.
"""
_SYSTEMS: Final = {"linux": "Linux", "mac": "macOS", "windows": "Windows"}


def clients_reference() -> str:
    """Return the page as Markdown."""
    rows = [
        "| `--client` | user's file | project's file | key of the servers | secrets | token of a URL | in a project |",
        "|---|---|---|---|---|---|---|",
    ]
    rows += [_row(client) for client in CLIENTS]
    sections = [text for client in CLIENTS for text in _section(client)]
    return "\n".join([_HEAD, *rows, "", *sections]).rstrip() + "\n"


def _row(client: ClientProfile) -> str:
    form = client.forms[0]
    names = next((key for key, word in form.stdio.items() if word == "<names>"), None)
    secrets = f"`{client.reference}`" if client.reference else f"`{names}`" if names else "file"
    token = f"`{client.header}`" if client.header else "-"
    if form.http is None:
        token = "no URLs"
    elif key := next((key for key, word in form.http.items() if word == "<token variable>"), None):
        token = f"`{key}`"
    containers = ", or ".join(f"`{'.'.join(one.container)}`" for one in client.forms)
    names_folder = f"`{client.folder}`" if client.folder else "-"
    shown = f"`{client.id}`" + (" *" if client.gui else "")
    cells = (shown, _files(client, client.user), _files(client, client.project), containers, secrets, token)
    return f"| {' | '.join((*cells, names_folder))} |"


def _files(client: ClientProfile, place: ClientConfigFile | None) -> str:
    if place is None:
        return "-"
    text = ", ".join(f"`{path}`" for path in place.paths)
    for system, paths in place.systems.items():
        text += f"; {_SYSTEMS[system]}: {', '.join(f'`{path}`' for path in paths)}"
    return text + (f"; in `${client.moved}` when it is set" if client.moved and place is client.user else "")


def _section(client: ClientProfile) -> list[str]:
    texts = [
        f"## {client.title}",
        "",
        *([note, ""] if (note := " ".join(filter(None, (client.note, client.project_note)))) else []),
    ]
    for form in client.forms:
        language = {"json": "json", "toml": "toml"}.get(client.user.format, "yaml")
        texts += [f"```{language}", _example(client, form), "```", ""]
    return texts


def _example(client: ClientProfile, form: ConfigLayout) -> str:
    arguments = ("run", "bookshop", "--workspace", "/home/me/servers")
    launch = LaunchEntry("mcpfactory", "/home/me/.local/bin/mcpfactory", arguments, ("MCPF_BOOKSHOP_API_KEY",))
    token = "ACME_TOKEN" if client.header or client.id == "codex" else ""
    secrets = Path("/home/me/.config/mcpfactory/secrets")
    text = ""
    for name, target in (("bookshop", launch), ("acme", RemoteEntry("https://mcp.acme.test/mcp", token))):
        if isinstance(target, LaunchEntry) or form.http is not None:
            entry = build_entry(client, form, name, target, secrets=secrets)
            text = config_edits.install(text, client.user, form, name, entry.value)
    return text.rstrip()
