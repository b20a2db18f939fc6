"""Rules about successful answers: a tool must do its work, not only claim that it did."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import reduce
from typing import Any, Final

from mcpfactory_codegen.effects import sounds_like_change
from mcpfactory_pipeline.checks.evidence import Evidence, RecordedCall, answer_text, hint, sent_arguments
from mcpfactory_pipeline.checks.rule import Fault, RuleOutcome, RuleSubjects, RuleTable, not_applicable
from mcpfactory_pipeline.checks.rules.subjects import calls_as_subjects, missing_calls_outcome
from mcpfactory_pipeline.checks.samples import (
    api_answer_value,
    compare_with_answer,
    has_answer_value,
    is_answer_only_text,
    scalar_values,
)
from mcpfactory_runtime.types import Json

RULES: Final = RuleTable()
rule = RULES.rule
_QUOTED: Final = 80  # maximum characters of an answer in a message
_LOST_SHOWN: Final = 3
_FEWEST: Final = 2  # minimum number of tools; fewer tools prove nothing about the whole server
# Maximum characters of a placeholder answer.
_SHORT: Final = 200
# "Not implemented" in common languages, at the end of a sentence; the subject is the tool, not its data.
_WORDS: Final = (
    r"(is |are |has |was )?(not|\w+n't) (yet |been )*implemented( yet)?|to be implemented|unimplemented",
    r"todo:? (implement|write|finish)\w*|placeholder( response| answer| text| implementation)",
    (
        r"(noch )?nicht implementiert|(pas|non) (encore )?implémentée?s?|(aún |todavía )?no (está |ha sido "
        r")?implementad[oa]"
    ),
    r"(ainda )?não (foi )?implementad[oa]|non (è )?(ancora )?implementat[oa]|nog niet geïmplementeerd",
    r"(ещё |еще )?не реализован[оа]?|henüz uygulanmadı",
)
_UNFINISHED: Final = re.compile(
    rf"(?<!\w)({'|'.join(_WORDS)})[\"')\]}}]*\s*([.!…,;\n\"}}]|$)"
    r"|尚未实现|尚未實現|未实现|未實作|未実装|実装されていません|구현되지 않",
    re.IGNORECASE,
)
# Words that may also describe data. They count only as the whole answer, or after "this feature".
_SOON: Final = re.compile(
    r"(?<!\w)(coming soon|under construction|work in progress|wip|tbd|tba|to-?do|stub|dummy|placeholder|lorem ipsum\b.*"
    r"|(not|\w+n't) (yet )?supported( yet)?|demnächst verfügbar|in arbeit|noch nicht (umgesetzt|fertig)|bientôt disponible"
    r"|en cours de développement|próximamente|em breve|в разработке)(?!\w)|敬请期待|即将推出|近日公開|준비 중",
    re.IGNORECASE | re.DOTALL,
)
_LATER: Final = re.compile(
    r"(?<!\w)((not|\w+n't) (yet )?available( yet)?|noch nicht verfügbar|pas (encore )?disponible)(?!\w)", re.IGNORECASE
)
_TOOL: Final = re.compile(
    r"feature|function|functionality|tool|method|endpoint|command|operation|implementation|integration|funktion|werkzeug"
    r"|fonction|fonctionnalité|outil|función|funcionalidad|herramienta|função|ferramenta|funzione|strumento|функция|functie"
    r"|[该此]?功能|(この)?機能は?|기능은?"
)
_SMALL: Final = re.compile(
    r"this|that|the|an?|is|are|was|be|will|still|yet|currently|now|here|it|sorry|please|stay|tuned|check|back|later|soon"
    r"|diese[rs]?|die|das|ist|noch|cette|ce|la|est|encore|est[ae]|está|aún|todavía|ainda|quest[ao]|è|ancora|эта|пока|deze|이"
)
# Correct answers about an unknown item; they may be equal for all arguments.
_NOTHING: Final = re.compile(
    r"\b(no|not|none|nothing|nobody|nowhere|never|empty|unknown|invalid|zero|neutral|ok|true|false|null)\b"
    r"|(?<![\d.])0(\.0*)?(?![\d.])|[{\[]\s*[}\]]|^\W*0*\W*$",
    re.IGNORECASE,
)

# Correct answers of a server without its settings or its API.
_EXCUSED: Final = re.compile(
    rf"{_NOTHING.pattern}|\b(log|sign)(ged)? ?in|\b(api key|token|credential|auth|config|connect|environment|permission|"
    r"error|fail|unable|cannot|can't|could not|time ?out|refused|network|unavailable|missing|please|done|success|accepted"
    r"|operational|healthy|running|ready|online|idle|up to date)",
    re.IGNORECASE,
)


def _own_answers(evidence: Evidence) -> RuleSubjects[RecordedCall] | RuleOutcome:
    """Return successful calls without the API's own answer; placeholder-answers.lost-data checks all other calls."""
    if (reason := missing_calls_outcome(evidence)) is not None:
        return reason
    succeeded = [call for call in evidence.answers if not call.failed and not _speaks_for_api(call)]
    return (
        calls_as_subjects(succeeded) if succeeded else not_applicable("no tool answered by itself and without an error")
    )


