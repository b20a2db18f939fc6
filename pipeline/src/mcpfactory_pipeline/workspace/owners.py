"""Owners of servers: `[owners]` of the root `mcpfactory.toml`, else the CODEOWNERS file of the repository.

```toml
[owners]
bookshop = ["Ada", "Grace"]
"billing-*" = ["Linus"]
"*" = ["Margaret"]
```

The longest matching pattern counts. In CODEOWNERS, the last line that matches `servers/<name>/` counts, as on forges.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Mapping
from typing import Final

from mcpfactory_pipeline.workspace.workspace import Workspace, setting_error

CODEOWNERS: Final = (".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS", ".gitlab/CODEOWNERS")
_LARGEST: Final = 1_000_000  # characters of a file that are read

Owners = Callable[[str], tuple[str, ...]]
"""The owners of a server, by its name."""


def owners_of(workspace: Workspace) -> Owners:
    """Return the lookup of server owners; a server without a matching line has no owners.

    Raises:
        ConfigError: `[owners]` is invalid.
    """
    if "owners" in workspace.config:
        return read_owners(workspace.config["owners"])
    for name in CODEOWNERS:
        try:
            text = (workspace.root / name).read_text("utf-8", errors="replace")[:_LARGEST]
        except OSError:
            continue
        return _codeowners(text)
    return lambda _server: ()


def read_owners(table: object) -> Owners:
    """Return the same for a table `[owners]`.

    Raises:
        ConfigError: for one that cannot be used.
    """
    if not isinstance(table, Mapping):
        raise setting_error("owners is not a table", '[owners]\n"*" = ["Ada"]')
    for pattern, people in table.items():
        if not isinstance(people, list) or not all(isinstance(one, str) and one.strip() for one in people):
            raise setting_error(f"owners.{pattern} is not a list of names", f'"{pattern}" = ["Ada", "Grace"]')
    patterns = sorted(table, key=len, reverse=True)

    def of(server: str) -> tuple[str, ...]:
        found = next((pattern for pattern in patterns if fnmatch.fnmatchcase(server, pattern)), None)
        return tuple(table[found]) if found is not None else ()

    return of


def _codeowners(text: str) -> Owners:
    rows: list[tuple[re.Pattern[str], tuple[str, ...]]] = []
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        if words and not words[0].startswith(
            ("[", "^[", "!")
        ):  # sections of GitLab, and what GitHub does not know either
            rows.append((_pattern(words[0]), tuple(who.removeprefix("@") for who in words[1:])))

    def of(server: str) -> tuple[str, ...]:
        return next((people for pattern, people in reversed(rows) if pattern.match(f"servers/{server}/")), ())

    return of


def _pattern(text: str) -> re.Pattern[str]:
    """Return a pattern of CODEOWNERS as one of paths: `*` stays within a folder, `**` does not, a leading slash is the root."""
    rooted = "/" in text.rstrip("/")
    parts = re.split(r"(\*\*/?|\*|\?)", text.strip("/"))
    signs = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile(
        ("" if rooted else "(?:.*/)?") + "".join(signs.get(part, re.escape(part)) for part in parts) + "(?:/|$)"
    )
