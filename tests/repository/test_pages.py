"""What the pages of the documentation say exists: links, anchors, commands with their options, targets, modules, files, variables."""

from __future__ import annotations

import re
from importlib import import_module
from importlib.util import find_spec
from inspect import getdoc
from typing import Any

import typer

from docs import generated
from docs.pages.commands import commands
from mcpfactory.examples import EXAMPLES
from mcpfactory.main import app
from tests.repository.markdown_pages import Command, generated_pages

# Words that stand for something else, and what a page leaves out.
_PLACEHOLDER = re.compile(r"[A-Z][A-Z_…]*|.*…|\.\.\.|\[.*")


def test_every_link_and_anchor_leads_somewhere(root, pages):
    """A generated page is in the site alone: pages that people read elsewhere cannot link to it."""
    by_file = {page.file: page for page in (*pages, *generated_pages(root))}
    broken, seen = [], 0
    for page in pages:
        for target, place in page.links():
            if re.match(r"[a-z]+:", target):
                continue
            seen += 1
            path, _, anchor = target.partition("#")
            file = (page.file.parent / path).resolve() if path else page.file
            led = by_file.get(file)
            exists = page.name.startswith("docs/") if led and led.is_generated else file.exists()
            if not exists or (anchor and led and anchor not in led.anchors):
                broken.append(f"{place}: {target}")
    assert seen > 150
    assert broken == []


def test_every_page_is_in_the_list_of_its_folder(root, pages):
    everything = (*pages, *generated_pages(root))
    by_name = {page.name: page for page in everything if page.name.startswith("docs/") and page.name.count("/") > 1}
    lost = []
    for name, page in by_name.items():
        index = by_name.get(f"docs/{name.split('/')[1]}/index.md")
        if index is None or index is page:
            continue
        listed = {(index.file.parent / target.partition("#")[0]).resolve() for target, _ in index.links()}
        if page.file.resolve() not in listed:
            lost.append(f"{name} is not in {index.name}")
    assert lost == []


def test_every_command_is_one_and_has_its_options(root, pages):
    found = [command for page in (*pages, *generated_pages(root)) for command in page.commands("mcpfactory")]
    assert len(found) > 150
    tree = typer.main.get_command(app)
    assert [f"{one.place}: {' '.join(one.words)}: {wrong}" for one in found if (wrong := _judge(tree, one))] == []


def test_every_command_has_examples():
    assert {path.partition(" ")[2] for path, _ in commands()} == EXAMPLES.keys()


def _judge(tree: Any, command: Command) -> str:
    """What is wrong with a command; "" when nothing is."""
    at, words = tree, list(command.words[1:])
    while words and hasattr(at, "commands"):
        if any(words[0] in param.opts and param.count for param in at.params if hasattr(param, "count")):
            words.pop(0)  # an option of the group, such as -v
            continue
        choices = words[0].split("|")
        if words[0].startswith("-"):
            break
        if unknown := [one for one in choices if one not in at.commands and not _PLACEHOLDER.fullmatch(one)]:
            return f"there is no command {unknown[0]}"
        if len(choices) > 1 or _PLACEHOLDER.fullmatch(words[0]):
            return ""
        at = at.commands[words.pop(0)]
    if command.typed and hasattr(at, "commands") and not at.invoke_without_command and words != ["--help"]:
        return "a command of it is missing"
    return _judge_words(at, words, typed=command.typed)


def _judge_words(command: Any, words: list[str], *, typed: bool) -> str:
    """The options and arguments of one command, read by its own parser where they are to be typed."""
    options = {name for param in command.params for name in (*param.opts, *param.secondary_opts)} | {"--help"}
    given = [word.partition("=")[0] for word in words if word.startswith("--") and word != "--"]
    if unknown := [option for name in given for option in name.split("/") if option not in options]:
        return f"there is no option {unknown[0]}"
    if not typed or "--help" in words or any(_PLACEHOLDER.fullmatch(word) for word in words if "…" in word):
        return ""
    context = type(command).context_class(command)
    try:
        _, left, _ = command.make_parser(context).parse_args(words)
    except Exception as error:  # noqa: BLE001 - whatever the parser has to say
        return str(getattr(error, "message", error))
    return f"{left[0]} is too much" if left else ""


def test_every_option_that_is_spoken_of_exists(pages, modules, tests, helpers):
    known = {name for one in (*modules, *tests, *helpers) for name in re.findall(r"--[a-z][a-z-]+", one.text)}
    known |= {
        name for _, command in commands() for param in command.params for name in (*param.opts, *param.secondary_opts)
    }
    unknown = [
        f"{place}: {text}"
        for page in pages
        for text, place in page.code()
        if re.fullmatch(r"--[a-z][a-z-]+( .*)?", text) and text.split()[0] not in known
    ]
    assert unknown == []


def test_every_target_of_make_exists(root, pages):
    targets = set(re.findall(r"^([a-z]+):", (root / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    found = [command for page in pages for command in page.commands("make")]
    words = [(one.words[1], one.place) for one in found if len(one.words) > 1]
    assert len(words) > 5
    assert [
        f"{place}: make {word}" for word, place in words if re.fullmatch("[a-z]+", word) and word not in targets
    ] == []


def test_every_module_that_is_to_be_started_exists(pages):
    found = {
        (one.words[2], one.place)
        for page in pages
        for program in ("python", "python3", ".venv/bin/python")
        for one in page.commands(program)
        if len(one.words) > 2 and one.words[1] == "-m"
    }
    ours = [
        (name, place) for name, place in found if name.split(".")[0].startswith(("mcpfactory", "tests", "benchmarks"))
    ]
    assert len(ours) > 20
    assert sorted(f"{place}: {name}" for name, place in ours if find_spec(name) is None) == []


def test_every_module_of_the_api_reference_says_what_is_public_and_describes_all_of_it(pages):
    names = [name for page in pages for name in re.findall(r"^\.\. automodule:: (\S+)$", page.text, re.MULTILINE)]
    assert {"mcpfactory_runtime", "mcpfactory_pipeline"} <= set(names)
    for name in names:
        module = import_module(name)
        assert [one for one in module.__all__ if not getdoc(getattr(module, one))] == [], name


def test_every_file_of_this_repository_that_is_named_exists(root, pages):
    inside = re.compile(r"(factory|pipeline/src|templates|tests|docs|benchmarks)/[a-z0-9_./*-]+")
    named = [(text.rstrip("/"), place) for page in pages for text, place in page.code() if inside.fullmatch(text)]
    assert len(named) > 20
    # What is below tests/ may be meant within a server, of which this repository has some.
    places = ("", "servers/*/")
    missing = [
        f"{place}: {path}"
        for path, place in named
        if path not in generated.PAGES and not any(list(root.glob(before + path)) for before in places)
    ]
    assert missing == []


def test_every_variable_that_is_named_is_read_somewhere(root, pages, modules, tests, helpers):
    files = [root / "Makefile", *(file for file in (root / "templates").rglob("*") if file.is_file())]
    texts = [*(file.read_text("utf-8") for file in files), *(one.text for one in (*modules, *tests, *helpers))]
    known = {name for text in texts for name in re.findall(r"MCPFACTORY_[A-Z_]+\b", text)}
    named = {(name, page.name) for page in pages for name in re.findall(r"MCPFACTORY_[A-Z_]+\b", page.text)}
    assert len(named) > 10
    assert sorted(f"{page}: {name}" for name, page in named if name not in known) == []
