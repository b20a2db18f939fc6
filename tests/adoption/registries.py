"""Minimal third-party servers, and registries on loopback with their packages."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from tests import loopback_server
from tests.written_packages import tarball, wheel_name

NODE_SERVER = r"""#!/usr/bin/env node
const fs = require("fs"), path = require("path");
const words = fs.readFileSync(path.join(__dirname, "words.json"), "utf8");
const greeting = JSON.parse(words).greeting;
const tools = [{
  name: "greet", description: "Greets a person by name and says how long the name is.",
  inputSchema: {type: "object", properties: {name: {type: "string", description: "Whom to greet"}}, required: ["name"]},
  annotations: {readOnlyHint: true, openWorldHint: false},
}];
function answer(method, params) {
  if (method === "initialize") return {result: {protocolVersion: "2025-06-18", capabilities: {tools: {}}, serverInfo: {name: "greeter", version: "VERSION"}}};
  if (method === "ping") return {result: {}};
  if (method === "tools/list") return {result: {tools}};
  if (method === "tools/call") {
    if (!params || params.name !== "greet") return {error: {code: -32602, message: `Unknown tool: ${params && params.name}`}};
    const name = (params.arguments || {}).name;
    if (typeof name !== "string") return {result: {content: [{type: "text", text: "name must be a string"}], isError: true}};
    return {result: {content: [{type: "text", text: `${greeting}, ${name} (${name.length})`}]}};
  }
  return {error: {code: -32601, message: `Method not found: ${method}`}};
}
require("readline").createInterface({input: process.stdin}).on("line", line => {
  let message;
  try { message = JSON.parse(line); } catch { message = undefined; }
  if (message === undefined) return console.log(JSON.stringify({jsonrpc: "2.0", id: null, error: {code: -32700, message: "Parse error"}}));
  if (message === null || typeof message !== "object" || message.jsonrpc !== "2.0" || typeof message.method !== "string") {
    if (message && ("result" in message || "error" in message)) return;
    return console.log(JSON.stringify({jsonrpc: "2.0", id: (message && message.id) || null, error: {code: -32600, message: "Invalid Request"}}));
  }
  if (!("id" in message)) return;
  console.log(JSON.stringify({jsonrpc: "2.0", id: message.id, ...answer(message.method, message.params)}));
}).on("close", () => process.exit(0));
"""


def node_files(version: str = "1.0.0", greeting: str = "Hello") -> dict[str, str]:
    """Return the files of a Node.js server without dependencies."""
    return {"greeter.js": NODE_SERVER.replace("VERSION", version), "words.json": json.dumps({"greeting": greeting})}


class Registry:
    """A package index and npm registry in one, on loopback. Its packages can be replaced at run time."""

    def __init__(self) -> None:
        self.wheels: dict[str, dict[str, bytes]] = {}  # project → file → bytes
        self.tarballs: dict[str, dict[str, bytes]] = {}  # package → version → bytes
        self.manifests: dict[tuple[str, str], dict] = {}
        self.url = ""
        self.asked: list[str] = []  # paths, in order

    def add_wheel(self, name: str, version: str, data: bytes) -> None:
        self.wheels.setdefault(name, {})[wheel_name(name, version)] = data

    def add_tarball(self, package: dict, files: Mapping[str, str]) -> None:
        data = tarball({"package.json": json.dumps(package), **files})
        self.tarballs.setdefault(package["name"], {})[package["version"]] = data
        self.manifests[package["name"], package["version"]] = package

    def answer(self, path: str) -> tuple[str, bytes] | None:
        """Return the media type and the bytes at a path."""
        self.asked.append(path)
        parts = [
            part for part in path.split("?", maxsplit=1)[0].replace("%2f", "/").replace("%2F", "/").split("/") if part
        ]
        if parts[:1] == ["simple"] and len(parts) == 2 and parts[1] in self.wheels:
            links = "".join(
                f'<a href="/wheels/{parts[1]}/{file}#sha256={hashlib.sha256(data).hexdigest()}">{file}</a><br>'
                for file, data in self.wheels[parts[1]].items()
            )
            return "text/html", f"<!DOCTYPE html><html><body>{links}</body></html>".encode()
        if parts[:1] == ["wheels"]:
            return "application/octet-stream", self.wheels[parts[1]][parts[2]]
        if parts[:1] == ["tarballs"]:
            return "application/octet-stream", self.tarballs["/".join(parts[1:-1])][parts[-1]]
        if parts[:1] == ["npm"] and (name := "/".join(parts[1:])) in self.tarballs:
            return "application/json", json.dumps(self._packument(name)).encode()
        return None

    def _packument(self, name: str) -> dict:
        versions = {}
        for version, data in self.tarballs[name].items():
            digest = base64.b64encode(hashlib.sha512(data).digest()).decode()
            dist = {"tarball": f"{self.url}/tarballs/{name}/{version}", "integrity": f"sha512-{digest}"}
            versions[version] = {**self.manifests[name, version], "dist": dist}
        return {"name": name, "dist-tags": {"latest": list(versions)[-1]}, "versions": versions}


@contextmanager
def serving(registry: Registry) -> Iterator[dict[str, str]]:
    """Run the registry; yield the variables that make it the only registry of uv and npm."""

    class Handler(loopback_server.LoopbackHandler):
        def get(self) -> None:
            kind, content = registry.answer(self.path) or ("text/plain", b"")
            self.answer(200 if content else 404, content, kind)

    with loopback_server.serving(Handler) as registry.url:
        yield {
            "UV_DEFAULT_INDEX": f"{registry.url}/simple/",
            "UV_FIND_LINKS": "",
            "npm_config_registry": f"{registry.url}/npm/",
        }
