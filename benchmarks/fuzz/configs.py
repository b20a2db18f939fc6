"""Files of people: the configuration of a server, and those of clients, into which an entry is written and taken out again."""

from __future__ import annotations

from pathlib import Path

from mcpfactory_codegen.servers.config import parse_config, render_config
from mcpfactory_codegen.servers.values import ServerConfigError
from mcpfactory_pipeline.clients.edits import entries, form_of, install, read, uninstall
from mcpfactory_pipeline.clients.errors import UnreadableError
from mcpfactory_pipeline.clients.table import CLIENTS

__all__ = ["SEEDS", "WORDS", "one"]

_FILES = {row.user.format: (row.user, row.forms) for row in CLIENTS if row.user is not None}
_FORMATS = sorted(_FILES)
_ENTRY = {"name": "shop", "command": "uvx", "args": ["shop-mcp", "--stdio"], "env": {"KEY": "é\n"}}
SEEDS = (
    b'\0[server]\nname = "shop"\npackage = "shop_mcp"\n\n[[api]]\ndocument = "openapi.json"\n[tools.get_book]\nhide = true\n',
    b'\0// mine\n{"mcpServers": {"a": {"command": "x"},},}\n',
    b'\1[mcp_servers.a]\ncommand = "x"\nargs = [\n "y", # z\n]\n',
    b"\2mcpServers:\n  - name: a\n    command: x\nother: {b: [1]}\n",
    b"\3extensions:\n  a:\n    cmd: x\n",
)
WORDS = (
    "mcpServers",
    "shop",
    "command",
    "args",
    "[mcp_servers.shop]",
    "[[api]]",
    "[server]",
    "- name: shop",
    "{}",
    "'''",
    '"""',
)


def one(data: bytes) -> None:
    """Read the text as each: it is refused with a reason, or an entry goes in and out and nothing else changes."""
    text = data[1:].decode(errors="replace")
    try:
        config = parse_config(text, Path("mcpfactory.toml"))
    except ServerConfigError as error:
        assert str(error), "refused without a reason"
        assert error.hint, f"refused without a hint: {error}"
    else:
        again = parse_config(render_config(config), Path("again"))
        assert (again.name, again.apis, again.names) == (config.name, config.apis, config.names), (
            "written is not as read"
        )
    file, forms = _FILES[_FORMATS[(data[0] if data else 0) % len(_FORMATS)]]
    try:
        before = read(text, file)
        form = form_of(before, forms)
        with_it = install(text, file, form, "shop", _ENTRY)
    except UnreadableError:
        return
    assert entries(read(with_it, file), form, file)["shop"] == _ENTRY
    assert install(with_it, file, form, "shop", _ENTRY) == with_it, "a second time changes it"
    others = {name: entry for name, entry in entries(before, form, file).items() if name != "shop"}
    kept = {name: entry for name, entry in entries(read(with_it, file), form, file).items() if name != "shop"}
    assert kept == others, "another entry changed"
    try:
        without = uninstall(with_it, file, form, "shop")
    except UnreadableError:
        return
    assert without is not None
    assert entries(read(without, file), form, file) == others, "taking it out changed another entry"
