"""A real n8n on loopback, from its npm package, behind the server of this repository: every operation once, and what its tools say.

The package is installed into a folder of its own (`N8N_FOLDER` keeps it between runs): some 2 GB, and minutes. n8n keeps its data in SQLite in
the folder of the trial. Its owner and its API key are made by its own endpoints, as the browser does it.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from benchmarks.exam.outcome import Outcome, judged, unavailable
from mcpfactory_runtime.client import Client

__all__ = ["run"]

ROOT: Final = Path(__file__).resolve().parents[2]
_VERSION: Final = "2.8.4"  # the last that runs on Node.js 20
# One dependency is named by an address outside of the registry; the registry has an older version of it, which reads the same files.
_PACKAGE: Final = {"private": True, "dependencies": {"n8n": _VERSION}, "overrides": {"xlsx": "0.18.5"}}
_INSTALL: Final = 2400  # seconds
_START: Final = 600
_WORKFLOW: Final[dict[str, Any]] = {
    "name": "Order import",
    "nodes": [
        {
            "id": "a",
            "name": "Order arrives",
            "type": "n8n-nodes-base.webhook",
            "typeVersion": 2,
            "position": [0, 0],
            "webhookId": "6f9619ff-8b86-4011-b42d-00c04fc964ff",
            "parameters": {"path": "orders", "httpMethod": "GET", "responseMode": "onReceived", "options": {}},
        },
        {
            "id": "b",
            "name": "Refuse",
            "type": "n8n-nodes-base.stopAndError",
            "typeVersion": 1,
            "position": [240, 0],
            "parameters": {"errorMessage": "401 Unauthorized"},
        },
    ],
    "connections": {"Order arrives": {"main": [[{"node": "Refuse", "type": "main", "index": 0}]]}},
    "settings": {"executionOrder": "v1"},
}


def run(folder: Path, times: int, seed: int) -> Outcome:
    """Installs, starts and asks it once; `times` and the seed change nothing. Prints a line for each call."""
    del times, seed
    installed = Path(os.environ.get("N8N_FOLDER") or folder / "package").resolve()
    if lacking := _install(installed):
        return unavailable(lacking)
    with _started(installed, folder) as found:
        if isinstance(found, str):
            return unavailable(found)
        faults, calls = asyncio.run(_asked(*found))
    for one in faults:
        print(f"FAULT {one}", flush=True)
    return judged(f"n8n {_VERSION}: {calls} calls, {len(faults)} not as they must be", good=not faults)


def _install(folder: Path) -> str:
    """Install n8n where it is not; why that cannot be, or ""."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        return "n8n cannot be tried: Node.js and npm are not installed; hint: apt-get install npm"
    if (folder / "node_modules/n8n/bin/n8n").exists():
        return ""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text(json.dumps(_PACKAGE), encoding="utf-8")
    headers = Path(node).resolve().parents[1]
    command = [npm, "install", "--no-audit", "--no-fund", "--loglevel=error", "--omit=dev"]
    environ = {**os.environ, "npm_config_nodedir": str(headers)} if (headers / "include/node").is_dir() else None
    try:
        done = subprocess.run(
            command, cwd=folder, env=environ, capture_output=True, text=True, timeout=_INSTALL, check=False
        )
    except subprocess.TimeoutExpired:
        return f"n8n cannot be tried: it was not installed within {_INSTALL} s"
    said = " ".join(done.stderr.split())
    return "" if done.returncode == 0 else f"n8n cannot be tried: it cannot be installed: {said[:500]}"


