"""Attacks by names of files, folders, hosts and addresses, from agents, folders, templates and settings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from mcpfactory_codegen.servers import scaffold
from mcpfactory_codegen.servers.server_files import UnsafePathError, resolve_server_path
from mcpfactory_codegen.settings import SettingsError
from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.delivery.ci.fold import assigned_shard_results, changed, validate_run_id
from mcpfactory_pipeline.plan.plan import BROKEN, PlanStep
from mcpfactory_pipeline.serve import workspace_access
from mcpfactory_pipeline.workspace.workspace import Workspace
from tests.attacks.http_target import HarmError
from tests.attacks.rejected_values import Rows, each_refused
from tests.pipeline.staged_workspace import settings_of

# --- documents that agents name ---

_FILES = (
    "/etc/passwd", "/etc/shadow", "/proc/self/environ", "/dev/zero", "../x.yaml", "../../x.yaml", "a/../../x.yaml",
    "./../space-2/x.yaml", "a\0b", "link/x.yaml", "link.yaml", "circle/x.yaml", "..", "/",
)  # fmt: skip
_INSIDE = (
    "127.0.0.1", "127.0.0.1:8000", "127.1", "localhost", "LOCALHOST:1", "localhost.", "x.localhost", "0.0.0.0", "[::1]", "[::]",
    "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "169.254.169.254", "10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1",
    "[fe80::1]", "[fd00::1]", "2130706433", "0177.0.0.1", "0x7f.0.0.1", "router", "api.local", "metadata.google.internal",
    "nas.home.arpa", "api.test@127.0.0.1", "api.test:80@localhost", "rebound.test", "mixed.test", "127.0.0.1:99999", "",
)  # fmt: skip


@contextmanager
def _resolved() -> Iterator[None]:
    """Resolve the names of the tests to private addresses, and numeric addresses as the system does."""
    known, real = (
        {"rebound.test": ["10.0.0.1"], "mixed.test": ["8.8.8.8", "127.0.0.1"]},
        workspace_access.socket.getaddrinfo,
    )

    def resolve(host: str, *arguments: Any, **options: Any) -> Any:
        if host in known:
            return [(0, 0, 0, "", (address, 0)) for address in known[host]]
        return real(host, *arguments, **options)

    with patch.object(workspace_access.socket, "getaddrinfo", resolve):
        yield


def _document(folder: Path, name: str) -> str:
    root = folder / "space"
    root.mkdir()
    (folder / "elsewhere").mkdir()
    (root / "link").symlink_to(folder / "elsewhere")
    (root / "link.yaml").symlink_to("/etc/passwd")
    (root / "circle").symlink_to(root / "circle")
    with _resolved():
        return workspace_access.WorkspaceAccess(root).document(name)


AGENTS: Rows = {
    **each_refused("the file", _FILES, _document, ConfigError),
    **each_refused("the address", (f"http://{host}/openapi.json" for host in _INSIDE), _document, ConfigError),
}

# --- folders below servers/ ---

_FOLDERS = (
    "x --force --jobs 99", "--force", "-rf", "a b", " a", "a ", "a;id", "a|id", "a&id", "a>b", "$(id)", "`id`", "${HOME}", "$IFS", "*", "?",
    "[a]", "{a,b}", "~", "!", "#a", "a\nb", "a\rb", "a\tb", "é", "\u202ea", "a\u200bb", "..", ".", ".git", "", "a" * 101, "a'b",
    'a"b', "a\\b", "a\0b", "%0a", "::stop", "a/b", "../a", "a=b", "a:b", "a,b",
)  # fmt: skip


def _assigned(_: Path, name: str) -> str:
    due, unusable = changed([PlanStep("a", "x", BROKEN), PlanStep(name, "x", BROKEN)])
    if due != ["a"]:
        raise HarmError(f"{due} are assigned")
    return f"left out: {unusable}"


def _linked(folder: Path) -> str:
    (folder / "servers").mkdir()
    (folder / "elsewhere").mkdir()
    (folder / "elsewhere/mcpfactory.toml").write_text('[server]\nname = "a"\npackage = "a"\n')
    (folder / "servers/a").symlink_to(folder / "elsewhere")
    (folder / "mcpfactory.toml").write_text('[workspace]\nname = "w"\n')
    servers, broken = Workspace.find(folder).load_servers()
    if servers:
        raise HarmError("a link is a server")
    return broken[0].message.partition(": ")[2]


NAMES: Rows = {
    **each_refused("a folder", _FOLDERS, _assigned),
    "a folder that is a link": ("refused", _linked),
}

# --- settings and results of jobs that become words of scripts and paths ---

_SETTINGS = [
    *({"branch": value} for value in ("a b", "-f", "$(id)", "a;id", "a\nb", "", "a@{1}", "`id`")),
    *({"channel": value} for value in ("a b", "$(id)", "--force", "a/b", "../a", 'a"b')),
    *({"environment": value} for value in ("a b", "${{ secrets.X }}", "a\nb")),
    *({"python": value} for value in ("3", "3.12; id", "$(id)", "2.7")),
    *({"image": value} for value in ("a b", "$(id)", "-v /:/x")),
    *({"install": value} for value in ("a\nb", "", "a\r", 3)),
    {"jobs": 0}, {"jobs": 257}, {"jobs": True}, {"servers": 0},
]  # fmt: skip
_RUNS = ("", "../x", "a b", "$(id)", "--force", "a" * 25, "a" * 1000, "01HZ/../../../../../../../x", "\0" * 26)
_MATRICES = (
    "", "[]", "{}", "null", '{"include": 3}', '{"include": [3]}', '{"include": [{"shard": "../../x", "servers": "a"}]}',
    '{"include": [{"shard": 1}]}',
)  # fmt: skip
SETTINGS: Rows = {
    **each_refused("[ci]", _SETTINGS, lambda _, table: settings_of(ci=table), SettingsError),
    **each_refused("the run", _RUNS, lambda _, text: validate_run_id(text), ConfigError),
    **each_refused("the matrix", _MATRICES, lambda folder, text: assigned_shard_results([folder], text), ConfigError),
}

# --- templates, and the files of a server ---

_GIT = (".git", ".GIT", ".Git", ".git ", ".git.", ".git. .", "git~1", "GIT~1", ".g\u200cit", ".git\u200b", "．git", ".git::$INDEX_ALLOCATION")  # fmt: skip
_PATHS = ("../x", "/etc/x", "a/../../x", "a/..", "..", "", ".", "a\\..\\..\\x", "C:/x", "a\0b", "./a", "a//b", "link/x")


def _located(folder: Path, path: str) -> object:
    (folder / "server").mkdir()
    (folder / "server/link").symlink_to(folder)
    return resolve_server_path(folder / "server", path)


TEMPLATES: Rows = {
    **each_refused("a part named", _GIT, lambda _, name: "git's own" if scaffold._is_repository(name) else ""),
    **each_refused("a file at", _PATHS, _located, UnsafePathError),
}
