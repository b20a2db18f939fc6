"""Rules over answers that succeed: whether a tool does what it promises, or only says that it would."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from mcpfactory_pipeline.checks.evidence import Evidence, RecordedCall, answer_text
from mcpfactory_pipeline.checks.families.behaviour import calls_or_reason
from mcpfactory_pipeline.checks.rule import Fault, Rule, RuleOutcome, not_applicable, rule_outcome
from mcpfactory_pipeline.checks.values import answered_value, arrival, is_beside, tells_value

__all__ = ["RULES"]

_QUOTED: Final = 80  # characters of an answer in a message
_LOST_SHOWN: Final = 3
_FEWEST: Final = 2  # tools that say something about all of them
_SHORT: Final = 200  # characters: a longer answer has other things to say, and may quote these words
# In the languages of the most speakers among developers. What stands for work of others ("coming soon: Dune") does not match:
# behind the words comes the end of a sentence.
_WORDS: Final = (
    r"(is |are |has |was )?(not|n't) (yet |been )*(implemented|supported yet|available yet)( yet)?|coming soon|under construction|to be implemented",
    r"todo:? (implement|write|finish)\w*|unimplemented|work in progress|placeholder( response| answer| text| implementation)",
    r"(noch )?nicht implementiert|noch nicht (verfügbar|umgesetzt|fertig)|demnächst verfügbar|in arbeit",
    r"(pas|non) (encore )?(implémenté|disponible)e?s?|bientôt disponible|en cours de développement",
    r"(aún |todavía )?no (está |ha sido )?implementad[oa]|próximamente|em breve|(ainda )?não (foi )?implementad[oa]",
    r"non (è )?(ancora )?implementat[oa]|nog niet geïmplementeerd|(ещё |еще )?не реализован[оа]?|в разработке|henüz uygulanmadı",
)
_IDEOGRAPHS: Final = (
    r"尚未实现|尚未實現|未实现|未實作|敬请期待|即将推出|未実装|実装されていません|近日公開|구현되지 않|준비 중"
)
_UNFINISHED: Final = re.compile(
    rf"(?<!\w)({'|'.join(_WORDS)})[\"')\]}}]*\s*([.!…,;\n\"}}]|$)|{_IDEOGRAPHS}", re.IGNORECASE
)
# What an honest tool answers to arguments that it knows nothing about, the same for each of them.
# The whole of an answer: as a word among others each of these says nothing about the tool.
_ALONE: Final = re.compile(
    r"\W*(wip|tbd|tba|to-?do|stub|dummy|placeholder|lorem ipsum\b.*)\W*", re.IGNORECASE | re.DOTALL
)
_NOTHING: Final = re.compile(
    r"\b(no|not|none|nothing|empty|unknown|invalid|zero|neutral|ok|true|false|null)\b|[{\[]\s*[}\]]|^\W*0*\W*$",
    re.IGNORECASE,
)

# An honest server that lacks its settings, or its API, may say so with every tool and without an error.
_EXCUSED: Final = re.compile(
    rf"{_NOTHING.pattern}|\b(log|sign)(ged)? ?in|\b(api key|token|credential|auth|config|connect|environment|permission|"
    r"error|fail|unable|cannot|can't|could not|time ?out|refused|network|unavailable|missing|please|done|success|accepted)",
    re.IGNORECASE,
)


def _does_something(evidence: Evidence) -> RuleOutcome:
    # What the API says is its own; where it answers a value, substance.results sees whether that arrives.
    succeeded = [call for call in evidence.calls if not call.failed and not _speaks_for_api(call)]
    if not calls_or_reason(evidence) and not succeeded:
        return not_applicable("no tool answered by itself and without an error")
    return calls_or_reason(evidence) or rule_outcome(
        len({call.tool for call in succeeded}), (fault for call in succeeded for fault in _unfinished(call, evidence))
    )


def _speaks_for_api(call: RecordedCall) -> bool:
    if not call.requests:
        return False
    return call.response is None or tells_value(call) or answer_text(call.exchange) in json.dumps(call.response)


def _unfinished(call: RecordedCall, evidence: Evidence) -> Iterator[Fault]:
    text = answer_text(call.exchange).strip()
    if len(text) > _SHORT or not _says_unfinished(text):
        return
    again = [other for other in evidence.others if other.tool == call.tool]
    if all(_says_unfinished(answer_text(other.exchange)) for other in again):  # else it depends on what was asked
        yield Fault(f"the tool answers with success that it does nothing yet: {text[:120]!r}", call.tool, call.exchange)


def _says_unfinished(text: str) -> bool:
    return _UNFINISHED.search(text) is not None or _ALONE.fullmatch(text) is not None


def _distinct(evidence: Evidence) -> RuleOutcome:
    """Return a fault when all tools, and at least two, give one answer that neither is empty nor speaks of what is missing."""
    own = [call for call in evidence.calls if not call.failed and not call.requests and not call.mismatches]
    tools = {call.tool for call in own}
    if len(tools) < _FEWEST or len(tools) < len(evidence.named_tools):
        return not_applicable("fewer than two tools answered by themselves, or some were not called")
    answers = {answer_text(call.exchange).strip() for call in [*own, *evidence.others]}
    text = next(iter(answers), "")
    told = any(char.isdigit() for char in text)  # `Found 0 items.`, a version
    same = len(answers) == 1 and text and not told and not _EXCUSED.search(text) and not _says_unfinished(text)
    fault = Fault(f"all {len(tools)} tools that were called gave one answer: {text[:120]!r}", "", own[-1].exchange)
    return RuleOutcome((fault,) if same else ())


def _answers_something(evidence: Evidence) -> RuleOutcome:
    """Return a fault when all tools, and at least two, succeed with nothing at all: not even an empty list as text."""
    succeeded = [call for call in evidence.calls if not call.failed and call.exchange.result is not None]
    tools = {call.tool for call in succeeded}
    if len(tools) < _FEWEST:
        return not_applicable("fewer than two tools answered without an error")
    given = [call for call in succeeded if _has_arguments(call)]  # a list without any may be empty
    void = bool(given) and all(_is_void(call) and call.response is None for call in succeeded)
    fault = Fault(f"all {len(tools)} tools that were called answered nothing", "", succeeded[-1].exchange)
    return RuleOutcome((fault,) if void else ())


def _has_arguments(call: RecordedCall) -> bool:
    sent = call.exchange.sent
    params = sent.get("params") if isinstance(sent, dict) else None
    return isinstance(params, dict) and bool(params.get("arguments"))


def _is_void(call: RecordedCall) -> bool:
    result = call.exchange.result or {}
    content = result.get("content")
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else [{"type": "?"}]
    said = any(block.get("type") != "text" or str(block.get("text", "")).strip() for block in blocks)
    return not said and not result.get("structuredContent")


def _varies(evidence: Evidence) -> RuleOutcome:
    tools = {other.tool for other in evidence.others}
    if not calls_or_reason(evidence) and not tools:
        return not_applicable(
            "no tool was called with several arguments: none that is marked readOnlyHint takes a text or a number"
        )
    return calls_or_reason(evidence) or rule_outcome(
        len(tools), (fault for call in evidence.calls if call.tool in tools for fault in _constant(call, evidence))
    )


def _constant(call: RecordedCall, evidence: Evidence) -> Iterator[Fault]:
    text = answer_text(call.exchange).strip()
    others = [other for other in evidence.others if other.tool == call.tool]
    answers = {text, *(answer_text(other.exchange).strip() for other in others)}
    failed = call.failed or any(other.failed for other in others)
    same = len(others) > 1 and not failed and len(answers) == 1
    if same and text and not _EXCUSED.search(text):
        yield Fault(
            f"{len(others) + 1} different arguments had one answer: {text[:120]!r}", call.tool, others[-1].exchange
        )


# --- what the stub upstream answered, and what of it reaches the model ---


def _results(evidence: Evidence) -> RuleOutcome:
    if not evidence.with_cases:
        return not_applicable("without a stub upstream nobody knows what the API answered")
    told = [call for call in evidence.calls if not call.failed and not call.mismatches and tells_value(call)]
    return calls_or_reason(evidence) or rule_outcome(
        len({call.tool for call in told}), (fault for call in told for fault in _lost(call, evidence))
    )


def _lost(call: RecordedCall, evidence: Evidence) -> Iterator[Fault]:
    """Compare one answer. A conversion has no value of the API's either: only an answer that stays when the API's changes has lost it."""
    found = arrival(call)
    if is_beside(call):
        words = f"the text has what the API answered, and the structured content nothing of it: {_short((call.exchange.result or {}).get('structuredContent'))}"
        yield Fault(words, call.tool, call.exchange, lesser=2)
    if not found.lost:
        return
    said = f"the API answered {_short(answered_value(call))} and the model got {_short(answer_text(call.exchange))}"
    places = ", ".join(path or "the value" for path in (found.changed or found.lost)[:_LOST_SHOWN])
    again = [one for one in evidence.changed if (one.tool, one.title) == (call.tool, call.title)]
    if found.nothing and again and all(_same_answer(call, one) for one in again):
        words = (
            f"nothing of the API's answer reaches the model, which got the same for {len(again)} other answers: {said}"
        )
        yield Fault(words, call.tool, again[-1].exchange)
    elif found.changed or (found.nothing and not again):
        words = f"the model gets another value than the API answered ({places}): {said}"
        yield Fault(words, call.tool, call.exchange, lesser=3)
    elif not found.nothing:
        words = f"a part of the API's answer does not reach the model ({places}): {said}"
        yield Fault(words, call.tool, call.exchange, lesser=1)


def _same_answer(one: RecordedCall, other: RecordedCall) -> bool:
    shown = [
        [(call.exchange.result or {}).get(key) for key in ("content", "structuredContent")] for call in (one, other)
    ]
    return not other.failed and shown[0] == shown[1]


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return repr(text if len(text) <= _QUOTED else f"{text[:_QUOTED]}…")


RULES: Final[tuple[Rule, ...]] = (
    Rule(
        id="substance.finished", family="substance", severity=5, gate=True, check=_does_something, ceiling=49,
        statement="No tool answers, without an error, that it is not implemented yet.",
        source="MCP server/tools, Error Handling: what a tool cannot do is an error, and a tool that is listed is a promise to the model",
        hint="implement the tool, or do not list it; what it cannot do is answered with isError",
    ),
    Rule(
        id="substance.varies", family="substance", severity=3, gate=False, check=_varies,
        statement="A tool that is called with different required arguments does not give one and the same answer to all of them.",
        source="an argument that changes nothing is no argument",
        hint="use the arguments, or take them out of the schema; the evidence has the last of the calls",
    ),
    Rule(
        id="substance.distinct", family="substance", severity=5, gate=True, check=_distinct, ceiling=49,
        statement="Not all tools give one and the same answer, whatever they are called and asked.",
        source="a tool that is listed is a promise to the model; a server that says one sentence keeps none",
        hint="implement the tools; what they cannot do is answered with isError",
    ),
    Rule(
        id="substance.answers", family="substance", severity=5, gate=True, check=_answers_something, ceiling=49,
        statement="Not all tools answer nothing.",
        source="MCP schema, CallToolResult.content: a model can do nothing with no content",
        hint="return what the tool found, and say so when that is nothing",
    ),
    Rule(
        id="substance.results", family="substance", severity=5, gate=True, check=_results, ceiling=49,
        statement="With cases, what the API answers reaches the model, hooks included, as it is or converted (an answer that stays the same whatever the API answers closes the gate), and all of it.",
        source="the API's answer is what the model called the tool for; the stub upstream knows it",
        hint="look at what hooks return; the evidence has what the model got",
    ),
)  # fmt: skip