@contextmanager
def _started(installed: Path, folder: Path) -> Iterator[tuple[int, str] | str]:
    """Start n8n and yield its port and an API key; or why it does not run here."""
    with socket.create_server(("127.0.0.1", 0)) as free, socket.create_server(("127.0.0.1", 0)) as other:
        port, broker = free.getsockname()[1], other.getsockname()[1]
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "N8N_USER_FOLDER": str(folder),
        "N8N_PORT": str(port),
        "N8N_LISTEN_ADDRESS": "127.0.0.1",
        "N8N_PROTOCOL": "http",
        "N8N_RUNNERS_BROKER_PORT": str(broker),
        "N8N_SECURE_COOKIE": "false",
        "N8N_DIAGNOSTICS_ENABLED": "false",
        "N8N_VERSION_NOTIFICATIONS_ENABLED": "false",
        "N8N_TEMPLATES_ENABLED": "false",
        "N8N_COMMUNITY_PACKAGES_ENABLED": "false",
        "DB_TYPE": "sqlite",
    }
    log = folder / "n8n.log"
    with log.open("wb") as said:
        process = subprocess.Popen(
            [str(installed / "node_modules/n8n/bin/n8n"), "start"],
            cwd=folder,
            env=environ,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            yield (port, _key(port)) if _answers(process, port) else f"n8n does not start here: {_end_of(log)}"
        finally:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End n8n and the processes that it started; it may have ended by itself."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _end_of(log: Path) -> str:
    return " ".join(log.read_text("utf-8", "replace").split())[-500:]


def _answers(process: subprocess.Popen[bytes], port: int) -> bool:
    deadline = time.monotonic() + _START
    while time.monotonic() < deadline and process.poll() is None:
        try:
            status, said, _ = _request(port, "GET", "/rest/settings")  # /healthz is well before these are there
            if status == 200 and isinstance(said, dict):
                return True
        except (OSError, http.client.HTTPException):
            pass
        time.sleep(0.5)
    return False


def _request(
    port: int, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
) -> tuple[int, Any, str]:
    """Ask n8n as a browser does: status, JSON, and the cookie that it set."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    try:
        data = None if body is None else json.dumps(body)
        connection.request(method, path, data, {"Content-Type": "application/json", **(headers or {})})
        answer = connection.getresponse()
        text = answer.read().decode("utf-8", "replace")
        cookie = (answer.getheader("set-cookie") or "").partition(";")[0]
    finally:
        connection.close()
    try:
        return answer.status, json.loads(text), cookie
    except ValueError:
        return answer.status, text, cookie


def _key(port: int) -> str:
    """Make the owner and an API key with every scope that n8n offers."""
    person = {"email": "ada@example.com", "firstName": "Ada", "lastName": "Lovelace", "password": "Difference-Engine-1"}
    status, said, cookie = _request(port, "POST", "/rest/owner/setup", person)
    assert status == 200, said
    browser = {"Cookie": cookie}
    status, scopes, _ = _request(port, "GET", "/rest/api-keys/scopes", headers=browser)
    assert status == 200, scopes
    wanted = {"label": "trial", "expiresAt": None, "scopes": scopes["data"]}
    status, made, _ = _request(port, "POST", "/rest/api-keys", wanted, browser)
    assert status == 200, made
    return str(made["data"]["rawApiKey"])


async def _asked(port: int, key: str) -> tuple[list[str], int]:
    """Call every tool once, in an order that makes sense; what was not as it must be, and how many calls there were."""
    environ = {
        "N8N_BASE_URL": f"http://127.0.0.1:{port}/api/v1",
        "N8N_API_KEY": key,
        "N8N_ALLOW_PRIVATE": "1",
        "N8N_WITHOUT_QUESTIONS": "1",  # no person watches a trial
        "MCPFACTORY_PROFILE": "full",
        "PYTHONPATH": str(ROOT / "servers/n8n/src"),
    }
    async with Client.connect_stdio([sys.executable, "-m", "n8n_mcp"], env=environ, timeout=180) as client:
        asked = _Calls(client)
        await _workflow(asked, port)
        await _rest(asked)
        called = {name for name, _ in asked.made}
        missing = sorted({tool["name"] for tool in await client.list_tools()} - called)
    faults = [*asked.faults, *(f"{name} was not called" for name in missing)]
    return faults, len(asked.made)


class _Calls:
    """Calls of tools, and what of their answers is not as it must be."""

    def __init__(self, client: Client) -> None:
        self.made: list[tuple[str, str]] = []
        self.faults: list[str] = []
        self._client = client

    async def __call__(self, tool: str, says: str = "", /, *, refused: bool = False, **arguments: Any) -> Any:
        """Return what the tool answered, as JSON where it is; `refused`: n8n must not do it, and its words must have `says`."""
        result = await self._client.call_tool(tool, arguments)
        text = "\n".join(block.get("text", "") for block in result["content"])
        failed = result.get("isError") is True
        good = failed is refused and says in text
        self.made.append((tool, text))
        print(f"{'ok   ' if good else 'FAULT'} {tool} {json.dumps(arguments)[:100]}: {' '.join(text.split())[:200]}")
        if not good:
            wanted = f"{'a refusal' if refused else 'an answer'} with {says!r}"
            self.faults.append(f"{tool} {json.dumps(arguments)[:200]}: {wanted} expected, got {text[:400]!r}")
        return result.get("structuredContent") or _json(text)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return {}


async def _workflow(asked: _Calls, port: int) -> None:
    """One workflow, from its making over runs that fail to its end."""
    made = await asked("create_workflow", "Order import", **_WORKFLOW)
    number = str(made.get("id", ""))
    await asked("list_workflows", number, name="Order import")
    await asked("get_workflow", "Order arrives", id=number)
    await asked("summarize_workflow", "Order arrives", id=number)
    await asked("activate_workflow", "Order import", id=number)
    for _ in range(2):
        _request(port, "GET", "/webhook/orders")
    run = await _failed(asked, number)
    await asked("list_executions", status="error", workflowId=number)
    await asked("get_execution", number, id=run)
    await asked("explain_failures", "401 Unauthorized", workflowId=number)
    await asked("show_workflow", "Refuse", id=number)
    await asked("retry_execution", id=run)
    await asked("change_node", "Refuse", id=number, node="Refuse", parameters={"errorMessage": "402 Payment Required"})
    await asked("get_workflow", "402 Payment Required", id=number)
    await asked("update_workflow", "Orders", id=number, **{**_WORKFLOW, "name": "Orders"})
    tag = await asked("create_tag", "production", name="production")
    await asked("list_tags", "production")
    await asked("set_workflow_tags", "production", id=number, body=[{"id": tag.get("id", "")}])
    await asked("deactivate_workflow", "Orders", id=number)
    await asked("delete_execution", id=run)
    await asked("delete_workflow", "Orders", id=number)
    await asked("get_workflow", "404", refused=True, id=number)


async def _failed(asked: _Calls, number: str) -> str:
    """Wait until both runs have failed, and return one of them."""
    rows: list[Any] = []
    for _ in range(60):
        found = await asked("list_executions", status="error", workflowId=number)
        rows = found.get("data", [])
        if len(rows) > 1:
            return str(rows[0]["id"])
        await asyncio.sleep(1)
    asked.faults.append(f"n8n shows {len(rows)} failed runs, and two were started")
    return str(rows[0]["id"]) if rows else "1"


async def _rest(asked: _Calls) -> None:
    """Credentials, and what not every plan has: n8n says so."""
    await asked("get_credential_schema", "accessToken", credentialTypeName="githubApi")
    kept = await asked(
        "create_credential", "Shop", name="Shop", type="httpHeaderAuth", data={"name": "X-Key", "value": "k"}
    )
    await asked("delete_credential", id=str(kept.get("id", "")))
    for tool, arguments in (
        ("list_variables", {}),
        ("create_variable", {"key": "SHOP_URL", "value": "https://shop.example.com"}),
        ("update_variable", {"id": "5", "key": "SHOP_URL", "value": "https://shop.example.com"}),
        ("delete_variable", {"id": "5"}),
        ("list_projects", {}),
    ):
        await asked(tool, "403", refused=True, **arguments)
    await asked("list_users", "ada@example.com")
    await asked("audit_instance")
