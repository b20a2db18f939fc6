"""Generation of a server's files in memory, from documents or a template."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from mcpfactory_codegen.cases.cases import test_files
from mcpfactory_codegen.curation import Selection
from mcpfactory_codegen.describe.curate import ToolGroup, check_pinned_names, curate, rename, suggest_tool_groups
from mcpfactory_codegen.describe.tools import ApiTool, make_api_tools
from mcpfactory_codegen.describe.workflows import Workflow, check_workflows
from mcpfactory_codegen.emit import Options, emit
from mcpfactory_codegen.ir import Api, Problem, ProblemCollector, SkippedOperation
from mcpfactory_codegen.naming import Names, name_api
from mcpfactory_codegen.naming.environment_variables import keep_server_names
from mcpfactory_codegen.openapi import document_kind
from mcpfactory_codegen.read.document import Document, DocumentError
from mcpfactory_codegen.select import inclusion_from_extensions, select
from mcpfactory_codegen.servers import server_files
from mcpfactory_codegen.servers.config import NAME, ApiConfig, ServerConfig, render_config
from mcpfactory_codegen.servers.documents import is_url, locate_problems, private_api_host, read_combined_api
from mcpfactory_codegen.servers.overview import Overview, overview
from mcpfactory_codegen.servers.report_file import (
    REPORT,
    PublishedNames,
    environment,
    has_root_url,
    render_report,
    report,
)
from mcpfactory_codegen.servers.scaffold import ServerTemplate, render
from mcpfactory_codegen.servers.server_files import (
    FormatError,
    LockfileError,
    MergeError,
    UnsafePathError,
    format_python_files,
)
from mcpfactory_codegen.servers.template_answers import checked_answers, read_questions, render_answers
from mcpfactory_codegen.servers.templates import TemplateSourceError, UnknownTemplateError
from mcpfactory_codegen.settings import CONFIG, SettingsError, quoted
from mcpfactory_codegen.text import escape_markdown, one_line, snake_case, strip_controls, words
from mcpfactory_runtime.errors import Exit, McpfactoryError

FIRST_VERSION: Final = "0.1.0"
HIDDEN: Final = "hidden in mcpfactory.toml"
_VERSION: Final = re.compile(r"^__version__ = [\"']([^\"']{1,64})[\"']", re.M)
_LONGEST_NAME: Final = 40


Notify = Callable[[str], None]
"""Function that receives a progress line."""


def ignore_notice(_step: str) -> None:
    """Ignore the line."""


@dataclass(frozen=True, slots=True)
class GeneratedServer:
    """A generated server in memory, and the result of its creation.

    `machine`, `person` and `document` are the server's files by owner. `template` is the version of the template of
    person-owned files. `steps` has the action for each file, and is empty before the files are written. `groups` has
    suggested tool groups if one list would contain too many tools. `address` has the API's URLs in the form of the
    report. `recognised` is a text with the kinds and sizes of the documents.
    """

    server: str = ""
    path: Path = Path()
    machine: dict[str, str] = field(default_factory=dict)
    person: dict[str, str] = field(default_factory=dict)
    document: dict[str, bytes] = field(default_factory=dict)
    api_tools: tuple[ApiTool, ...] = ()
    operations: int = 0
    problems: tuple[Problem, ...] = ()
    skipped: tuple[SkippedOperation, ...] = ()
    groups: tuple[ToolGroup, ...] = ()
    steps: tuple[server_files.FileStep, ...] = ()
    address: Mapping[str, Any] = field(default_factory=dict)
    apis: tuple[ApiConfig, ...] = ()
    template: str = ""
    recognised: str = ""
    alike: tuple[str, ...] = ()
    overview: Overview | None = None

    @property
    def tools(self) -> int:
        """Return the number of tools."""
        return len(self.api_tools)

    @property
    def tokens(self) -> int:
        """Return the estimated tokens of all tools."""
        return sum(tool.tokens for tool in self.api_tools)

    @property
    def files(self) -> tuple[str, ...]:
        """Return all files, by path below the server's directory."""
        return tuple(sorted({**self.machine, **self.person, **self.document}))


