"""`mcpfactory dashboard`: what it refuses before it listens."""

from __future__ import annotations

import socket


def test_acting_needs_tokens_that_others_cannot_read_and_loopback(empty):
    (empty.folder / "mcpfactory.toml").write_text('[workspace]\nname = "shop"\n')
    file = empty.folder / "tokens"
    file.write_text("Ada: ada-token-0123456789\n")
    file.chmod(0o644)
    for options, code, words in (
        (("--allow-actions",), 4, "no token found"),
        (("--allow-actions", "--token-file", "tokens"), 4, "chmod 600"),
        (("--token-file", "tokens"), 2, "--allow-actions"),
        (("--allow-actions", "--host", "0.0.0.0"), 2, "loopback"),
        (("--proxy-header", "X-User"), 2, "--allow-actions"),
        (("--allow-actions", "--proxy-header", "X-User"), 4, "PROXY_SECRET is not set"),
        (("--public-url", "factory.example.org"), 4, "not a valid URL of a dashboard"),
    ):
        done = empty("dashboard", *options)
        assert (done.code, done.out) == (code, ""), options
        assert words in done.err


def test_who_may_read_is_said_where_others_reach_it(empty):
    (empty.folder / "mcpfactory.toml").write_text('[workspace]\nname = "shop"\n')
    with socket.create_server(("0.0.0.0", 0)) as taken:
        port = str(taken.getsockname()[1])
        open_to_all = empty("dashboard", "--host", "0.0.0.0", "--port", port)
        named = empty("dashboard", "--host", "0.0.0.0", "--port", port, "--public-url", "https://factory.example.org")
        own = empty("dashboard", "--port", port)
    for done in (open_to_all, named):
        assert "anyone who can reach 0.0.0.0 can read the dashboard" in done.err
    assert "set --public-url URL to the address" in open_to_all.err
    assert "--public-url" not in named.err
    assert "may read" not in own.err
