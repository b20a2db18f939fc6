"""Our client as the official conformance suite examines it: `conformance_client.py <url>`.

The suite names the scenario in MCP_CONFORMANCE_SCENARIO, the revision in MCP_CONFORMANCE_PROTOCOL_VERSION, and what the
scenario needs (calls to make, credentials) as JSON in MCP_CONFORMANCE_CONTEXT. Exit code 0 means that all went as meant.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from mcpfactory_runtime.client import Client, accept_defaults
from mcpfactory_runtime.client.oauth import OAuth
from mcpfactory_runtime.oauth.grants import IdentityProvider, PrivateKey, Workload
from mcpfactory_runtime.oauth.steps_and_metadata import OAuthError
from mcpfactory_runtime.revisions import MODERN

Json = dict[str, Any]
Play = Callable[[Client, Json], Awaitable[None]]


async def add(client: Client, _context: Json) -> None:
    """List the tools and add two numbers."""
    await client.list_tools()
    await client.call_tool("add_numbers", {"a": 5, "b": 3})


async def look(client: Client, _context: Json) -> None:
    """List the tools."""
    await client.list_tools()


async def call_all(client: Client, _context: Json) -> None:
    """Call every tool that the client shows, with values of the right types."""
    samples = {"string": "x", "integer": 1, "number": 1.5, "boolean": True, "array": [], "object": {}, "null": None}
    for tool in await client.list_tools():
        properties = tool["inputSchema"].get("properties", {})
        arguments = {name: samples.get(str(schema.get("type"))) for name, schema in properties.items()}
        await client.call_tool(tool["name"], arguments)


async def touch_everything(client: Client, context: Json) -> None:
    """Every list, and the first of everything in it."""
    await call_all(client, context)
    for resource in await client.list_resources():
        await client.read_resource(resource["uri"])
    for prompt in await client.list_prompts():
        await client.get_prompt(prompt["name"])


async def replay(client: Client, context: Json) -> None:
    """Make the calls that the context wants."""
    await client.list_tools()
    for call in context["toolCalls"]:
        await client.call_tool(call["name"], call["arguments"])


async def echo_schema(client: Client, _context: Json) -> None:
    """Send a tool's schema back as it came."""
    tools = {tool["name"]: tool for tool in await client.list_tools()}
    await client.call_tool("json_schema_echo", {"schema": tools["json_schema_2020_12_tool"]["inputSchema"]})


async def rounds(client: Client, _context: Json) -> None:
    """Calls in several rounds, and one beside them that has nothing to do with them."""
    await client.list_tools()
    await asyncio.gather(client.call_tool("test_mrtr_echo_state"), client.call_tool("test_mrtr_unrelated"))
    await client.call_tool("test_mrtr_no_state")
    await client.call_tool("test_mrtr_no_result_type")


async def use(client: Client, _context: Json) -> None:
    """List the tools and call one; what is examined is how the client comes by its tokens."""
    await client.list_tools()
    await client.call_tool("test-tool")


async def browse(url: str) -> str:
    """A browser whose person always agrees."""
    parts = urlsplit(url)

    def visit() -> str:
        connection = http.client.HTTPConnection(parts.netloc, timeout=10)
        connection.request("GET", f"{parts.path}?{parts.query}")
        with connection.getresponse() as response:
            connection.close()
            return response.headers["Location"]

    return await asyncio.to_thread(visit)


def issuer_of(url: str) -> str:
    """The authorization server that an examined server names: the suite gives a secret without saying whose it is."""
    parts = urlsplit(url)
    for place in (f"/.well-known/oauth-protected-resource{parts.path}", "/.well-known/oauth-protected-resource"):
        connection = http.client.HTTPConnection(parts.netloc, timeout=10)
        connection.request("GET", place)
        with connection.getresponse() as response:
            data = response.read() if response.status == 200 else b""
        connection.close()
        if data:
            return str(json.loads(data)["authorization_servers"][0])
    return f"{parts.scheme}://{parts.netloc}"


def key_in(context: Json) -> PrivateKey | None:
    """The key that the context gives."""
    pem = context.get("private_key_pem")
    return PrivateKey(pem, context["signing_algorithm"]) if pem else None


def assertion_in(context: Json) -> Workload | IdentityProvider | None:
    """What says on whose behalf the client acts."""
    if "valid_jwt" in context:
        return Workload(lambda _issuer: str(context["valid_jwt"]))
    if "idp_id_token" in context:
        return IdentityProvider(
            context["idp_token_endpoint"], lambda: str(context["idp_id_token"]), context["idp_client_id"]
        )
    return None


PLAYS: dict[str, Play] = {
    "elicitation-sep1034-client-defaults": call_all,
    "http-custom-headers": replay,
    "http-invalid-tool-headers": call_all,
    "http-standard-headers": touch_everything,
    "initialize": look,
    "json-schema-2020-12-preservation": echo_schema,
    "json-schema-ref-no-deref": look,
    "request-metadata": look,
    "sep-2322-client-request-state": rounds,
    "sse-retry": call_all,
    "tools_call": add,
}


async def main() -> None:
    """Plays the scenario."""
    scenario = os.environ["MCP_CONFORMANCE_SCENARIO"]
    revision = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "")
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    options: Json = {
        "revision": "" if revision in MODERN else revision,  # the newest is found, not wished for
        "elicitation": accept_defaults,
        "sampling": lambda _params: {"role": "assistant", "content": {"type": "text", "text": "tea"}, "model": "none"},
        "roots": [{"uri": "file:///tmp"}],
        "oauth": OAuth(
            None if "client-credentials" in scenario or "wif" in scenario or "enterprise" in scenario else browse,
            redirect_uri="http://localhost:3000/callback",
            client_id=context.get("client_id", ""),
            client_secret=context.get("client_secret", ""),
            issuer=issuer_of(sys.argv[-1]) if context.get("client_secret") or "valid_jwt" in context else "",
            private_key=key_in(context),
            assertion=assertion_in(context),
            document="https://conformance-test.local/client-metadata.json",
        ),
    }
    async with Client.connect_http(sys.argv[-1], **options) as client:
        await PLAYS.get(scenario, use)(client, context)


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except OAuthError as error:  # some scenarios want to see this one
        sys.exit(f"no token: {error} [{error.code}]")
