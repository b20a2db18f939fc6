"""Find tools that a model may confuse, and suggest how to distinguish them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from mcpfactory_codegen.text import estimate_tokens
from mcpfactory_pipeline.base.errors import JsonRecord
from mcpfactory_pipeline.checks.evaluation.model_report import ModelReport
from mcpfactory_runtime.server.generated.search_index import IndexedTool, SearchIndex
from mcpfactory_runtime.server.generated.search_words import identifier_words, stem, text_words

Tool = Mapping[str, Any]

# Minimum share of equal words in the texts of two tools, if each name has a word that the other name lacks.
_SAME: Final = 0.9
_ALIKE: Final = 0.75  # minimum share of equal words in the texts of any other two tools
_FEWEST: Final = 5  # minimum number of words in a text to compare
# Maximum share of the tools that use a word; more frequent words are ignored.
_COMMON: Final = 0.2
_SEVERAL: Final = 2  # number of tools; a word in fewer tools is never ignored
_NEAR: Final = 3  # number of top search results; a search for a tool's description must find the tool there
_SHARE: Final = 3.0  # factor; a tool is too large if its size is this multiple of the average
_SMALL: Final = 300  # tokens; a smaller tool is never too large


@dataclass(frozen=True, slots=True)
class CompetingTools(JsonRecord):
    """Two tools that compete for the same questions."""

    tools: tuple[str, str]
    why: str
    advice: str


@dataclass(frozen=True, slots=True)
class ToolTokenShare:
    """Number of tokens that a tool takes in the tool list.

    `share` is the tool's part of the whole list, from 0 to 1.
    """

    tool: str
    tokens: int
    share: float

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {"tool": self.tool, "tokens": self.tokens, "share": round(self.share, 3)}


def find_competing_tools(tools: Sequence[Tool]) -> list[CompetingTools]:
    """Return the competing pairs of tools in list order.

    A pair is omitted if one description refers to the other tool.
    """
    index = SearchIndex([IndexedTool.from_wire(dict(tool)) for tool in tools])
    words = _telling_words(tools)
    names = [frozenset(stem(word) for word in identifier_words(tool["name"])) for tool in tools]
    found = []
    for first in range(len(tools)):
        for second in range(first + 1, len(tools)):
            pair = (tools[first], tools[second])
            if names[first] == names[second]:
                found.append(_pair(pair, "their names consist of the same words", "rename one after what only it does"))
            elif _tells_apart(*pair):
                continue
            elif (alike := _overlap(words[first], words[second])) >= _least(names[first], names[second]):
                common = f"{round(100 * alike)} % of their distinctive words are the same"
                found.append(_pair(pair, common, "say in each description when to use the other tool"))
    found += _outranked(tools, index, {frozenset(one.tools) for one in found})
    return found


def _outranked(tools: Sequence[Tool], index: SearchIndex, known: set[frozenset[str]]) -> list[CompetingTools]:
    """Return pairs of tools: a search for the first tool's description finds only the second tool."""
    found = []
    for number, tool in enumerate(tools):
        about = str(tool.get("description", "")).split("\n", 1)[0]
        before = [place for place, _ in index.search(about, _NEAR)] if about else []
        if number in before or not before:
            continue
        first = before[0]
        pair = frozenset((tool["name"], tools[first]["name"]))
        if pair in known or _tells_apart(tool, tools[first]):
            continue
        known.add(pair)
        why = f"what {tool['name']} says of itself fits {tools[first]['name']} better"
        found.append(_pair((tool, tools[first]), why, f"begin {tool['name']} with what only it does"))
    return found


def find_token_heavy_tools(tools: Sequence[Tool]) -> list[ToolTokenShare]:
    """Return the tools with far more tokens than the average tool, largest first."""
    costs = {tool["name"]: estimate_tokens(tool) for tool in tools}
    whole = sum(costs.values())
    most = max(_SMALL, _SHARE * whole / max(len(costs), 1))
    return [
        ToolTokenShare(name, cost, cost / whole)
        for name, cost in sorted(costs.items(), key=lambda one: -one[1])
        if cost > most
    ]


def _pair(tools: tuple[Tool, Tool], why: str, advice: str) -> CompetingTools:
    return CompetingTools((tools[0]["name"], tools[1]["name"]), why, advice)


def _telling_words(tools: Sequence[Tool]) -> list[frozenset[str]]:
    texts = [f"{tool.get('title', '')} {tool.get('description', '')}" for tool in tools]
    found = [frozenset(stem(word) for word in text_words(text)) for text in texts]
    counts = Counter(word for one in found for word in one)
    most = max(_SEVERAL, _COMMON * len(tools))
    return [frozenset(word for word in one if counts[word] <= most) for one in found]


def _least(first: frozenset[str], second: frozenset[str]) -> float:
    return _ALIKE if first <= second or second <= first else _SAME


def _overlap(first: frozenset[str], second: frozenset[str]) -> float:
    if min(len(first), len(second)) < _FEWEST:
        return 0.0
    return len(first & second) / len(first | second)


def _tells_apart(first: Tool, second: Tool) -> bool:
    return any(one["name"] in str(other.get("description", "")) for one, other in ((first, second), (second, first)))


@dataclass(frozen=True, slots=True)
class ConfusedPair:
    """A tool that models called instead of the expected tool.

    Attributes:
        expected, chosen: the names of the two tools.
        texts: name → current title and description; "" for a removed tool.
        questions: question → number of confusions.
        models: the models that confused the tools; empty if only similar descriptions suggest the confusion.
        advice: how to distinguish the tools.
    """

    expected: str
    chosen: str
    texts: Mapping[str, str]
    questions: Mapping[str, int]
    models: Sequence[str]
    advice: str

    @property
    def times(self) -> int:
        """Return the number of confusions."""
        return sum(self.questions.values())

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {**asdict(self), "texts": dict(self.texts), "questions": dict(self.questions), "times": self.times}


def find_confused_pairs(tools: Sequence[Mapping[str, Any]], reports: Iterable[ModelReport]) -> list[ConfusedPair]:
    """Return the pairs of tools that models confused, most frequent first, then the pairs with similar descriptions."""
    about = {str(tool["name"]): _text(tool) for tool in tools}
    competing = {frozenset(one.tools): one for one in find_competing_tools(tools)}
    counted: dict[tuple[str, str], tuple[Counter[str], list[str]]] = {}
    for report in reports:
        for pair, cases in report.confused_cases().items():
            questions, models = counted.setdefault(pair, (Counter(), []))
            questions.update(report.questions.get(case, case) for case in cases)
            models.append(report.model)
    found = [
        ConfusedPair(
            expected,
            chosen,
            {name: about.get(name, "") for name in (expected, chosen)},
            dict(questions),
            models,
            _advice(expected, chosen, competing.get(frozenset((expected, chosen)))),
        )
        for (expected, chosen), (questions, models) in counted.items()
    ]
    known = {frozenset((one.expected, one.chosen)) for one in found}
    quiet = [
        ConfusedPair(*one.tools, {name: about[name] for name in one.tools}, {}, (), f"{one.why}: {one.advice}")
        for pair, one in competing.items()
        if pair not in known
    ]
    return [*sorted(found, key=lambda one: (-one.times, one.expected, one.chosen)), *quiet]


def _advice(expected: str, chosen: str, competing: CompetingTools | None) -> str:
    if competing is not None:
        return f"{competing.why}: {competing.advice}"
    return f"begin {expected} with what these questions ask for; say in {chosen} when to take {expected}"


def _text(tool: Mapping[str, Any]) -> str:
    return "\n".join(str(tool[key]) for key in ("title", "description") if tool.get(key))
