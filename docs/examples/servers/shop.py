"""A server inside of a FastAPI application: the same functions for people's programs and for models.

python shop.py 8000        # GET http://127.0.0.1:8000/stock/tea, and MCP at http://127.0.0.1:8000/mcp
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator

import uvicorn
from fastapi import FastAPI, HTTPException

from mcpfactory_runtime import Context, Server, ToolError

server = Server("shop", version="1")


@server.lifespan
async def opened(_: Server) -> AsyncIterator[dict[str, int]]:
    """The stock, as long as the application lives."""
    yield STOCK
    STOCK.clear()


STOCK = {"tea": 12, "milk": 3}


@server.tool(annotations={"readOnlyHint": True})
async def count(item: str, ctx: Context) -> int:
    """Say how many of an item are in stock."""
    stock: dict[str, int] = ctx.state
    if item not in stock:
        raise ToolError(f"There is no {item}.")
    return stock[item]


@server.tool
async def sell(item: str, ctx: Context, number: int = 1) -> int:
    """Sell some of an item, and say how many are left."""
    stock: dict[str, int] = ctx.state
    if stock.get(item, 0) < number:
        raise ToolError(f"There are not {number} of {item}.")
    stock[item] -= number
    return stock[item]


mcp = server.http_app()
app = FastAPI(
    title="shop", lifespan=mcp.lifespan
)  # the server's own lifespan is entered and left with the application's


@app.get("/stock/{item}")
async def read_stock(item: str) -> dict[str, int]:
    """The same for programs."""
    if item not in STOCK:
        raise HTTPException(404, f"There is no {item}.")
    return {item: STOCK[item]}


app.mount("/", mcp)  # last: it answers every other path

if __name__ == "__main__":
    uvicorn.run(app, port=int(sys.argv[1]), log_level="info")
