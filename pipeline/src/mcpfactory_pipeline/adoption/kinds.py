"""Table of the kinds of adopted servers: how each is built, made ready, started and checked for drift."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.adoption import command, npm, projects, pypi, remote
from mcpfactory_pipeline.adoption.sources import Collected, Sources

MakeReady = Callable[..., None]  # files of the candidate, their names, an empty folder, whether to log
Program = Callable[[Path, Sequence[str]], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind.

    `collect` gathers the files that run. `make_ready` lays a candidate out in a folder, from its files alone and what its lock
    names by hashes, and `program` is the command line there; both are None for a server that is not started here. `newest`
    asks whether there is a newer one, as what `mcpfactory adopt` takes. `upstream` says who publishes it, where that is not us.
    """

    collect: Callable[[Sources], Collected]
    make_ready: MakeReady | None
    program: Program | None
    newest: Callable[[str, Path], str] | None = None
    upstream: str = ""


KINDS: Final[Mapping[str, Kind]] = {
    "python": Kind(projects.collect_python, pypi.make_environment, pypi.python_program),
    "node": Kind(projects.collect_node, projects.make_package, projects.package_program),
    "command": Kind(command.collect, command.unpack, command.command_program, upstream="whoever builds it"),
    "pypi": Kind(
        pypi.collect,
        pypi.make_environment,
        pypi.python_program,
        lambda package, work: pypi.find_wheel(package, work).version,
        "its authors, in the index it comes from",
    ),
    "npm": Kind(
        npm.collect, npm.make_tree, npm.tree_program, npm.newest_version, "its authors, in the registry it comes from"
    ),
    "url": Kind(remote.collect, None, None, upstream="whoever runs it"),
}
