"""Environment variables that reach servers: those of other programs, and ours."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

from mcpfactory_codegen.servers.config import ServerConfig, ServerTable
from mcpfactory_pipeline.launch.start_command import server_environ
from mcpfactory_pipeline.workspace.workspace import WorkspaceServer
from tests.attacks.http_target import HarmError

_OTHERS = {"BANK_TOKEN": "s3cret", "MCPF_SHOP_EU_TOKEN": "s3cret", "AWS_SECRET_ACCESS_KEY": "s3cret", "MCPFACTORY_DASHBOARD_TOKEN": "s3cret", "GITHUB_TOKEN": "s3cret"}  # fmt: skip
_OWN = {"MCPF_SHOP_API_KEY": "mine", "MCPF_SHOP_API_KEY_FILE": "mine", "MCPF_SHOP_BASE_URL": "mine", "DATABASE_URL": "mine", "HOME": "mine"}  # fmt: skip


def _given(folder: Path) -> str:
    (folder / ".mcpfactory").mkdir()
    (folder / ".mcpfactory/report.json").write_text('{"environment": [{"name": "MCPF_SHOP_API_KEY"}]}')
    config = ServerConfig(server=ServerTable(environment=("DATABASE_URL",)))
    server = WorkspaceServer("shop", folder, "shop_mcp", "openapi", (), config)
    with patch.dict(os.environ, {**_OTHERS, **_OWN}):
        environ = server_environ(server)
    show = "import os; print(sorted(name for name, value in os.environ.items() if value in ('s3cret', 'mine')))"
    said = subprocess.run([sys.executable, "-c", show], env=environ, capture_output=True, text=True, check=True).stdout
    if any(name in said for name in _OTHERS) or not all(name in said for name in _OWN):
        raise HarmError(f"the server sees {said}")
    return said.strip()


ROWS = {"credentials of other servers in a server's environment": ("its own only", _given)}
