from __future__ import annotations

import sys
from importlib.resources import files
from typing import Annotated, Final

import typer

from mcpfactory import output
from mcpfactory_runtime.errors import Exit

_HOST: Final = "127.0.0.1"
_PORT: Final = 8642  # as in the document


def demo_api(
    port: Annotated[int, typer.Option(metavar="PORT", help="Listen on this port (0 selects a free port)")] = _PORT,
) -> None:
    """Start the example API of the tutorial, a bookshop.

    The API listens on loopback until Ctrl-C, and serves its OpenAPI document. Changes are lost at the end.
    """
    import uvicorn
    from starlette.responses import PlainTextResponse

    from mcpfactory._bookshop.service import KEY, bookshop
    from mcpfactory_runtime.transports.http.serve import listen, listening_hint

    try:
        listener = listen(_HOST, port)
    except OSError as error:
        output.fail(f"cannot listen on {_HOST}:{port}: {error.strerror}", listening_hint(error), Exit.BAD_INPUT)
    where = f"{_HOST}:{listener.getsockname()[1]}"
    text = files("mcpfactory._bookshop").joinpath("openapi.yaml").read_text("utf-8").replace(f"{_HOST}:{_PORT}", where)
    app = bookshop()
    app.add_route("/openapi.yaml", lambda _request: PlainTextResponse(text, media_type="application/yaml"))
    output.line(f"bookshop API: http://{where}/v1  (API key {KEY!r}; Ctrl-C ends it)")
    output.line(f"next: mcpfactory new --from-openapi http://{where}/openapi.yaml --name bookshop")
    sys.stdout.flush()
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])
