"""Which server is validated, and how it is reached."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mcpfactory_pipeline.base.errors import PipelineError
from mcpfactory_runtime.errors import Exit
from mcpfactory_runtime.urls import split_web_url


class ExamineError(PipelineError):
    """The target cannot be validated as it was described."""

    exit_code = Exit.BAD_INPUT


@dataclass(frozen=True, slots=True)
class ValidationTarget:
    """One MCP server in any language, by command (stdio) or by URL (Streamable HTTP).

    `command` is an argument list, never shell text; `cwd` is where it runs and `environ` is added to the small
    environment that every judged server gets (the caller's own environment is not handed on, for a server that is not
    trusted yet should not see it). `cases` is a `cases.json` made by code generation: with it every tool is called
    against a stub upstream instead of the real one, and the API is made to fail; `api_timeout` is how many seconds the server
    is told to give its API meanwhile. `package` is the folder of its sources, where they are ours to look at; `wheel` was
    built from them, and shows whether a second build gives the same bytes. `limits` are what policy allows the server to cost,
    by the names of `gates.COSTS`; none are set where none are given. `isolation` are the settings of a stage that say how that
    second build is kept apart. `examples` is a file of calls to make of a server that is not ours ([{"tool": …, "arguments":
    {…}}, …]); `drift` says how a server that was adopted is no longer what was adopted, and is None for others, and `drift_offer` is the hash of what is there instead; `allow_calls` also calls tools without `readOnlyHint`, with made-up arguments.
    """

    command: tuple[str, ...] | None = None
    url: str | None = None
    cwd: Path | None = None
    environ: Mapping[str, str] = field(default_factory=dict)
    cases: Path | None = None
    package: Path | None = None
    wheel: Path | None = None
    api_timeout: float = 1.5
    limits: Mapping[str, float] = field(default_factory=dict)
    isolation: Mapping[str, object] = field(default_factory=dict)
    examples: Path | None = None
    allow_calls: bool = False
    drift: tuple[str, ...] | None = None
    drift_offer: str = ""

    def __post_init__(self) -> None:
        if (self.command is None) == (self.url is None):
            raise ExamineError("a target is either a command or a URL", hint="give exactly one of --command and --url")
        if self.command is not None and not self.command:
            raise ExamineError("the command is empty", hint="--command 'python -m my_server'")
        if self.url is not None and split_web_url(self.url) is None:
            raise ExamineError(f"{self.url!r} is not an http or https URL", hint="--url http://127.0.0.1:8000/mcp")
        if self.url is not None and self.cases is not None:
            raise ExamineError(
                "cases need a server that is started here, with its base URL set to the stub upstream",
                hint="use --command instead of --url, or leave the cases out",
            )

    @property
    def name(self) -> str:
        """What the report calls the server: its command line or its URL."""
        return self.url if self.url is not None else " ".join(self.command or ())
