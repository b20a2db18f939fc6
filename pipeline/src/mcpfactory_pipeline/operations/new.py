from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal

from pydantic import Field
from pydantic_core import to_jsonable_python

from mcpfactory_codegen.curation import Selection
from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.base.text import pluralize
from mcpfactory_pipeline.operations.operation import (
    DocumentAccess,
    Omitted,
    Operation,
    OperationContext,
    OperationError,
    OperationResult,
    Server,
    Yes,
    param,
)
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.workspace import BrokenServer, isolate_server_errors
from mcpfactory_runtime.errors import Exit

if TYPE_CHECKING:
    from mcpfactory_codegen.servers.documents import ApiSource
    from mcpfactory_codegen.servers.generation import GeneratedServer
    from mcpfactory_codegen.servers.update import UpdatedServer


_TERMINAL: Final[Omitted] = {"dashboard": "servers are created at a terminal, or by an agent"}
_CREDENTIALS: Final[Omitted] = {"mcp": "a person decides where credentials are sent"}

Template = Annotated[
    str,
    param(
        "Use this template: its NAME, a folder, git+https://…@REF#subdirectory=… or package:NAME==VERSION",
        metavar="TEMPLATE",
        names="templates",
    ),
]
Answers = Annotated[
    tuple[str, ...],
    param("Answer a question of the template (repeatable)", examples=[["license=MIT"]], metavar="NAME=VALUE"),
]
Trust = Annotated[
    bool,
    param(
        "Skip the confirmation for a template from git or a package",
        omit={"mcp": "a person decides about third-party code"},
    ),
]


class ServerResult(OperationResult):
    """A server that was created or updated."""

    server: str
    path: str
    tools: int
    operations: int
    tokens: int | None = None
    problems: tuple[dict[str, Any], ...] = Field(default=(), description="Problems of the API document.")
    groups: tuple[dict[str, Any], ...] = Field(
        default=(), description="Tool groups to select from, if the server has many tools."
    )
    address: dict[str, Any] = Field(default_factory=dict, description="URLs of the API, as in the server's report.")
    addresses: tuple[str, ...] = Field(default=(), description="Variables to set to reach the API.")
    recognised: str = Field(default="", description="Kind of the API document.")
    alike: tuple[str, ...] = Field(default=(), description="Security schemes that are equal in several documents.")
    overview: dict[str, Any] | None = Field(
        default=None, description="Tools that are difficult for models, and decisions to consider."
    )
    breaking: int = Field(default=0, description="Number of changes that break callers.")
    changes: tuple[dict[str, Any], ...] = Field(default=(), description="Changes for callers.")
    conflicts: tuple[str, ...] = Field(default=(), description="Files that a person must merge.")
    files: tuple[Any, ...] = Field(default=(), description="Files that changed, or that a new server would have.")
    moved: str = Field(default="", description="Variables that the server no longer reads.")

    @property
    def exit_code(self) -> Exit:
        """Return NEGATIVE if a person must merge files."""
        return Exit.NEGATIVE if self.conflicts else Exit.OK


class New(Selection, Operation):
    """Create a server from an API document or a template."""

    command: ClassVar[str] = "new"
    title: ClassVar[str] = "Make a server"
    result: ClassVar[type[OperationResult]] = ServerResult
    omit: ClassVar[Omitted] = _TERMINAL

    name: str = param(
        "Use this server name [default: from the document's title]",
        "",
        argument=True,
        flags=("--name",),
        metavar="NAME",
    )
    sources: tuple[str, ...] = param(
        "API document: OpenAPI, or a kind described in docs/how-to/other-sources.md (repeatable, with labels)",
        (),
        examples=[["api.yaml"], ["stock=https://example.com/openapi.json", "shop=api/shop.yaml"]],
        flags=("--from-openapi", "--from"),
        metavar="[LABEL=]FILE|URL",
    )
    template: Template = ""
    answers: Answers = ()
    trust: Trust = False
    overlays: tuple[str, ...] = param(
        "Apply an OpenAPI overlay or Postman environment (repeatable)", (), metavar="[LABEL=]FILE"
    )
    shared_credentials: bool = param(
        "Use the same credentials for equal security schemes of several documents", False, omit=_CREDENTIALS
    )
    mode: Literal["", "full", "search"] = param(
        "Offer all tools (full), or three tools that find, describe and call them (search)",
        "",
        metavar="full|search",
    )
    strict: bool = param("Create nothing if the document has a problem", False)

    def run(self, context: OperationContext) -> ServerResult:
        """Create the server. A person must confirm a third-party template first.

        Raises:
            OperationError: options contradict each other.
            CreateError: a document or template is unusable; nothing was created.
        """
        if bool(self.sources) == bool(self.template):
            raise OperationError(
                "give either an API document or a template",
                hint="run 'mcpfactory new --from-openapi FILE', or 'mcpfactory new NAME --template minimal'",
            )
        document_options = (*Selection.model_fields, "overlays", "shared_credentials", "mode", "strict")
        if self.template and (given := [name for name in document_options if getattr(self, name)]):
            raise OperationError(
                f"{', '.join(given)} can be used only for a server from an API document",
                hint="leave out these options, or use --from-openapi FILE",
            )
        from mcpfactory_codegen.servers.create import create_server
        from mcpfactory_codegen.servers.template_answers import parse_answer_options

        _confirm_template(self, context)
        access = _access(context)
        with access.reading():
            made = create_server(
                context.workspace.root / "servers",
                name=self.name or None,
                source=_sources(access, self.sources),
                template=access.template(self.template) if self.template else None,
                answers=parse_answer_options(list(self.answers)),
                selection=Selection(**{name: getattr(self, name) for name in Selection.model_fields}),
                overlays=_sources(access, self.overlays) or (),
                credentials="shared" if self.shared_credentials else "",
                mode=self.mode,
                strict=self.strict,
                permit=access.permits_private,
                dry_run=context.dry_run,
                notify=context.notify,
            )
        verb = "would make" if context.dry_run else "made"
        tools = f"{made.tools} tools from {made.operations} operations"
        message = f"{verb} server {made.server}: {f'from template {self.template}' if self.template else tools}"
        return _result(message, made, context, f"mcpfactory pipeline run {made.server}")


