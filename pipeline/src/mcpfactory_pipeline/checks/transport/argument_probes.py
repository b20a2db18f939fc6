"""HTTP probes of arguments that headers repeat: calls whose header is missing, differs, or is encoded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Final, NamedTuple

from mcpfactory_pipeline.checks.evidence import Evidence, HttpProbeAnswer
from mcpfactory_pipeline.checks.transport.header_arguments import (
    Path,
    argument_headers,
    call_headers,
    header_text,
    header_value,
    with_argument,
)
from mcpfactory_pipeline.checks.transport.http_probes import (
    Headers,
    HttpExpectation,
    HttpProbe,
    HttpProbeSender,
    mismatch,
    no_mismatch,
)
from mcpfactory_runtime.types import Json

_MOST: Final = 3  # maximum number of arguments to examine
_CORRECT: Final = "argument"  # name of the probe without a defect


class _Defect(NamedTuple):
    """A call whose header has a defect, or an unusual but valid form. `header` returns the value (None: no header).

    If `arguments` is set, it returns the changed arguments.
    """

    what: str
    expects: HttpExpectation
    header: Callable[[str | int], str | None]
    arguments: Callable[[Json, Path], Json] | None = None


def _other(value: str | int) -> str:
    return header_text(not value if isinstance(value, bool) else value + 1 if isinstance(value, int) else f"{value}-2")


_SAME: Final = "a call whose {header} repeats the argument"
DEFECTS: Final[Mapping[str, _Defect]] = {
    _CORRECT: _Defect(_SAME, no_mismatch, lambda value: header_value(header_text(value))),
    "argument-missing": _Defect("a call without {header}, with the argument,", mismatch, lambda _: None),
    "argument-other": _Defect(
        "a call whose {header} differs from the argument", mismatch, lambda value: header_value(_other(value))
    ),
    "argument-other-encoded": _Defect(
        "a call whose {header} in base64 differs from the argument",
        mismatch,
        lambda value: header_value(_other(value), encoded=True),
    ),
    "argument-invalid-base64": _Defect(
        "a call whose {header} has broken base64 between its marks", mismatch, lambda _: "=?base64?mcpfactory!?="
    ),
    "argument-encoded": _Defect(
        f"{_SAME} in base64", no_mismatch, lambda value: header_value(header_text(value), encoded=True)
    ),
    "argument-null": _Defect(
        "a call without {header}, and with null as argument,",
        no_mismatch,
        lambda _: None,
        lambda arguments, path: with_argument(arguments, path, None),
    ),
    "argument-absent": _Defect(
        "a call without {header} and without the argument", no_mismatch, lambda _: None, with_argument
    ),
}


class _RepeatedArgument(NamedTuple):
    """One argument of a call that a header repeats; `headers` has all headers of the call."""

    params: Json
    headers: Headers
    header: str
    path: Path
    value: str | int


def probe_arguments(evidence: Evidence, begin: Callable[[], HttpProbeSender]) -> list[HttpProbeAnswer]:
    """Repeat successful calls of read-only tools, with a defect in one header of each call. The function blocks.

    Args:
        evidence: the observations with the calls.
        begin: returns a new sender of probes.
    """
    found: list[HttpProbeAnswer] = []
    for one in islice(_repeated_arguments(evidence), _MOST):
        sender = begin()
        sender.run(_row(name, defect, one) for name, defect in DEFECTS.items())
        found += sender.answers.values()
    return found


def _repeated_arguments(evidence: Evidence) -> Iterator[_RepeatedArgument]:
    schemas = evidence.input_schemas
    seen: set[tuple[str, str]] = set()
    for call in evidence.valid_calls:
        if call.failed or call.tool not in evidence.read_only_tools:
            continue
        params = {"name": call.tool, "arguments": call.exchange.params.get("arguments")}
        headers = {"Mcp-Name": header_value(call.tool), **call_headers(schemas, params)}
        for header, about in argument_headers(schemas.get(call.tool), params["arguments"]).items():
            if (call.tool, header) not in seen:
                seen.add((call.tool, header))
                yield _RepeatedArgument(params, headers, header, *about)


def _row(name: str, defect: _Defect, one: _RepeatedArgument) -> HttpProbe:
    def is_served(asker: HttpProbeSender) -> bool:
        return name == _CORRECT or (_CORRECT in asker.answers and asker.answers[_CORRECT].status == 200)

    arguments = one.params["arguments"]
    sent = {**one.params, "arguments": defect.arguments(arguments, one.path) if defect.arguments else arguments}
    headers = {**one.headers, one.header: defect.header(one.value)}
    what = defect.what.format(header=one.header)
    return HttpProbe(name, "modern", what, defect.expects, headers, "tools/call", sent, when=is_served)
