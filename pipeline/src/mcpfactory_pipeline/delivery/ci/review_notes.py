"""Notes for the reviewers of a pull request: what it relaxes, removes or brings in.

The notes refuse nothing. They are a pure function of the changed files before and after.
"""

from __future__ import annotations

import ast
import json
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, Final

import yaml
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from mcpfactory_codegen.settings import Settings, SettingsError, read_settings
from mcpfactory_pipeline.base.errors import JsonRecord, NotFoundError
from mcpfactory_pipeline.base.git import git_output
from mcpfactory_pipeline.base.text import escape_markdown, pluralize
from mcpfactory_pipeline.workspace.settings import WorkspaceSettings
from mcpfactory_pipeline.workspace.waivers import WaiverFile


@dataclass(frozen=True, slots=True)
class ReviewNote(JsonRecord):
    """A change that reviewers should see: its kind, its file, and a description in one line."""

    kind: str
    file: str
    message: str


def review_notes(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> list[ReviewNote]:
    """Return the notes about the changed files of a workspace, by path."""
    found = []
    for file in sorted({**before, **after}):
        old, new = before.get(file), after.get(file)
        for pattern, (kind, notes) in _NOTES.items():
            if fnmatchcase(file, pattern) and old != new:
                found += [ReviewNote(kind, file, " ".join(words.split())) for words in _safely(notes, old, new)]
    return sorted(found, key=lambda note: (note.kind, note.file))


def changed_files(root: Path, base: str) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Return the contents of the files that differ from the commit `base`: before and after."""
    listed = git_output(root, "diff", "--name-only", "--no-renames", "--no-ext-diff", "--relative", "-z", base, "--")
    if listed is None:
        raise NotFoundError(f"git cannot compare the workspace with {base}", hint="fetch the commit with 'git fetch'")
    before, after = dict[str, bytes](), dict[str, bytes]()
    for file in filter(None, listed.decode(errors="replace").split("\0")):
        if any(fnmatchcase(file, pattern) for pattern in _NOTES):
            if (data := git_output(root, "show", f"{base}:./{file}")) is not None:
                before[file] = data
            if (root / file).is_file():
                after[file] = (root / file).read_bytes()
    return before, after


def notes_as_markdown(notes: list[ReviewNote]) -> str:
    """Return the notes as a Markdown table for a run summary."""
    rows = (f"| {note.kind} | {escape_markdown(note.file)} | {escape_markdown(note.message)} |\n" for note in notes)
    body = "".join(["| change | file | details |\n|---|---|---|\n", *rows]) if notes else "No changes of policies.\n"
    return f"## For reviewers\n\n{body}\n"


_Notes = Callable[[str, str], Iterator[str]]  # texts of a file before and after; "" for a missing file → descriptions


def _safely(notes: _Notes, before: bytes | None, after: bytes | None) -> list[str]:
    try:
        return list(notes((before or b"").decode("utf-8-sig"), (after or b"").decode("utf-8-sig")))
    except (SettingsError, ValueError, SyntaxError, yaml.YAMLError, RecursionError):
        return ["cannot be read before or after; compare by hand"]


# --- settings ---


_LOW_IS_STRICT: Final = ("max_", "token_budget", "limit", "timeout", "memory")


def _settings(before: str, after: str) -> Iterator[str]:
    old, new = (read_settings(WorkspaceSettings, text or "[workspace]", "") for text in (before, after))
    yield from _relaxed("", old, new)


def _relaxed(path: str, old: Any, new: Any) -> Iterator[str]:
    """Describe the settings that changed, except for numbers that became stricter."""
    old, new = _table(old), _table(new)
    if old is not None and new is not None and (isinstance(old, Mapping) or isinstance(new, Mapping)):
        before, after = dict(old), dict(new)  # an empty tuple has no tables
        for key in {**before, **after}:
            yield from _relaxed(f"{path}.{key}".lstrip("."), before.get(key), after.get(key))
    elif old != new and not _is_stricter(path.rpartition(".")[2], old, new):
        yield (
            f"{path}: added"
            if old is None
            else f"{path}: removed"
            if new is None
            else f"{path}: {_shown(old)} → {_shown(new)}"
        )


def _table(value: Any) -> Any:
    if isinstance(value, Settings):
        return {
            field.validation_alias or name: getattr(value, name) for name, field in type(value).model_fields.items()
        }
    named = isinstance(value, tuple) and all(hasattr(one, "name") for one in value)
    return {one.name: one for one in value} if named and value else value


def _is_stricter(name: str, old: Any, new: Any) -> bool:
    if old is None:  # numbers limit something; other values can also permit something
        return isinstance(new, (int, float)) and not isinstance(new, bool)
    if not isinstance(old, (int, float)) or not isinstance(new, (int, float)):
        return False
    return new < old if name.startswith(_LOW_IS_STRICT) else new > old


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


# --- other files ---


def _waivers(before: str, after: str) -> Iterator[str]:
    known = read_settings(WaiverFile, before, "").waivers
    for one in read_settings(WaiverFile, after, "").waivers:
        if one not in known:
            yield f"{one.rule} {one.tool or '(all tools)'} until {one.until} by {one.person}: {one.reason}"


def _changed(before: str, after: str) -> Iterator[str]:
    yield "added" if not before else "changed" if after else "removed"


def _lost_tests(names: Callable[[str], Counter[str]], before: str, after: str) -> Iterator[str]:
    lost = names(before) - (names(after) if after else Counter())
    yield from lost.elements() if after or not lost else [f"the file, with {pluralize(lost.total(), 'test')}"]


def _python_tests(text: str) -> Counter[str]:
    functions = (
        node for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    )
    return Counter(node.name for node in functions if node.name.startswith("test"))


def _declared_tests(text: str) -> Counter[str]:
    content = yaml.safe_load(text)
    tests = content.get("tests") if isinstance(content, dict) else None
    return Counter(str(test.get("name")) for test in tests or () if isinstance(test, dict))


def _dependencies(before: str, after: str) -> Iterator[str]:
    known = set(map(_identity, _requirements(before)))
    yield from (text for text in _requirements(after) if _identity(text) not in known)
    if _uv(before) != _uv(after):
        yield "changed [tool.uv]: sources and indexes of packages"


def _requirements(text: str) -> Iterator[str]:
    data = tomllib.loads(text)
    project, build = data.get("project", {}), data.get("build-system", {})
    groups = {**project.get("optional-dependencies", {}), **data.get("dependency-groups", {})}
    for group in (project.get("dependencies", []), build.get("requires", []), *groups.values()):
        yield from (text for text in group if isinstance(text, str))


def _identity(text: str) -> str:
    """Return the name of a requirement; the whole text if it does not come from an index."""
    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        return text
    return text if requirement.url else canonicalize_name(requirement.name)


def _uv(text: str) -> Any:
    return tomllib.loads(text).get("tool", {}).get("uv")


# Pattern of a path (`*` matches several folders) → kind of the notes, and the function that finds them.
_NOTES: Final[Mapping[str, tuple[str, _Notes]]] = {
    "mcpfactory.toml": ("relaxed or changed setting", _settings),
    "servers/*/waivers.toml": ("new waiver", _waivers),
    "CODEOWNERS": ("code owners", _changed),
    ".git*/CODEOWNERS": ("code owners", _changed),
    "docs/CODEOWNERS": ("code owners", _changed),
    "pipeline/allowed_signers": ("keys of approvers", _changed),
    "servers/*test*.py": ("removed test", partial(_lost_tests, _python_tests)),
    "servers/*/tests/*.y*ml": ("removed test", partial(_lost_tests, _declared_tests)),
    "*pyproject.toml": ("new dependency", _dependencies),
    "*uv.toml": ("new dependency", _changed),
}