class Update(Operation):
    """Update a server after its document or template changed.

    Your edits are merged, and changes for callers are reported. If you and the update changed the same lines of a file,
    the file has a conflict that a person must resolve.
    """

    command: ClassVar[str] = "update"
    title: ClassVar[str] = "Update a server"
    idempotent: ClassVar[bool] = True
    result: ClassVar[type[OperationResult]] = ServerResult
    omit: ClassVar[Omitted] = _TERMINAL

    server: Server
    sources: tuple[str, ...] = param(
        "API document [default: its original location]; a new label adds a document (repeatable)",
        (),
        flags=("--from-openapi", "--from"),
        metavar="[LABEL=]FILE|URL",
    )
    apis: tuple[str, ...] = param("Read only the document with this label (repeatable)", (), metavar="LABEL")
    accept_origin: bool = param(
        "Allow a new host for the API or its token endpoint; credentials are sent there", False, omit=_CREDENTIALS
    )
    template: Template = ""
    answers: Answers = ()
    trust: Trust = False

    def run(self, context: OperationContext) -> ServerResult:
        """Update the server. A person must confirm a third-party template first.

        Raises:
            ConfigError: the server is adopted, so it has no document and no template.
            CreateError: the document or template is unusable; nothing was changed.
        """
        from mcpfactory_codegen.servers.template_answers import parse_answer_options
        from mcpfactory_codegen.servers.update import update_server

        server = context.workspace.server(self.server)
        if server.adopted is not None:
            raise ConfigError(
                f"{self.server} was adopted ({server.adopted.origin}): the server has no API document or template for an update",
                hint=f"adopt the newest version with 'mcpfactory adopt {server.adopted.again} --name {self.server}'",
            )
        _confirm_template(self, context)
        access = _access(context)
        with access.reading():
            made = update_server(
                server.folder,
                source=_sources(access, self.sources),
                labels=self.apis,
                permit=access.permits_private,
                accept_origin=self.accept_origin,
                template=access.template(self.template) if self.template else "",
                answers=parse_answer_options(list(self.answers)),
                dry_run=context.dry_run,
                notify=context.notify,
            )
        message = f"{'would update' if context.dry_run else 'updated'} {made.server}"
        following = f"mcpfactory pipeline run {made.server}"
        state = isolate_server_errors(made.server, partial(Store(context.workspace).state, made.server))
        # Channels refuse a version with changed files, so a change of an offered version needs a new version.
        if not isinstance(state, BrokenServer) and state.channels:
            release = f"git commit, mcpfactory release apply {made.server}"
            following = f"mcpfactory diff {made.server}, {release}, then {following}"
        return _result(message, made, context, following)


def _access(context: OperationContext) -> DocumentAccess:
    if context.access is None:
        raise OperationError("this interface does not accept documents and templates", hint="use the command line")
    return context.access


def _sources(access: DocumentAccess, given: Sequence[str]) -> list[ApiSource] | None:
    """Return the documents after a check of the caller's access; None if the caller gave no document."""
    from mcpfactory_codegen.servers.documents import ApiSource, parse_api_sources

    return [ApiSource(access.document(one.place), one.label) for one in parse_api_sources(given)] if given else None