def _speaks_for_api(call: RecordedCall) -> bool:
    if not call.requests:
        return False
    return call.response is None or has_answer_value(call) or answer_text(call.exchange) in json.dumps(call.response)


@rule("placeholder-answers.not-implemented", 5, gate=True, over=_own_answers,
      statement='No tool answers "not implemented yet" without an error.',
      source=("MCP server/tools, Error Handling: what a tool cannot do is an error, and a tool that is listed is a "
              "promise to the model"),
      hint="implement the tool, or do not list it; return isError for anything that the tool cannot do")  # fmt: skip
def _unfinished(call: RecordedCall, evidence: Evidence) -> Iterator[Fault]:
    text = answer_text(call.exchange).strip()
    again = [other for other in evidence.others if other.tool == call.tool]
    # An equal message for other arguments does not depend on the arguments.
    if len(text) <= _SHORT and all(_says_unfinished(one, repeated=bool(again)) for one in (call, *again)):
        words = f"the tool reports success, but its answer says that it is not implemented yet: {text[:120]!r}"
        yield Fault(words, call.tool, call.exchange)


def _says_unfinished(call: RecordedCall, *, repeated: bool) -> bool:
    """Return True if a tool's answer describes the tool as unfinished, apart from repeated arguments."""
    text = "\n".join(_texts_of(answer_text(call.exchange).strip()))
    given = sorted((value for value in sent_arguments(call).values() if isinstance(value, str) and value), key=len)
    parts = [rf"(?<!\w){re.escape(value)}(?!\w)" for value in reversed(given)]
    own = reduce(lambda left, part: re.sub(part, " ", left), parts, text)
    if _UNFINISHED.search(own):
        return True
    soon, later = _SOON.search(own), _LATER.search(own)
    if not soon and not later:
        return False
    rest = own if repeated else text
    if "_" in call.tool:  # a tool name without "_" may be an ordinary word in the answer
        rest = rest.replace(call.tool, " ")
    words = re.findall(r"\w+", _LATER.sub(" ", _SOON.sub(" ", rest)).lower())
    named = [word for word in words if _TOOL.fullmatch(word)]
    return bool(soon or named) and all(word in named or _SMALL.fullmatch(word) for word in words)


def _texts_of(text: str) -> list[str]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return [text]
    return [str(leaf) for leaf in scalar_values(value)]


def _varied_calls(evidence: Evidence) -> RuleSubjects[RecordedCall] | RuleOutcome:
    if (reason := missing_calls_outcome(evidence)) is not None:
        return reason
    tools = {other.tool for other in evidence.others}
    if not tools:
        return not_applicable(
            "no tool was called with several arguments: no tool with readOnlyHint takes a text or a number"
        )
    return RuleSubjects([call for call in evidence.calls if call.tool in tools], len(tools))


@rule("placeholder-answers.constant", 1, over=_varied_calls,
      statement="If a tool is called with different required arguments, at least two of its answers differ.",
      source=("an argument without effect is useless; the rule weighs little, because one answer (\"The zoo is "
              "open.\") may be right for all tried arguments"),
      hint="use the arguments in the answer, or remove them from the schema; the evidence has the last call")  # fmt: skip
def _constant(call: RecordedCall, evidence: Evidence) -> Iterator[Fault]:
    text = answer_text(call.exchange).strip()
    others = [other for other in evidence.others if other.tool == call.tool]
    answers = {text, *(answer_text(other.exchange).strip() for other in others)}
    failed = call.failed or any(other.failed for other in others)
    same = len(others) > 1 and not failed and len(answers) == 1
    counted = any(char.isdigit() for char in text) and _texts_of(text) == [text]  # equal numbers may be a coincidence
    if same and text and not counted and not _EXCUSED.search(text):
        words = f"{len(others) + 1} different arguments gave the same answer: {text[:120]!r}"
        yield Fault(words, call.tool, others[-1].exchange)


@rule("placeholder-answers.identical-tools", 5, gate=True,
      statement="Calls of several tools get at least two different answers.",
      source="a listed tool is a promise to the model; a server with only one answer breaks every promise",
      hint="implement the tools; return isError for anything that a tool cannot do")  # fmt: skip
