"""The playbooks for an agent that operates the factory, as prompts: what to do, in which order, and when to stop and ask."""

from __future__ import annotations

from typing import Final

from mcpfactory_runtime import Server

__all__ = ["register"]

_MANNERS: Final = """
Manners:
- Read before you act: `status` and `inbox` cost nothing.
- `approve`, `promote`, `rollback`, `hold` and `reject` ask a person. Say in `reason` what you looked at, in one sentence.
- A refusal names what is missing. Where it names a setting of mcpfactory.toml, do not write that setting: tell the person.
- Never waive a finding, lower a gate or edit pipeline/state and pipeline/history.
"""


def register(server: Server) -> None:
    """Offers the prompts."""
    for title, prompt in (
        ("Bring a server to production", bring_to_production),
        ("Look into a run that failed", look_into_failed_run),
        ("Update a server after its API changed", update_after_api_change),
    ):
        server.prompt(title=title)(prompt)


def bring_to_production(server: str, document: str = "") -> str:
    """From an API document, or a server that exists, to production, with a person's yes.

    Args:
        server: the server's name.
        document: URL or path of its API document, where the server does not exist yet.
    """
    first = (
        f'1. `new_server` with document="{document}", name="{server}". Read its problems: what was left out of the API, and why.'
        if document
        else f'1. `status` with servers=["{server}"]: which stages are due, what is in which channel.'
    )
    return f"""Bring the server {server} to production.

{first}
2. `run` with servers=["{server}"]. It takes minutes and tells each step. Where a stage fails, `log` and `findings` say why; mend
   the cause in servers/{server}/, and run again. What `_generated/` holds is not yours to edit.
3. `findings` of {server}: gates first. A candidate with an open gate stays where it is.
4. `diff` of {server}: what changes for callers. If it breaks them, raise the version as proposed, and run again.
5. `inbox` of {server} says what production still asks for: approvals, time in staging, gates.
6. `approve`, then `promote`, each with your reason. Report: version, candidate, score, what changed for callers, who said yes.
{_MANNERS}"""


def look_into_failed_run(server: str) -> str:
    """Why a run of a server did not pass, and what mends it.

    Args:
        server: the server's name.
    """
    return f"""Find out why the last run of {server} did not pass.

1. `status` with servers=["{server}"]: the first stage whose outcome is not `passed` is the cause; those behind it are blocked.
2. By outcome:
   - `failed`: the server is not good enough. `log` of that stage; for `validate` also `findings`, whose evidence is the exchange.
   - `errored`, `interrupted`: the machinery broke. `log`; `run` again once. If it errs again, tell the person what it says.
   - `inconclusive`: something moved meanwhile, or was held. `inbox`.
3. Say what is wrong, where (file, tool or rule), and how you would mend it, before you change a file in servers/{server}/.
4. After a change: `plan` (what is due), `run`, and `findings` again.
{_MANNERS}"""


def update_after_api_change(server: str, document: str = "") -> str:
    """Take over a changed API document, keep people's edits, and say what changes for callers.

    Args:
        server: the server's name.
        document: URL or path of the new document; by default it is read from where it came from.
    """
    where = f', document="{document}"' if document else ""
    return f"""The API behind {server} changed. Update the server.

1. `update_server` with server="{server}"{where}, dry_run=true: the changes for callers, and files in conflict.
2. If something breaks callers, tell the person which tools, and go on when they agree.
3. `update_server` without dry_run. Files in conflict have marks: decide in each, and take the marks away.
4. `run` with servers=["{server}"], then `diff` of {server}: give the version that it proposes, and `run` again.
5. Report: tools that came, went and changed, the version, and the score before and after (`findings`).
{_MANNERS}"""
