"""Skills: directories with a SKILL.md that a server publishes.

The server reads a skill's directory on each request, so that each response has current digests. SKILL.md is a listed
resource, and a resource template reads the other files. The server opens only files that a walk of the directory found,
so that no URI can escape the directory. Links are refused. Names that begin with a dot are skipped.

Hosts compare the published front matter with the result of a YAML parser. Values that YAML parsers read differently are
therefore refused, such as `yes`, `012` and `2024-01-01`. Front matter consists of lines `key: value` and at most one
nested level. Values are plain, quoted or block strings, plain numbers, true, false and null. Any other syntax is
refused.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from mcpfactory_runtime.protocol.errors import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, McpError
from mcpfactory_runtime.revisions import SKILLS
from mcpfactory_runtime.server.lists import page
from mcpfactory_runtime.server.registry import make_resource
from mcpfactory_runtime.server.resources_prompts import uri_of
from mcpfactory_runtime.server.results import EmbeddedBlob, EmbeddedText
from mcpfactory_runtime.server.threads import in_thread
from mcpfactory_runtime.types import Json

if TYPE_CHECKING:
    from mcpfactory_runtime.protocol.connection import Call
    from mcpfactory_runtime.server.interfaces import ServerInterface


_BLOCK: Final = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_PAIR: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_.\-]*)[ \t]*:(?:[ \t]+(.*?))?[ \t]*")
_NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
_WORDS: Final[dict[str, Any]] = {"true": True, "false": False, "null": None, "~": None}
# Plain values that some parsers misread: booleans of YAML 1.1, and any value that begins like a number.
_AMBIGUOUS: Final = re.compile(
    r"(?i:yes|no|on|off|y|n|true|false|null)|[-+.]?[0-9][0-9a-fA-F_,.:xoe+\-TZ]*(?: [0-9:.+\-Z ]+)?|[-+]?\.(?i:inf|nan)"
)
_SPECIAL: Final = tuple("[]{}&*!|>%@`,#?\"'")
_ESCAPES: Final = {'"': '"', "\\": "\\", "/": "/", "n": "\n", "t": "\t", "r": "\r", "0": "\0"}


class FrontmatterError(ValueError):
    """Error for missing or unsupported front matter."""


def read_frontmatter(text: str) -> dict[str, Any]:
    """Return the front matter at the beginning of a text, as a JSON object."""
    found = _BLOCK.match(text)
    if found is None:
        raise FrontmatterError("no front matter\nhint: begin the file with a line ---, the fields, and a line ---")
    return _FrontmatterReader(found[1].splitlines()).mapping("")


class _FrontmatterReader:
    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._next = 0

    def mapping(self, indent: str) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        while (line := self._peek()) is not None:
            if not line.startswith(indent):
                break
            body = line[len(indent) :]
            if body[0] in " \t":
                raise self._error("the line is indented more than the lines around it")
            if "\t" in line:
                raise self._error("tabs are not supported; use spaces")
            pair = _PAIR.fullmatch(body)
            if pair is None:
                raise self._error("the line does not have the form `key: value`")
            if pair[1] in fields:
                raise self._error(f"{pair[1]} appears twice")
            self._next += 1
            fields[pair[1]] = self._value(pair[2] or "", indent)
        return fields

    def _value(self, text: str, indent: str) -> Any:
        if text.startswith(("|", ">")):
            return self._block(text, indent)
        if text == "" or text.startswith("#"):
            line = self._peek()
            if line is not None and line[0] == " " and not indent:
                return self.mapping(line[: len(line) - len(line.lstrip(" "))])
            return None
        return self._scalar(text)

    def _scalar(self, text: str) -> Any:
        if text[0] in "\"'":
            return self._quoted(text)
        plain = re.sub(r"\s+#.*", "", text)
        if plain in _WORDS:
            return _WORDS[plain]
        if _NUMBER.fullmatch(plain):
            return float(plain) if "." in plain else int(plain)
        if _AMBIGUOUS.fullmatch(plain):
            raise self._error(f"YAML readers interpret {plain} differently; put the value in quotes", back=1)
        if plain.startswith((*_SPECIAL, "- ", ": ")) or plain in ("-", ":") or ": " in plain or plain.endswith(":"):
            raise self._error("lists, maps and special characters are not supported; put the value in quotes", back=1)
        return plain

    def _quoted(self, text: str) -> str:
        if text[0] == "'":
            found = re.fullmatch(r"'((?:[^']|'')*)'(?:\s+#.*)?", text)
            if found:
                return found[1].replace("''", "'")
        else:
            found = re.fullmatch(r'"((?:[^"\\]|\\.)*)"(?:\s+#.*)?', text)
            if found and not re.search(r'\\[^"\\/ntr0]', found[1]):
                return re.sub(r"\\(.)", lambda escape: _ESCAPES[escape[1]], found[1])
        raise self._error("a quoted value must end on the same line and contain only simple escapes", back=1)

    def _block(self, header: str, indent: str) -> str:
        if header not in ("|", "|-", ">", ">-"):
            raise self._error("the only supported block values are |, |-, > and >-", back=1)
        lines: list[str] = []
        depth = ""
        while self._next < len(self._lines):
            line = self._lines[self._next]
            if line.strip():
                depth = depth or line[: len(line) - len(line.lstrip(" "))]
                if len(depth) <= len(indent) or not line.startswith(depth):
                    break
            lines.append(line[len(depth) :] if line.strip() else "")
            self._next += 1
            if header[0] == ">" and lines[-1][:1] in (" ", "\t"):
                raise self._error("indented lines in a > block are not supported; use |", back=1)
        while lines and not lines[-1]:
            lines.pop()
        text = "\n".join(lines) if header[0] == "|" else _folded(lines)
        return text if header.endswith("-") or not text else text + "\n"

    def _peek(self) -> str | None:
        while self._next < len(self._lines):
            line = self._lines[self._next].rstrip(" ")
            if line and not line.lstrip(" ").startswith("#"):
                return line
            self._next += 1
        return None

    def _error(self, what: str, back: int = 0) -> FrontmatterError:
        number = self._next + 2 - back  # the count starts at 1, and line 1 is "---"
        return FrontmatterError(f"line {number}: {what}\nhint: use `key: value` lines in the front matter")


def _folded(lines: list[str]) -> str:
    """Join lines with spaces. An empty line becomes a line break."""
    text, gap = "", ""
    for line in lines:
        if line:
            text += (gap or (" " if text else "")) + line
            gap = ""
        else:
            gap += "\n"
    return text


MAX_FILES: Final = 512  # maximum number of files that every host must accept (ext-skills, Limits)
MAX_SIZE: Final = 16 * 1024 * 1024  # bytes; maximum total size that every host must accept
_MAIN: Final = "SKILL.md"
_NAME: Final = re.compile(r"(?!.*--)[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?")  # agentskills.io, field `name`
_DESCRIPTION: Final = 1024  # maximum characters of a description
_SEGMENT: Final = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=-]+")
_SAFE: Final = "/!$&'()*+,;=:@"  # characters of a path that need no escape (RFC 3986 §3.3)
_DIRECTORY: Final = "inode/directory"


class SkillError(ValueError):
    """Error for a folder that cannot be published as a skill."""


@dataclass(frozen=True, slots=True)
class _SkillFile:
    path: Path
    digest: str
    size: int
    stamp: tuple[int, int]


class Skill:
    """A published skill directory.

    Args:
        folder: the skill's directory.
        prefix: path before the skill's name in the URI, or "".

    Attributes:
        root: the URI of the directory.
        uri: the URI of SKILL.md.
        name, description: fields of the front matter at the time of publication.
    """

    def __init__(self, folder: Path, prefix: str) -> None:
        self.folder = folder
        if not folder.is_dir():
            raise SkillError(f"{folder}: no such folder")
        self._files: dict[str, _SkillFile] = {}
        front = self._front()
        self.name, self.description = front["name"], front["description"]
        if self.name != folder.resolve().name:
            raise SkillError(
                f"{folder}: the skill has another name, {self.name}\nhint: use the same name for the folder and the skill"
            )
        segments = [segment for segment in prefix.split("/") if segment] if prefix else []
        for segment in segments:
            if not _SEGMENT.fullmatch(segment) or segment in (".", ".."):
                raise SkillError(
                    f"prefix {prefix!r}: {segment!r} cannot be part of a URI\nhint: use a prefix such as acme/billing"
                )
        self.root = "skill://" + "/".join([*segments, self.name])
        self.uri = f"{self.root}/{_MAIN}"
        self.scan()

    def entry(self) -> Json:
        """Return the `Skill` object of skills/list and skills/get, from the current files."""
        front = self._front()
        files = self.scan()
        return {
            "uri": self.uri,
            "frontmatter": front,
            "resources": [
                {"uri": self.uri_of(name), "digest": file.digest, "size": file.size} for name, file in files.items()
            ],
        }

    def scan(self) -> dict[str, _SkillFile]:
        """Return the skill's files by path, with SKILL.md first."""
        found: dict[str, _SkillFile] = {}
        total = 0
        for name, path in sorted(self._walk(self.folder, ""), key=lambda pair: (pair[0] != _MAIN, pair[0])):
            status = path.stat()
            stamp = (status.st_mtime_ns, status.st_size)
            total += status.st_size
            if len(found) == MAX_FILES or total > MAX_SIZE:
                raise SkillError(
                    f"skill {self.name}: more than {MAX_FILES} files or {MAX_SIZE} bytes; hosts may refuse the skill"
                )
            known = self._files.get(name)
            found[name] = known if known is not None and known.stamp == stamp else _read(path, stamp)
        self._files = found
        return found

    def _walk(self, folder: Path, within: str) -> Iterator[tuple[str, Path]]:
        with os.scandir(folder) as found:
            items = list(found)
        for item in items:
            if item.name.startswith(".") or item.name == "__pycache__":
                continue
            name = within + item.name
            if item.is_symlink():
                raise SkillError(f"skill {self.folder.name}: {name} is a link\nhint: replace the link with the file")
            if item.is_dir(follow_symlinks=False):
                yield from self._walk(Path(item.path), f"{name}/")
            elif item.is_file(follow_symlinks=False):
                yield name, Path(item.path)

    def _front(self) -> Json:
        try:
            front = read_frontmatter((self.folder / _MAIN).read_bytes().decode("utf-8"))
        except FileNotFoundError:
            raise SkillError(f"{self.folder}: there is no {_MAIN}") from None
        except UnicodeDecodeError:
            raise SkillError(f"{self.folder.name}/{_MAIN}: not UTF-8") from None
        except FrontmatterError as error:
            raise SkillError(f"{self.folder.name}/{_MAIN}: {error}") from None
        name, description = front.get("name"), front.get("description")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise SkillError(
                f"{self.folder.name}/{_MAIN}: name {name!r} is invalid\nhint: use 1 to 64 lowercase letters, "
                "digits and single hyphens, with no hyphen at either end"
            )
        if not isinstance(description, str) or not 0 < len(description.strip()) <= _DESCRIPTION:
            raise SkillError(
                f"{self.folder.name}/{_MAIN}: description must be a string of 1 to {_DESCRIPTION} characters"
            )
        return front

    def uri_of(self, name: str) -> str:
        """Return the URI of a file or folder within the skill."""
        return f"{self.root}/{quote(name, safe=_SAFE)}"

    def read(self, path: str) -> EmbeddedText | EmbeddedBlob | None:
        """Return a file's content by the path within the skill, or None for an unknown path."""
        file = self.scan().get(path)
        if file is None:
            return None
        data = file.path.read_bytes()
        mime_type = _mime_type(path)
        if mime_type is None or mime_type.startswith("text/") or mime_type in ("application/json", "application/xml"):
            try:
                return EmbeddedText(self.uri_of(path), data.decode("utf-8"), mime_type or "text/plain")
            except UnicodeDecodeError:
                pass
        return EmbeddedBlob(self.uri_of(path), data, mime_type or "application/octet-stream")

    def children(self, uri: str) -> dict[str, Json] | None:
        """Return the files and folders of a skill's directory as resources by URI, or None for an unknown URI."""
        folders = {self.root: ""}
        files = self.scan()
        for name in files:
            for parent in list(Path(name).parents)[:-1]:
                folders[self.uri_of(parent.as_posix())] = parent.as_posix() + "/"
        if uri not in folders:
            return None
        within = folders[uri]
        children: dict[str, Json] = {}
        for name, file in files.items():
            if name.startswith(within):
                child, _, deeper = name[len(within) :].partition("/")
                child_uri = self.uri_of(within + child)
                if deeper:
                    children[child_uri] = {"uri": child_uri, "name": child, "mimeType": _DIRECTORY}
                else:
                    children[child_uri] = self._resource(name, file)
        return children

    def _resource(self, name: str, file: _SkillFile) -> Json:
        resource: Json = {"uri": self.uri_of(name), "name": name.rpartition("/")[2], "size": file.size}
        if name == _MAIN:
            resource.update(name=self.name, description=self.description)
        mime_type = _mime_type(name)
        if mime_type is not None:
            resource["mimeType"] = mime_type
        return resource


