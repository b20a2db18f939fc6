"""Servers that are none of ours, as small as they can be, and registries on loopback that have packages of them."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

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
    """A server of Node.js that depends on nothing, as files."""
    return {"greeter.js": NODE_SERVER.replace("VERSION", version), "words.json": json.dumps({"greeting": greeting})}


def wheel(name: str, version: str, files: Mapping[str, str], program: str = "", needs: tuple[str, ...] = ()) -> bytes:
    """A wheel with these files."""
    info = f"{name.replace('-', '_')}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n" + "".join(
        f"Requires-Dist: {one}\n" for one in needs
    )
    members = {
        **files,
        f"{info}/METADATA": metadata,
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[console_scripts]\n{program}\n" if program else "",
    }
    rows = "".join(
        f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b'=').decode()},{len(text.encode())}\n"
        for path, text in members.items()
    )
    members[f"{info}/RECORD"] = f"{rows}{info}/RECORD,,\n"
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for path, text in members.items():
            archive.writestr(zipfile.ZipInfo(path), text)
    return out.getvalue()


def tarball(files: Mapping[str, str], top: str = "package") -> bytes:
    """A tarball: everything below one folder, for npm `package/`."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for path, text in files.items():
            member = tarfile.TarInfo(f"{top}/{path}")
            member.size, member.mode = len(text.encode()), 0o755
            archive.addfile(member, io.BytesIO(text.encode()))
    return out.getvalue()


class Registry:
    """A package index and an npm registry in one, on loopback. What it has can be replaced while it runs."""

    def __init__(self) -> None:
        self.wheels: dict[str, dict[str, bytes]] = {}  # project → file → bytes
        self.tarballs: dict[str, dict[str, bytes]] = {}  # package → version → bytes
        self.manifests: dict[tuple[str, str], dict] = {}
        self.url = ""
        self.asked: list[str] = []  # paths, in order

    def add_wheel(self, name: str, version: str, data: bytes) -> None:
        self.wheels.setdefault(name, {})[f"{name.replace('-', '_')}-{version}-py3-none-any.whl"] = data

    def add_tarball(self, package: dict, files: Mapping[str, str]) -> None:
        data = tarball({"package.json": json.dumps(package), **files})
        self.tarballs.setdefault(package["name"], {})[package["version"]] = data
        self.manifests[package["name"], package["version"]] = package

    def answer(self, path: str) -> tuple[str, bytes] | None:
        """What is at a path: its type and its bytes."""
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
    """Run it; gives the variables by which uv and npm find it, and nothing else."""

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> bytes:
            found = registry.answer(self.path)
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", found[0] if found else "text/plain")
            self.send_header("Content-Length", str(len(found[1]) if found else 0))
            self.end_headers()
            return found[1] if found else b""

        def do_GET(self) -> None:
            self.wfile.write(self.do_HEAD())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    registry.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield {
            "UV_DEFAULT_INDEX": f"{registry.url}/simple/",
            "UV_FIND_LINKS": "",
            "npm_config_registry": f"{registry.url}/npm/",
        }
    finally:
        server.shutdown()
        server.server_close()
