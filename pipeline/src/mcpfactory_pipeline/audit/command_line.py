"""What a command line is the command of: a package of a registry and its version, an image, a script, a program. Pure; nothing is looked up.

Words before the program that really starts (`sudo`, `env`, `cmd /c`, `bash -c`, `op run --`) are taken off one after another, and kept as
`wrappers`. What is not understood is a program, of which nothing more is claimed.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath, PureWindowsPath
from typing import Final, Literal

from mcpfactory_pipeline.audit.container import ContainerRun, read_run

__all__ = ["CommandOrigin", "program_name", "read_command"]

Kind = Literal[
    "npm", "pypi", "go", "nuget", "image", "git", "url", "script", "module", "code", "local", "program", "none"
]
Pin = Literal["exact", "digest", "commit", "floating", "tag", "branch", "local", "none"]

_SUFFIXES: Final = (".exe", ".cmd", ".bat", ".ps1", ".com")
_SHELLS: Final = frozenset({"bash", "sh", "zsh", "dash", "fish", "ksh", "ash"})
_POWERSHELLS: Final = frozenset({"powershell", "pwsh"})
_ROOT: Final = frozenset({"sudo", "doas", "pkexec", "run0", "gsudo", "runas", "su"})
_ENGINES: Final = frozenset({"docker", "podman", "nerdctl"})
# A program that starts another one, and its options that take a value; `--` ends them.
_STARTERS: Final[Mapping[str, frozenset[str]]] = {
    "nohup": frozenset(), "time": frozenset(), "setsid": frozenset(), "exec": frozenset(), "caffeinate": frozenset(),
    "nice": frozenset({"-n"}), "ionice": frozenset({"-c", "-n"}), "stdbuf": frozenset({"-i", "-o", "-e"}),
    "sudo": frozenset({"-u", "-g", "-p", "-C", "-h", "-r", "-t", "-U", "-D", "--user", "--group"}),
    "doas": frozenset({"-u", "-C"}), "pkexec": frozenset({"--user"}), "run0": frozenset({"-u", "--user"}), "gsudo": frozenset({"-u"}),
    "wsl": frozenset({"-d", "--distribution", "-u", "--user", "--cd"}), "arch": frozenset(), "xvfb-run": frozenset({"-s", "-n"}),
    "start": frozenset(),
}  # fmt: skip
# Programs that start what stands behind `--`, with secrets or versions of their own choice.
_BEHIND_DASHES: Final = frozenset(
    {"op", "doppler", "infisical", "dotenvx", "dotenv", "aws-vault", "chamber", "mise", "direnv", "teller", "envchain"}
)
_SUBCOMMANDS: Final[Mapping[tuple[str, str], str]] = {
    ("npm", "exec"): "npx", ("npm", "x"): "npx", ("pnpm", "dlx"): "npx", ("pnpm", "exec"): "npx", ("yarn", "dlx"): "npx",
    ("bun", "x"): "npx", ("uv", "run"): "uv run", ("pipx", "run"): "uvx", ("deno", "run"): "deno run", ("go", "run"): "go run",
    ("uv", "tool"): "uv tool", ("poetry", "run"): "local run", ("pdm", "run"): "local run", ("hatch", "run"): "local run",
    ("pipenv", "run"): "local run", ("npm", "run"): "local run", ("pnpm", "run"): "local run", ("yarn", "run"): "local run",
    ("npm", "start"): "local run", ("cargo", "run"): "local run", ("dotnet", "run"): "local run", ("bun", "run"): "interpreter",
}  # fmt: skip
_RUNNERS: Final[Mapping[str, str]] = {
    "npx": "npx", "pnpx": "npx", "bunx": "npx", "uvx": "uvx", "dnx": "dnx", **dict.fromkeys(_ENGINES, "container"),
    **dict.fromkeys(
        ("node", "bun", "tsx", "ts-node", "ruby", "perl", "php", "java", "dotnet", "electron", "python", "python3", "py", "pypy", "pypy3"),
        "interpreter",
    ),
}  # fmt: skip
_NPM_VALUES: Final = frozenset(
    {"-p", "--package", "--registry", "--prefix", "--cache", "-w", "--workspace", "--userconfig", "-c", "--call"}
)
_UV_VALUES: Final = frozenset(
    {
        "--from", "--with", "--with-editable", "--with-requirements", "-p", "--python", "--index-url", "--extra-index-url", "--index", "--spec",
        "--default-index", "--directory", "--project", "--env-file", "--extra", "--group", "--refresh-package", "--upgrade-package",
        "--cache-dir", "--config-file", "--constraints", "-c", "-C", "-i", "-f", "--find-links", "--exclude-newer", "--pip-args",
        "--package", "--only-group", "--no-group", "--color", "--prerelease", "--resolution",
    }
)  # fmt: skip
_CODE: Final = frozenset({"-c", "-e", "--eval", "-p", "--print", "-r"})
_INTERPRETER_VALUES: Final = frozenset(
    {"-W", "-X", "--require", "--import", "--loader", "--env-file", "-I", "-cp", "-classpath"}
)
_EXACT_NPM: Final = re.compile(r"[v=]?\d+\.\d+\.\d+([-+][\w.+-]+)?")
_EXACT_PYPI: Final = re.compile(r"v?\d+(\.\d+)*([a-z.+!-][\w.+!-]*)?", re.IGNORECASE)
_COMMIT: Final = re.compile(r"[0-9a-f]{40}")
_GIT: Final = re.compile(r"(git\+|git:|git@|github:|gitlab:|bitbucket:|gist:)|[\w.-]+/[\w.-]+(#.*)?$")
_LOCAL: Final = re.compile(r"(\.{0,2}[/\\]|~|file:|[A-Za-z]:[/\\]|\.$|\$\{)")
_VARIABLE: Final = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_OPERATORS: Final = re.compile(r"[;&|<>`\n]|\$\(")
_DEEPEST: Final = 6  # wrappers around wrappers


@dataclass(frozen=True, slots=True)
class CommandOrigin:
    """What a command starts.

    Attributes:
        kind: of what it starts.
        runner: the program that fetches or runs it: npx, uvx, docker, python.
        name: the package, image, address, script or program.
        version: as it is written; "" where none is.
        pin: how sure it is that the next start runs the same: exact and digest and commit are, local depends on this machine.
        wrappers: what stands around it: shell, cmd, root, env, starter.
        shell_texts: the texts that shells are given.
        words: the command line without wrappers.
        environ: variables that the command line sets.
        scripts: paths of this machine that are run.
        extra: further packages that are fetched for it (`--with`), as they are written.
        run: what a container is started with.
    """

    kind: Kind
    runner: str = ""
    name: str = ""
    version: str = ""
    pin: Pin = "none"
    wrappers: tuple[str, ...] = ()
    shell_texts: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    environ: Mapping[str, str] = field(default_factory=dict)
    scripts: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    run: ContainerRun | None = None

    @property
    def fetched(self) -> bool:
        """Whether a start may fetch code from elsewhere."""
        return self.kind in {"npm", "pypi", "go", "nuget", "image", "git", "url"} or bool(self.extra)


def program_name(word: str) -> str:
    """Return the name of a program without folder and suffix: `/usr/bin/npx` and `npx.cmd` are npx."""
    name = (PureWindowsPath(word) if "\\" in word else PurePosixPath(word)).name.lower()
    return next((name.removesuffix(suffix) for suffix in _SUFFIXES if name.endswith(suffix)), name)


def read_command(words: Sequence[str]) -> CommandOrigin:
    """Return what a command line starts."""
    left, around = tuple(words), CommandOrigin("none")
    for _ in range(_DEEPEST):
        taken = _unwrapped(left)
        if taken is None:
            break
        left, wrapper, environ, shell = taken
        around = replace(
            around,
            wrappers=(*around.wrappers, wrapper),
            environ={**around.environ, **environ},
            shell_texts=(*around.shell_texts, *([shell] if shell else [])),
        )
    found = _inner(left)
    scripts = found.scripts or tuple(left[:1] if found.kind == "program" and re.search(r"[/\\]", left[0]) else ())
    return replace(
        found,
        wrappers=around.wrappers,
        environ={**around.environ, **found.environ},
        shell_texts=(*around.shell_texts, *found.shell_texts),
        words=left,
        scripts=scripts,
    )


_Taken = tuple[tuple[str, ...], str, dict[str, str], str]


def _unwrapped(words: tuple[str, ...]) -> _Taken | None:
    """Return the words without their first wrapper, its name, the variables that it sets and the text that a shell runs; None: there is none."""
    if not words:
        return None
    name, rest = program_name(words[0]), words[1:]
    if name == "env":
        return _from_env(rest)
    if name == "cmd" and rest and rest[0].lower() in {"/c", "/k"}:
        inner = rest[1:]
        return (tuple(_split(inner[0])) if len(inner) == 1 else inner), "cmd", {}, ""
    if name in _SHELLS and (text := _shell_text(rest)) is not None:
        return tuple(_last_command(text)), "shell", {}, text
    if name in _POWERSHELLS and (text := _powershell_text(rest)) is not None:
        return tuple(_last_command(text)), "shell", {}, text
    if name in _BEHIND_DASHES and "--" in rest:
        return rest[rest.index("--") + 1 :], "starter", {}, ""
    if name in _STARTERS:
        inner = _behind_options(rest, _STARTERS[name])
        return (inner, "root" if name in _ROOT else "starter", {}, "") if inner else None
    if name == "timeout":
        inner = _behind_options(rest, frozenset({"-k", "-s"}))[1:]
        return (inner, "starter", {}, "") if inner else None
    return None


def _from_env(rest: tuple[str, ...]) -> _Taken | None:
    environ: dict[str, str] = {}
    at = 0
    while at < len(rest):
        if rest[at] in {"-S", "--split-string"} and at + 1 < len(rest):
            return (tuple(_split(rest[at + 1])) + rest[at + 2 :]), "env", environ, ""
        if found := _VARIABLE.fullmatch(rest[at]):
            environ[found[1]] = found[2]
        elif rest[at] in {"-u", "-C"}:
            at += 1
        elif not rest[at].startswith("-"):
            return rest[at:], "env", environ, ""
        at += 1
    return None


def _shell_text(rest: tuple[str, ...]) -> str | None:
    """Return what a shell is told to run by -c, also among other letters (`-lc`); None where it runs a file."""
    for at, word in enumerate(rest):
        if re.fullmatch(r"-[a-z]*c[a-z]*", word) and at + 1 < len(rest):
            return next((one for one in rest[at + 1 :] if not one.startswith("-")), None)
        if not word.startswith("-"):
            return None
    return None


def _powershell_text(rest: tuple[str, ...]) -> str | None:
    for at, word in enumerate(rest):
        if word.lower() in {"-command", "-c", "-encodedcommand", "-enc", "-e"}:
            return " ".join(rest[at + 1 :])
        if word.lower() == "-file":
            return None
    return None


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _last_command(text: str) -> list[str]:
    """Return the last simple command of a shell's text that does more than set up; its words, without variables before them."""
    try:
        lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        tokens = list(lexer)
    except ValueError:
        return []
    commands: list[list[str]] = [[]]
    for token in tokens:
        if token and set(token) <= set("();<>|&"):
            commands.append([])
        else:
            commands[-1].append(token)
    quiet = {"cd", "export", "source", ".", "set", "eval", "nvm", "true", "umask", "unset"}
    for command in reversed(commands):
        while command and (_VARIABLE.fullmatch(command[0]) or command[0] in {"exec", "&"}):
            command.pop(0)
        if command and command[0] not in quiet:
            return command
    return []


