"""What we say to each finding of severity 3 and more about a public server: why it stands, in words that its authors would accept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from benchmarks.public_servers.examination import WRONG, Examined

__all__ = ["VERDICTS", "Verdict", "stale", "undefended"]


class Verdict(NamedTuple):
    """The servers that a rule speaks of, and why it does so rightly."""

    rule: str
    servers: tuple[str, ...]
    why: str


VERDICTS: Final[tuple[Verdict, ...]] = (
    Verdict(
        "security.canary",
        ("everything",),
        "The tool hands all environment variables to the model. That is what it is made for, and its authors say that the server is for "
        "tests of clients only; whoever runs it with a secret in reach gives that away, so no channel takes it.",
    ),
    Verdict(
        "startup.stdout",
        ("azure",),
        "The transport says that a server must not write anything to stdout that is no message. What the launcher found out "
        "about X displays belongs on stderr; some clients end the conversation at such a line.",
    ),
    Verdict(
        "legacy.unknown-version",
        ("codex",),
        "A server that does not speak the revision that is asked for must answer with another one that it supports (basic/lifecycle). "
        "This one says yes to every text, so a client of a later revision believes that it is spoken.",
    ),
    Verdict(
        "legacy.unknown-method",
        ("sqlite", "arxiv", "calculator"),
        "A method that is not there is -32601 in JSON-RPC 2.0 (§5.1), by which clients tell a missing feature from a mistake of their own. "
        "The first major version of the Python SDK reads the method against its list of known ones, and calls the parameters invalid.",
    ),
    Verdict(
        "legacy.unknown-tool",
        ("sqlite",),
        "The name of the tool is not looked at: a tool that does not exist, called without arguments, answers as one that worked does "
        "(`isError` is false). Unknown tools are protocol errors (server/tools, Error Handling).",
    ),
    Verdict(
        "legacy.survives",
        ("kubernetes", "grafana"),
        "JSON-RPC 2.0 has an answer for text that is no JSON (§5.1). The Go SDK reads no further and answers nothing, while the process goes on: "
        "a client waits for ever. As no client may write such a line, and as only its own conversation is lost, no gate is closed.",
    ),
    Verdict(
        "legacy.responses",
        ("toolbox",),
        "A message with an id and a result is a response, and a response gets no answer in JSON-RPC 2.0 (§5). The server takes it "
        "for a request without a method; two such peers would answer each other without an end.",
    ),
    Verdict(
        "modern.cacheable",
        ("toolbox",),
        "Revision 2026-07-28, which the server names in this very answer, wants ttlMs and cacheScope in results of server/discover (server/utilities/caching).",
    ),
    Verdict(
        "conduct.log-level",
        ("firecrawl",),
        "The server declares logging and takes logging/setLevel; then it sends messages of every level. The level that was asked for is the lowest "
        "one to be sent (server/utilities/logging, Setting Log Level).",
    ),
)


def undefended(found: Mapping[str, Examined]) -> Iterator[tuple[str, str]]:
    """Server and rule of each finding that no verdict speaks of."""
    known = _pairs()
    for name, examined in found.items():
        yield from ((name, rule) for rule in examined.rules(WRONG) if (name, rule) not in known)


def stale(found: Mapping[str, Examined]) -> Iterator[tuple[str, str]]:
    """Server and rule of each verdict about a finding that is no more."""
    there = {(name, rule) for name, examined in found.items() for rule in examined.rules(WRONG)}
    yield from sorted(_pairs() - there)


def _pairs() -> set[tuple[str, str]]:
    return {(server, one.rule) for one in VERDICTS for server in one.servers}
