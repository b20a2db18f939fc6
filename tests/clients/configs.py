"""Realistic client configurations, one of each format: other servers, comments, odd white space."""

from __future__ import annotations

from pathlib import Path

from mcpfactory_pipeline.delivery.clients.client_profiles import ClientConfigFile, ClientProfile, ConfigLayout
from mcpfactory_pipeline.delivery.clients.config_files import UserPaths, client_config_path

_JSON = """\
// mine, and nobody else's
{
\t"theme" : "dark",  /* odd */

  BEFORE
      "other": {"command": "x", "args": ["--a",   "b"]}, // keep
   "third":{"url":"https://x.test/?a=//b", },
      // and "this" }
  AFTER,
 "last":[1,2 ,3,],}

"""

_TOML = '''\
# mine
model = "o"   # odd
text = """
[CONTAINER.bookshop]
"""

[CONTAINER.other]  # keep
command   = 'x'
args = [ "--a",
   "b",  # c
]
[CONTAINER.other.env]
A = "1"
# tail

[projects."/a b"]
trust = true
'''

_YAML = """\
# mine
model:   o   # odd
CONTAINER:   # servers
    other:
        cmd: x   # keep
        args: [--a,   "b"]
        note: |
          bookshop:
            cmd: no

    # between
    third: {uri: 'https://x.test/'}
# tail
last:
- 1
"""

_YAML_LIST = """\
name:   Mine   # odd
CONTAINER:
-   name: other   # keep
    command: x
    args: [--a,   "b"]

-   name: third
    url: 'https://x.test/'
# tail
models: []
"""

UNREADABLE = {
    "json": ['{"a": 1,, }', '{"a": {}', "[1]", '{"a": 1} trailing', "{'a': 1}", '{"a": NaN}', "[" * 5000],
    "toml": ["a = ", "[a]\n[a]\n", "a = 1\na = 2\n", '"'],
    "yaml": ["a: [1", "a: b: c", "- 1\n- 2\n", "\tx: 1\n", "a: 1\n---\nb: 2\n"],
    "yaml list": ["a: [1", "a: b: c", "- 1\n- 2\n", "\tx: 1\n"],
}


def config(place: ClientConfigFile, form: ConfigLayout) -> str:
    """Return a client configuration with two other servers."""
    container = form.container
    if place.format == "json":
        opening = "".join(f'"{key}": {{ ' for key in container)
        return _JSON.replace("BEFORE", opening).replace("AFTER", "}" * len(container))
    text = {"toml": _TOML, "yaml": _YAML, "yaml list": _YAML_LIST}[place.format]
    return text.replace("CONTAINER", container[0])


def home_in(folder: Path) -> UserPaths:
    """Return a user's home folder below a folder."""
    return UserPaths("linux", folder, folder / ".config", folder / ".local/state/mcpfactory/clients", {})


def give(client: ClientProfile, home: UserPaths, text: str, project: Path | None = None) -> Path:
    """Write a client's configuration with unchanged line ends."""
    file, _ = client_config_path(client, home, project)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode())
    return file


def is_only_more(before: str, after: str) -> bool:
    """Return True if text was only inserted, and nothing was removed, changed or moved."""
    rest = iter(after)
    return all(letter in rest for letter in before)
