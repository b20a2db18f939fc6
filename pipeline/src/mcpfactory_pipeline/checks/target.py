"""Server under validation, and the means to reach it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mcpfactory_pipeline.base.errors import PipelineError
from mcpfactory_runtime.errors import Exit
from mcpfactory_runtime.urls import split_web_url


class ExamineError(PipelineError):
    """Invalid description of a validation target."""

    exit_code = Exit.BAD_INPUT


@dataclass(frozen=True, slots=True)
class ValidationTarget:
    """One MCP server in any language, by command (stdio) or by URL (Streamable HTTP).

    `command` is an argument list, never shell text; `cwd` is its working directory. `environ` is added to the small
    environment of every validated server; the caller's own environment is not passed on, because the server is not
    trusted yet.

    `cases` is a generated `cases.json`: with it, every tool is called against a stub upstream instead of the real
    API, and the API is made to fail; `api_timeout` is the API timeout in seconds given to the server meanwhile.
    `package` is the folder of its sources, if we may read them; `wheel` was built from them, and a second build is
    compared with it. `isolation` are the stage settings that isolate that build.

    `limits` are the resource limits from policy, by the names of `gates.COSTS`; empty means unlimited. `examples` is
    a file of calls for a foreign server ([{"tool": …, "arguments": {…}}, …]); `allow_calls` also calls tools without
    `readOnlyHint`, with made-up arguments. `drift` lists the differences from the adopted server and is None for
    others; `drift_offer` is the hash of the current offer.
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
        """Return the name of the server in the report: its command line or its URL."""
        return self.url if self.url is not None else " ".join(self.command or ())
