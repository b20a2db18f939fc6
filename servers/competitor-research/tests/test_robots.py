"""Tests of robots.txt (RFC 9309)."""

from __future__ import annotations

import pytest

from competitor_research_mcp.robots import parse_robots

AGENT = "competitor-research-mcp"


@pytest.mark.parametrize(
    ("rules", "path", "allowed"),
    [
        ("Disallow: /", "/a", False),
        ("Disallow:", "/a", True),
        ("Disallow: /a\nAllow: /a/b", "/a/b/c", True),
        ("Allow: /a/b\nDisallow: /a", "/a/b/c", True),
        ("Disallow: /a/b\nAllow: /a", "/a/b/c", False),
        ("Disallow: /page\nAllow: /page", "/page", True),
        ("Disallow: /*.pdf$", "/x/y.pdf", False),
        ("Disallow: /*.pdf$", "/x/y.pdf?v=1", True),
        ("Disallow: /*?sort=", "/list?page=2", True),
        ("Disallow: /*?sort=", "/list?sort=price", False),
        ("Disallow: /fish$", "/fish", False),
        ("Disallow: /fish$", "/fishing", True),
        ("Disallow: /a*b*c", "/aXbYc", False),
        ("Disallow: /a*b$", "/aXbXb", False),
        ("Disallow: /caf%C3%A9", "/café", False),
        ("Disallow: /%7Euser", "/~user", False),
        ("Disallow: /a%2Fb", "/a/b", True),
        ("Disallow: /", "/robots.txt", True),
        ("disallow : /x # why", "/x", False),
    ],
)
def test_the_longest_rule_decides(rules: str, path: str, allowed: bool) -> None:
    assert parse_robots(f"User-agent: *\n{rules}\n", AGENT).allows(f"https://example.com{path}") is allowed


def test_the_group_that_names_the_program_counts_and_no_other() -> None:
    text = f"User-agent: *\nDisallow: /\n\nUser-agent: other\nUser-agent: {AGENT.upper()}\nDisallow: /x\nCrawl-delay: 2.5\n\nUser-agent: {AGENT}\nDisallow: /y\n"
    robots = parse_robots(text, AGENT)
    assert [robots.allows(f"https://e.com/{path}") for path in "axy"] == [True, False, False]
    assert (robots.delay, robots.group) == (2.5, "named")


def test_rules_before_any_group_and_nonsense_are_left_out() -> None:
    robots = parse_robots(
        "\ufeffDisallow: /\n<html>\nUser-agent: *\nCrawl-delay: soon\nSitemap: https://e.com/s.xml\nDisallow: /b\n",
        AGENT,
    )
    assert robots.allows("https://e.com/a")
    assert not robots.allows("https://e.com/b")
    assert robots.sitemaps == ("https://e.com/s.xml",)


def test_a_delay_has_a_bound() -> None:
    assert parse_robots("User-agent: *\nCrawl-delay: 86400", AGENT).delay == 60


def test_hostile_patterns_take_no_time() -> None:
    text = "User-agent: *\n" + f"Disallow: /{'*a' * 500}b$\n" * 50
    assert parse_robots(text, AGENT).allows(f"https://e.com/{'a' * 2000}")