def _behind_options(words: tuple[str, ...], valued: frozenset[str]) -> tuple[str, ...]:
    """Return the words from the first that is no option."""
    at = 0
    while at < len(words):
        word = words[at]
        if word == "--":
            return words[at + 1 :]
        if not word.startswith("-") and not _VARIABLE.fullmatch(word):
            return words[at:]
        at += 2 if word in valued else 1
    return ()


def _inner(words: tuple[str, ...]) -> CommandOrigin:
    """Return what a command line without wrappers starts."""
    if not words:
        return CommandOrigin("none")
    program = program_name(words[0])
    rest = words[1:]
    subcommand = next((word for word in rest if not word.startswith("-")), "")
    if program == "uv":
        rest = _behind_options(rest, _UV_VALUES)
        subcommand = rest[0] if rest else ""
    how = _SUBCOMMANDS.get((program, subcommand))
    if how == "uv tool":
        how, rest = "uvx", rest[rest.index("tool") + 1 :]
        subcommand = "run"
    if how is not None:
        rest = rest[rest.index(subcommand) + 1 :] if subcommand in rest else rest
    how = how or _RUNNERS.get(re.sub(r"(?<=[a-z])[\d.]+$", "", program) if program.startswith("python") else program)
    if program in _SHELLS or program in _POWERSHELLS:
        scripts = tuple(word for word in rest if not word.startswith("-"))[:1]
        kind: Kind = "script" if scripts else "program"
        return CommandOrigin(kind, program, scripts[0] if scripts else program, pin="local", scripts=scripts)
    if how is None:
        return CommandOrigin("program", "", words[0], pin="local")
    return replace(_READERS[how](rest), runner=program)


