"""What is publicly known of packages: names that many people use, servers that nobody maintains, versions with advisories. Of November 2026."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final

from packaging.utils import canonicalize_name

from mcpfactory_pipeline.base.semver import Version

__all__ = ["ADVISORIES", "ARCHIVED", "WELL_KNOWN", "Advisory", "advisories_of", "resembled"]

WELL_KNOWN: Final[Mapping[str, frozenset[str]]] = {
    "npm": frozenset(
        [
            "@modelcontextprotocol/server-filesystem",
            "@modelcontextprotocol/server-github",
            "@modelcontextprotocol/server-memory",
            "@modelcontextprotocol/server-postgres",
            "@modelcontextprotocol/server-everything",
            "@modelcontextprotocol/server-slack",
            "@modelcontextprotocol/server-sequential-thinking",
            "@modelcontextprotocol/server-google-maps",
            "@modelcontextprotocol/server-puppeteer",
            "@modelcontextprotocol/server-brave-search",
            "@modelcontextprotocol/server-gdrive",
            "@modelcontextprotocol/server-gitlab",
            "@modelcontextprotocol/server-redis",
            "@modelcontextprotocol/inspector",
            "@playwright/mcp",
            "chrome-devtools-mcp",
            "@upstash/context7-mcp",
            "mcp-remote",
            "mcp-proxy",
            "supergateway",
            "@smithery/cli",
            "@azure/mcp",
            "@azure-devops/mcp",
            "@supabase/mcp-server-supabase",
            "@notionhq/notion-mcp-server",
            "@stripe/mcp",
            "tavily-mcp",
            "firecrawl-mcp",
            "figma-developer-mcp",
            "@sentry/mcp-server",
            "mongodb-mcp-server",
            "n8n-mcp",
            "nx-mcp",
            "@zereight/mcp-gitlab",
            "@gongrzhe/server-gmail-autoauth-mcp",
            "@wonderwhy-er/desktop-commander",
            "@salesforce/mcp",
            "@circleci/mcp-server-circleci",
            "@executeautomation/playwright-mcp-server",
            "@browserbasehq/mcp-server-browserbase",
            "exa-mcp-server",
            "@brave/brave-search-mcp-server",
            "@cloudflare/mcp-server-cloudflare",
            "@heroku/mcp-server",
            "@hubspot/mcp-server",
            "next-devtools-mcp",
            "@antv/mcp-server-chart",
            "@cocal/google-calendar-mcp",
            "@eslint/mcp",
            "@launchdarkly/mcp-server",
            "@mastra/mcp-docs-server",
            "@composio/mcp",
        ]
    ),
    "pypi": frozenset(
        [
            "mcp",
            "fastmcp",
            "mcp-server-fetch",
            "mcp-server-git",
            "mcp-server-time",
            "mcp-server-sqlite",
            "mcp-server-qdrant",
            "mcp-proxy",
            "mcp-atlassian",
            "mcpo",
            "mcp-grafana",
            "mcp-clickhouse",
            "mcp-server-motherduck",
            "mcp-server-duckdb",
            "blender-mcp",
            "postgres-mcp",
            "arxiv-mcp-server",
            "workspace-mcp",
            "markitdown-mcp",
            "duckduckgo-mcp-server",
            "excel-mcp-server",
            "office-word-mcp-server",
            "office-powerpoint-mcp-server",
            "chroma-mcp",
            "dbt-mcp",
            "awslabs-aws-documentation-mcp-server",
            "awslabs-aws-api-mcp-server",
            "awslabs-core-mcp-server",
            "snowflake-labs-mcp",
            "pagerduty-mcp",
            "opensearch-mcp-server-py",
            "databricks-mcp",
            "mcp-proxy-for-aws",
            "cli-mcp-server",
            "mysql-mcp-server",
            "ha-mcp",
            "rootly-mcp-server",
        ]
    ),
}
"""Names that a person types from memory, by registry."""

ARCHIVED: Final[Mapping[str, frozenset[str]]] = {
    "npm": frozenset(
        f"@modelcontextprotocol/server-{name}"
        for name in (
            "aws-kb-retrieval", "brave-search", "everart", "gdrive", "github", "gitlab", "google-maps", "postgres", "puppeteer", "redis",
            "slack",
        )
    ),
    "pypi": frozenset({"mcp-server-sentry", "mcp-server-sqlite"}),
}  # fmt: skip
"""Reference servers that the protocol's project has archived: no security fixes are made."""


