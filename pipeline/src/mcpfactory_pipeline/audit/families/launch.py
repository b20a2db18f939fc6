"""Rules over how servers are started: what is fetched at a start, what runs it, and who may replace it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from mcpfactory_pipeline.audit.mentions import shown_url
from mcpfactory_pipeline.audit.rule import AuditedServer, AuditRule, Said, each_server

__all__ = ["RULES"]

_FETCHED: Final = {
    "npm": "npm",
    "pypi": "PyPI",
    "go": "Go's module proxy",
    "nuget": "NuGet",
    "image": "a registry of images",
}
_PIPED: Final = re.compile(
    r"(\b(curl|wget|iwr|irm|invoke-webrequest|invoke-restmethod)\b[^|;\n]*\|\s*(sudo\s+)?(env\s+)?([\w/]*/)?(ba|z|da|k|fi)?sh\b"
    r"|\b(curl|wget)\b[^|;\n]*\|\s*(sudo\s+)?(python3?|node|ruby|perl|php|deno|bun)\b"
    r"|<\(\s*(curl|wget)\b|\b(eval|source|\.|sh|bash)\b[^;|\n]*(\$\(|`)\s*(curl|wget)\b"
    r"|\b(iex|invoke-expression)\b|\|\s*(iex|invoke-expression)\b"
    r"|\b(curl|wget)\b[^;&|\n]*(-o|-O|>)[^;&|\n]*(&&|;)\s*(chmod|sh|bash|\./|python)"
    r"|-(c|e)\s+[\"']?(\$\(|`)\s*(curl|wget)\b)",
    re.IGNORECASE,
)
_OPERATORS: Final = re.compile(r"[;&|<>`\n]|\$\(")
_ENCODED: Final = re.compile(r"-(enc|encodedcommand|e)\b", re.IGNORECASE)
_INJECTED: Final = frozenset(
    {
        "LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "DYLD_INSERT_LIBRARIES", "DYLD_LIBRARY_PATH", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME",
        "NODE_OPTIONS", "NODE_PATH", "PERL5LIB", "PERL5OPT", "RUBYOPT", "RUBYLIB", "JAVA_TOOL_OPTIONS", "BASH_ENV", "ENV", "PROMPT_COMMAND",
        "GIT_SSH_COMMAND", "CLASSPATH", "UV_PYTHON", "PIP_CONFIG_FILE", "NPM_CONFIG_USERCONFIG",
    }
)  # fmt: skip
_LIBRARIES: Final = re.compile(
    r"--(max-old-space-size|max-http-header-size|no-warnings|enable-source-maps|use-system-ca|dns-result-order)\b\S*"
)
_REGISTRIES: Final = (
    "--registry",
    "--index-url",
    "--extra-index-url",
    "--index",
    "--default-index",
    "--find-links",
    "-i",
)
_REGISTRY_VARIABLES: Final = frozenset(
    {
        "NPM_CONFIG_REGISTRY", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL",
        "GOPROXY", "UV_FIND_LINKS",
    }
)  # fmt: skip
_TEMPORARY: Final = re.compile(
    r"(/private)?/(tmp|var/tmp|dev/shm)/|.*/Downloads/|.*\\(Temp|Downloads)\\|%TE?MP%", re.IGNORECASE
)


def _floating(one: AuditedServer) -> Iterator[Said]:
    origin = one.server.origin
    if origin.pin == "floating" and origin.kind in _FETCHED:
        version = f"{origin.version!r} is no exact version" if origin.version else "no version is named"
        yield f"each start may fetch another {origin.name} from {_FETCHED[origin.kind]}: {version}"
    if origin.extra:
        yield f"each start may fetch other packages: {', '.join(origin.extra)}", 2


def _tag(one: AuditedServer) -> Iterator[Said]:
    origin = one.server.origin
    if origin.kind == "image" and origin.pin == "tag":
        yield f"the tag {origin.version} of {origin.name} can be moved to another image"


def _git(one: AuditedServer) -> Iterator[Said]:
    origin = one.server.origin
    if origin.kind == "git" and origin.pin != "commit":
        revision = f"{origin.version!r} is no commit" if origin.version else "no commit is named"
        yield f"each start runs what is in {shown_url(origin.name) if '://' in origin.name else origin.name} then: {revision}"


def _remote_code(one: AuditedServer) -> Iterator[Said]:
    origin = one.server.origin
    if origin.kind == "url":
        yield f"code of {shown_url(origin.name)} is run, whatever is there", 5 if origin.name.startswith("http:") else 3


def _texts(one: AuditedServer) -> list[str]:
    """Return what a shell or an interpreter is given to run."""
    return [*one.server.origin.shell_texts, " ".join(one.server.words)]


def _piped(one: AuditedServer) -> Iterator[Said]:
    if any(_PIPED.search(text) for text in _texts(one)):
        yield "what it fetches is run unseen, at every start"


def _shell(one: AuditedServer) -> Iterator[Said]:
    for text in one.server.origin.shell_texts:
        if _OPERATORS.search(text):
            yield "a shell runs several commands, or parts of one, and not a program with arguments"
            return
        yield "a shell stands between the client and the server", 1
        return


def _inline(one: AuditedServer) -> Iterator[Said]:
    if one.server.origin.kind == "code":
        yield f"{one.server.origin.runner} runs code that stands in the configuration"
    elif any(_ENCODED.match(word) for word in one.server.words[1:4]) and "powershell" in one.server.words[0].lower():
        yield "the command is encoded, so that nobody reads it"


def _sudo(one: AuditedServer) -> Iterator[Said]:
    if "root" in one.server.origin.wrappers or re.search(
        r"(^|[;&|]\s*)(sudo|doas|pkexec)\b", "\n".join(one.server.origin.shell_texts)
    ):
        yield "it runs as the administrator of this machine"


def _missing(one: AuditedServer) -> Iterator[Said]:
    if one.facts.program == "":
        yield f"{one.server.words[0]} is not there, or not on the PATH"
    for path in one.facts.missing:
        yield f"{path} is not there"


def _relative(one: AuditedServer) -> Iterator[Said]:
    words, origin = one.server.words, one.server.origin
    if one.server.scope == "project" or one.server.folder or not words:
        return
    for path in dict.fromkeys([words[0], *origin.scripts]):
        if re.match(r"\.{1,2}[/\\]", path) or (
            re.search(r"[/\\]", path)
            and not re.match(r"([/\\~$%{]|[A-Za-z]:|file:)", path)
            and "://" not in path
            and path == words[0]
        ):
            yield f"{path} is looked for in whatever folder the client was started in"


def _replaceable(one: AuditedServer) -> Iterator[Said]:
    for path, why in one.facts.replaceable:
        yield f"others than its owner may replace {path}: {why}"


def _temporary(one: AuditedServer) -> Iterator[Said]:
    for path in dict.fromkeys([*one.server.words[:1], *one.server.origin.scripts]):
        if _TEMPORARY.match(path):
            yield f"{path} is in a folder for what nobody keeps"


def _injected(one: AuditedServer) -> Iterator[Said]:
    found = [
        name
        for name, value in one.server.environ.items()
        if name.upper() in _INJECTED
        and value.strip()
        and not (name == "NODE_OPTIONS" and not _LIBRARIES.sub("", value).strip())
    ]
    if one.server.origin.runner in {"python", "python3", "uv"}:
        found = [name for name in found if name != "PYTHONPATH"]  # how people start a module of a folder
    if found:
        yield f"{', '.join(found)} {'has' if len(found) == 1 else 'have'} code loaded that the command does not name"


def _registry(one: AuditedServer) -> Iterator[Said]:
    words = one.server.words
    named = [
        word.partition("=")[2] if "=" in word else words[at + 1]
        for at, word in enumerate(words)
        if word.partition("=")[0] in _REGISTRIES
        and one.server.origin.kind in {"npm", "pypi"}
        and ("=" in word or at + 1 < len(words))
    ]
    named += [value for name, value in one.server.environ.items() if name.upper() in _REGISTRY_VARIABLES]
    for address in named:
        if address.startswith("http://") and not re.match(r"http://(localhost|127\.|\[::1\])", address):
            yield f"packages come from {shown_url(address)}, which anybody on the way can replace", 5
        elif "://" in address:
            yield f"packages come from {shown_url(address)}"


_PINNED: Final = "name an exact version: npx NAME@1.2.3, uvx NAME==1.2.3, IMAGE@sha256:…"

RULES: Final[tuple[AuditRule, ...]] = (
    AuditRule(
        "launch.floating", 3,
        statement="A package or an image has an exact version.",
        reason="whoever can publish a version runs code on this machine at the next start",
        hint=_PINNED, check=each_server(_floating),
    ),
    AuditRule(
        "launch.tag", 1,
        statement="An image is named by its digest.",
        reason="tags are moved, also by whoever takes over the account",
        hint="docker inspect --format '{{index .RepoDigests 0}}' IMAGE gives the digest of what you have", check=each_server(_tag),
    ),
    AuditRule(
        "launch.git", 3,
        statement="Code from a repository is named by its commit.",
        reason="branches and tags move: what is pushed there runs here at the next start",
        hint="write the 40 characters of a commit behind @ or #", check=each_server(_git),
    ),
    AuditRule(
        "launch.remote-code", 3,
        statement="No code is run from a URL.",
        reason="who has the host, or over http: the way to it, decides what runs",
        hint="install it, or name a package with a version", check=each_server(_remote_code),
    ),
    AuditRule(
        "launch.pipe-to-shell", 5,
        statement="Nothing that is fetched goes straight into a shell.",
        reason="it runs with all rights of the user, without a version, a hash or a trace",
        hint="install it once, look at it, and start what was installed", check=each_server(_piped),
    ),
    AuditRule(
        "launch.shell", 2,
        statement="A server is started without a shell.",
        reason="a shell's text may hold anything, and quotes and variables in it are read again",
        hint="write the program as command and each argument as one of args", check=each_server(_shell),
    ),
    AuditRule(
        "launch.inline-code", 3,
        statement="No code stands in a configuration.",
        reason="it has no version, no test and no author, and is read by nobody",
        hint="put it into a file, or a package", check=each_server(_inline),
    ),
    AuditRule(
        "launch.sudo", 5,
        statement="No server runs as the administrator.",
        reason="whatever a model is talked into, it then does with all rights",
        hint="give the user of the server the one right that it needs", check=each_server(_sudo),
    ),
    AuditRule(
        "launch.missing", 2,
        statement="What a server is started from is there.",
        reason="it does not start; and whoever puts something there later is started",
        hint="install it, or remove the entry", check=each_server(_missing),
    ),
    AuditRule(
        "launch.relative", 2,
        statement="A path in a user's configuration is absolute.",
        reason="in a folder of somebody else's, somebody else's program is started",
        hint="write the whole path, or cwd", check=each_server(_relative),
    ),
    AuditRule(
        "launch.replaceable", 5,
        statement="Nobody but its owner may replace what is started.",
        reason="who replaces it runs code as the user, at the next start of the client",
        hint="chmod go-w on the file and on its folder", check=each_server(_replaceable),
    ),
    AuditRule(
        "launch.temporary", 3,
        statement="Nothing is started from a folder for temporary files or downloads.",
        reason="other programs write there, and what is gone can be put there again",
        hint="move it to where programs are kept", check=each_server(_temporary),
    ),
    AuditRule(
        "launch.injected", 3,
        statement="No variable has foreign code loaded into the server.",
        reason="what runs is then not only what the command names",
        hint="remove the variable, or start what it loads openly", check=each_server(_injected),
    ),
    AuditRule(
        "launch.registry", 2,
        statement="Packages come from the usual registry of this machine.",
        reason="another index may have a package of the same name, and installers take the newest",
        hint="set the index in the settings of the installer, for all, where people see it", check=each_server(_registry),
    ),
)  # fmt: skip
