"""Contents of the documentation pages: headings, links, code, commands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

from docs import generated

_READER = MarkdownIt("commonmark").enable("table")
_SHELLS = {"", "sh", "bash", "shell", "console", "text"}
_BEFORE = re.compile(r"^(\$ |[A-Z_][A-Z0-9_]*=\S+ )*")  # a prompt, and variables for one command
_UNTIL = {"#", "|", "&", "&&", ";", ">", "<", "||", "2>&1"}


class Command(NamedTuple):
    """A command on a page, as words, and its location."""

    words: tuple[str, ...]
    place: str
    typed: bool  # True in a block; False within a line of prose


@dataclass(frozen=True)
class Page:
    """One Markdown file."""

    file: Path
    name: str

    @cached_property
    def text(self) -> str:
        return generated.page_text(self.name) if self.is_generated else self.file.read_text(encoding="utf-8")

    @property
    def is_generated(self) -> bool:
        """Return True if the page exists only on the site."""
        return self.name in generated.PAGES

    @cached_property
    def _tokens(self) -> list[tuple[Token, int]]:
        """Yield all tokens, including inline ones, each with its line."""
        found = []
        for token in _READER.parse(self.text):
            line = (token.map or [0])[0] + 1
            found += [(token, line), *((child, line) for child in token.children or ())]
        return found

    def links(self) -> Iterator[tuple[str, str]]:
        """Yield the target of each link and picture, and its location."""
        for token, line in self._tokens:
            target = token.attrGet("href") if token.type == "link_open" else token.attrGet("src")
            if isinstance(target, str):
                yield target, f"{self.name}:{line}"
            if token.type in {"html_inline", "html_block"}:
                for found in re.findall(r'\b(?:src|srcset|href)="([^"]+)"', token.content):
                    yield found, f"{self.name}:{line}"

    @cached_property
    def anchors(self) -> set[str]:
        """Return the anchors of the headings, as GitHub and GitLab derive them."""
        found: dict[str, int] = {}
        names = set()
        for (token, _), (inline, _) in zip(self._tokens, self._tokens[1:], strict=False):
            if token.type == "heading_open":
                words = "".join(part.content for part in inline.children or ())
                slug = re.sub(r"[^\w\- ]", "", words.lower().strip()).replace(" ", "-")
                names.add(slug if slug not in found else f"{slug}-{found[slug]}")
                found[slug] = found.get(slug, 0) + 1
        return names

    def code(self) -> Iterator[tuple[str, str]]:
        """Yield the inline code, and its location."""
        for token, line in self._tokens:
            if token.type == "code_inline":
                yield token.content, f"{self.name}:{line}"

    def blocks(self, *languages: str) -> Iterator[tuple[str, int]]:
        """Yield the code blocks in one of these languages, each with its first line."""
        for token, line in self._tokens:
            if token.type == "fence" and token.info.strip() in languages:
                yield token.content, line + 1

    def commands(self, program: str) -> Iterator[Command]:
        """Yield the commands of a program, in blocks and inline. A word can span several lines of a block."""
        for text, first in self.blocks(*_SHELLS):
            for number, line in enumerate(text.replace("\\\n", "  ").splitlines(), start=first):
                for part in re.split(r" && | \|\| ", _BEFORE.sub("", line.strip())):
                    if words := _words(part, program):
                        yield Command(words, f"{self.name}:{number}", typed=True)
        for text, place in self.code():
            if words := _words(_BEFORE.sub("", text), program):
                yield Command(words, place, typed=False)


def _words(line: str, program: str) -> tuple[str, ...]:
    """Return the words of a command after its program; empty for other lines."""
    if not re.match(rf"{re.escape(program)}(?= |$)", line):
        return ()
    reader = shlex.shlex(re.sub(r"\$\([^)]*\)", "…", line), posix=True, punctuation_chars=False)
    reader.whitespace_split, reader.commenters = True, ""
    words: list[str] = []
    try:
        for word in reader:
            if word in _UNTIL:
                break
            words.append(word)
    except ValueError:  # the quote ends on another line
        pass
    return tuple(words)


def read_pages(root: Path) -> list[Page]:
    """Return README, CONTRIBUTING and the hand-written pages of docs/, but no changelog, which has removed names."""
    files = [
        *sorted(file for file in root.glob("*.md") if file.name != "CHANGELOG.md"),
        *sorted((root / "docs").rglob("*.md")),
        *sorted((root / ".github").rglob("*.md")),
    ]
    pages = [Page(file, file.relative_to(root).as_posix()) for file in files]
    return [page for page in pages if not page.is_generated]


def generated_pages(root: Path) -> list[Page]:
    """Return the additional pages of the site; their text is generated on demand."""
    return [Page(root / name, name) for name in generated.PAGES]
