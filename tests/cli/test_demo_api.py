"""`mcpfactory demo-api`: the example API of the tutorial."""

from __future__ import annotations

import socket
from pathlib import Path

from tests.cli.conftest import BOOKSHOP, ROOT, InProcessCli


def test_demo_api_refuses_a_port_in_use(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        refused = InProcessCli(tmp_path)("demo-api", "--port", str(other.getsockname()[1]))
    assert (refused.code, "--port 0" in refused.err) == (4, True), refused.err


def test_the_example_server_is_tested_with_the_same_api() -> None:
    server = ROOT / "servers/bookshop"
    pairs = (("service.py", "tests/service.py"), ("openapi.yaml", "api/openapi.yaml"))
    assert [name for name, other in pairs if (BOOKSHOP / name).read_bytes() != (server / other).read_bytes()] == []
