"""Servers whose package is badly made; the server in it is healthy."""

from __future__ import annotations

from typing import ClassVar

from tests.broken_servers.healthy import SampleServer

PYPROJECT = """\
[build-system]
requires = ["hatchling>=1.27"]
build-backend = "hatchling.build"

[project]
name = "zoo"
version = "1.0"
description = "A small zoo"
requires-python = ">=3.11"
readme = "README.md"
license = "MIT"

[project.scripts]
zoo = "zoo.server:main"

[tool.hatch.build.targets.wheel]
packages = ["src/zoo"]
"""
README = """\
# Zoo

```json
{"mcpServers": {"zoo": {"command": "zoo"}}}
```

## Tools

| tool | what it does |
|---|---|
| `add` | adds |
| `moon_phase` | tells the phase |

| profile | tools |
|---|---|
| `daily` | 1 |
"""
FILES = {
    "pyproject.toml": PYPROJECT,
    "README.md": README,
    "src/zoo/__init__.py": "",
    "src/zoo/server.py": "def main():\n    pass\n",
}


class Packaged(SampleServer):
    """The base of those below: `change` maps a file to what is replaced in it by what."""

    files: ClassVar[dict[str, str]] = FILES
    change: ClassVar[tuple[str, str, str] | None] = None
    built = False  # a wheel is built of it, with which a second one is compared

    @classmethod
    def package(cls) -> dict[str, str]:
        files = dict(cls.files)
        if cls.change:
            file, old, new = cls.change
            assert old in files[file]
            files[file] = files[file].replace(old, new)
        return files


class HealthyPackage(Packaged):
    """Nothing is wrong with it."""

    built = True


class Nameless(Packaged):
    """Does not say what it is."""

    rule = "packaging.metadata"
    change = ("pyproject.toml", 'description = "A small zoo"\n', "")


class Doorless(Packaged):
    """Its program leads to a function that is not there."""

    rule = "packaging.entry-point"
    change = ("src/zoo/server.py", "main", "start")


class Fabulist(Packaged):
    """Its README praises a tool that it does not have."""

    rule = "packaging.readme"
    change = ("README.md", "`moon_phase`", "`sun_phase`")


class Outlaw(Packaged):
    """Says nothing of a licence."""

    rule = "packaging.license"
    change = ("pyproject.toml", 'license = "MIT"\n', "")


class Shapeshifter(Packaged):
    """Is another wheel each time it is built."""

    rule = "packaging.reproducible"
    built = True
    files: ClassVar[dict[str, str]] = {
        **FILES,
        "hatch_build.py": (
            "import os\nfrom hatchling.builders.hooks.plugin.interface import BuildHookInterface\n\n\n"
            "class Hook(BuildHookInterface):\n"
            "    def initialize(self, version, build_data):\n"
            "        with open(os.path.join(self.root, 'src/zoo/luck.py'), 'w') as file:\n"
            "            file.write(f'LUCK = {os.urandom(8)!r}')\n"
        ),
    }
    change = (
        "pyproject.toml",
        "[tool.hatch.build.targets.wheel]",
        "[tool.hatch.build.hooks.custom]\n\n[tool.hatch.build.targets.wheel]",
    )


class Blueprint(Packaged):
    """Has a tool that nobody has written yet."""

    rule = "packaging.implemented"
    change = (
        "src/zoo/server.py",
        "def main",
        '@server.tool\ndef feed(cage: int) -> str:\n    """Feed whoever lives there."""\n    raise NotImplementedError("later")\n\n\ndef main',
    )


class HealthyWorkshop(Packaged):
    """What is not written yet is no tool, or a tool that says when it is not able to."""

    change = (
        "src/zoo/server.py",
        "def main",
        "class Base:\n    def feed(self):\n        raise NotImplementedError\n\n\n"
        "@server.tool\ndef weigh(cage):\n    if cage > 9:\n        raise NotImplementedError\n    return 12\n\n\ndef main",
    )
