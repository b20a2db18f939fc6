"""Renaming of a server: its package, its files, its variables.

The renaming is computed in memory, and `write_renamed` writes the new directory. Machine-owned files are generated
again under the new name. Person-owned files are merged with the template under the new name. Then the names of package
and distribution are replaced in person-owned files. API documents stay unchanged.

Remaining occurrences of the old name are reported and not changed, because their meaning is unclear.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final

from mcpfactory_codegen.servers import server_files
from mcpfactory_codegen.servers.config import ServerConfig, parse_config, read_config
from mcpfactory_codegen.servers.documents import stored_documents
from mcpfactory_codegen.servers.generation import (
    CreateError,
    GeneratedServer,
    Notify,
    as_create_errors,
    choose_server_name,
    distribution_name,
    from_template,
    generate,
    ignore_notice,
    import_package_name,
    read_package_version,
)
from mcpfactory_codegen.servers.report_file import REPORT, list_report_variables, read_published_names, read_report
from mcpfactory_codegen.servers.scaffold import find_template
from mcpfactory_codegen.servers.server_files import Lockfile, LockfileEntry, merge, sha256_hex
from mcpfactory_codegen.servers.templates import TemplateSourceError
from mcpfactory_codegen.settings import CONFIG
from mcpfactory_codegen.sources.translation_helpers import table
from mcpfactory_codegen.text import words
from mcpfactory_runtime.upstream.secrets import SETTINGS

_TEXTS: Final = {".py", ".toml", ".cfg", ".ini", ".yaml", ".yml", ".json", ".md", ".rst", ".txt", ".sh", ".pyi", ""}
_LEFT: Final = {
    ".venv", "venv", "__pycache__", ".pytest_cache", ".ruff_cache", ".mypy_cache", "dist", "build", ".git", "node_modules",
}  # fmt: skip
_PAST: Final = re.compile(r"(?i)change(s|log)|history")  # changelogs and histories keep the old name
_MOST_BYTES: Final = 1_000_000  # maximum bytes of a searched file


@dataclass(frozen=True, slots=True)
class OldNameMention:
    """A line that contains the old name."""

    path: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Renaming:
    """Result of a renaming, with the `changed` person-owned files and the new name of each variable."""

    old: ServerConfig
    new: ServerConfig
    changed: tuple[str, ...] = ()
    mentions: tuple[OldNameMention, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    changes: Mapping[str, bytes | None] = field(default_factory=dict)
    lock: Lockfile = field(default_factory=Lockfile)


@dataclass(frozen=True, slots=True)
class _Names:
    old: ServerConfig
    new: ServerConfig

    def path(self, path: str) -> str:
        """Return the new path of a file of the old server."""
        before = f"src/{self.old.package}/"
        return f"src/{self.new.package}/{path.removeprefix(before)}" if path.startswith(before) else path

    def text(self, text: str) -> str:
        """Return the text with the package's and the distribution's new names."""
        package, distribution = self.old.package, distribution_name(self.old.name)
        if package != self.new.package:
            text = re.sub(rf"(?<![\w-]){re.escape(package)}(?![\w-])", self.new.package, text)
        if re.search(r"-", distribution):
            text = re.sub(rf"(?<![\w-]){re.escape(distribution)}(?![\w-])", distribution_name(self.new.name), text)
        return text

    def mention(self) -> re.Pattern[str]:
        """Return a pattern that matches the old name in any spelling, also within names of variables."""
        spelled = r"[-_ ]?".join(map(re.escape, words(self.old.name)))
        return re.compile(rf"(?<![a-z0-9]){spelled}(?![a-z0-9])", re.I)


def rename_server(folder: Path, name: str, *, notify: Notify = ignore_notice) -> Renaming:
    """Compute the changes that rename the server in `folder`, and write nothing.

    Raise a CreateError for an invalid name or an unusable directory.
    """
    with as_create_errors():
        old = read_config(folder)
        name = choose_server_name(name, name)
        package = import_package_name(name) if old.package == import_package_name(old.name) else old.package
        names = _Names(old, old.with_server(name=name, package=package))
        lock = Lockfile.read(folder)
        before, after = _built(folder, old, old, notify), _built(folder, old, names.new, notify)
        changes, entries = _machines(lock, names, after)
        persons = _persons(folder, lock, names, before, after)
        for path, text in persons.texts.items():
            changes[path] = text.encode()
        entries |= persons.entries
        _refuse_half(folder, names, persons.texts.get(CONFIG, ""))
    return Renaming(
        old=old,
        new=names.new,
        changed=tuple(sorted(persons.texts)),
        mentions=tuple(_mentions(names, persons)),
        variables=_variables(folder, after),
        changes=changes,
        lock=Lockfile(entries, lock.template),
    )


def write_renamed(folder: Path, renaming: Renaming, beside: Path) -> Path:
    """Write the renamed server to a new directory in `beside`, and keep the old directory.

    If the disk reports an error, raise a CreateError and leave no partial result.
    """
    target = Path(mkdtemp(prefix=f".{renaming.new.name}-", dir=beside))
    try:
        with as_create_errors():
            shutil.copytree(
                folder, target, symlinks=True, dirs_exist_ok=True, ignore=shutil.ignore_patterns(*_LEFT, "*.egg-info")
            )
            old, new = (target / "src" / one.package for one in (renaming.old, renaming.new))
            if old != new and old.is_dir():
                old.rename(new)
            server_files.apply(target, renaming.changes, renaming.lock)
            target.chmod(0o755)  # mkdtemp uses 0o700
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise
    return target


def _built(folder: Path, old: ServerConfig, config: ServerConfig, notify: Notify) -> GeneratedServer:
    """Return the server's files, generated again with `config`. Without the template, the result is empty."""
    version = read_package_version(folder, old)
    if not old.document:
        try:
            return from_template(config, find_template(config.template, folder))
        except TemplateSourceError:
            return GeneratedServer()
    known, documents = read_published_names(folder), stored_documents(folder, old)
    if config != old:
        known = replace(known, prefix="")
    make = partial(generate, config, documents, known, version)
    try:
        return make(scaffold=find_template(config.template, folder), notify=notify)
    except TemplateSourceError:
        return make()


