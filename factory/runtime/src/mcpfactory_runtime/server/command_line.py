"""Command line of a server (`python -m my_server`)."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol

from mcpfactory_runtime.schemas.client_limits import DIALECTS
from mcpfactory_runtime.server.generated.catalog import MODES, CatalogError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from mcpfactory_runtime.server.extensions import Extensions

_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})


class _Runnable(Protocol):  # the methods are documented at `Server`, which this module must not import
    name: str
    version: str
    extensions: Extensions

    @property
    def rates(self) -> object: ...
    def add_metrics(self) -> None: ...
    def add_json_log(self) -> None: ...
    def export_telemetry(self) -> None: ...
    def run_stdio(self) -> None: ...
    def run_http(self, host: str, port: int, **options: Any) -> None: ...


def run(server: _Runnable, arguments: Sequence[str] | None) -> None:
    """Run a server's command line. Exit with status 2 if an argument is invalid."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        server.rates  # noqa: B018 - reports an invalid MCPFACTORY_RATES now, not at the first request
    except ValueError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(2)
    catalog = server.extensions.catalog
    # A server without options must start fast, so argparse is not loaded.
    if not given and not (catalog and catalog.environment_error):
        server.run_stdio()
        return
    if given[:1] in (["login"], ["logout"]):
        _log_in_or_out(server, given)
    from argparse import ArgumentParser  # noqa: PLC0415 - see above

    parser = ArgumentParser(
        description=f"{server.name}: an MCP server. Without options, it serves stdio.",
        epilog="`login` and `logout` apply to the API behind the server, and have their own options.",
    )
    parser.add_argument("--version", action="version", version=f"{server.name} {server.version}")
    parser.add_argument("--http", action="store_true", help="serve Streamable HTTP instead of stdio")
    parser.add_argument("--host", default="127.0.0.1", help="listen on this address (default: %(default)s)")
    parser.add_argument(
        "--port", type=int, default=8000, help="listen on this port; 0: any free port (default: %(default)s)"
    )
    parser.add_argument("--open", action="store_true", help="with --http: allow all callers on a non-loopback address")
    parser.add_argument("--metrics", action="store_true", help="with --http: serve Prometheus metrics at /metrics")
    parser.add_argument(
        "--store",
        help="share state between processes in this store: redis://HOST:PORT/0 or sqlite:///FILE (default: MCPFACTORY_STORE)",
    )
    parser.add_argument(
        "--log-format",
        choices=("text", "json"),
        default="text",
        help="json: write the log as JSON lines, with a line for each request",
    )
    parser.add_argument(
        "--otel",
        action="store_true",
        help="export traces and metrics over OTLP; the OTEL_* variables configure the export",
    )
    parser.add_argument(
        "--workers", type=int, default=1, help="serve HTTP with this number of processes (default: %(default)s)"
    )
    if catalog:
        parser.add_argument(
            "--mode", help=f"offer all tools, or three tools that find, describe and call them: {' or '.join(MODES)}"
        )
        parser.add_argument("--profile", help=f"offer only the tools of this profile: {', '.join(catalog.profiles)}")
    parser.add_argument("--dialect", help=f"list tools within the limits of these clients: {', '.join(DIALECTS)}")
    options = parser.parse_args(given)
    if catalog and catalog.environment_error:
        parser.error(catalog.environment_error)
    try:
        if catalog:
            catalog.select(options.mode, options.profile, options.dialect)
        else:
            server.extensions.offer(dialect=options.dialect)
    except CatalogError as error:
        parser.error(str(error))
    _observe(server, parser, options)
    if options.http:
        _serve_http(server, parser, options)
    else:
        server.run_stdio()


def _serve_http(server: _Runnable, parser: ArgumentParser, options: Namespace) -> None:
    from mcpfactory_runtime.storage.base import StoreError  # noqa: PLC0415 - stdio needs none

    authorization = _authorization(parser)
    if not (authorization or options.open or options.host in _LOOPBACK):
        parser.error(
            f"{options.host} can be reached from other machines, and no authorization is configured\nhint: set "
            "MCPFACTORY_AUTH_PROVIDER (or _ISSUER, _JWKS_URL and _RESOURCE), or use --open to serve everyone"
        )
    try:
        server.run_http(options.host, options.port, workers=options.workers, store=options.store, **authorization)
    except ModuleNotFoundError as error:
        if error.name != "uvicorn":  # the server's own code imports a missing module
            raise
        parser.error("--http needs uvicorn, which is not installed\nhint: pip install 'mcpfactory-runtime[http]'")
    except StoreError as error:
        parser.exit(2, f"error: {error}\n")
    except OSError as error:  # for example, another process uses the address
        from mcpfactory_runtime.transports.http.serve import listening_hint  # noqa: PLC0415 - loaded by run_http

        where = f"cannot listen on {options.host}:{options.port}: {error.strerror or error}"
        parser.exit(2, f"error: {where}\nhint: {listening_hint(error)}\n")
    except (ValueError, OverflowError) as error:
        hint = "" if "hint:" in str(error) else "\nhint: use --port with 0 to 65535 (0: any free port)"
        parser.error(f"{error}{hint}")


def _observe(server: _Runnable, parser: ArgumentParser, options: Namespace) -> None:
    if options.metrics and not options.http:
        parser.error("--metrics needs --http: metrics are served over HTTP\nhint: use --http --metrics")
    if options.log_format == "json":
        server.add_json_log()
    try:
        if options.metrics:
            server.add_metrics()
        if options.otel:
            server.export_telemetry()
    except RuntimeError as error:  # an optional library is not installed
        parser.error(str(error))


def _log_in_or_out(server: _Runnable, given: Sequence[str]) -> NoReturn:
    if not server.extensions.packages:
        message = f"error: {server.name} has no API to log in to\nhint: log in only to servers that call an API"
        print(message, file=sys.stderr)  # noqa: T201 - a command for people
        sys.exit(1)
    from importlib import import_module  # noqa: PLC0415 - for this command only

    from mcpfactory_runtime.upstream.login import run  # noqa: PLC0415 - loads the HTTP client

    upstreams = [import_module(f"{package}.api").upstream() for package in server.extensions.packages]
    run(server.name, upstreams, given)


def _authorization(parser: ArgumentParser) -> dict[str, Any]:
    if not any(name.startswith("MCPFACTORY_AUTH_") for name in os.environ):
        return {}
    from mcpfactory_runtime.auth import AuthorizationError  # noqa: PLC0415 - for protected servers only
    from mcpfactory_runtime.server.auth_environment import read_auth_environment, remove_environment_secrets  # noqa: PLC0415 - likewise

    try:
        found = read_auth_environment(os.environ)
    except (AuthorizationError, RuntimeError) as error:
        parser.error(str(error))
    remove_environment_secrets()
    return {"auth": found}
