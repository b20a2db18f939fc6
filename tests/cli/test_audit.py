"""`mcpfactory audit` at the command line: ten servers of all kinds in the files of several clients, exit codes, forms, locks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mcpfactory import progress
from tests.cli.conftest import Inside

GH = "ghp_" + "9Qm2Zx7LkP4vT8sWnB3cR6yHdJ5fG1aUeK0o"
CURSOR = {
    "mcpServers": {
        "github": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-github"], "env": {"GITHUB_PERSONAL_ACCESS_TOKEN": GH}},
        "fetch": {"command": "uvx", "args": ["mcp-server-fetch==2025.4.7"]},
        "database": {
            "command": "docker", "args": ["run", "-i", "--rm", "-v", "/var/run/docker.sock:/var/run/docker.sock", "-e", "DB_URL", "acme/db-mcp:1.2"],
        },
        "hosted": {"url": "https://mcp.vendor.test/mcp", "headers": {"Authorization": "Bearer ${env:VENDOR_TOKEN}"}},
    }
}  # fmt: skip
CLAUDE = {
    "mcpServers": {
        "installer": {"command": "bash", "args": ["-c", "curl -fsSL https://get.x.test | sh"]},
        "bridge": {"command": "npx", "args": ["-y", "mcp-remote@0.1.10", "http://office.test/mcp"]},
    },
    "projects": {"/home/me/shop": {"mcpServers": {"local": {"command": "/opt/none/server", "args": ["--root", "/"]}}}},
}
CODEX = """\
[mcp_servers.docs]
command = "go"
args = ["run", "example.test/docs-mcp@v1.4.0"]