def generate(
    config: ServerConfig,
    documents: Mapping[str, Document],
    known: PublishedNames,
    version: str,
    *,
    scaffold: ServerTemplate | None = None,
    sources: Mapping[str, str] | None = None,
    notify: Notify = ignore_notice,
) -> GeneratedServer:
    """Generate a server from its documents by label, with person-owned files if `scaffold` is given.

    `known` has published names to keep, unless the configuration overrides them. `sources` has private URLs that the
    user just gave for documents. Calls to the hosts of `sources` are allowed.
    """
    notify(f"reading the operations of {'the document' if len(documents) == 1 else f'{len(documents)} documents'}")
    # relative URLs in the stored copy are resolved against the recorded source
    documents = {
        one.label: replace(documents[one.label], source=one.source) if is_url(one.source) else documents[one.label]
        for one in config.apis
    }
    read = read_combined_api(config.apis, documents, config.credentials)
    config = _with_permitted_hosts(config, sources or {}, read.bases)
    api = keep_server_names(read.api, known.servers)
    notify(f"naming and describing {len(api.operations)} operations")
    pinned = {**known.names, **config.names}
    named = name_api(api, server=config.name, pinned=pinned, prefix=known.prefix)
    renamed = rename(named, config.tools)
    described = make_api_tools(api, renamed.names, config.responses)
    curated = curate(described.tools, renamed)
    profiles = resolve_profiles(api, curated.tools, config)
    workflows, unmade = check_workflows(config.workflows, curated.tools)
    hidden = (one.skipped(HIDDEN) for one in api.operations if one.key in curated.hidden)
    skipped = (*api.skipped, *described.skipped, *hidden)
    invalid_pins = check_pinned_names(named, config.names)
    chosen = (*invalid_pins, *renamed.problems, *curated.problems, *profiles.problems, *unmade)
    problems = locate_problems(documents, (*api.problems, *described.problems, *chosen))
    notify(f"writing the code of {len(curated.tools)} tools")
    tests = test_files(api, renamed.names, curated.tools, config.package, dialect="dialect" in profiles.offer)
    options = Options(
        config.name,
        config.package,
        version,
        max_text=config.responses.max_text,
        offer=profiles.offer,
        workflows=workflows,
        private=config.allow_private,
    )
    machine = emit(api, renamed.names, curated.tools, options) | tests
    person: dict[str, str] = {}
    if scaffold:
        preset = openapi_template_answers(config, api, renamed.names, curated.tools, workflows)
        person = render(scaffold, {**checked_answers(config.answers, read_questions(scaffold), preset), **preset})
        person[CONFIG] = render_config(config) + render_answers(config.answers)
    notify(f"formatting {len(machine) + len(person)} files")
    done, groups = format_python_files({**machine, **person}), suggest_tool_groups(api, curated.tools)
    data = report(
        api, renamed.names, curated.tools, skipped, problems, uncurated=renamed.uncurated, private=config.allow_private
    )
    steps = [{"name": one.name, "steps": [step.tool for step in one.config.steps]} for one in workflows]
    data |= {"workflows": steps, "offer": profiles.summary, "groups": [asdict(group) for group in groups]}
    return GeneratedServer(
        machine={**{path: done[path] for path in machine}, REPORT: render_report(data)},
        person={path: done[path] for path in person},
        api_tools=curated.tools,
        operations=sum(read.operations.values()),
        problems=problems,
        skipped=skipped,
        groups=groups,
        address=data["address"],
        apis=config.apis,
        template=scaffold.version if scaffold else "",
        alike=read.alike,
        recognised=describe_documents(documents, read.operations),
        overview=overview(config.name, data),
    )


def describe_documents(documents: Mapping[str, Document], counts: Mapping[str, int]) -> str:
    """Return a text with the kind and the size of each document."""
    found = []
    for label, document in documents.items():
        source, count = document_kind(document), counts[label]
        text = f"{source.noun}, {count} {source.counted if count != 1 else source.counted.removesuffix('s')}"
        found.append(f"{label}: {text}" if label else text)
    return "; ".join(found)