def _distinct(evidence: Evidence) -> RuleOutcome:
    """Return a fault if all tools (at least two) give the same answer.

    Empty answers, and answers about missing data, are allowed.

    Tools that change data may all return the same confirmation, so at least one tool must be read-only.
    """
    own = [call for call in evidence.calls if not call.failed and not call.requests and not call.mismatches]
    tools = {call.tool for call in own}
    if len(tools) < _FEWEST or len(tools) < len(evidence.named_tools):
        return not_applicable("fewer than two tools answered by themselves, or some were not called")
    if all(_changes(name, tool) for name, tool in evidence.named_tools):
        return not_applicable("all tools change data, and may return the same confirmation")
    answers = {answer_text(call.exchange).strip() for call in [*own, *evidence.others]}
    text = next(iter(answers), "")
    told = any(char.isdigit() for char in text)  # equal numbers may be a coincidence
    same = len(answers) == 1 and text and not told and not _EXCUSED.search(text)
    same = same and not _says_unfinished(own[-1], repeated=True)
    fault = Fault(f"all {len(tools)} tools that were called gave the same answer: {text[:120]!r}", "", own[-1].exchange)
    return RuleOutcome((fault,) if same else ())


def _changes(name: str, tool: Json) -> bool:
    texts = (str(tool.get(key) or "") for key in ("title", "description"))
    return hint(tool, "readOnlyHint") is not True and sounds_like_change(name, *texts)


@rule("placeholder-answers.empty", 5, gate=True,
      statement="At least one tool gives an answer that is not empty.",
      source="MCP schema, CallToolResult.content: a model cannot use empty content",
      hint="return what the tool found, or a message that it found nothing")  # fmt: skip
def _answers_something(evidence: Evidence) -> RuleOutcome:
    """Return a fault if all tools (at least two) return an empty answer; the text `[]` does not count as empty."""
    succeeded = [call for call in evidence.calls if not call.failed and call.exchange.result is not None]
    tools = {call.tool for call in succeeded}
    if len(tools) < _FEWEST:
        return not_applicable("fewer than two tools answered without an error")
    # Leave out calls without arguments, because their result may be an empty list.
    given = [call for call in succeeded if sent_arguments(call)]
    void = bool(given) and all(_is_void(call) and call.response is None for call in succeeded)
    fault = Fault(f"all {len(tools)} tools that were called returned an empty answer", "", succeeded[-1].exchange)
    return RuleOutcome((fault,) if void else ())


def _is_void(call: RecordedCall) -> bool:
    result = call.exchange.result or {}
    content = result.get("content")
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else [{"type": "?"}]
    said = any(block.get("type") != "text" or str(block.get("text", "")).strip() for block in blocks)
    return not said and not result.get("structuredContent")


# --- answers of the stub upstream, and their parts that reach the model ---


def _answered_calls(evidence: Evidence) -> RuleSubjects[RecordedCall] | RuleOutcome:
    if not evidence.with_cases:
        return not_applicable("without a stub upstream, the API's answers are unknown")
    told = (call for call in evidence.calls if not call.failed and not call.mismatches and has_answer_value(call))
    return missing_calls_outcome(evidence) or calls_as_subjects(told)


@rule("placeholder-answers.lost-data", 5, gate=True, over=_answered_calls,
      statement=("With cases, the model receives the whole answer of the API, unchanged or converted, after any "
                 "hooks. A tool answer that never changes with the API's answer closes the gate."),
      source="the model called the tool for the API's answer, which the stub upstream knows",
      hint="check what hooks return; the evidence has the answer that the model got")  # fmt: skip
def _lost(call: RecordedCall, evidence: Evidence) -> Iterator[Fault]:
    """Compare the answer of one call with the API's answer.

    A converted value is correct if it changes with the API's answer.
    """
    found = compare_with_answer(call)
    if is_answer_only_text(call):
        words = (
            "the text contains the API's answer, but the structured content contains nothing of it: "
            f"{_short((call.exchange.result or {}).get('structuredContent'))}"
        )
        yield Fault(words, call.tool, call.exchange, lesser=2)
    if not found.lost:
        return
    said = f"the API answered {_short(api_answer_value(call))} and the model got {_short(answer_text(call.exchange))}"
    places = ", ".join(path or "the value" for path in (found.changed or found.lost)[:_LOST_SHOWN])
    again = [one for one in evidence.changed if (one.tool, one.title) == (call.tool, call.title)]
    if found.nothing and again and all(_same_answer(call, one) for one in again):
        words = (
            f"nothing of the API's answer reaches the model: for {len(again)} other answers, it got the same: {said}"
        )
        yield Fault(words, call.tool, again[-1].exchange)
    elif found.changed or (found.nothing and not again):
        words = f"the model gets another value than the API returned ({places}): {said}"
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
