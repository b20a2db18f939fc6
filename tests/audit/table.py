"""For each rule configurations that break it, and near misses that do not: (rule, client, scope, entry or file, near miss)."""

from __future__ import annotations

from typing import Any, Final

from mcpfactory_pipeline.audit.machine import MachineFacts

GH: Final = "ghp_" + "9Qm2Zx7LkP4vT8sWnB3cR6yHdJ5fG1aUeK0o"
HASH: Final = "sha256:" + "ab" * 32
COMMIT: Final = "0123456789abcdef" * 2 + "01234567"
Entry = dict[str, Any]


def npx(*args: str, **more: Any) -> Entry:
    return {"command": "npx", "args": list(args), **more}


def uvx(*args: str, **more: Any) -> Entry:
    return {"command": "uvx", "args": list(args), **more}


def docker(*args: str, **more: Any) -> Entry:
    return {"command": "docker", "args": ["run", "-i", "--rm", *args], **more}


def run(command: str, *args: str, **more: Any) -> Entry:
    return {"command": command, "args": list(args), **more}


def url(address: str, **headers: str) -> Entry:
    return {"url": address, **({"headers": headers} if headers else {})}


def env(**variables: str) -> Entry:
    return npx("a-mcp@1.0.0", env=variables)


FINE: Final = npx("a-mcp@1.0.0")
# (rule, entries that break it, near misses)
ENTRIES: Final[tuple[tuple[str, list[Entry], list[Entry]], ...]] = (
    ("configuration.hidden-characters",
     [run("npx", "a-mcp@1.0.0\u200b"), npx("a-mcp@1.0.0", env={"A\x1b[2K": "1"}), npx("a-mcp@1.0.0", alwaysAllow=["get\u202ex"])],
     [npx("a-mcp@1.0.0", "--greeting", "Grüße, 你好"), npx("a-mcp@1.0.0", env={"A": "line\nline"})]),
    ("configuration.entry", [{"args": ["x"]}, {"command": ""}, {"command": []}, {"url": ""}], [FINE, url("https://x.test/mcp")]),
    ("secrets.environment",
     [env(GITHUB_TOKEN=GH), env(SOMETHING=GH), env(DB_PASSWORD="hunter2"), env(API_KEY="a8f5f167f44f4964e6c998dee827110c"),
      env(DATABASE_URL="postgres://me:tr0ub4dor@db.test/x"), env(OPENAI="sk-proj-abcDEF123456ghiJKL789"), env(JWT="Bearer eyJhbGciOiJI.eyJzdWIiOiIx.c2ln"),
      env(KEY="-----BEGIN RSA PRIVATE KEY-----\nMIIE"), run("env", "API_TOKEN=a8f5f167f44f4964e6c998dee", "npx", "a-mcp@1.0.0"),
      docker("-e", "TOKEN=a8f5f167f44f4964e6c998dee", f"a@{HASH}")],
     [env(GITHUB_TOKEN="${GITHUB_TOKEN}"), env(API_KEY="<your key>"), env(API_KEY="YOUR_API_KEY"), env(API_KEY="your-api-key-here"),
      env(TOKEN_FILE="/run/secrets/token"), env(MAX_TOKENS="4096"), env(AUTH_TYPE="basic-auth-2"), env(API_KEY=""), env(PASSWORD="${input:pw}"),
      env(DATABASE_URL="postgres://me@db.test/x"), env(DATABASE_URL="postgres://me:${DB_PASSWORD}@db.test/x"), env(API_KEY="op://vault/item/key"),
      env(AWS_ACCESS_KEY_ID="AKIAIOSFODNN7EXAMPLE"), env(API_KEY="xxxxxxxxxxxx1"), env(USE_TOKEN="true"), env(KEY_ID="kid-2024-07-a1b2c3"),
      docker("-e", "TOKEN", f"a@{HASH}"), env(TOKENIZER="cl100k_base_v2_abcdef1")]),
    ("secrets.headers",
     [url("https://x.test/mcp", Authorization="Bearer a8f5f167f44f4964e6c9"), url("https://x.test/mcp", **{"X-Api-Key": "q1w2e3r4t5y6"})],
     [url("https://x.test/mcp", Authorization="Bearer ${TOKEN}"), url("https://x.test/mcp", Accept="application/json"),
      url("https://x.test/mcp", Authorization="Bearer <token>")]),
    ("secrets.arguments",
     [npx("a-mcp@1.0.0", "--api-key", "a8f5f167f44f4964"), npx("a-mcp@1.0.0", "--token=a8f5f167f44f4964"), npx("a-mcp@1.0.0", GH),
      npx("mcp-remote@0.1.30", "https://x.test/mcp", "--header", "Authorization: Bearer a8f5f167f44f4964"),
      npx("a-mcp@1.0.0", "mysql://root:tr0ub4dor@db.test/x"), npx("a-mcp@1.0.0", "https://x.test/?api_key=a8f5f167f44f4964")],
     [npx("a-mcp@1.0.0", "--api-key", "${API_KEY}"), npx("a-mcp@1.0.0", "--token-file", "/run/token1234"), npx("a-mcp@1.0.0", "--max-tokens", "40960000"),
      npx("mcp-remote@0.1.30", "https://x.test/mcp", "--header", "Authorization: Bearer ${TOKEN}"), npx("a-mcp@1.0.0", "--key-prefix", "cache1234")]),
    ("secrets.url",
     [url("https://me:tr0ub4dor@x.test/mcp"), url("https://x.test/mcp?api_key=a8f5f167f44f4964"), url("https://x.test/s/YzRkMmE4Zjc5OTdiNDc3OThm/mcp")],
     [url("https://x.test/mcp?version=2025-06-18"), url("https://x.test/a/streamable-http-2025-06-18/mcp"), url("https://x.test/mcp?api_key=${KEY}"),
      url("https://x.test/v1/0b5cf9ab-3f0e-4bd4-9d5a-2f2c52a1f0aa/mcp")]),
    ("launch.floating",
     [npx("-y", "a-mcp"), npx("a-mcp@latest"), npx("a-mcp@^1.0.0"), npx("-p", "a-mcp", "a"), uvx("a-mcp"), uvx("a-mcp>=1"), uvx("a-mcp==1.*"),
      uvx("--from", "a-mcp", "a"), run("bunx", "a-mcp@1"), run("pnpm", "dlx", "a-mcp"), run("npm", "exec", "--", "a-mcp"), run("pipx", "run", "a-mcp"),
      run("uv", "tool", "run", "a-mcp"), docker("a/b"), docker("a/b:latest"), docker("host:5000/a"), run("go", "run", "x.test/a@latest"),
      run("cmd", "/c", "npx", "-y", "a-mcp"), run("bash", "-c", "npx -y a-mcp"), run("/usr/local/bin/npx", "a-mcp"), run("C:\\nodejs\\npx.cmd", "a-mcp"),
      run("dnx", "A.Mcp", "--yes"), run("deno", "run", "-A", "npm:a-mcp"), run("uv", "run", "--with", "fastmcp", "fastmcp", "run", "/s/server.py"),
      run("env", "A=b", "npx", "a-mcp"), run("op", "run", "--env-file=x", "--", "npx", "a-mcp")],
     [FINE, npx("@a/b-mcp@1.2.3-beta.1"), uvx("a-mcp==1.0"), uvx("a-mcp@1.0.0"), uvx("--from", "a-mcp[x]==1.0", "a"), docker(f"a/b@{HASH}"),
      docker("host:5000/a:1.0"), run("go", "run", "x.test/a@v1.2.3"), run("node", "/s/index.js"), run("python3", "-m", "a"),
      run("uv", "--directory", "/s", "run", "a"), npx("./local"), run("uv", "run", "--with", "fastmcp==3.4.4", "/s/server.py"), run("docker", "exec", "-i", "c", "a")]),
    ("launch.tag", [docker("a/b:1.2"), docker("host:5000/a/b:v2")], [docker(f"a/b:1.2@{HASH}"), docker("a/b")]),
    ("launch.git",
     [npx("github:a/b"), npx("a/b#main"), npx("git+https://git.test/a/b.git"), uvx("--from", "git+https://git.test/a/b@main", "b")],
     [npx(f"github:a/b#{COMMIT}"), uvx("--from", f"git+https://git.test/a/b@{COMMIT}", "b"), npx("@a/b@1.0.0"), npx("./a/b")]),
    ("launch.remote-code",
     [npx("https://x.test/a.tgz"), run("deno", "run", "https://x.test/a.ts"), run("uv", "run", "https://x.test/a.py"), uvx("--from", "https://x.test/a.whl", "a")],
     [npx("mcp-remote@0.1.30", "https://x.test/mcp"), run("deno", "run", "/s/a.ts"), npx("a-mcp@1.0.0", "https://x.test")]),
    ("launch.pipe-to-shell",
     [run("bash", "-c", "curl -s https://x.test/i | sh"), run("sh", "-c", "wget -qO- https://x.test/i | sudo bash"), run("bash", "-c", "bash <(curl -s https://x.test/i)"),
      run("bash", "-c", 'python3 -c "$(curl -s https://x.test/i)"'), run("powershell", "-Command", "irm https://x.test/i | iex"),
      run("bash", "-c", "curl -o /tmp/x https://x.test/x && chmod +x /tmp/x && /tmp/x")],
     [run("bash", "-c", "echo curl | cat && npx a-mcp@1.0.0"), run("curl", "https://x.test"), npx("a-mcp@1.0.0", "--command", "curl https://x.test")]),
    ("launch.shell",
     [run("bash", "-c", "cd /s && npx a-mcp@1.0.0"), run("sh", "-lc", "npx a-mcp@1.0.0"), run("powershell", "-Command", "npx a-mcp@1.0.0")],
     [run("cmd", "/c", "npx", "a-mcp@1.0.0"), run("bash", "/s/start.sh"), run("env", "A=b", "npx", "a-mcp@1.0.0")]),
    ("launch.inline-code",
     [run("python3", "-c", "print(1)"), run("node", "-e", "1"), run("powershell.exe", "-EncodedCommand", "aQBlAHgA"), run("node", "--eval", "1")],
     [run("python3", "-m", "c"), run("node", "/s/e.js"), run("node", "--enable-source-maps", "/s/e.js")]),
    ("launch.sudo",
     [run("sudo", "npx", "a-mcp@1.0.0"), run("bash", "-c", "sudo npx a-mcp@1.0.0"), run("doas", "-u", "root", "x"), run("pkexec", "x")],
     [run("/opt/sudoku/bin/sudoku-mcp"), npx("a-mcp@1.0.0", "sudo")]),
    ("launch.relative", [run("./server"), run("bin/server"), run("node", "./dist/index.js")],
     [run("server"), run("/s/server"), run("~/s/server"), run("./server", cwd="/s"), run("${workspaceFolder}/x")]),
    ("launch.temporary", [run("/tmp/server"), run("node", "/home/me/Downloads/x/index.js"), run("C:\\Users\\me\\Downloads\\x.exe")],
     [run("/opt/tmp-mcp/server"), run("/s/x", "/tmp/work"), run("node", "/home/me/src/tmp/index.js")]),
    ("launch.injected",
     [env(LD_PRELOAD="/s/x.so"), env(NODE_OPTIONS="--require /s/x.js"), run("node", "/s/x.js", env={"PYTHONPATH": "/s"}), env(BASH_ENV="/s/x")],
     [env(NODE_OPTIONS="--max-old-space-size=4096"), run("python3", "-m", "a", env={"PYTHONPATH": "/s"}), env(NODE_ENV="production"), env(LD_PRELOAD="")]),
    ("launch.registry",
     [npx("--registry", "https://r.test", "a-mcp@1.0.0"), uvx("--index-url", "http://r.test/simple", "a-mcp==1.0"), env(UV_EXTRA_INDEX_URL="https://r.test")],
     [npx("a-mcp@1.0.0", "--index", "books"), env(REGISTRY="https://r.test"), env(UV_INDEX_URL="")]),
    ("network.plain-http", [url("http://x.test/mcp"), url("HTTP://10.0.0.2/mcp"), npx("mcp-remote@0.1.30", "http://x.test/mcp")],
     [url("https://x.test/mcp"), url("http://localhost:1/mcp"), url("http://127.9.9.9/mcp"), url("http://[::1]:1/mcp"), npx("a-mcp@1.0.0", "http://x.test")]),
    ("network.clear-token", [url("http://x.test/mcp", Authorization="Bearer ${T}")],
     [url("http://localhost/mcp", Authorization="Bearer ${T}"), url("http://x.test/mcp", Accept="*/*"), url("https://x.test/mcp", Authorization="Bearer ${T}")]),
    ("network.tls-off", [env(NODE_TLS_REJECT_UNAUTHORIZED="0"), npx("a-mcp@1.0.0", "--insecure"), npx("a-mcp@1.0.0", "--ignore-https-errors")],
     [env(NODE_TLS_REJECT_UNAUTHORIZED="1"), npx("a-mcp@1.0.0", "--insecure-mode-off"), env(NODE_EXTRA_CA_CERTS="/s/ca.pem")]),
    ("network.listens",
     [npx("a-mcp@1.0.0", "--host", "0.0.0.0"), npx("a-mcp@1.0.0", "--host=::"), env(HOST="0.0.0.0"), docker("-p", "80:80", f"a@{HASH}"), docker("--publish=80:80", f"a@{HASH}")],
     [npx("a-mcp@1.0.0", "--host", "127.0.0.1"), docker("-p", "127.0.0.1:80:80", f"a@{HASH}"), docker("-e", "HOST=0.0.0.0", f"a@{HASH}"), env(DB_HOST="10.0.0.1")]),
    ("network.tunnel", [url("https://x.ngrok.app/mcp"), npx("mcp-remote@0.1.30", "https://a-b.trycloudflare.com/mcp")], [url("https://ngrok.app.x.test/mcp")]),
    ("network.sse", [url("https://x.test/sse"), {"url": "https://x.test/mcp", "type": "sse"}], [url("https://x.test/assess"), {"url": "https://x.test/mcp", "type": "http"}]),
    ("container.privileged",
     [docker("--privileged", f"a@{HASH}"), docker("--cap-add", "SYS_ADMIN", f"a@{HASH}"), docker("--pid=host", f"a@{HASH}"), docker("--security-opt", "seccomp=unconfined", f"a@{HASH}")],
     [docker(f"a@{HASH}", "--privileged"), docker("--cap-add=NET_BIND_SERVICE", f"a@{HASH}"), docker("--privileged=false", f"a@{HASH}"), docker("--security-opt", "no-new-privileges", f"a@{HASH}")]),
    ("container.host-network", [docker("--network", "host", f"a@{HASH}"), docker("--net=host", f"a@{HASH}")], [docker("--network", "hostess", f"a@{HASH}")]),
    ("container.engine-socket", [docker("-v", "/var/run/docker.sock:/var/run/docker.sock:ro", f"a@{HASH}")], [docker("-v", "/s/docker.sockets:/x", f"a@{HASH}")]),
    ("container.mount",
     [docker("-v", "/:/host", f"a@{HASH}"), docker("--mount", "type=bind,source=/home/me/.ssh,target=/k,readonly", f"a@{HASH}"), docker("-v", "C:\\Users\\me:/d", f"a@{HASH}")],
     [docker("-v", "/home/me/project:/p", f"a@{HASH}"), docker("-v", "data:/p", f"a@{HASH}"), docker("--mount", "type=volume,source=etc,target=/etc", f"a@{HASH}")]),
    ("files.wide",
     [npx("a-mcp@1.0.0", "/"), npx("a-mcp@1.0.0", "~"), npx("a-mcp@1.0.0", "/Users/me"), npx("a-mcp@1.0.0", "--root=/etc"), npx("a-mcp@1.0.0", "C:\\"), npx("a-mcp@1.0.0", "/home/me/.ssh")],
     [npx("a-mcp@1.0.0", "/home/me/notes"), npx("a-mcp@1.0.0", "/srv/data"), npx("a-mcp@1.0.0", "."), npx("a-mcp@1.0.0", "/etcetera")]),
    ("approval.all", [npx("a-mcp@1.0.0", autoApprove=["*"]), npx("a-mcp@1.0.0", trust=True), npx("a-mcp@1.0.0", alwaysAllow=True)],
     [npx("a-mcp@1.0.0", autoApprove=[]), npx("a-mcp@1.0.0", trust=False), npx("a-mcp@1.0.0", trust="yes")]),
    ("approval.writes",
     [npx("a-mcp@1.0.0", autoApprove=["delete_row"]), npx("a-mcp@1.0.0", alwaysAllow=["get_x", "execute_sql"]), npx("a-mcp@1.0.0", autoApprove=["bash"]), npx("a-mcp@1.0.0", autoApprove=["sendEmail"])],
     [npx("a-mcp@1.0.0", autoApprove=["get_row", "list_files", "search"]), npx("a-mcp@1.0.0", autoApprove=["resolve-library-id", "getSendStatus"])]),
)  # fmt: skip

HERE: Final = MachineFacts("/s/server")
# (rule, facts of the file system that break it, and that do not)
FACTS: Final = (
    ("launch.missing", [MachineFacts(""), MachineFacts("/s/server", ("/s/x.py",))], [HERE, MachineFacts(None)]),
    ("launch.replaceable", [MachineFacts("/s/server", (), (("/s/server", "/s has mode 777"),))], [HERE]),
)