def _with_permitted_hosts(config: ServerConfig, sources: Mapping[str, str], bases: Mapping[str, str]) -> ServerConfig:
    hosts = {one.label: private_api_host(sources.get(one.label, ""), bases[one.label]) for one in config.apis}
    allowed = (tuple(dict.fromkeys((*one.allow_private, *hosts[one.label]))) for one in config.apis)
    apis = (one.model_copy(update={"allow_private": new}) for one, new in zip(config.apis, allowed, strict=True))
    return config.model_copy(update={"apis": tuple(apis)})


def refuse_server_without_tools(built: GeneratedServer, config: ServerConfig, where: str) -> None:
    """Raise a CreateError if no operation became a tool, unless the user hid all operations."""
    hidden = any(one.reason == HIDDEN for one in built.skipped)
    if built.api_tools or hidden or not config.document:
        return
    unmatched = (one for one in built.problems if one.code == "selection-unmatched")
    found = next((one for one in unmatched if not one.pointer.startswith("profiles.")), None)
    if not built.operations:
        message, hint = f"{where} has no operations", "give the document that has `paths`"
        if any(one.code == "webhooks-ignored" for one in built.problems):
            message = f"{where} has only webhooks, which the API sends, and no operation to call"
            hint = "give the document of the API to call"
    elif found is not None:
        message, hint = f"nothing is selected: {found.message}", found.hint
    else:
        first = next(iter(built.skipped), None)
        problem = next((one for one in built.problems if first and first.reason in one.message), None)
        at = f" (line {problem.line})" if problem and problem.line else ""
        why = f"; the first: {first.method} {first.path}{at}: {first.reason}" if first else ""
        message = f"none of {built.operations} operations of {where} became a tool{why}"
        hint = (problem and problem.hint) or "select other operations, or correct the document"
    raise CreateError(message, hint, "empty")


def from_template(config: ServerConfig, template: ServerTemplate) -> GeneratedServer:
    """Return a server from a template without an API document.

    Raise a CreateError for a template that requires a document, and a TemplateSourceError for an invalid answer.
    """
    if template.requires_api_document:
        hint = (
            f"mcpfactory new {config.name} --from-openapi FILE, or --template minimal for a server without a document"
        )
        message = f"template {template.name} is for servers that are generated from an API document"
        raise CreateError(message, hint, "template")
    preset = {"name": config.name, "package": config.package, "distribution": distribution_name(config.name)}
    given = checked_answers(config.answers, read_questions(template), preset)
    files = render(template, {**preset, "title": config.name.replace("-", " ").capitalize(), **given})
    # the configuration ends with the table [server], and the template's own keys belong to this table
    files[CONFIG] = render_config(config) + files.get(CONFIG, "") + render_answers(config.answers)
    return GeneratedServer(person=format_python_files(files), template=template.version)


def read_package_version(folder: Path, config: ServerConfig) -> str:
    """Return the version in the user's package."""
    init = folder / "src" / config.package / "__init__.py"
    found = _VERSION.search(init.read_text("utf-8")) if init.is_file() else None
    return found[1] if found else FIRST_VERSION


def choose_server_name(name: str | None, text: str) -> str:
    """Return the given name, or a name derived from `text`, or raise a CreateError."""
    if name is None:
        built = snake_case(strip_controls(text)).replace("_", "-").lstrip("-0123456789")[:_LONGEST_NAME].strip("-")
        return built.removesuffix("-api") or "api"
    if not NAME.match(name) or len(name) > _LONGEST_NAME:
        hint = f"use [a-z][a-z0-9-]*, at most {_LONGEST_NAME} characters"
        raise CreateError(f"{name!r} is not a valid server name", hint, "name")
    return name


def import_package_name(name: str) -> str:
    """Return the import package of a server's name."""
    return name.removesuffix("-mcp").replace("-", "_") + "_mcp"


def distribution_name(name: str) -> str:
    """Return the distribution name of a server."""
    return name.removesuffix("-mcp") + "-mcp"


def edited_file_problems(steps: Iterable[server_files.FileStep]) -> Iterator[Problem]:
    """Yield a problem for each machine-owned file that was edited."""
    for step in steps:
        if step.edited:
            what = "removed" if step.action == "remove" else "rewritten"
            message = f"{step.path} is a generated file that was changed by hand, and it was {what}"
            hint = "make changes in server.py; restore the earlier content from version control"
            yield Problem("warning", "file-edited", "", message, hint)


