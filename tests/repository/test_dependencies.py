"""What a wheel imports it declares, as a dependency or in an extra: nothing is there only because another library needs it."""

from __future__ import annotations

import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

WHEELS = ("factory/runtime", "factory/codegen", "factory/cli", "pipeline")
NOT_IMPORTED = {
    "httptools": "uvicorn parses HTTP with it when it is there",
    "uvloop": "uvicorn runs on it when it is there",
    "opentelemetry-api": "one package, `opentelemetry`, is made of several distributions",
    "opentelemetry-exporter-otlp-proto-http": "likewise",
    "opentelemetry-sdk": "likewise",
    "sniffio": "httpcore looks for it on the disk at each request when it is not there",
}
BROUGHT = {"pytest": "the plugin is loaded in the environment of a server's tests, which has it"}
owners = cache(packages_distributions)


def declared(root, wheel: str) -> set[str]:
    project = tomllib.loads((root / wheel / "pyproject.toml").read_text("utf-8"))["project"]
    lists = [project["dependencies"], *project.get("optional-dependencies", {}).values()]
    return {canonicalize_name(Requirement(one).name) for listed in lists for one in listed}


def imported(root, modules, wheel: str) -> dict[str, str]:
    """The distributions that a wheel imports from, each with one file that does."""
    known = declared(root, wheel)
    own = {path.name for path in (root / wheel / "src").iterdir()}
    found: dict[str, str] = {}
    for module in modules:
        if not module.path.startswith(f"{wheel}/src/"):
            continue
        for name in module.libraries - own - sys.stdlib_module_names:
            makers = [canonicalize_name(owner) for owner in owners().get(name, [name])]
            found.setdefault(next((one for one in makers if one in known), makers[0]), module.path)
    return found


@pytest.mark.parametrize("wheel", WHEELS)
def test_what_a_wheel_imports_it_declares(root, modules, wheel):
    known = declared(root, wheel)
    lacking = [
        f"{wheel}/pyproject.toml lacks {name}, which {file} imports: add it to `dependencies` or to an extra, then `make lock`"
        for name, file in sorted(imported(root, modules, wheel).items())
        if name not in known | BROUGHT.keys()
    ]
    assert lacking == []


@pytest.mark.parametrize("wheel", WHEELS)
def test_what_a_wheel_declares_it_imports_or_the_reason_is_known(root, modules, wheel):
    used = imported(root, modules, wheel).keys() | NOT_IMPORTED.keys()
    unused = [
        f"{wheel}/pyproject.toml: nothing imports {name}: remove it" for name in sorted(declared(root, wheel) - used)
    ]
    assert unused == []


def test_each_reason_is_about_something_that_is_declared(root):
    everything = set().union(*(declared(root, wheel) for wheel in WHEELS))
    assert sorted(NOT_IMPORTED.keys() - everything) == []
