"""An `HttpApp` behind a port of its own, served by one process or by several. Loads the web server."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from mcpfactory_runtime.protocol.http import LOOPBACK
from mcpfactory_runtime.transports.http.app import HttpApp
from mcpfactory_runtime.transports.http.serve import listen, listen_each, print_url, serve

if TYPE_CHECKING:
    from mcpfactory_runtime.server.host import Host

__all__ = ["run_http"]


def run_http(server: Host, host: str, port: int, *, workers: int = 1, **options: Any) -> None:
    """Serve `http://host:port/mcp` until SIGINT or SIGTERM, then let requests in flight end.

    Args:
        server: who answers.
        host: address to listen on; anything but this machine needs `allowed_hosts`, else every host name is served
            and web pages are refused unless `allowed_origins` names them.
        port: 0 takes any free one; the URL is printed on stderr.
        workers: processes that serve; more than one needs fork, so not on Windows.
        options: those of `HttpApp`. Without `event_store`, MCPFACTORY_EVENTS_DB names the file of one.

    Raises:
        OSError: the address cannot be listened on.
        ValueError: an option is wrong.
    """
    if host not in LOOPBACK | {"::1"}:
        options.setdefault("allowed_hosts", ("*",))
    path = os.environ.get("MCPFACTORY_EVENTS_DB")
    if path and options.get("event_store") is None:
        from mcpfactory_runtime.transports.http.sqlite_events import SqliteEventStore  # noqa: PLC0415 - SQLite is for those who ask for it

        options["event_store"] = SqliteEventStore(path)
    if workers < 1 or (workers > 1 and not hasattr(os, "fork")):
        raise ValueError(f"{workers} worker processes are not possible here\nhint: leave workers= out")
    app = HttpApp(server, **options)
    if workers == 1:
        listener = listen(host, port)
        print_url(server.name, listener, host, app.path)
        serve(app, listener)
        return
    from mcpfactory_runtime.transports.http.workers import run_workers  # noqa: PLC0415 - for those who want several

    listeners = listen_each(host, port, workers)
    print_url(server.name, listeners[0], host, app.path, f" by {workers} processes")
    run_workers(server.name, lambda others: HttpApp(server, relay=others, **options), listeners)