# --- modes and profiles ---


CURATED: Final = "curated"
_PROFILES: Final = ("full", "read-only")


@dataclass(frozen=True, slots=True)
class ResolvedProfiles:
    """Modes and profiles of a server: the manifest entries `offer`, and the sizes `summary` for the report."""

    offer: dict[str, Any] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()


def resolve_profiles(api: Api, tools: Sequence[ApiTool], config: ServerConfig) -> ResolvedProfiles:
    """Return the tools of each profile, by profile name. An unknown default profile is reported and ignored."""
    problems = ProblemCollector()
    members: dict[str, list[str]] = {}
    for name, selection in config.profiles.items():
        members[name] = _profile_members(api, tools, selection, name, problems)
    if CURATED not in members:
        keys = {
            operation.key for operation in api.operations if inclusion_from_extensions(operation.extensions) is True
        }
        if found := [tool.name for tool in tools if tool.key in keys]:
            members[CURATED] = found
    offer: dict[str, Any] = {}
    if config.server.mode:
        offer["mode"] = config.server.mode
    if config.server.dialect:
        offer["dialect"] = config.server.dialect
    if config.server.profile in {*_PROFILES, *members}:
        offer["profile"] = config.server.profile
    elif config.server.profile:
        message = f"unknown profile {config.server.profile!r}: the server offers all its tools"
        problems.add("profile-unknown", "server.profile", message, f"one of {', '.join([*_PROFILES, *members])}")
    if members:
        offer["profiles"] = members
    return ResolvedProfiles(offer, _profile_summary(tools, offer), problems.all())


def _profile_summary(tools: Sequence[ApiTool], offer: dict[str, Any]) -> dict[str, Any]:
    members: dict[str, set[str]] = {
        "full": {tool.name for tool in tools},
        "read-only": {tool.name for tool in tools if tool.annotations.get("readOnlyHint") is True},
    }
    members |= {name: set(names) for name, names in offer.get("profiles", {}).items()}
    return {
        "mode": offer.get("mode", "full"),
        "profile": offer.get("profile", "full"),
        "profiles": {
            name: {"tools": len(names), "tokens": sum(tool.tokens for tool in tools if tool.name in names)}
            for name, names in members.items()
        },
    }


def _profile_members(
    api: Api, tools: Sequence[ApiTool], selection: Selection, name: str, problems: ProblemCollector
) -> list[str]:
    chosen = select(replace(api, problems=(), skipped=()), selection)
    for problem in chosen.problems:
        problems.add(problem.code, f"profiles.{name}: {problem.pointer}", problem.message, problem.hint)
    keys = {operation.key for operation in chosen.operations}
    members = [tool.name for tool in tools if tool.key in keys]
    if not members:
        problems.add("profile-empty", f"profiles.{name}", f"the profile {name!r} has no tools", "widen its selection")
    return members


# --- answers to the template `openapi`; Markdown is escaped here ---


_ROWS: Final = 60  # maximum tools in the table
_ROW: Final = 120  # maximum characters of a tool's summary
_NAMED: Final = 4  # maximum documents to list by name
_TOPICS: Final = 12  # maximum tags with their descriptions


def openapi_template_answers(
    config: ServerConfig, api: Api, names: Names, tools: Sequence[ApiTool], workflows: Sequence[Workflow]
) -> dict[str, Any]:
    """Return the answers to the template `openapi`.

    Answers named `*_quoted` are Python and TOML literals. All other answers may be Markdown.
    """
    title = one_line(api.title, 80) or config.name
    description = f"MCP server for {title}"
    instructions = one_line(api.description, 400)
    places = [api_config.document for api_config in config.apis]
    return {
        "name": config.name,
        "package": config.package,
        "distribution": distribution_name(config.name),
        "title": title,
        "description": description,
        "title_quoted": quoted(title),
        "description_quoted": quoted(description),
        "instructions_quoted": quoted(instructions),
        "document": ", ".join(places) if len(places) <= _NAMED else f"{len(places)} documents in api/",
        "title_markdown": escape_markdown(title),
        "about_markdown": _about(api, tools),
        "tools_count": len(tools),
        "tools_table": _tools_table(tools, workflows),
        "environment_table": _environment_table(environment(api, names, tools)),
        "base_url": api.base_url,
        "runtime_extras": ",".join(_runtime_extras(api)),
        "address_variable": f"{names.prefix}_BASE_URL" if has_root_url(api, tools) else "",
        "example_tool": next((tool.name for tool in tools if not tool.input_schema.get("required")), ""),
    }


