from __future__ import annotations

from mcpfactory import output
from mcpfactory.operations import command_of, print_result
from mcpfactory_pipeline.operations.install import ClientsResult, Install


def _show(done: ClientsResult) -> None:
    """Print the changes of each client, or the table of installed servers."""
    if done.installed:
        output.table(
            ("CLIENT", "SCOPE", "NAME", "SERVER", "FROM", "VERSION", "STATE"),
            [
                (
                    *(one["client"], one["scope"]),
                    *(one[name] or "-" for name in ("name", "server", "source", "version")),
                    ": ".join(filter(None, (one["state"], one["message"]))),
                )
                for one in done.installed
            ],
        )
    else:
        print_result(done)


install = command_of(Install, _show)
