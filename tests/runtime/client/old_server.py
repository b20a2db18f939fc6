"""A server of the handshake lifecycle alone, in plain Python: what an old peer does, and what a bad one does.

The first argument chooses: `old` (as it should be), `deaf` (ignores unknown methods), `stubborn` (stays after its input
ended), `dying` (ends at the first call), `noisy` (writes text between its messages), `late` (serves requests by themselves, and starts
so slowly that its first answer is not waited for; in the version `none` it never answers).
"""

from __future__ import annotations

import json
import signal
import sys
from typing import Any

MANNER = sys.argv[1]
VERSION = sys.argv[2]


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def ask(method: str, params: dict[str, Any]) -> dict[str, Any]:
    say({"id": "s1", "method": method, "params": params})
    answer: dict[str, Any] = json.loads(sys.stdin.readline())
    return answer


def call(request_id: Any, params: dict[str, Any]) -> dict[str, Any]:
    name = params["name"]
    if name == "ask":
        answer = ask(params["arguments"]["method"], {"message": "who?"})
        return {"content": [{"type": "text", "text": json.dumps(answer, sort_keys=True)}]}
    if name == "wait":
        cancelled = json.loads(sys.stdin.readline())
        sys.stderr.write(f"{cancelled['method']} {cancelled['params']['requestId'] == request_id}\n")
        return {"content": []}
    return {"content": [], "isError": True}


def page(params: dict[str, Any]) -> dict[str, Any]:
    cursor = params.get("cursor", "")
    if cursor == "loop":
        return {"tools": [], "nextCursor": "loop"}
    at = int(cursor or 0)
    tool = {"name": f"tool{at}", "inputSchema": {"type": "object"}}
    return {"tools": [tool]} if at == 2 else {"tools": [tool], "nextCursor": str(at + 1)}


def answer(message: dict[str, Any]) -> dict[str, Any] | None:
    method, params = message["method"], message.get("params", {})
    if method == "initialize":
        info = {"name": MANNER, "version": "1"}
        return {"protocolVersion": VERSION, "capabilities": {"tools": {}}, "serverInfo": info, "instructions": "old"}
    if method == "tools/list":
        return page(params)
    if method == "tools/call":
        return call(message["id"], params)
    return {} if method == "ping" else None


def answer_late(message: dict[str, Any], earlier: int) -> dict[str, Any]:
    if message["method"] == "initialize":
        return {"error": {"code": -32600, "message": "the initialize handshake is not accepted"}}
    assert message["method"] == "server/discover"
    result = {
        "supportedVersions": [VERSION],
        "capabilities": {},
        "resultType": "complete",
        "ttlMs": 0,
        "cacheScope": "private",
    }
    return {"result": result} if earlier and VERSION != "none" else {}


def main() -> None:
    sys.stderr.write("started\n")
    sys.stderr.flush()
    earlier = 0
    for line in iter(sys.stdin.readline, ""):
        message = json.loads(line)
        if MANNER == "noisy":
            sys.stdout.write("a stray print\n")
        if MANNER == "dying" and message["method"] == "tools/call":
            sys.exit("out of paper")
        if "id" not in message:
            continue
        if MANNER == "late":
            if told := answer_late(message, earlier):
                say({"id": message["id"], **told})
            earlier += 1
            continue
        result = answer(message)
        if result is not None:
            say({"id": message["id"], "result": result})
        elif MANNER != "deaf":
            say({"id": message["id"], "error": {"code": -32601, "message": "Method not found"}})
    if MANNER == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        sys.stdout.flush()
        signal.pause()


main()
