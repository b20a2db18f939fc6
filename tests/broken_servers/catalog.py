"""Catalog of broken servers: each has one fault, and names the rule that must report it."""

from __future__ import annotations

from tests.broken_servers import (
    api_failures,
    batches,
    canaries,
    changed_answers,
    consent,
    http_defects,
    input_requests,
    lax_validation,
    notification_streams,
    packages,
    performance,
    protocol,
    repeated_calls,
    server_messages,
    tool_calls,
    tool_declarations,
)
from tests.broken_servers.healthy import SampleServer

_BASES = (
    SampleServer,
    http_defects.Served,
    changed_answers.Changed,
    server_messages.Talkative,
    tool_declarations.Reschemed,
    packages.Packaged,
    canaries.Reading,
    input_requests.Asking,
    lax_validation.Lax,
)


def servers() -> dict[str, type[SampleServer]]:
    """Return every server by name, in the order of the files."""
    modules = (
        protocol,
        batches,
        notification_streams,
        changed_answers,
        tool_declarations,
        tool_calls,
        lax_validation,
        repeated_calls,
        consent,
        input_requests,
        server_messages,
        packages,
        api_failures,
        performance,
        canaries,
    )
    kinds = [kind for module in modules for kind in vars(module).values()]
    return (
        changed_answers.answering()
        | http_defects.served()
        | tool_declarations.declaring()
        | server_messages.speaking()
        | lax_validation.lax()
        | {
            kind.__name__: kind
            for kind in kinds
            if isinstance(kind, type) and issubclass(kind, SampleServer) and kind not in _BASES
        }
    )
