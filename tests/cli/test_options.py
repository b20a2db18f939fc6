"""One option name for one thing: every option of every command, and what it names."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from mcpfactory.reference import commands

# What an option names, in whichever command it stands. A new option has its row here: look first whether the thing has a name.
MEANINGS = {
    "--again": "the stage from which on everything runs anew",
    "--against": "what to compare with",
    "--all": "all there are, instead of those named or near",
    "--allow-actions": "people may act in the dashboard",
    "--allow-calls": "tools may be called though nothing marks them as harmless",
    "--answer": "an answer to a question of a template",
    "--answers": "a file of answers to questions of a template",
    "--api": "an API document of a server, by its label",
    "--arg": "one argument of a tool",
    "--args": "all arguments of a tool",
    "--branch": "a branch of git",
    "--candidate": "a candidate",
    "--cases": "a file of calls that must work",
    "--channel": "a channel of the workspace",
    "--constraint": "a version that what a server depends on must have",
    "--copy": "files from outside of the workspace come into it",
    "--started-by": "how a server that is adopted starts",
    "--test": "the command of a server's own tests",
    "--variable": "a variable that a server reads",
    "--check": "judge only",
    "--check-cases": "whether questions are worth asking",
    "--endpoint": "where a model is",
    "--baseline": "an earlier report",
    "--max-cost": "how much may be spent",
    "--model": "a model that is asked",
    "--propose": "questions that a person could accept",
    "--repeat": "how often a question is asked",
    "--suggest": "tools that were confused",
    "--client": "an MCP client",
    "--command": "a command that starts a server",
    "--demo": "serve the example data of a template",
    "--device": "a login on another device",
    "--assigned": "what was assigned to jobs",
    "--notify": "what waits is told",
    "--open": "everybody is served",
    "--pushed": "the base is the commit before a push",
    "--dialect": "a dialect",
    "--documents": "where callers may take API documents from",
    "--dry-run": "say what would be done",
    "--due": "all that is due",
    "--env": "a variable for a server",
    "--executor": "where jobs run",
    "--expires": "the last day of a waiver",
    "--explain": "what a rule demands",
    "--export": "the folder of a static site",
    "--factory": "the origin of mcpfactory",
    "--force": "although something speaks against it",
    "--format": "the form of what is printed",
    "--forget": "a login is deleted",
    "--from": "where a client takes a server from",
    "--from-openapi": "an API document",
    "--git": "run git init",
    "--graph": "the form in which the stages are drawn",
    "--host": "the address to listen on",
    "--http": "Streamable HTTP instead of stdio",
    "--include-method": "operations by method",
    "--include-operation": "operations by id",
    "--include-path": "operations by path",
    "--include-tag": "operations by tag",
    "--install-completion": "completion for a shell",
    "--jobs": "how many servers at a time",
    "--json": "JSON instead of text",
    "--keep-channels": "channels keep what they have",
    "--kind": "the kind of a note",
    "--limit": "a limit of cost",
    "--literal": "write values that look like secrets",
    "--live": "ask the real API",
    "--matrix": "what each tool did while its API failed",
    "--min": "the least share of questions that must go well",
    "--mode": "how tools are presented",
    "--name": "the name of what is made",
    "--no-browser": "open no browser",
    "--output": "where a report goes",
    "--overlay": "an OpenAPI overlay",
    "--policy": "what refuses a server",
    "--port": "the port to listen on",
    "--print": "print instead of writing",
    "--profile": "a profile",
    "--project": "the project instead of the user",
    "--provider": "a CI provider",
    "--proxy-header": "the header in which a proxy names people",
    "--public-url": "the address as others see it",
    "--reason": "why",
    "--record": "the API to record",
    "--refresh": "read API documents again",
    "--release": "the workflow of releases",
    "--released": "results of the job that publishes",
    "--repair": "write what differs anew",
    "--report": "a page of what was found, beside the cases",
    "--run": "a run, by its id",
    "--scheme": "a security scheme",
    "--scope": "a scope of OAuth",
    "--search": "a gateway's tools by search",
    "--server": "a server of the workspace",
    "--servers": "servers of the workspace, as one text",
    "--set": "an option of a target",
    "--shared-credentials": "equal security schemes of several documents are one",
    "--show": "how many rows are shown",
    "--show-completion": "completion for a shell, printed",
    "--stage": "a stage of the workspace",
    "--summary": "a file that gets a summary",
    "--sign-with": "an ssh key",
    "--target": "a target of publish",
    "--start": "run a server's code",
    "--template": "a template",
    "--texts": "all that a server tells models",
    "--timeout": "how long is waited",
    "--token": "where a token is",
    "--token-file": "the tokens of people",
    "--token-variable": "the variable that holds a token",
    "--tool": "a tool",
    "--until": "the last stage of a run",
    "--accept-origin": "credentials may go to another host",
    "--update": "snapshots are written anew",
    "--trust": "what somebody else wrote is used without a question",
    "--url": "the URL of a server",
    "--version": "the version of mcpfactory",
    "--workspace": "the workspace",
    "--yes": "ask nothing",
}

# These say in each command what exactly they do there; all others have one text wherever they stand.
IN_OWN_WORDS = {
    "--against", "--all", "--branch", "--candidate", "--check", "--env", "--force", "--from-openapi", "--json",
    "--mode", "--name", "--port", "--public-url", "--reason", "--server", "--timeout",
}  # fmt: skip


def every_option() -> dict[str, list[tuple[str, Any]]]:
    """The options of all commands by name: the commands that have it, with what the parser knows of it."""
    found: dict[str, list[tuple[str, Any]]] = defaultdict(list)
    for path, command in commands():
        for option in command.params:
            if option.param_type_name == "option" and option.name != "help":
                found[next(name for name in option.opts if name.startswith("--"))].append((path, option))
    return found


def test_every_option_is_in_the_table_and_names_one_thing():
    assert sorted(MEANINGS) == sorted(every_option())
    assert len(set(MEANINGS.values())) == len(MEANINGS), "one thing has two options"


def test_an_option_reads_the_same_in_every_command():
    for name, found in every_option().items():
        assert len({(option.metavar, tuple(option.opts)) for _, option in found}) == 1, (name, found)
        assert name in IN_OWN_WORDS or len({option.help for _, option in found}) == 1, (name, found)
    assert [name for name in IN_OWN_WORDS if len({option.help for _, option in every_option()[name]}) == 1] == []
