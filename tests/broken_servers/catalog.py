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
    reads,
    repeated_calls,
    server_messages,
    tasks,
    tool_calls,
    tool_declarations,
)
from tests.broken_servers.healthy import SampleServer

_BASES = (
    SampleServer,
    http_defects.Served,
    reads.Templated,
    changed_answers.Changed,
    server_messages.Talkative,
    tool_declarations.Reschemed,
    packages.Packaged,
    canaries.Reading,
    input_requests.Asking,
    tasks.Errand,
    lax_validation.Lax,
)


def servers() -> dict[str, type[SampleServer]]:
    """Return every server by name, in the order of the files."""
    modules = (
        protocol,
        reads,
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
        tasks,
        packages,
        api_failures,
        performance,
        canaries,
    )
    kinds = [
        kind
        for module in modules
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, SampleServer) and kind not in _BASES
    ]
    tables = (
        changed_answers.answering(),
        http_defects.served(),
        tool_declarations.declaring(),
        server_messages.speaking(),
        tasks.errands(),
        lax_validation.lax(),
        {kind.__name__: kind for kind in kinds},
    )
    found = {name: kind for table in tables for name, kind in table.items()}
    assert len(found) == len(set(kinds)) + sum(map(len, tables[:-1])), "two servers have the same name"
    return found