[mcp_servers.old]
url = "https://old.test/sse"
enabled = false
"""
PROJECT = {
    "servers": {
        "team": {
            "type": "stdio",
            "command": "python3",
            "args": ["-m", "team_mcp"],
            "env": {"TEAM_API_KEY": "a8f5f167f44f4964e6c998dee827110c"},
        }
    }
}


@pytest.fixture
def desk(tmp_path: Path) -> Inside:
    """A person with ten servers in four files of four clients."""
    home, project = tmp_path / "home", tmp_path / "home/shop"
    files = {
        home / ".cursor/mcp.json": "// mine\n" + json.dumps(CURSOR, indent=2),
        home / ".claude.json": json.dumps(CLAUDE, indent=2),
        home / ".codex/config.toml": CODEX,
        project / ".vscode/mcp.json": json.dumps(PROJECT, indent=2),
    }
    for file, text in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o600)
    return Inside(
        project, {"HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config"), "XDG_STATE_HOME": str(home / ".state")}
    )


def test_ten_servers_of_all_kinds(desk):
    done = desk("audit", "--json")
    assert done.code == 1
    assert {one["name"]: one["starts"] for one in done.data["servers"]} == {
        "github": "npm package", "fetch": "PyPI package", "database": "image", "hosted": "URL", "installer": "program",
        "bridge": "npm package", "local": "program", "docs": "Go package", "old": "URL", "team": "module",
    }  # fmt: skip
    assert [(one["client"], one["scope"], one["servers"]) for one in done.data["files"]] == [
        ("claude-code", "user", 3), ("cursor", "user", 4), ("vscode", "project", 1), ("codex", "user", 2),
    ]  # fmt: skip
    found: dict[str, set[str]] = {}
    for one in done.data["findings"]:
        if one["rule"] != "launch.missing":  # what this machine lacks
            found.setdefault(one["server"], set()).add(one["rule"])
    assert found == {
        "github": {"launch.floating", "secrets.environment"}, "database": {"container.engine-socket", "launch.tag"},
        "installer": {"launch.pipe-to-shell", "launch.shell"}, "bridge": {"network.plain-http"},
        "local": {"files.wide"}, "old": {"network.sse"}, "team": {"secrets.environment", "secrets.shared"},
    }  # fmt: skip
    scopes = {one["name"]: one["scope"] for one in done.data["servers"]}
    assert (scopes["local"], scopes["team"], scopes["github"]) == ("local /home/me/shop", "project", "user")
    assert len(done.data["clients"]) == 19
    text = desk("audit")
    assert text.code == 1
    assert "10 servers in 4 files" in text.out
    for form in ("text", "json", "markdown", "sarif"):
        written = desk("audit", "--format", form)
        assert GH not in written.out + written.err
        assert "a8f5f167f44f4964e6c998dee827110c" not in written.out + written.err


def test_what_is_looked_at_can_be_chosen(desk):
    def names(*words: str) -> list[str]:
        return [one["name"] for one in desk("audit", "--json", *words).data["servers"]]

    assert names("--client", "codex") == ["docs", "old"]
    assert names("--files", "project") == ["team"]
    assert "team" not in names("--files", "user")
    assert "team" not in names("--folder", str(desk.folder.parent))
    assert names("--config", str(desk.folder.parent / ".claude.json"), "--client", "claude-code") == [
        "installer",
        "bridge",
        "local",
    ]
    assert names("--config", str(desk.folder / ".vscode/mcp.json")) == ["team"]


def test_exit_codes_follow_the_severity_that_counts(desk):
    assert (
        desk("audit", "--client", "codex", "--fail-on", "2").code == 0
        or "launch.missing" in desk("audit", "--client", "codex").out
    )
    assert desk("audit", "--client", "codex", "--fail-on", "3").code == 0
    assert desk("audit", "--client", "codex", "--fail-on", "1").code == 1
    assert desk("audit", "--client", "junie").code == 0
    for words, code in (
        (("--files", "mine"), 2), (("--format", "xml"), 2), (("--accept",), 2), (("--with-secrets",), 2), (("--start", "--isolation", "no"), 2),
        (("--client", "emacs"), 3), (("--config", "gone.json"), 3), (("--lock", "gone.json"), 3), (("--explain", "launch.flaoting"), 3),
    ):  # fmt: skip
        done = desk("audit", *words)
        assert (done.code, "hint:" in done.err) == (code, True), words


def test_a_lock_keeps_what_was_accepted(desk):
    lock = desk.folder / "audit.lock.json"
    assert desk("audit", "--lock", str(lock), "--accept").code == 0
    assert GH not in lock.read_text()
    before = {one["rule"] for one in desk("audit", "--lock", str(lock), "--json").data["findings"]}
    assert not any(rule.startswith("accepted.") for rule in before)
    file = desk.folder.parent / ".cursor/mcp.json"
    file.write_text(
        file.read_text()
        .replace("mcp-server-fetch==2025.4.7", "mcp-server-fetch==2026.1.1")
        .replace('"hosted"', '"other"')
    )
    after = [
        (one["rule"], one["server"])
        for one in desk("audit", "--lock", str(lock), "--json").data["findings"]
        if one["rule"].startswith("accepted.")
    ]
    assert sorted(after) == [("accepted.gone", ""), ("accepted.new", "other"), ("accepted.version", "fetch")]
    assert desk("audit", "--lock", str(lock), "--accept", "--client", "codex").code == 0
    assert "cursor/user/fetch" in lock.read_text()
    (desk.folder / "bad.json").write_text("{}")
    assert desk("audit", "--lock", "bad.json").code == 5


def test_reports_are_written_and_rules_explained(desk):
    done = desk("audit", "--format", "sarif", "--output", "out/audit.sarif")
    assert done.code == 1
    assert json.loads((desk.folder / "out/audit.sarif").read_text())["version"] == "2.1.0"
    assert "servers in 4 files" in done.out
    told = desk("audit", "--explain", "launch.floating")
    assert (told.code, "severity 3" in told.out) == (0, True)
    assert desk("audit", "--explain", "launch.floating", "--json").data["severity"] == 3


def test_what_takes_long_is_said_on_stderr_and_not_beside_json(desk, monkeypatch):
    monkeypatch.setattr(progress, "_LONG", 0.0)
    assert "judging " in desk("audit").err
    assert "…" not in desk("audit", "--json").err