@dataclass(frozen=True, slots=True)
class Advisory:
    """Versions of a package that are known to be unsafe: from `since` (included) up to `fixed` (not included; "" is none)."""

    registry: str
    name: str
    since: str
    fixed: str
    id: str
    says: str


ADVISORIES: Final = (
    Advisory("npm", "mcp-remote", "0.0.5", "0.1.16", "CVE-2025-6514", "a server that it connects to can run commands here"),
    Advisory("npm", "@modelcontextprotocol/inspector", "", "0.14.1", "CVE-2025-49596", "a web page can run commands here"),
    Advisory("npm", "@playwright/mcp", "", "0.0.40", "CVE-2025-9611", "a web page can call it by rebinding a name"),
    Advisory("npm", "figma-developer-mcp", "", "0.6.3", "CVE-2025-53967", "a value of a call can run commands here"),
    Advisory("npm", "postmark-mcp", "1.0.16", "", "postmark-mcp backdoor", "it sends a copy of every mail to a stranger"),
)  # fmt: skip
"""A few of servers and bridges that many have; a scanner of dependencies knows the others."""

_ALIKE: Final = str.maketrans({"l": "i", "1": "i", "|": "i", "0": "o", "5": "s", "_": "-", ".": "-"})
_SHORTEST: Final = 7  # characters of a name, and of the word in it, that one letter may tell from another by chance
_WORD: Final = 5


def advisories_of(registry: str, name: str, version: str) -> list[Advisory]:
    """Return the advisories for an exact version of a package; "" as version is whatever is newest, for which only those without a fix count."""
    found = [one for one in ADVISORIES if (one.registry, one.name) == (registry, _canonical(registry, name))]
    if not version:
        return [one for one in found if not one.fixed]
    return [one for one in found if _covers(one, Version.read(version))]


def _covers(one: Advisory, here: Version) -> bool:
    return Version.read(one.since) <= here and (not one.fixed or here < Version.read(one.fixed))


@lru_cache(maxsize=4096)
def resembled(registry: str, name: str) -> str:
    """Return the well-known package that a name is nearly that of; "" where it is one itself, or resembles none.

    It resembles when it looks the same to a reader, or differs by one letter, or puts the name of another's scope in front.
    """
    known = WELL_KNOWN.get(registry, frozenset())
    plain = _canonical(registry, name)
    if not plain or plain in known:
        return ""
    looks = _looks(plain)
    for other in sorted(known):
        if looks == _looks(other) or (len(other) >= _SHORTEST and _one_letter(plain, other)):
            return other
        scope, slash, rest = plain.partition("/")
        other_scope, _, other_rest = other.partition("/")
        if slash and scope != other_scope and rest == other_rest and _near(scope, other_scope):
            return other
    return ""


def _canonical(registry: str, name: str) -> str:
    return canonicalize_name(name) if registry == "pypi" else name.lower() if registry != "npm" else name


@lru_cache(maxsize=4096)
def _looks(name: str) -> str:
    """Return what a reader sees of a name: letters that look alike are one, and what joins the words is nothing."""
    return name.lower().translate(_ALIKE).replace("-", "").replace("@", "").replace("/", "")


def _near(scope: str, other: str) -> bool:
    return len(other) >= _SHORTEST and (_looks(scope) == _looks(other) or _one_letter(scope, other))


def _one_letter(name: str, other: str) -> bool:
    """Whether two names differ by one letter that is more, less, another, or has changed places with its neighbour."""
    if abs(len(name) - len(other)) > 1 or name == other:
        return False
    words, others = (re.split(r"[-/@_.]", one) for one in (name, other))
    if len(words) == len(others):  # dbt-mcp and dlt-mcp are two names, fetch and fetchh hardly
        changed = [max(len(a), len(b)) for a, b in zip(words, others, strict=True) if a != b]
        if len(changed) != 1 or changed[0] < _WORD:
            return False
    if len(name) == len(other):
        differ = [at for at, (a, b) in enumerate(zip(name, other, strict=True)) if a != b]
        swapped = len(differ) == 2 and next(b - a == 1 for a, b in pairwise(differ))
        return len(differ) == 1 or (
            swapped and name[differ[0]] == other[differ[1]] and name[differ[1]] == other[differ[0]]
        )
    short, long = sorted((name, other), key=len)
    return any(long[:at] + long[at + 1 :] == short for at in range(len(long)))
