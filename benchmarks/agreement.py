"""`python -m benchmarks agreement`: whether what a server takes is what its listed schemas say, by a stock validator.

  python -m benchmarks agreement                         the whole list (benchmarks/apis/documents.tsv)
  python -m benchmarks agreement --only github,stripe    some of the list
  python -m benchmarks agreement --files a.json b.yaml   documents from elsewhere
  python -m benchmarks agreement --instances 50000       how many arguments are tried, over all documents; 20,000 otherwise
  python -m benchmarks agreement --show 20               and differences, with schema and arguments

For each tool the arguments of its generated tests, and changes of them at random places, the same ones each time. `jsonschema`
says whether they satisfy the `inputSchema` that the list shows; the runtime takes or refuses them. A difference is

- `sample`: arguments of a generated test that the listed schema does not permit
- `refused`: permitted by the schema, and refused by the runtime
- `changed`: permitted by the schema, and passed on as something else
- `taken`: not permitted by the schema, and passed on without a repair that would make them so

Left aside are patterns that look around, which no engine of linear time has: the API judges by them; and arguments of which
the stock validator says nothing within its depth. Exit code 1: there is a difference. 3: a document cannot be had.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import jsonschema

from benchmarks.apis import DocumentError
from benchmarks.staging.sources import from_files, from_list
from mcpfactory_codegen.cases.cases import cases
from mcpfactory_codegen.cases.patterns import is_judged
from mcpfactory_codegen.describe.tools import describe
from mcpfactory_codegen.naming import name_api
from mcpfactory_codegen.read.document import load
from mcpfactory_codegen.sources.reading import read_source
from mcpfactory_codegen.text import compact
from mcpfactory_runtime.server.schema.json_schema import ArgumentError, ArgumentValidator, compile_schema

__all__ = ["Difference", "differences", "main", "mutations"]

_VALUES: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, 1, -1, 2, 7, 10**6, 0.5, 1.0, -3.25, 1e30),
    *("", "a", "A1", "x" * 300, "1", "true", "null", "2024-01-31", "§ §", "https://example.com/a"),
    *([], [1], [1, 1], ["a", "a"], ["a", "b"], [None], [{}], [{}, {}], {}, {"a": 1}, {"id": "x"}, {"type": "a"}),
)
_KINDS: Final = ("sample", "refused", "changed", "taken")


@dataclass(frozen=True)
class Difference:
    """One disagreement: of which kind, of which tool, and by which keyword of the schema."""

    kind: str
    tool: str
    keyword: str
    arguments: Any
    said: str


class _Tool:
    """A tool as both sides see it."""

    def __init__(self, name: str, schema: dict[str, Any]) -> None:
        self.name = name
        self.schema = schema
        self.runtime: ArgumentValidator = compile_schema(schema)
        self.stock = _STOCK(schema)

    def error(self, arguments: Any) -> tuple[str, str]:
        """The keyword that refuses the arguments, and what the stock validator says; "" for arguments that are permitted."""
        for error in self.stock.iter_errors(arguments):
            return _deepest(error)
        return "", ""

    def judge(self, arguments: dict[str, Any], *, sample: bool) -> Difference | None:
        """The difference that arguments show."""
        keyword, said = self.error(arguments)
        if keyword and sample:
            return Difference("sample", self.name, keyword, arguments, said)
        try:
            passed = self.runtime.validate(arguments)
        except ArgumentError as error:
            return None if keyword else Difference("refused", self.name, "", arguments, str(error))
        if not keyword:
            return (
                None if _same(passed, arguments) else Difference("changed", self.name, "", arguments, compact(passed))
            )
        keyword, said = self.error(passed)
        return Difference("taken", self.name, keyword, arguments, said) if keyword else None


def _deepest(error: Any) -> tuple[str, str]:
    parts = [one for one in error.context or () if one.validator not in {"type", "const", "enum"}]
    if error.validator == "anyOf" and parts:
        inner = _deepest(parts[0])
        return f"anyOf {inner[0]}", inner[1]
    return str(error.validator), error.message[:200]


def _judged(validator: Any, pattern: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if isinstance(pattern, str) and is_judged(pattern):
        yield from jsonschema.Draft202012Validator.VALIDATORS["pattern"](validator, pattern, instance, schema)


_STOCK: Final[Any] = jsonschema.validators.extend(  # type: ignore[no-untyped-call]
    jsonschema.Draft202012Validator, {"pattern": _judged}
)


def differences(
    name: str, schema: dict[str, Any], samples: Sequence[Any], tries: int, seed: str
) -> Iterator[Difference]:
    """What both sides say otherwise of samples for a schema, and of so many changes of them."""
    tool = _Tool(name, schema)
    for one in samples:
        if found := tool.judge(one, sample=True):
            yield found
    for one in mutations(samples or [{}], schema, tries, random.Random(seed)):
        if found := tool.judge(one, sample=False):
            yield found


def mutations(
    samples: Sequence[Any], schema: dict[str, Any], tries: int, chance: random.Random
) -> Iterator[dict[str, Any]]:
    """Samples, each changed at one to three places."""
    words = [*_words(schema), *_VALUES]
    names = sorted(schema.get("properties", {})) or ["a"]
    for _ in range(tries):
        value = json.loads(json.dumps(chance.choice(samples)))
        for _ in range(chance.choice((1, 1, 2, 3))):
            places = list(_places(value))
            holder, key = chance.choice(places) if places else (value, chance.choice(names))
            _change(holder, key, words, names, chance)
        yield value


def _change(holder: Any, key: Any, words: list[Any], names: list[str], chance: random.Random) -> None:
    """Replace, leave out, add, repeat, or move one value."""
    what = chance.random()
    if what < 0.5:
        holder[key] = deepcopy(chance.choice(words))
    elif what < 0.65:
        holder.pop(key, None) if isinstance(holder, dict) else holder.pop(key)
    elif isinstance(holder, dict):
        text = [word for word in words if isinstance(word, str) and word]
        holder[chance.choice([*names, *text])] = deepcopy(chance.choice(words))
    else:
        holder.append(deepcopy(holder[key] if what < 0.8 else chance.choice(words)))


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    inner = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    )
    for key, one in inner:
        yield value, key
        yield from _places(one)


def _words(schema: Any) -> list[Any]:
    """Names, values and bounds that a schema speaks of: what changes of arguments are likely to matter."""
    found: list[Any] = []
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting += part
        if not isinstance(part, dict):
            continue
        for key, value in part.items():
            if key in {"properties", "$defs", "patternProperties"} and isinstance(value, dict):
                found += value if key == "properties" else ()
                waiting += value.values()
            elif key in {"enum", "examples"} and isinstance(value, list):
                found += value[:5]
            elif key in {"const", "default"}:
                found.append(value)
            elif key in {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}:
                found += [value, value - 1, value + 1] if isinstance(value, int | float) else ()
            elif key in {"minLength", "maxLength"} and isinstance(value, int) and value < 5_000:
                found += ["y" * length for length in (value - 1, value, value + 1)]
            else:
                waiting.append(value)
    unique = {compact(one): one for one in found}
    return [unique[key] for key in sorted(unique)][:400]


def _same(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON: 1.0 is 1, and true is not."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _of_document(file: Path, tries: int) -> tuple[int, int, list[Difference]]:
    """Tools of a document, arguments tried, and what was found."""
    api = read_source(load(file))
    names = name_api(api)
    tools = describe(api, names)
    built: dict[str, list[Any]] = {}
    for case in cases(api, names, tools):
        built[case["tool"]] = [case["arguments"], *(one["arguments"] for one in case["variants"])]
    each = max(1, -(-tries // max(1, len(tools))))
    found: list[Difference] = []
    tried = 0
    for tool in tools:
        samples = built.get(tool.name, [])
        tried += len(samples) + each
        found += differences(tool.name, tool.input_schema, samples, each, f"{tool.name} 1")
    return len(tools), tried, found


def main(arguments: Sequence[str] | None = None) -> int:
    """Try the documents and print a line for each with a difference, and the total; the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks agreement", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", metavar="NAMES")
    parser.add_argument("--set", default="all", choices=("all", "tuning", "apart"))
    parser.add_argument("--files", nargs="+", type=Path, default=[], metavar="FILE")
    parser.add_argument("--instances", type=int, default=20_000, metavar="NUMBER")
    parser.add_argument("--show", type=int, default=0, metavar="NUMBER")
    wish = parser.parse_args(arguments)
    try:
        sources = list(from_files(wish.files)) if wish.files else list(from_list(wish.only, wish.set))
    except (DocumentError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 3
    every: list[tuple[str, Difference]] = []
    tools = tried = 0
    print(f"{'document':28} {'tools':>7} {'tried':>7}  {' '.join(f'{kind:>8}' for kind in _KINDS)}", flush=True)
    for source in sources:
        own = _of_document(source.file, -(-wish.instances // len(sources)))
        tools, tried = tools + own[0], tried + own[1]
        every += [(source.name, one) for one in own[2]]
        if own[2]:
            print(_line(source.name, own[0], own[1], [one.kind for one in own[2]]), flush=True)
    print(_line(f"{len(sources)} documents", tools, tried, [one.kind for _, one in every]))
    for (kind, keyword), number in Counter((one.kind, one.keyword) for _, one in every).most_common():
        print(f"{number:7}  {kind} {keyword}")
    for name, one in every[: wish.show]:
        print(f"\n{name} {one.tool}: {one.kind} {one.keyword}: {one.said}\n  {compact(one.arguments)[:600]}")
    return int(bool(every))


def _line(name: str, tools: int, tried: int, kinds: Sequence[str]) -> str:
    return f"{name[:28]:28} {tools:7} {tried:7}  {' '.join(f'{kinds.count(kind):8}' for kind in _KINDS)}"


if __name__ == "__main__":
    sys.exit(main())
