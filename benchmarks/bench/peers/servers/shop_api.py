"""An API as people write it with FastAPI: `python shop_api.py NAME`. Prints its URL; `/seen` has the keys that it was shown."""

import socket
import sys

import uvicorn
from fastapi import Depends, FastAPI
from fastapi.security import APIKeyHeader

name, seen = sys.argv[1], []
app, key = FastAPI(title=name), APIKeyHeader(name="X-Key", scheme_name="apiKey")


@app.get("/books/{number}")
def get_book(number: int, secret: str = Depends(key)) -> dict[str, object]:
    """Get one book."""
    seen.append(secret)
    return {"api": name, "number": number}


@app.get("/seen", include_in_schema=False)
def what_was_seen() -> list[str]:
    """The keys, in their order."""
    return seen


if __name__ == "__main__":
    listening = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listening])
