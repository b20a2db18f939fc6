"""`mcpfactory demo-api`: the example API of the tutorial."""

from __future__ import annotations

import socket
from pathlib import Path

from tests.cli.conftest import InProcessCli


def test_demo_api_refuses_a_port_in_use(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        refused = InProcessCli(tmp_path)("demo-api", "--port", str(other.getsockname()[1]))
    assert (refused.code, "--port 0" in refused.err) == (4, True), refused.err
