"""`mcpfactory migrate` at the command line: shown first, written when asked, and nothing half unless asked for that, too."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Inside
from tests.patience import PATIENCE

WHOLE = "from mcp.server.mcpserver import MCPServer\n\nmcp = MCPServer('notes')  # mine\n\n\n@mcp.tool()\ndef size(text: str) -> int:\n    return len(text)\n"
HALF = WHOLE.replace("'notes')", "'notes', extensions=[])")


@pytest.fixture
def desk(tmp_path: Path) -> Inside:
    return Inside(tmp_path)


def test_it_is_shown_first_and_written_when_asked(desk):
    file = desk.folder / "server.py"
    file.write_text(WHOLE)
    shown = desk("migrate", "server.py")
    assert shown.code == 0
    assert "+mcp = Server('notes')  # mine" in shown.out
    assert "note: nothing was compared: results may be of another type" in shown.err
    assert "--compare starts both versions" in shown.err
    assert file.read_text() == WHOLE
    assert desk("migrate", "server.py", "--write").code == 0
    assert file.read_text() == WHOLE.replace("mcp.server.mcpserver", "mcpfactory_runtime").replace(
        "MCPServer", "Server"
    )
    again = desk("migrate", "server.py")
    assert (again.code, "server.py is written with the runtime already" in again.err) == (4, True)


def test_a_link_stays_one_and_what_it_leads_to_is_written(desk):
    file = desk.folder / "kept.py"
    file.write_text(WHOLE)
    (desk.folder / "server.py").symlink_to("kept.py")
    assert desk("migrate", "server.py", "--write").code == 0
    assert (desk.folder / "server.py").is_symlink()
    assert "mcpfactory_runtime" in file.read_text()


def test_what_is_left_is_told_and_nothing_half_is_written_unless_asked(desk):
    file = desk.folder / "server.py"
    file.write_text(HALF)
    done = desk("migrate", "server.py", "--write")
    assert done.code == 1
    assert "server.py:3  MCPServer(extensions=…)" in done.out
    assert file.read_text() == HALF
    assert desk("migrate", "server.py", "--write", "--partial").code == 1
    assert "mcpfactory_runtime" in file.read_text()


def test_what_is_no_server_is_refused(desk):
    for name, text, code in (("a.py", "def f(:", 4), ("b.py", "import os\n", 4), ("c.py", None, 3)):
        if text is not None:
            (desk.folder / name).write_text(text)
        done = desk("migrate", name)
        assert (done.code, "hint:" in done.err) == (code, True)


def test_both_versions_are_compared(desk):
    (desk.folder / "server.py").write_text(WHOLE)
    seen = desk("migrate", "server.py", "--compare", "--timeout", str(PATIENCE))
    assert seen.code == 0
    assert "nothing was compared" not in seen.err
    assert "0 calls compared: they list the same; no call was made; nothing was shown of 1 tool" in seen.out
    assert "unshown: size: it was not called, as it is not marked readOnlyHint" in seen.out
    done = desk("migrate", "server.py", "--compare", "--all-tools", "--json", "--timeout", str(PATIENCE))
    assert done.code == 0
    assert (
        done.data["complete"],
        done.data["compared"]["contract"],
        done.data["compared"]["calls"],
        done.data["compared"]["made"],
    ) == (True, [], [], 6)
    (desk.folder / "server.py").write_text(WHOLE.replace("mcp = ", "raise SystemExit\nmcp = "))
    assert desk("migrate", "server.py", "--compare").code == 6