class Skills:
    """Skills of one server, and the methods of the skills extension."""

    def __init__(self, host: ServerInterface) -> None:
        self._host = host
        self._published: dict[str, Skill] = {}
        self._methods = {
            "skills/list": self._list,
            "skills/get": self._get,
            "resources/directory/read": self._read_directory,
        }

    def publish(self, folder: str | os.PathLike[str], prefix: str) -> str:
        """Publish one skill (see `Server.add_skill`)."""
        skill = Skill(Path(folder), prefix)
        self._host.registry.add(self._published, skill.uri, skill)
        self._host.registry.extensions[SKILLS] = {"directoryRead": True}

        def main() -> EmbeddedText | EmbeddedBlob | None:
            return skill.read(_MAIN)

        def read(path: str) -> EmbeddedText | EmbeddedBlob | None:
            return skill.read(path)

        self._host.add_resource(
            make_resource(skill.uri, main, name=skill.name, description=skill.description, mime_type="text/markdown")
        )
        text = f"Files of the skill {skill.name}"
        self._host.add_resource(
            make_resource(skill.root + "/{+path}", read, name=f"{skill.name}-files", description=text)
        )
        return skill.uri

    def publish_all(self, folder: str | os.PathLike[str], prefix: str) -> list[str]:
        """Publish each skill in a folder (see `Server.add_skills`)."""
        found = sorted(path.parent for path in Path(folder).glob(f"*/{_MAIN}"))
        if not found:
            raise SkillError(
                f"no {_MAIN} found in the subfolders of {folder}\nhint: use add_skill() for a single skill"
            )
        return [self.publish(path, prefix) for path in found]

    async def answer(self, call: Call) -> Json:
        """Answer a method of the skills extension."""
        if not self._published:
            raise McpError(METHOD_NOT_FOUND, f"Method not found: {call.method}")
        try:
            result: Json = await in_thread(partial(self._methods[call.method], call), {})
        except (SkillError, OSError) as error:
            raise McpError(INTERNAL_ERROR, f"A skill cannot be read: {type(error).__name__}") from error
        return result

    def _list(self, call: Call) -> Json:
        skills = self._published
        chosen, following = page({uri: {"uri": uri} for uri in skills}, call.params, self._host.page_size)
        result = self._cacheable({"skills": [skills[item["uri"]].entry() for item in chosen]})
        if following is not None:
            result["nextCursor"] = following
        return result

    def _get(self, call: Call) -> Json:
        uri = uri_of(call)
        skill = self._published.get(uri)
        if skill is None:
            raise McpError(INVALID_PARAMS, f"No skill is served at {uri}", {"uri": uri})
        return self._cacheable({"skill": skill.entry()})

    def _read_directory(self, call: Call) -> Json:
        uri = uri_of(call)
        for skill in self._published.values():
            children = skill.children(uri) if uri == skill.root or uri.startswith(skill.root + "/") else None
            if children is not None:
                chosen, following = page(children, call.params, self._host.page_size)
                return {"resources": chosen} if following is None else {"resources": chosen, "nextCursor": following}
        raise McpError(INVALID_PARAMS, f"{uri} is not a directory resource", {"uri": uri})

    def _cacheable(self, result: Json) -> Json:
        result["ttlMs"], result["cacheScope"] = self._host.cache
        return result


def _read(path: Path, stamp: tuple[int, int]) -> _SkillFile:
    data = path.read_bytes()
    return _SkillFile(path, f"sha256:{sha256(data).hexdigest()}", len(data), stamp)


def _mime_type(name: str) -> str | None:
    if name.endswith(".md"):
        return "text/markdown"
    from mimetypes import guess_type  # noqa: PLC0415 - reads the system's tables

    return guess_type(name)[0]