def _options(words: Sequence[str], valued: frozenset[str]) -> tuple[dict[str, list[str]], list[str]]:
    """Return the options before the first other word, with their values, and what stands from there on."""
    found: dict[str, list[str]] = {}
    at = 0
    while at < len(words) and words[at].startswith("-"):
        name, equals, value = words[at].partition("=")
        if words[at] == "--":
            at += 1
            break
        if equals:
            found.setdefault(name, []).append(value)
        elif name in valued and at + 1 < len(words):
            at += 1
            found.setdefault(name, []).append(words[at])
        else:
            found.setdefault(name, [])
        at += 1
    return found, list(words[at:])


def _npx(words: Sequence[str]) -> CommandOrigin:
    options, rest = _options(words, _NPM_VALUES)
    packages = [*options.get("-p", []), *options.get("--package", [])]
    if text := [*options.get("-c", []), *options.get("--call", [])]:
        return replace(
            npm_package(packages[0] if packages else next(iter(_split(text[0])), "")), shell_texts=(text[0],)
        )
    spec = packages[0] if packages else rest[0] if rest else ""
    return replace(npm_package(spec), extra=tuple(one for one in packages[1:] if npm_package(one).pin == "floating"))


def npm_package(spec: str) -> CommandOrigin:
    """Return what a package is that npm is told to fetch."""
    if not spec:
        return CommandOrigin("none")
    if re.match(r"https?://", spec) and not re.search(r"\.git(#|$)", spec):
        return CommandOrigin("url", name=spec)
    if re.match(r"https?://", spec) or (not spec.startswith("@") and _GIT.match(spec) and not _LOCAL.match(spec)):
        address, _, revision = spec.partition("#")
        return CommandOrigin(
            "git", name=address, version=revision, pin="commit" if _COMMIT.fullmatch(revision) else "branch"
        )
    if _LOCAL.match(spec):
        return CommandOrigin("local", name=spec, pin="local", scripts=(spec,))
    name, _, version = spec.rpartition("@") if "@" in spec[1:] else (spec, "", "")
    return CommandOrigin(
        "npm", name=name, version=version, pin="exact" if _EXACT_NPM.fullmatch(version) else "floating"
    )


