"""What a person typed who adopts a server, by what an audit knows: secrets in it, and programs that fetch what they start. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Final

from mcpfactory_pipeline.audit.command_line import CommandOrigin, program_name, read_command
from mcpfactory_pipeline.audit.mentions import SecretMention, in_arguments, in_url
from mcpfactory_pipeline.base.errors import RefusedError

__all__ = ["check_typed"]

_PROGRAM: Final = "adopt the program that it makes: mcpfactory adopt --command './PROGRAM …'"
_PROJECT: Final = "adopt the project: mcpfactory adopt FOLDER"
# What is adopted in place of what a command fetches, by its kind.
_INSTEAD: Final = {
    "npm": "mcpfactory adopt npm:NAME@VERSION", "pypi": "mcpfactory adopt pypi:NAME==VERSION",
    "image": "adopt the program in the image, or its package", "go": _PROGRAM, "nuget": _PROGRAM, "git": _PROGRAM, "url": _PROGRAM,
}  # fmt: skip
# Programs that fetch, or start what a project says, whatever they are told.
_FETCHERS: Final = {
    "npx": "npm", "bunx": "npm", "pnpx": "npm", "uvx": "pypi", "pipx": "pypi", "pip": "pypi", "pip3": "pypi", "uv": "pypi",
    "dnx": "nuget", "docker": "image", "podman": "image", "nerdctl": "image", "wget": "url", "curl": "url",
}  # fmt: skip
_RUNNERS: Final = frozenset({"npm", "pnpm", "yarn", "bun", "poetry", "pdm", "hatch", "pipenv", "cargo", "dotnet"})
_NO_REASON: Final = frozenset(
    {"password in a URL", "part of a path that looks like a token"}
)  # refused in any case; may be an id
_SHOWN: Final = 3  # secrets that are named


def check_typed(what: str = "", command: str = "", start: str = "", test: str = "") -> None:
    """Look at what would be written into a file that is committed, and at what a command starts in the end.

    Args:
        what: a folder, a package or a URL.
        command: a command that starts a server.
        start: its arguments, or how it starts.
        test: the command of its tests.

    Raises:
        RefusedError: there is a secret in it, or the command is that of a program which fetches or starts another one.
    """
    found = [one for text in (command, start, test) for one in in_arguments(_words(text))]
    if found:
        raise _secret(
            "command",
            found,
            "the server reads it from a variable: --variable NAME names it, and entries of clients refer to it",
        )
    if "://" in what and (found := [one for one in in_url(what) if one.kind not in _NO_REASON]):
        raise _secret(
            "URL", found, "adopt the address without it; a client sends it as a header, where the server takes one"
        )
    if words := _words(command):
        _check_command(words)


def _secret(where: str, found: Sequence[SecretMention], hint: str) -> RefusedError:
    named = ", ".join(one.words for one in found[:_SHOWN])
    return RefusedError(
        f"the {where} holds a secret, which does not belong in a file that is committed: {named}", hint=hint
    )


def _check_command(words: Sequence[str]) -> None:
    origin = read_command(words)
    for name, kind in _fetching(origin):
        raise RefusedError(
            f"{name} fetches what it starts anew, so that nobody can say which bytes run", hint=_INSTEAD[kind]
        )
    if origin.kind == "local" and origin.runner in _RUNNERS:
        raise RefusedError(f"{origin.runner} starts what a project says, and is no part of it", hint=_PROJECT)
    if origin.wrappers:
        raise RefusedError(
            f"{program_name(words[0])} starts another program, and is no part of the server",
            hint=f"adopt what it starts: mcpfactory adopt --command {shlex.quote(shlex.join(origin.words))}; variables are named by --variable",
        )


def _fetching(origin: CommandOrigin) -> Iterator[tuple[str, str]]:
    """The program that fetches, and what: by its name, by what it is told, or as a module of Python."""
    name = program_name(origin.words[0]) if origin.words else ""
    if name in _FETCHERS:
        yield name, _FETCHERS[name]
    elif origin.kind == "module" and origin.name in _FETCHERS:
        yield f"{name} -m {origin.name}", _FETCHERS[origin.name]
    elif origin.fetched:
        yield origin.runner or name, origin.kind if origin.kind in _INSTEAD else "pypi"


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()  # `adopt` says what is wrong with it
