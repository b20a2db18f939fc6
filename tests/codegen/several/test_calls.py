"""Calls of a server of two documents: each arrives at its own document's host, with that document's credentials and no others."""

from __future__ import annotations

import asyncio
import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

from mcpfactory_codegen.servers.create import create_server
from mcpfactory_runtime.testing import connect
from mcpfactory_runtime.upstream import StubUpstream
from tests.codegen.several.documents import document, written

LIST = "GET /items listItems"
ANSWER = {"status": 200, "content_type": "application/json", "body": {"id": "1"}}
CASES = [{"tool": "list_items", "request": {"method": "GET", "path": "/items"}, "response": ANSWER}]
TOKENS = {"MCPF_ACME_ORDERS_TOKEN": "token-of-orders", "MCPF_ACME_STOCK_TOKEN": "token-of-stock"}


def called(folder: Path, patch: pytest.MonkeyPatch, **options: Any) -> tuple[list[str], dict[str, list[str]]]:
    """Call both tools; gives what they answered, and the credentials that each upstream was shown."""
    documents = {label: document(label, f"https://{label}.test", LIST) for label in ("orders", "stock")}
    sources = [f"{label}={path}" for label, path in written(folder, **documents).items()]
    made = create_server(folder / "servers", name="acme", source=sources, **options).path
    patch.syspath_prepend(str(made / "src"))

    async def run() -> tuple[list[str], dict[str, list[str]]]:
        module = importlib.import_module("acme_mcp.server")
        api = importlib.import_module("acme_mcp._generated.api")
        async with StubUpstream(CASES) as orders, StubUpstream(CASES) as stock, api.upstream():
            patch.setenv("MCPF_ACME_ORDERS_BASE_URL", orders.base_url)
            patch.setenv("MCPF_ACME_STOCK_BASE_URL", stock.base_url)
            async with connect(module.server) as client:
                results = [await client.call_tool(f"{label}_list_items", {}) for label in documents]
            stubs = {"orders": orders, "stock": stock}
            shown = {
                label: [dict(one.headers)["authorization"] for one in stub.requests] for label, stub in stubs.items()
            }
            return [str(result["content"][0]["text"]) for result in results], shown

    try:
        return asyncio.run(run())
    finally:
        for name in [name for name in sys.modules if name.split(".")[0] == "acme_mcp"]:
            del sys.modules[name]


def test_each_call_reaches_its_own_host_with_its_own_credentials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in TOKENS.items():
        monkeypatch.setenv(name, value)
    texts, shown = called(tmp_path, monkeypatch)
    assert texts == ['{"id":"1"}'] * 2
    assert shown == {"orders": ["Bearer token-of-orders"], "stock": ["Bearer token-of-stock"]}


def test_a_document_without_credentials_is_not_called_with_those_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCPF_ACME_ORDERS_TOKEN", "token-of-orders")
    monkeypatch.setenv("MCPF_ACME_TOKEN", "token-of-nobody")
    texts, shown = called(tmp_path, monkeypatch)
    assert "MCPF_ACME_STOCK_TOKEN" in texts[1]
    assert shown == {"orders": ["Bearer token-of-orders"], "stock": []}


def test_credentials_that_the_person_shares_are_shown_to_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCPF_ACME_TOKEN", "token-of-all")
    _, shown = called(tmp_path, monkeypatch, credentials="shared")
    assert shown == {"orders": ["Bearer token-of-all"], "stock": ["Bearer token-of-all"]}
