"""Rules over answers that succeed: whether a tool does what it promises, or only says that it would."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from mcpfactory_pipeline.checks.evidence import Evidence, RecordedCall, answer_text
from mcpfactory_pipeline.checks.families.behaviour import calls_or_reason
from mcpfactory_pipeline.checks.rule import Fault, Rule, RuleOutcome, not_applicable, rule_outcome

__all__ = ["RULES"]

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
_NOTHING: Final = re.compile(
    r"\b(no|not|none|nothing|empty|unknown|invalid|zero|neutral|ok|true|false|null)\b|[{\[]\s*[}\]]|^\W*0*\W*$",
    re.IGNORECASE,
)


def _does_something(evidence: Evidence) -> RuleOutcome:
    succeeded = [call for call in evidence.calls if not call.failed and not call.requests]
    if not calls_or_reason(evidence) and not succeeded:
        return not_applicable("no tool answered by itself and without an error")
    return calls_or_reason(evidence) or rule_outcome(
        len({call.tool for call in succeeded}), (fault for call in succeeded for fault in _unfinished(call, evidence))
    )


def _unfinished(call: RecordedCall, evidence: Evidence) -> Iterator[Fault]:
    text = answer_text(call.exchange).strip()
    if len(text) > _SHORT or not _UNFINISHED.search(text):
        return
    again = [other for other in evidence.others if other.tool == call.tool]
    if all(_UNFINISHED.search(answer_text(other.exchange)) for other in again):  # else it depends on what was asked
        yield Fault(f"the tool answers with success that it does nothing yet: {text[:120]!r}", call.tool, call.exchange)


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
    if same and text and not _NOTHING.search(text):
        yield Fault(
            f"{len(others) + 1} different arguments had one answer: {text[:120]!r}", call.tool, others[-1].exchange
        )


RULES: Final[tuple[Rule, ...]] = (
    Rule(
        id="substance.finished", family="substance", severity=5, gate=True, check=_does_something,
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
)  # fmt: skip
