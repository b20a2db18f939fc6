"""Adopted commands with their files, and refusal of commands that start other programs."""

from __future__ import annotations

import io
import re
import shlex
import tarfile
from collections.abc import Iterator, Sequence
from itertools import pairwise, takewhile
from pathlib import Path, PureWindowsPath
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from mcpfactory_codegen.credential_parameters import is_secret
from mcpfactory_codegen.sources.translation_helpers import redacted
from mcpfactory_pipeline.adoption.sources import AdoptionSources, CollectedFiles
from mcpfactory_pipeline.base.errors import ConfigError, RefusedError
from mcpfactory_pipeline.base.hashing import ArchiveEntry, tar_bytes
from mcpfactory_pipeline.build.programs import ToolRejectedInputError
from mcpfactory_pipeline.build.secret_scan import find_secrets_in_files
from mcpfactory_pipeline.workspace.adopted import adopted_files

# No compression, because compressed bytes depend on the version of the compression library.
_BUNDLE: Final = "files.tar"
_RUNS: Final = 0o755


def collect(sources: AdoptionSources) -> CollectedFiles:
    """Pack the files of a command into a reproducible archive."""
    adopted = sources.adopted
    names = adopted_files(adopted, sources.root)
    entries = list(_entries(sources.own(), names)) if names else []
    if leaks := list(find_secrets_in_files((_BUNDLE, entry.path, entry.data) for entry in entries)):
        raise ToolRejectedInputError(f"the files contain secrets: {'; '.join(leaks[:5])}")
    made = {_BUNDLE: tar_bytes(entries)} if entries else {}
    return CollectedFiles(sources.server, adopted.version or "0", made)


def _entries(folder: Path, names: Sequence[str]) -> Iterator[ArchiveEntry]:
    for name in names:
        file = folder / name
        if not file.is_file() or not file.resolve().is_relative_to(folder.resolve()):
            raise ConfigError(
                f"{name} does not exist, or is outside the server's folder",
                hint="correct 'files' in [adopted], or add the file",
            )
        mode = _RUNS if file.stat().st_mode & 0o111 else 0o644
        yield ArchiveEntry(name, file.read_bytes(), mode)


def unpack(files: Path, names: Sequence[str], place: Path, *, log: bool) -> None:
    """Unpack the files of a command into `place/files`."""
    del log
    inside = place / "files"
    inside.mkdir()
    if _BUNDLE not in names:
        return
    with tarfile.open(fileobj=io.BytesIO((files / _BUNDLE).read_bytes())) as archive:
        for member in archive.getmembers():
            target = (inside / member.name).resolve()
            if member.isfile() and target.is_relative_to(inside.resolve()):
                target.parent.mkdir(parents=True, exist_ok=True)
                stream = archive.extractfile(member)
                assert stream is not None  # `extractfile` returns None only for members that are not regular files
                target.write_bytes(stream.read())
                target.chmod(member.mode & _RUNS)


def resolve_program_paths(folder: str, place: Path, start: Sequence[str]) -> tuple[str, ...]:
    """Replace the names of files by their paths in `place/folder`."""
    inside = place / folder
    return tuple(str(inside / word) if (inside / word).is_file() else word for word in start)


NO_IMAGE: Final = "adopt the program in the image, or its package"
_NPM: Final = "mcpfactory adopt npm:NAME@VERSION"
_PYPI: Final = "mcpfactory adopt pypi:NAME==VERSION"
_PROGRAM: Final = "adopt the downloaded program: mcpfactory adopt --command './PROGRAM …'"
# Program that downloads and starts another program → hint.
_FETCHERS: Final = {
    **dict.fromkeys(("npx", "bunx", "pnpx", "npm exec", "npm x", "pnpm dlx", "pnpm exec", "yarn dlx", "bun x"), _NPM),
    **dict.fromkeys(("uvx", "pipx", "pip", "pip3", "uv"), _PYPI),
    **dict.fromkeys(("docker", "podman", "nerdctl"), NO_IMAGE),
    **dict.fromkeys(("dnx", "wget", "curl"), _PROGRAM),
}
# Program → pattern of addresses. If such an address follows the subcommand, the program downloads code.
_ADDRESSES: Final = {"deno": re.compile(r"(npm|jsr|https?):"), "go": re.compile(r"[^@]+@")}
_PROJECT_RUNNERS: Final = frozenset({"npm", "pnpm", "yarn", "poetry", "pdm", "hatch", "pipenv", "cargo", "dotnet"})
_SHELLS: Final = frozenset({"bash", "sh", "zsh", "dash", "fish", "ksh", "ash", "cmd", "powershell", "pwsh"})
# Options that pass a command line to a shell as text.
_SHELL_TEXT: Final = re.compile(r"-[a-z]*c(ommand)?|/[ck]", re.IGNORECASE)
_STARTERS: Final = frozenset(
    {
        "env", "nohup", "time", "timeout", "setsid", "exec", "caffeinate", "nice", "ionice", "stdbuf", "arch", "xvfb-run",
        "start", "wsl", "sudo", "doas", "pkexec", "run0", "gsudo", "op", "doppler", "infisical", "dotenvx", "dotenv",
        "aws-vault", "chamber", "mise", "direnv", "teller", "envchain",
    }
)  # fmt: skip
_OPTION: Final = re.compile(r"-+([A-Za-z][\w.-]*)")
_NAMED: Final = re.compile(r"-*([A-Za-z][\w.-]*)[\s=:]+(.+)", re.DOTALL)
# Suffixes of variables that contain the location of a secret, not the secret.
_PLACES: Final = ("file", "path", "dir", "url")
# Values that are not secrets, even if the name looks like a credential.
_ORDINARY: Final = re.compile(
    r".{0,7}|[\d.,:-]+|[A-Za-z]+([ _-][A-Za-z]+)*|\$\{?\w+\}?|(~|\.{1,2}|[A-Za-z]:)?[/\\](?!/).*", re.DOTALL
)
_PASSWORD: Final = re.compile(r"//[^/@\s:]*:[^/@\s$]+@")


