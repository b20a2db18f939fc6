"""Whether what is installed somewhere meets what a server needs, and what that needs in turn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from importlib.metadata import Distribution, distributions
from pathlib import Path

from packaging.markers import Environment, default_environment
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from mcpfactory_pipeline.launch.requirements import Requirements

__all__ = ["unmet_in_venv", "unmet_requirement"]


def unmet_in_venv(venv: Path, needs: Requirements, wanted: Sequence[str]) -> str:
    """Return what a person's own environment lacks of what a server needs, in words; "" when it has all."""
    if needs.found or needs.special:
        return ""  # what is needed is known to the person alone, who made the environment
    libraries = [*venv.glob("lib*/python*/site-packages"), *venv.glob("Lib/site-packages")]
    return unmet_requirement(wanted, [str(one) for one in libraries], _version_of(venv))


def _version_of(venv: Path) -> str:
    """Return the version of an environment's interpreter; "" when it does not say."""
    try:
        lines = (venv / "pyvenv.cfg").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    values = {key.strip(): value.strip() for key, _, value in (line.partition("=") for line in lines)}
    return ".".join((values.get("version_info") or values.get("version") or "").split(".")[:3])


def unmet_requirement(needed: Iterable[str], paths: Sequence[str], python: str = "") -> str:
    """Return the first requirement that is not met by what is installed in the folders `paths`, in words; "" when all are met.

    Args:
        needed: requirements, as they are written in a `pyproject.toml`.
        paths: folders of libraries.
        python: the version of the interpreter that they belong to (`3.12`), by default that of this one.
    """
    here: dict[str, Distribution] = {}
    for one in distributions(path=list(paths)):
        here.setdefault(canonicalize_name(str(one.metadata["Name"])), one)
    environment = default_environment()
    if python:
        environment["python_version"], environment["python_full_version"] = ".".join(python.split(".")[:2]), python
    waiting, seen = [(text, frozenset[str]()) for text in needed], set[tuple[str, frozenset[str]]]()
    while waiting:
        text, extras = waiting.pop()
        try:
            wanted = Requirement(text)
        except InvalidRequirement as error:
            return f"{text} ({error})"
        if not _applies(wanted, extras, environment):
            continue
        found = here.get(canonicalize_name(wanted.name))
        if found is None or not wanted.specifier.contains(found.version, prereleases=True):
            return f"{wanted}" + (f", and has {found.version}" if found else "")
        mark = (canonicalize_name(wanted.name), frozenset(wanted.extras))
        if mark not in seen:
            seen.add(mark)
            waiting += [(needs, frozenset(wanted.extras)) for needs in found.requires or ()]
    return ""


def _applies(wanted: Requirement, extras: frozenset[str], environment: Environment) -> bool:
    """Whether a requirement counts on this machine, for what was asked with these extras."""
    if wanted.marker is None:
        return True
    values: dict[str, str | AbstractSet[str]] = {name: str(value) for name, value in environment.items()}
    return any(wanted.marker.evaluate({**values, "extra": extra}) for extra in (extras or {""}))