def _about(api: Api, tools: Sequence[ApiTool]) -> str:
    """Return a Markdown description of the API, followed by the descriptions of its tools' tags."""
    operations = api.operations_by_key()
    counts = Counter(tag for tool in tools for tag in operations[tool.key].tags[:1])
    texts = {tag: one_line(api.tag_descriptions.get(tag, ""), _ROW) for tag, _ in counts.most_common()}
    described = {tag: text for tag, text in texts.items() if words(text.lower()) not in ((), words(tag.lower()))}
    topics = [f"- {escape_markdown(tag)}: {escape_markdown(text)}" for tag, text in list(described.items())[:_TOPICS]]
    return "\n\n".join(filter(None, (escape_markdown(one_line(api.description, 600)), "\n".join(topics))))


def _runtime_extras(api: Api) -> list[str]:
    used = {name for one in api.operations for alternative in one.security for name in alternative}
    schemes = [one for one in api.security_schemes if one.name in used]
    extras = {"aws"} if any(one.kind == "awsSigV4" for one in schemes) else set()
    extras |= {"google"} if any(flow.grant == "serviceAccount" for one in schemes for flow in one.flows) else set()
    return sorted(extras | {"upstream"})


def _tools_table(tools: Sequence[ApiTool], workflows: Sequence[Workflow]) -> str:
    texts = [(tool.name, tool.title or tool.description.partition("\n")[0]) for tool in tools[:_ROWS]]
    texts += [(one.name, one.listed["description"]) for one in workflows]
    rows = [(f"`{name}`", escape_markdown(one_line(text, _ROW))) for name, text in texts]
    more = f"\n\nand {len(tools) - _ROWS} more" if len(tools) > _ROWS else ""
    return _table(("tool", "what it does"), rows) + more


def _environment_table(rows: Sequence[dict[str, Any]]) -> str:
    cells = [
        (f"`{row['name']}`", "yes" if row["required"] else "no", escape_markdown(row["description"])) for row in rows
    ]
    return _table(("variable", "required", "what it holds"), cells)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in (head, *rows)]
    return "\n".join([lines[0], "|---" * len(head) + "|", *lines[1:]]) if rows else ""


# --- errors of creation and update ---


class CreateError(McpfactoryError):
    """Error for a server that was not created or updated.

    The code is `empty`, `exists`, `name`, `source`, `document`, `strict`, `template`, `config`, `damaged`, `write`,
    `edited`, `merge` or `internal`.
    """

    exit_code = Exit.BAD_INPUT

    def __init__(self, message: str, hint: str, code: str) -> None:
        super().__init__(message, hint)
        self.code = code


class NoSuchTemplateError(CreateError):
    """Error for a server with an unknown template."""

    exit_code = Exit.NOT_FOUND


_CODES: Final[Mapping[type[Exception], str]] = {
    DocumentError: "document",
    TemplateSourceError: "template",
    SettingsError: "config",
    LockfileError: "damaged",
    UnsafePathError: "write",
    MergeError: "merge",
    FormatError: "internal",
    OSError: "write",
}
_HINTS: Final = {
    "write": "check that the folder is writable and the disk has free space",
    "internal": "this is a bug in mcpfactory; please report it with the document",
}


@contextmanager
def as_create_errors() -> Iterator[None]:
    """Convert all expected errors to `CreateError`."""
    try:
        yield
    except tuple(_CODES) as error:
        code = next(code for known, code in _CODES.items() if isinstance(error, known))
        made = NoSuchTemplateError if isinstance(error, UnknownTemplateError) else CreateError
        raise made(str(error), getattr(error, "hint", "") or _HINTS.get(code, ""), code) from error