def pypi_package(spec: str) -> CommandOrigin:
    """Return what a requirement is that uv or pipx is told to fetch."""
    named, at, address = spec.partition(" @ ")
    spec = address if at else spec
    if spec.startswith(("git+", "git@")):
        address, _, revision = (
            spec.partition("#")[0].rpartition("@") if "@" in spec.partition("://")[2] else (spec, "", "")
        )
        return CommandOrigin(
            "git", name=address, version=revision, pin="commit" if _COMMIT.fullmatch(revision) else "branch"
        )
    if re.match(r"https?://", spec):
        return CommandOrigin("url", name=spec)
    if _LOCAL.match(spec) or spec.endswith((".whl", ".tar.gz")):
        return CommandOrigin("local", name=spec, pin="local", scripts=(spec,))
    found = re.fullmatch(r"([A-Za-z0-9][\w.-]*)(\[[^\]]*\])?\s*(?:(===?|@)\s*([^\s;,]+)|(.*))", spec)
    if found is None:
        return CommandOrigin("pypi", name=named, pin="floating")
    version = found[4] or (found[5] or "").strip()
    exact = bool(found[4]) and _EXACT_PYPI.fullmatch(found[4]) is not None
    return CommandOrigin("pypi", name=found[1], version=version, pin="exact" if exact else "floating")


def _uvx(words: Sequence[str]) -> CommandOrigin:
    options, rest = _options(words, _UV_VALUES)
    spec = next(iter([*options.get("--from", []), *options.get("--spec", []), *rest[:1]]), "")
    with_ = options.get("--with", [])
    return replace(pypi_package(spec), extra=_loose(with_)) if spec else CommandOrigin("none")


