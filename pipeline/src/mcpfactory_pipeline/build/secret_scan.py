from __future__ import annotations

import re
import tarfile
import zipfile
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Final

from mcpfactory_pipeline.base.git import git_output

_LARGEST: Final = 1 << 24  # maximum size in bytes of a file that is searched
_FILES: Final = re.compile(
    r"\.netrc|_netrc|\.pypirc|\.git-credentials|id_(rsa|dsa|ecdsa|ed25519)|\.env(\.(local|prod|production|staging|live))?",
    re.I,
)
"""Names of credential files."""

_DOCUMENTS: Final = frozenset(
    {".json", ".yaml", ".yml", ".graphql", ".graphqls", ".gql", ".xml", ".wsdl", ".txt", ".md"}
)
_KEY: Final = "a private key"
# Kind of secret → pattern. Only kinds with a distinctive, documented format are listed, so ordinary text does not match.
_CONTENTS: Final = {
    _KEY: rb"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
    rb"(?:\s|\\[nr])+(?:[A-Za-z-]+: [^\n\\]*(?:\n|\\n))*(?:[A-Za-z0-9+/=]|\s|\\[nr]){64}",
    "a token of GitHub": rb"\b(?:gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{60,})",
    "a token of GitLab": rb"\bglpat-[A-Za-z0-9_-]{20}",
    "a token of PyPI": rb"\bpypi-AgEI[A-Za-z0-9_-]{50,}",
    "a token of npm": rb"\bnpm_[A-Za-z0-9]{36}\b",
    "a key of AWS": rb"\b(?:AKIA|ASIA)[A-Z2-7]{16}\b(?!EXAMPLE)",
    "a token of Slack": rb"\bxox[abprs]-[0-9]{8,}-[0-9A-Za-z-]{16,}",
    "a key of Stripe": rb"\b[sr]k_live_[A-Za-z0-9]{24,}",
    "a token for a registry of npm": rb":_authToken\s*=\s*[A-Za-z0-9_-]{20,}",
    "a key of Anthropic": rb"\bsk-ant-[A-Za-z0-9_-]{32,}",
    "a key of OpenAI": rb"\bsk-(?:proj-|svcacct-)[A-Za-z0-9_-]{40,}",
}
_ANY: Final = re.compile(b"|".join(b"(" + form + b")" for form in _CONTENTS.values()))
_EXAMPLES: Final = re.compile(rb"EXAMPLE|X{8}|x{8}|0{8}")  # placeholders in documentation that look like secrets


def find_secrets_in_packages(packages: Iterable[Path]) -> Iterator[str]:
    """Yield the file and the kind of each secret in wheels and source distributions."""
    yield from find_secrets_in_files(
        (package.name, name, content) for package in packages for name, content in _members(package)
    )


def find_secrets_in_files(files: Iterable[tuple[str, str, bytes]]) -> Iterator[str]:
    """Yield the file and the kind of each secret. `files` yields archive name, file name and content."""
    members = list(files)
    documents = {(package, name) for package, name, _ in members if _is_document(package, name)}
    public = {
        found[0] for package, name, text in members if (package, name) in documents for found in _ANY.finditer(text)
    }
    for package_name, name, content in members:
        if (package_name, name) not in documents and (kind := secret_kind(content, name, public)):
            yield f"{name} in {package_name} is {kind}"


def exclude_git_ignored(folder: Path, files: Iterable[str]) -> list[str]:
    """Return the files of a server's folder that git would track; outside a repository, return all files."""
    listed = git_output(folder, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--", ".")
    ignored = set((listed or b"").decode(errors="surrogateescape").split("\0"))
    if "pyproject.toml" in ignored:  # Git ignores the whole server, so do not skip ignored files
        return list(files)
    return [name for name in files if name not in ignored]


def _members(package: Path) -> Iterator[tuple[str, bytes]]:
    if package.suffix == ".whl":
        with zipfile.ZipFile(package) as archive:
            for info in archive.infolist():
                with archive.open(info) as stream:
                    yield info.filename, stream.read(_LARGEST)
        return
    with tarfile.open(package) as archive:
        for member in archive:
            if member.isfile() and (file := archive.extractfile(member)) is not None:
                yield member.name, file.read(_LARGEST)


def _is_document(package: str, name: str) -> bool:
    """Return True if a file is an API document or was generated from one. An API document is public."""
    path = PurePosixPath(name)
    of_server = package.endswith(".tar.gz") and path.parts[1:2] == ("api",) and path.suffix.lower() in _DOCUMENTS
    return "_generated" in path.parts or of_server


def secret_kind(content: bytes, name: str = "", public: Collection[bytes] = ()) -> str:
    """Return the kind of the first secret in a file; "" if the file has no secret."""
    if _FILES.fullmatch(PurePosixPath(name).name):
        return "a file that programs keep credentials in"
    for found in _ANY.finditer(content):
        kind = list(_CONTENTS)[(found.lastindex or 1) - 1]
        # Ignore keys in tests, because a TLS test server needs keys.
        of_tests = kind == _KEY and "tests" in PurePosixPath(name).parts
        if not of_tests and found[0] not in public and not _EXAMPLES.search(found[0]):
            return kind
    return ""