def refuse_secrets_in_commands_and_urls(what: str, commands: Sequence[Sequence[str]]) -> None:
    """Refuse secrets in a server's URL or in command lines."""
    parts = urlsplit(what) if "://" in what else urlsplit("")
    pairs = [*parse_qsl(parts.query), *(parse_qsl(parts.fragment) or [("fragment", parts.fragment)])]
    _refuse(
        "URL",
        [name for name, value in pairs if _holds_secret(name, value)],
        "adopt the address without the secret; clients can send it as a header, if the server accepts one",
    )
    _refuse(
        "command",
        [name for words in commands for name in _secrets_in(words)],
        "let the server read the secret from a variable; add the variable to `environment` in its mcpfactory.toml",
    )


def refuse_wrapper_program(words: Sequence[str]) -> None:
    """Refuse a program that only downloads or starts another program, because nobody would check that other program."""
    starter = _starter(words)
    inner = [part for word in words[1:] for part in _split(word)] if starter else list(words)
    for at in range(len(inner) if starter else 1):
        if found := _fetcher(inner[at:]):
            raise RefusedError(
                f"mcpfactory cannot check the program: {found[0]} downloads the program at each start",
                hint=found[1],
            )
    name, subcommand = _program_name(words[0]), next(iter(_arguments(words)), "")
    if name in _PROJECT_RUNNERS and subcommand in {"run", "start"}:
        raise RefusedError(
            f"{name} starts a program of a project, so the whole project must be adopted",
            hint="adopt the project: mcpfactory adopt FOLDER",
        )
    if starter:
        raise RefusedError(
            f"{name} is not the server: {name} only starts another program",
            hint="adopt the other program: mcpfactory adopt --command 'PROGRAM …'",
        )


def _starter(words: Sequence[str]) -> bool:
    """Return True for a wrapper program, and for a shell with a command in its arguments."""
    name = _program_name(words[0])
    options = takewhile(lambda word: word.startswith("-") or word.lower() in {"/c", "/k"}, words[1:])
    return name in _STARTERS or (name in _SHELLS and any(map(_SHELL_TEXT.fullmatch, options)))


def _fetcher(words: Sequence[str]) -> tuple[str, str] | None:
    name, arguments = _program_name(words[0]), _arguments(words)
    if name.startswith("py") and "-m" in words[:-1]:
        module = words[words.index("-m") + 1]
        return (f"{name} -m {module}", _FETCHERS[module]) if module in _FETCHERS else None
    if name in _ADDRESSES and len(arguments) > 1 and _ADDRESSES[name].match(arguments[1]):
        return name, _NPM if arguments[1].startswith("npm:") else _PROGRAM
    hint = _FETCHERS.get(name) or _FETCHERS.get(" ".join([name, *arguments[:1]]))
    return (name, hint) if hint else None


def _program_name(word: str) -> str:
    """Return a program's name without folder and suffix, such as `npx` for `/usr/bin/npx` and `npx.cmd`."""
    return re.sub(r"\.(exe|cmd|bat|ps1|com)$", "", PureWindowsPath(word).name.lower())


def _arguments(words: Sequence[str]) -> list[str]:
    return [word for word in words[1:] if not word.startswith("-")]


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _secrets_in(words: Sequence[str]) -> Iterator[str]:
    for at, (before, word) in enumerate(pairwise(["", *words]), 1):
        named = _NAMED.fullmatch(word)
        option = None if word.startswith("-") else _OPTION.match(before)
        name, value = named.groups() if named else (option[1] if option else "", word)
        if _holds_secret(name, value):
            yield name or f"argument {at}"


def _holds_secret(name: str, value: str) -> bool:
    named = is_secret(name) and not name.lower().endswith(_PLACES) and not _ORDINARY.fullmatch(value)
    return named or redacted(value, pairs=False) != value or _PASSWORD.search(value) is not None


def _refuse(where: str, names: Sequence[str], hint: str) -> None:
    if names:
        raise RefusedError(
            f"the {where} contains a secret, which must not be in a committed file: {', '.join(names[:3])}", hint=hint
        )