def _loose(specs: Sequence[str]) -> tuple[str, ...]:
    """Return those requirements that another start may resolve to something else."""
    return tuple(
        one for spec in specs for one in spec.split(",") if pypi_package(one.strip()).pin in {"floating", "branch"}
    )


def _uv_run(words: Sequence[str]) -> CommandOrigin:
    options, rest = _options(words, _UV_VALUES)
    extra = _loose(options.get("--with", []))
    first = rest[0] if rest else ""
    if re.match(r"https?://", first):
        return CommandOrigin("url", name=first, extra=extra)
    folders = [*options.get("--directory", []), *options.get("--project", [])]
    if first.endswith(".py"):
        return CommandOrigin("script", name=first, pin="local", scripts=(first,), extra=extra)
    if program_name(first) in {"python", "python3"}:
        return replace(_interpreter(rest[1:]), extra=extra)
    scripts = tuple(one for one in rest[1:] if one.partition(":")[0].endswith(".py"))[:1]
    name = scripts[0] if scripts else folders[0] if folders else first
    return CommandOrigin("local", name=name, pin="local", scripts=scripts, extra=extra)


def _deno(words: Sequence[str]) -> CommandOrigin:
    _, rest = _options(words, frozenset({"-c", "--config", "--import-map", "--lock"}))
    first = rest[0] if rest else ""
    if first.startswith("npm:"):
        return npm_package(first.removeprefix("npm:"))
    if first.startswith("jsr:"):
        return replace(npm_package(first.removeprefix("jsr:")), kind="npm")
    if re.match(r"https?://", first):
        return CommandOrigin("url", name=first)
    return CommandOrigin("script", name=first, pin="local", scripts=(first,) if first else ())


def _go_run(words: Sequence[str]) -> CommandOrigin:
    _, rest = _options(words, frozenset({"-C", "-tags", "-ldflags"}))
    name, at, version = (rest[0] if rest else "").partition("@")
    if not at:
        return CommandOrigin("local", name=name, pin="local")
    exact = re.fullmatch(r"v\d+\.\d+\.\d+\S*", version) is not None or _COMMIT.fullmatch(version) is not None
    return CommandOrigin("go", name=name, version=version, pin="exact" if exact else "floating")


def _dnx(words: Sequence[str]) -> CommandOrigin:
    options, rest = _options(
        [word for word in words if word not in {"--yes", "-y"}], frozenset({"--version", "--source"})
    )
    name, _, version = (rest[0] if rest else "").partition("@")
    later = list(rest[1:])
    if "--version" in later and later.index("--version") + 1 < len(later):
        version = version or later[later.index("--version") + 1]
    version = version or next(iter(options.get("--version", [])), "")
    return CommandOrigin(
        "nuget", name=name, version=version, pin="exact" if _EXACT_NPM.fullmatch(version) else "floating"
    )


def _container(words: Sequence[str]) -> CommandOrigin:
    run = read_run(words)
    if run is None:
        return CommandOrigin("program", name=" ".join(words[:2]), pin="local")
    return CommandOrigin("image", name=run.image, version=run.version, pin=run.pin, run=run, environ=run.environ)


def _interpreter(words: Sequence[str]) -> CommandOrigin:
    at = 0
    while at < len(words):
        word = words[at]
        if word == "-m" and at + 1 < len(words):
            return CommandOrigin("module", name=words[at + 1], pin="local")
        if word in _CODE and at + 1 < len(words):
            return CommandOrigin("code", name="code in the configuration", pin="local")
        if word == "-jar" and at + 1 < len(words):
            return CommandOrigin("script", name=words[at + 1], pin="local", scripts=(words[at + 1],))
        if not word.startswith("-"):
            return CommandOrigin("script", name=word, pin="local", scripts=(word,))
        at += 2 if word in _INTERPRETER_VALUES else 1
    return CommandOrigin("none", pin="local")


def _local_run(words: Sequence[str]) -> CommandOrigin:
    return CommandOrigin("local", name=next((word for word in words if not word.startswith("-")), ""), pin="local")


_READERS: Final[Mapping[str, Callable[[Sequence[str]], CommandOrigin]]] = {
    "npx": _npx,
    "uvx": _uvx,
    "uv run": _uv_run,
    "deno run": _deno,
    "go run": _go_run,
    "dnx": _dnx,
    "container": _container,
    "interpreter": _interpreter,
    "local run": _local_run,
}