def _confirm_template(operation: New | Update, context: OperationContext) -> None:
    from mcpfactory_codegen.servers.templates import parse_source

    if operation.trust or context.dry_run or not (operation.template and parse_source(operation.template).is_remote):
        return
    tried = operation.run(replace(context, dry_run=True))
    question = f"Use the third-party template {operation.template}? Its code and tests run when the server is started and tested."
    context.confirm(question, tried, f"review it with mcpfactory template show {operation.template}, then add --trust")


_STEP: Final = ("path", "action", "owner", "note")


def _result(
    message: str, made: GeneratedServer | UpdatedServer, context: OperationContext, following: str
) -> ServerResult:
    from mcpfactory_pipeline.workspace.api_addresses import api_addresses

    data = {name: to_jsonable_python(getattr(made, name)) for name in ServerResult.model_fields if hasattr(made, name)}
    found = api_addresses(made.address, os.environ, server=made.server) if made.address else []
    addresses = ["\nhint: ".join(filter(None, (one.message, one.hint))) for one in found]
    data["addresses"] = [*addresses, *filter(None, [data.get("moved")])]
    steps = (one for one in data["files"] if isinstance(one, str) or one["action"] != "same")
    data["files"] = [one if isinstance(one, str) else {name: one[name] for name in _STEP} for one in steps]
    data["breaking"] = sum(one["kind"] == "breaking" for one in data.get("changes", ()))
    return ServerResult(message=message, next=following, dry_run=context.dry_run, **data).of(made)


class AdoptResult(OperationResult):
    """Result of an adoption: the adopted server, or a proposal."""

    server: str
    kind: str
    found: tuple[str, ...] = Field(description="What was recognized, in sentences.")
    environment: tuple[str, ...] = Field(description="Environment variables in the server's code.")
    files: tuple[dict[str, Any], ...] = Field(description="Proposed files: path, change and text.")
    copies: tuple[str, ...] = Field(description="Files to copy.")
    written: tuple[str, ...] = ()


class Adopt(Operation):
    """Add an existing server to the workspace, unchanged.

    The list of planned files is printed before the files are written.
    """

    command: ClassVar[str] = "adopt"
    title: ClassVar[str] = "Adopt a server"
    result: ClassVar[type[OperationResult]] = AdoptResult
    omit: ClassVar[Omitted] = {
        "dashboard": "servers are adopted at a terminal, where their files are",
        "mcp": "a person decides which third-party programs start here",
    }

    source: str = param(
        "Project folder, program, pypi:NAME==VERSION, npm:NAME@VERSION, or server URL",
        "",
        argument=True,
        metavar="SERVER",
    )
    program: str = param(
        "Use the MCP server that this command starts on stdio", "", flags=("--command",), metavar="COMMAND"
    )
    name: str = param("Use this server name in the workspace [default: from the package or host]", "", metavar="NAME")
    start: str = param(
        "Use this start command or these program arguments, if mcpfactory detects none",
        "",
        flags=("--started-by",),
        metavar="COMMAND",
    )
    constraints: tuple[str, ...] = param(
        "For a PyPI package: limit the version of a dependency, such as mcp<2 (repeatable)", (), metavar="REQUIREMENT"
    )
    copies: bool = param("Copy files from outside the workspace into the server's folder", False, flags=("--copy",))
    yes: Yes = False

    def run(self, context: OperationContext) -> AdoptResult:
        """Recognize the server, and write its files after a person has confirmed them."""
        from mcpfactory_pipeline.adoption.proposal import propose_adoption, write_proposal
        from mcpfactory_pipeline.adoption.recognize import recognize
        from mcpfactory_pipeline.adoption.sources import AdoptionRequest

        sure = self.yes or context.dry_run
        request = AdoptionRequest(
            self.source, self.program, self.name, self.start, self.constraints, self.copies, Path.cwd()
        )
        proposal = propose_adoption(context.workspace, recognize(context.workspace, request), self.name)
        found = proposal.to_json()
        details = tuple(f"note: {note}" for note in found.pop("notes"))
        facts = {**found, "details": details, "dry_run": context.dry_run}
        tried = AdoptResult(message=f"{proposal.server} can be adopted", **facts).of(proposal)
        if context.dry_run:
            return tried
        if not proposal.changes:
            message = f"{proposal.server} is already adopted and unchanged: nothing was written"
            return AdoptResult(message=message, **facts).of(proposal)
        if not sure:
            context.confirm("Write it?", tried, f"{self.command_line()} --yes writes it, --dry-run previews it")
        written = write_proposal(context.workspace, proposal)
        below = f"servers/{proposal.server}/"
        message = f"adopted {proposal.server}: wrote {pluralize(len(written), 'file')} below {below}"
        done = AdoptResult(
            message=message, **facts, written=tuple(written), next=f"mcpfactory pipeline run {proposal.server}"
        )
        return done.of(proposal if sure else None)  # omit the proposal if the confirmation question showed it