def _machines(
    lock: Lockfile, names: _Names, after: GeneratedServer
) -> tuple[dict[str, bytes | None], dict[str, LockfileEntry]]:
    """Return the changes of machine-owned files, and the lock entries of all files that are not person-owned."""
    changes: dict[str, bytes | None] = {path: text.encode() for path, text in after.machine.items()}
    entries = {path: LockfileEntry("machine", sha256_hex(text.encode())) for path, text in after.machine.items()}
    for path, entry in lock.files.items():
        if entry.owner == "document":
            entries[path] = entry
        elif entry.owner == "machine" and names.path(path) not in after.machine:
            changes[names.path(path)] = None
    return changes, entries


@dataclass(frozen=True, slots=True)
class _UserFiles:
    """Person-owned files by new path: the changed `texts`, and the unchanged files in `kept`."""

    texts: dict[str, str] = field(default_factory=dict)
    kept: dict[str, str] = field(default_factory=dict)
    entries: dict[str, LockfileEntry] = field(default_factory=dict)


def _persons(
    folder: Path, lock: Lockfile, names: _Names, before: GeneratedServer, after: GeneratedServer
) -> _UserFiles:
    done = _UserFiles()
    ours = {path for path, entry in lock.files.items() if entry.owner != "person"}
    for path, text in _texts(folder):
        if path in ours:
            continue
        target = names.path(path)
        merged = text if _PAST.match(Path(path).stem) else _renamed(names, before, after, path, text)
        if merged != text:
            done.texts[target] = merged
        else:
            done.kept[target] = text
    for path, entry in lock.files.items():
        if entry.owner == "person":
            base = None if entry.pristine is None else _renamed(names, before, after, path, entry.pristine)
            digest = entry.sha256 if base is None else sha256_hex(base.encode())
            done.entries[names.path(path)] = LockfileEntry("person", digest, base)
    return done


def _renamed(names: _Names, before: GeneratedServer, after: GeneratedServer, path: str, text: str) -> str:
    """Return a person-owned text under the new name, merged with the template's changes unless they conflict."""
    base, theirs = before.person.get(path), after.person.get(names.path(path))
    if base is not None and theirs is not None and base != theirs:
        merged = merge(base, text, theirs)
        text = merged.text if not merged.conflicts else text
    if path == CONFIG:
        return _configured(names, text)
    return names.text(text)


def _configured(names: _Names, text: str) -> str:
    for key, value in (("name", names.new.name), ("package", names.new.package)):
        text = re.sub(
            rf'(?m)^([ \t]*{key}[ \t]*=[ \t]*)(["\'])[^"\'\n]*\2', rf"\g<1>{json.dumps(value)}", text, count=1
        )
    return text


def _refuse_half(folder: Path, names: _Names, text: str) -> None:
    text = text or (folder / CONFIG).read_text("utf-8")
    if parse_config(text, folder / CONFIG) != names.new:
        wanted = f'name = "{names.new.name}" and package = "{names.new.package}"'
        message = f"{folder / CONFIG}: [server] could not be renamed"
        raise CreateError(message, f"write {wanted} on separate lines", "config")


def _texts(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the user's text files in a server's directory by path, without generated files and links."""
    for target in sorted(folder.rglob("*")):
        path = target.relative_to(folder)
        if set(path.parts[:-1]) & _LEFT or any(part.endswith(".egg-info") for part in path.parts):
            continue
        if target.is_symlink() or not target.is_file() or target.suffix.lower() not in _TEXTS:
            continue
        if target.stat().st_size > _MOST_BYTES or path.parts[0] in {".mcpfactory", "api"}:
            continue
        try:
            yield path.as_posix(), target.read_bytes().decode()
        except UnicodeDecodeError:
            continue


def _mentions(names: _Names, persons: _UserFiles) -> Iterator[OldNameMention]:
    pattern = names.mention()
    for path, text in sorted({**persons.kept, **persons.texts}.items()):
        if _PAST.match(Path(path).stem):
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if pattern.search(line):
                yield OldNameMention(path, number, line.strip()[:200])


def _variables(folder: Path, after: GeneratedServer) -> dict[str, str]:
    """Return the new name of each variable that the server reads.

    The old and the new report list the variables in the same order.
    """
    reports = read_report(folder), json.loads(after.machine.get(REPORT, "{}"))
    pairs = zip(*map(_read_variables, reports), strict=False)
    return {was: becomes for was, becomes in pairs if was != becomes}


def _read_variables(report: Mapping[str, Any]) -> list[str]:
    prefix = table(report, "address").get("prefix", "")
    settings = [f"{prefix}_{name}" for name in SETTINGS] if prefix else []
    return [*settings, *(name for name in list_report_variables(report) if name not in settings)]
