"""The floor: starlette and uvicorn answering a fixed JSON body to a POST, without any protocol."""

import sys

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

BODY = b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"3"}]}}'


async def answer(request: Request) -> Response:
    await request.body()
    return Response(BODY, media_type="application/json")


callers = set()  # who called: one for each TCP connection
THING = b'{"name":"thing","size":1,"tags":["a"]}'


async def thing(request: Request) -> Response:
    callers.add(request.client)
    return Response(THING, media_type="application/json")


async def connections(request: Request) -> Response:
    return Response(str(len(callers)))


app = Starlette(
    routes=[
        Route("/mcp", answer, methods=["POST"]),
        Route("/connections", connections, methods=["GET"]),
        Route("/{path:path}", thing, methods=["GET"]),
    ]
)

if __name__ == "__main__":
    option = dict(zip(sys.argv, sys.argv[1:], strict=False))
    uvicorn.run(
        "bare:app",
        host="127.0.0.1",
        port=int(option["--port"]),
        workers=int(option.get("--workers", "1")),
        log_level="error",
        access_log=False,
    )
