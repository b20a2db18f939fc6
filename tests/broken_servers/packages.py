"""Healthy servers in faulty packages."""

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
    """Base of the servers below. `change` maps a file to its replacements."""

    files: ClassVar[dict[str, str]] = FILES
    change: ClassVar[tuple[str, str, str] | None] = None
    built = False  # its wheel is built twice and compared

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
    """Has no description."""

    rule = "packaging.metadata"
    change = ("pyproject.toml", 'description = "A small zoo"\n', "")


class Doorless(Packaged):
    """Its console script names a missing function."""

    rule = "packaging.entry-point"
    change = ("src/zoo/server.py", "main", "start")


class Fabulist(Packaged):
    """Its README describes a missing tool."""

    rule = "packaging.readme"
    change = ("README.md", "`moon_phase`", "`sun_phase`")


class Outlaw(Packaged):
    """Has no license."""

    rule = "packaging.license"
    change = ("pyproject.toml", 'license = "MIT"\n', "")


class Shapeshifter(Packaged):
    """Builds a different wheel each time."""

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
    """Has a tool without an implementation."""

    rule = "packaging.implemented"
    change = (
        "src/zoo/server.py",
        "def main",
        '@server.tool\ndef feed(cage: int) -> str:\n    """Feed whoever lives there."""\n    raise NotImplementedError("later")\n\n\ndef main',
    )


class HealthyWorkshop(Packaged):
    """Has unimplemented functions that are not tools, and a tool that reports when it cannot work."""

    change = (
        "src/zoo/server.py",
        "def main",
        "class Base:\n    def feed(self):\n        raise NotImplementedError\n\n\n"
        "@server.tool\ndef weigh(cage):\n    if cage > 9:\n        raise NotImplementedError\n    return 12\n\n\ndef main",
    )
