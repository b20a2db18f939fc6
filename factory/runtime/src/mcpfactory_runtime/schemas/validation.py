"""Compiler of a JSON Schema into a pydantic-core validator for a tool's arguments.

Rules:

1. A valid argument stays unchanged. For example, unknown properties are kept, and strings stay strings regardless of
   `format`. The only exception is 5.0 for an integer, which becomes 5.
2. Harmless mistakes of models are repaired, but only if the unchanged value matches no alternative. Examples are "5"
   for a number, "true" for a boolean, 5 for a string, and JSON text for an array or an object. The number 5.0 is never
   repaired to a string, because the text of 5.0 is ambiguous. Null is omitted for an optional argument that is not
   nullable.
3. Constraints that cannot be checked in linear time are skipped, for the upstream API to check: patterns with
   lookaround, `unevaluated…`, and `oneOf`, `not` and `if` with such constraints inside (`applicators`). An
   enumeration without a value of its type, and a reference cycle for a single value, are also skipped.
4. A schema with an unknown dialect or an unresolvable reference is refused (`references`). Arguments that need too many
   validation attempts are also refused (`VisitCounter`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from graphlib import TopologicalSorter
from typing import Any, Final

from pydantic_core import SchemaError, SchemaValidator, ValidationError, core_schema

from mcpfactory_runtime.schemas.applicators import (
    MAX_PREFIX,
    CoreSchema,
    contains_schema,
    dependent_required_schema,
    dependent_schemas_schema,
    if_then_else_schema,
    is_fully_checked,
    matches_any_pattern,
    not_schema,
    one_of_schema,
    pattern_properties_schema,
    pattern_validator,
    property_names_schema,
    skip_matched_properties,
)
from mcpfactory_runtime.schemas.merge import enum_values
from mcpfactory_runtime.schemas.references import SchemaReferences, UnusableSchemaError
from mcpfactory_runtime.schemas.value_validation import (
    KEYS_BY_KIND,
    LENIENT,
    OWN_KEYS,
    STRICT,
    ArgumentError,
    EnumValidator,
    NumberValidator,
    array_from_text,
    boolean_from_text,
    check_property_count,
    check_unique,
    explain_validation_error,
    has_json_type,
    is_number,
    object_from_text,
    pydantic_argument_error,
    text_from_integer,
)
from mcpfactory_runtime.schemas.walk import items_schema_of, properties_of, required_of, subschemas_of, types_of

__all__ = ["ArgumentError", "ArgumentValidator", "UnusableSchemaError", "compile_schema"]

_ANY: Final = core_schema.any_schema()
_MAX_DEPTH: Final = 100  # maximum levels in one schema; values at deeper levels are not validated
_MAX_COUNT: Final = 2**53  # maximum bound that pydantic-core supports for characters, items or properties

_ALWAYS_VISITS: Final = 10_000  # minimum number of visits for each call; about 0.1 seconds
# Additional visits for each value in the arguments, so that long lists are accepted.
_VISITS_PER_VALUE: Final = 100
_TOO_MANY: Final = "they would have to be tried against too many combinations of this tool's schemas"
_UNSUPPORTED: Final = frozenset({"oneOf", "not", "if", "dependentRequired", "dependentSchemas"})


class ArgumentValidator:
    """Validator of the arguments of one tool."""

    __slots__ = ("_properties", "_validator")

    def __init__(self, validator: SchemaValidator, properties: tuple[str, ...]) -> None:
        self._validator = validator
        self._properties = properties

    def validate(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments, with the repairs of rule 2.

        For invalid arguments, raise ArgumentError with the problems and the permitted values.
        """
        try:
            result: dict[str, Any] = self._validator.validate_python(arguments, context=VisitCounter(arguments))
        except ValidationError as error:
            raise explain_validation_error(error, self._properties) from None
        except TooManyVisitsError:
            raise ArgumentError([_TOO_MANY]) from None
        except RecursionError:
            raise ArgumentError(["they are nested too deeply"]) from None
        return result

    def accepts(self, arguments: dict[str, Any]) -> bool:
        """Return True if `validate` accepts the arguments. Unlike `validate`, do not describe the problems."""
        try:
            return self._validator.isinstance_python(arguments, context=VisitCounter(arguments))
        except (TooManyVisitsError, RecursionError):
            return False


def compile_schema(schema: Mapping[str, Any], *, lenient: bool = True) -> ArgumentValidator:
    """Compile a schema whose root is an object. Unsupported constraints are not checked (rule 3).

    `lenient` repairs arguments (rule 2). An output schema needs no repairs.

    An unknown dialect or an unresolvable reference raises UnusableSchemaError (rule 4).
    """
    compiler = _Compiler(schema)
    try:
        validator = SchemaValidator(compiler.root(lenient=lenient))
    except SchemaError:  # pydantic-core may refuse a combination of valid schemas
        validator = SchemaValidator(core_schema.dict_schema(strict=True))
    return ArgumentValidator(validator, tuple(properties_of(schema)))


class _Compiler:
    """Compiler of one schema. `lenient` adds the repairs of rule 2."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._references = SchemaReferences(root)
        self._dialect = self._references.dialect
        self._definitions: dict[str, CoreSchema | None] = {}  # the value is None until the definition is compiled
        self._nulls: dict[str, bool] = {}
        self._waiting: list[tuple[str, Any, bool]] = []
        # Definition being compiled, or None during the compilation of a nested schema.
        self._owner: str | None = None
        self._branched = False  # True if several schemas apply to the value
        # id() of an enumeration → the enumeration, and True if no value is permitted.
        self._listing: dict[int, tuple[Any, bool]] = {}
        # Definition → other definitions that apply to the same value. The graph has no cycles.
        self._applied: dict[str, set[str]] = {}

    def root(self, *, lenient: bool) -> CoreSchema:
        body = self._root if "type" in self._root else {**self._root, "type": "object"}
        schema = self.compile(body, lenient=lenient)
        schema = self._before(self._drop_nulls(), schema) if lenient else schema
        while self._waiting:  # no recursion, because a chain of references may be long
            name, target, lenient = self._waiting.pop()
            self._owner, self._branched = name, False
            compiled: Any = self.compile(target, lenient=lenient)
            self._owner = None
            if self._branched:
                compiled = count_visits(compiled)
            if compiled is _ANY or compiled.get("ref") or compiled["type"] == "definition-ref":
                compiled = core_schema.chain_schema([compiled])
            self._definitions[name] = {**compiled, "ref": name}
        # pydantic-core names each schema after the schemas that it has already built, so that the length of names could
        # double with each definition. Therefore each definition precedes the definitions that it applies.
        graph = {name: self._applied.get(name, set()) for name in self._definitions}
        order = reversed([*TopologicalSorter(graph).static_order()])
        definitions = [found for name in order if (found := self._definitions[name]) is not None]
        return core_schema.definitions_schema(schema, definitions) if definitions else schema

    def compile(self, schema: Any, *, lenient: bool, depth: int = 0) -> CoreSchema:
        if schema is False:
            return core_schema.no_info_plain_validator_function(_refuse)
        if not isinstance(schema, Mapping) or depth > _MAX_DEPTH:
            return _ANY
        steps = self._steps(schema, lenient, depth)
        # Repeat all checks without repairs, because a later repair may violate an earlier check.
        if len(steps) > 1 and lenient:
            steps += self._steps(schema, False, depth)
        if not _UNSUPPORTED.isdisjoint(schema) and not (self._dialect.lonely and "$ref" in schema):
            steps += self._unsupported_steps(schema, depth)
            self._branched = True
        self._branched |= len(steps) > 1
        result = _ANY if not steps else steps[0] if len(steps) == 1 else core_schema.chain_schema(steps)
        if schema.get("nullable") is True and result is not _ANY:
            return core_schema.nullable_schema(result)
        return result

    def _steps(self, schema: Mapping[str, Any], lenient: bool, depth: int) -> list[CoreSchema]:
        """Return the checks in order: the schema's own keywords, its reference, its combinators."""
        refers = isinstance(schema.get("$ref"), str)
        if refers and self._dialect.lonely:
            return [self._reference(schema, lenient=lenient)]
        steps = [self._own_keywords(schema, lenient, depth)]
        if refers:
            steps.append(self._reference(schema, lenient=lenient))
        steps += [self.compile(part, lenient=lenient, depth=depth + 1) for part in subschemas_of(schema, "allOf")]
        steps += [
            self._union(branches, lenient, depth)
            for key in ("anyOf", "oneOf")
            if (branches := subschemas_of(schema, key))
            and (lenient or key == "anyOf" or not self._can_check_one_of(schema))
        ]
        return [step for step in steps if step is not _ANY]

    def _unsupported_steps(self, schema: Mapping[str, Any], depth: int) -> list[CoreSchema]:
        """Return the checks for keywords that pydantic-core does not support."""

        def compiled(part: Any) -> CoreSchema:
            return self.compile(part, lenient=False, depth=depth + 1)

        steps: list[CoreSchema] = []
        if self._can_check_one_of(schema):
            steps.append(one_of_schema([compiled(branch) for branch in schema["oneOf"]]))
        if "not" in schema and self._is_exact(schema["not"]):
            steps.append(not_schema(compiled(schema["not"])))
        if "if" in schema and {"then", "else"} & schema.keys() and self._is_exact(schema["if"]):
            steps.append(if_then_else_schema(*(compiled(schema.get(key, True)) for key in ("if", "then", "else"))))
        if isinstance(schema.get("dependentRequired"), Mapping):
            steps.append(dependent_required_schema(schema["dependentRequired"]))
        if isinstance(schema.get("dependentSchemas"), Mapping) and schema["dependentSchemas"]:
            steps.append(
                dependent_schemas_schema({name: compiled(part) for name, part in schema["dependentSchemas"].items()})
            )
        return steps

    def _can_check_one_of(self, schema: Mapping[str, Any]) -> bool:
        branches = subschemas_of(schema, "oneOf")
        return len(branches) > 1 and self._is_exact(branches)

    def _is_exact(self, schema: Any) -> bool:
        return is_fully_checked(schema, self._references, self._lists_none)

    def _lists_none(self, schema: Mapping[str, Any]) -> bool:
        """Return True if the other keywords forbid all listed values, or if the result is unknown."""
        values = enum_values(schema)
        if values is None:
            return False
        found = self._listing.get(id(schema))
        if found is None:
            # A preliminary result, because a cycle of references may return to this schema.
            self._listing[id(schema)] = schema, True
            found = self._listing[id(schema)] = schema, not self._permitted(values, schema, 0)
        return found[1]

    def _permitted(self, values: list[Any], schema: Mapping[str, Any], depth: int) -> list[Any]:
        kinds = types_of(schema)
        fitting = [value for value in values if has_json_type(value, kinds)] if kinds else values
        rest = {key: value for key, value in schema.items() if key in OWN_KEYS or key == "type"}
        if rest.keys() - {"type"}:
            try:
                check = SchemaValidator(self._own_keywords(rest, False, depth + 1))
            except SchemaError:  # the schema refers to definitions that are not compiled yet
                return []
            fitting = [value for value in fitting if check.isinstance_python(value)]
        return fitting

    def _own_keywords(self, schema: Mapping[str, Any], lenient: bool, depth: int) -> CoreSchema:
        if (values := enum_values(schema)) is not None:
            return _plain(EnumValidator(self._permitted(values, schema, depth) or values, lenient=lenient))
        kind = schema.get("type")
        if isinstance(kind, list):
            return self._union(
                [{**schema, "type": one} for one in kind if isinstance(one, str)], lenient, depth, bare=True
            )
        if isinstance(kind, str):
            build = _BUILDERS.get(kind)
            return build(self, schema, lenient, depth) if build else _ANY
        present = [name for name, keys in KEYS_BY_KIND.items() if not keys.isdisjoint(schema)]
        if not present:
            return _ANY
        choices: dict[Any, CoreSchema] = {name: _BUILDERS[name](self, schema, False, depth) for name in present}
        return core_schema.tagged_union_schema(
            {f"{STRICT}{name}": choices.get(name, _ANY) for name in (*KEYS_BY_KIND, "other")}, _kind_tag
        )

    def _union(self, branches: list[Any], lenient: bool, depth: int, *, bare: bool = False) -> CoreSchema:
        """Compile a union that tries its branches first without and then with repairs. `bare` omits combinators."""

        def compile_(branch: Any, lenient: bool) -> CoreSchema:
            if bare:
                return self._own_keywords(branch, lenient, depth + 1)
            return self.compile(branch, lenient=lenient, depth=depth + 1)

        nulls = [branch for branch in branches if isinstance(branch, Mapping) and branch.get("type") == "null"]
        rest = [branch for branch in branches if branch not in nulls]
        if len(rest) == 1:
            only = compile_(rest[0], lenient)
            return core_schema.nullable_schema(only) if nulls else only
        if not rest:
            return core_schema.none_schema() if nulls else _ANY
        choices: list[CoreSchema | tuple[CoreSchema, str]] = [
            (compile_(branch, False), f"{STRICT}{at}") for at, branch in enumerate(rest)
        ]
        if lenient:
            choices += [(compile_(branch, True), f"{LENIENT}{at}") for at, branch in enumerate(rest)]
        self._branched = True
        union = core_schema.union_schema(choices, mode="left_to_right")
        return core_schema.nullable_schema(union) if nulls else union

    # --- references ---

    def _reference(self, schema: Mapping[str, Any], *, lenient: bool) -> CoreSchema:
        place, target = self._references.follow(schema)
        if not isinstance(target, Mapping):
            return self.compile(target, lenient=lenient)
        name = f"{place} {'lenient' if lenient else 'strict'}"
        if self._owner is not None:
            if self._applies(name, self._owner):
                return _ANY
            self._applied.setdefault(self._owner, set()).add(name)
        if name not in self._definitions:
            self._definitions[name] = None
            self._waiting.append((name, target, lenient))
        return core_schema.definition_reference_schema(name)

    def _applies(self, start: str, end: str) -> bool:
        """Return True if the definition `start` is `end`, or applies `end` to the same value."""
        open_, seen = [start], {start}
        while open_:
            name = open_.pop()
            if name == end:
                return True
            open_ += self._applied.get(name, set()) - seen
            seen.update(open_)
        return False

    # --- methods, one for each type ---

    def _inside(self, schema: Any, lenient: bool, depth: int) -> CoreSchema:
        before, self._owner = self._owner, None
        result = self.compile(schema, lenient=lenient, depth=depth + 1)
        self._owner = before
        return result

    def object(self, schema: Mapping[str, Any], lenient: bool, depth: int) -> CoreSchema:
        properties, required = properties_of(schema), set(required_of(schema))
        extra, patterns = schema.get("additionalProperties", True), schema.get("patternProperties")
        patterns = patterns if isinstance(patterns, Mapping) else {}
        beside = {
            name: True if extra is False or matches_any_pattern(name, patterns) else extra
            for name in sorted(required - set(properties))
        }
        fields = {
            str(name): core_schema.typed_dict_field(self._inside(part, lenient, depth), required=name in required)
            for name, part in {**properties, **beside}.items()
        }
        compiled_extra = self._inside(extra, lenient, depth)
        if extra is False:
            result: CoreSchema = core_schema.typed_dict_schema(fields, extra_behavior="forbid", strict=True)
        elif compiled_extra is _ANY:
            result = core_schema.typed_dict_schema(fields, extra_behavior="allow", strict=True)
        else:
            result = core_schema.typed_dict_schema(
                fields, extra_behavior="allow", extras_schema=compiled_extra, strict=True
            )
        if patterns:
            self._branched = True
            if result.get("extra_behavior") == "forbid" or "extras_schema" in result:
                result = skip_matched_properties(patterns, fields, result)
            parts = {str(pattern): self._inside(part, False, depth) for pattern, part in patterns.items()}
            result = core_schema.chain_schema([result, pattern_properties_schema(parts)])
        if "propertyNames" in schema and (names := self._inside(schema["propertyNames"], False, depth)) is not _ANY:
            result = core_schema.chain_schema([result, property_names_schema(names)])
        low, high = _count(schema.get("minProperties")), _count(schema.get("maxProperties"))
        if low or high is not None:
            result = core_schema.no_info_after_validator_function(partial(check_property_count, low or 0, high), result)
        return self._before(object_from_text, result) if lenient else result

    def array(self, schema: Mapping[str, Any], lenient: bool, depth: int) -> CoreSchema:
        prefix, rest = subschemas_of(schema, "prefixItems"), items_schema_of(schema)
        if self._dialect.tuples:
            prefix, rest = (rest, schema.get("additionalItems", True)) if isinstance(rest, list) else ([], rest)
        items = self._inside(rest, lenient, depth)
        low, high = _count(schema.get("minItems")), _count(schema.get("maxItems"))
        result: CoreSchema = core_schema.list_schema(
            _ANY if prefix else items, min_length=low, max_length=high, strict=True
        )
        if prefix and len(prefix) <= MAX_PREFIX:
            places = [self._inside(part, lenient, depth) for part in prefix]
            result = core_schema.chain_schema([result, _positional(places, items)])
        if schema.get("uniqueItems") is True:
            result = core_schema.no_info_after_validator_function(check_unique, result)
        if "contains" in schema and self._is_exact(schema["contains"]):
            self._branched = True
            fewest, most = _count(schema.get("minContains")), _count(schema.get("maxContains"))
            part = self._inside(schema["contains"], False, depth)
            result = core_schema.chain_schema([result, contains_schema(part, 1 if fewest is None else fewest, most)])
        return self._before(array_from_text, result) if lenient else result

    def string(self, schema: Mapping[str, Any], lenient: bool, _depth: int) -> CoreSchema:
        pattern = schema.get("pattern")
        result = core_schema.str_schema(
            strict=True,
            min_length=_count(schema.get("minLength")),
            max_length=_count(schema.get("maxLength")),
            pattern=pattern if isinstance(pattern, str) and pattern_validator(pattern) else None,
        )
        return self._before(text_from_integer, result) if lenient else result

    def number(self, schema: Mapping[str, Any], lenient: bool, _depth: int) -> CoreSchema:
        return _plain(NumberValidator(schema, whole=False, lenient=lenient))

    def integer(self, schema: Mapping[str, Any], lenient: bool, _depth: int) -> CoreSchema:
        return _plain(NumberValidator(schema, whole=True, lenient=lenient))

    def boolean(self, _schema: Mapping[str, Any], lenient: bool, _depth: int) -> CoreSchema:
        result = core_schema.bool_schema(strict=True)
        return self._before(boolean_from_text, result) if lenient else result

    def null(self, _schema: Mapping[str, Any], _lenient: bool, _depth: int) -> CoreSchema:
        return core_schema.none_schema()

    # --- repairs ---

    @staticmethod
    def _before(repair: Callable[[Any], Any], schema: CoreSchema) -> CoreSchema:
        return core_schema.no_info_before_validator_function(repair, schema)

    def _drop_nulls(self) -> Callable[[Any], Any]:
        """Return a function that drops a null value of an argument that is optional and not nullable."""
        required = required_of(self._root)
        optional = ((name, part) for name, part in properties_of(self._root).items() if name not in required)
        names = frozenset(name for name, part in optional if not self._nullable(part))

        def drop(value: Any) -> Any:
            if not isinstance(value, dict) or None not in value.values():
                return value
            return {name: item for name, item in value.items() if item is not None or name not in names}

        return drop if names else _identity

    def _nullable(self, schema: Any, depth: int = 0) -> bool:
        """Return True if null satisfies the schema, or if the result is unknown."""
        if not isinstance(schema, Mapping) or depth > _MAX_DEPTH:
            return schema is not False
        if schema.get("nullable") is True:
            return True
        if (values := enum_values(schema)) is not None:
            return None in values
        if kinds := types_of(schema):
            return "null" in kinds
        every = [self._nullable(part, depth + 1) for part in subschemas_of(schema, "allOf")]
        if isinstance(schema.get("$ref"), str):
            place, target = self._references.follow(schema)
            # Use a cache, because several schemas may refer to the target.
            if (known := self._nulls.get(f"{place}")) is None:
                self._nulls[f"{place}"] = True
                known = self._nulls[f"{place}"] = self._nullable(target, depth + 1)
            every.append(known)
        every += [
            any(self._nullable(part, depth + 1) for part in branches)
            for key in ("anyOf", "oneOf")
            if (branches := subschemas_of(schema, key))
        ]
        return all(every)


_Builder = Callable[[_Compiler, Mapping[str, Any], bool, int], CoreSchema]
_BUILDERS: Final[dict[str, _Builder]] = {
    "object": _Compiler.object,
    "array": _Compiler.array,
    "string": _Compiler.string,
    "number": _Compiler.number,
    "integer": _Compiler.integer,
    "boolean": _Compiler.boolean,
    "null": _Compiler.null,
}


def _plain(check: Callable[[Any], Any]) -> CoreSchema:
    return core_schema.no_info_plain_validator_function(check)


def _positional(places: list[CoreSchema], items: CoreSchema) -> CoreSchema:
    """Compile `prefixItems`, with one tuple schema per length, because shorter arrays are valid."""
    count = len(places)
    choices: dict[Any, CoreSchema] = {f"{STRICT}{n}": core_schema.tuple_schema(places[:n]) for n in range(count)}
    choices[f"{STRICT}{count}"] = core_schema.tuple_schema([*places, items], variadic_item_index=count)
    union = core_schema.tagged_union_schema(choices, lambda value: f"{STRICT}{min(len(value), count)}")
    return core_schema.no_info_after_validator_function(list, union)


def _kind_tag(value: Any) -> str:
    names = {dict: "object", list: "array", str: "string", int: "number", float: "number"}
    return f"{STRICT}{names.get(type(value), 'other')}"


def _identity(value: Any) -> Any:
    return value


def _refuse(_value: Any) -> Any:
    raise pydantic_argument_error("is not allowed here")


def _count(value: Any) -> int | None:
    if not is_number(value) or value < 0 or (isinstance(value, float) and not value.is_integer()):
        return None
    return min(int(value), _MAX_COUNT)


class TooManyVisitsError(Exception):
    """Error for too many validation attempts.

    This error is not a ValueError, because pydantic-core would treat a ValueError as the failure of one branch.
    """


class VisitCounter:
    """Counter of the visits in one validation, for the context of the validation."""

    __slots__ = ("_arguments", "_left")

    def __init__(self, arguments: Any) -> None:
        self._arguments = arguments
        self._left = _ALWAYS_VISITS

    def count(self) -> None:
        """Count a visit, or raise TooManyVisitsError."""
        self._left -= 1
        if self._left < 0:
            if self._arguments is None:
                raise TooManyVisitsError
            self._left = _VISITS_PER_VALUE * _count_values(self._arguments)
            self._arguments = None  # extend the limit only once


def count_visits(definition: core_schema.CoreSchema) -> core_schema.CoreSchema:
    """Wrap a definition to count each use as a visit."""
    return core_schema.with_info_before_validator_function(_visit, definition)


def _visit(value: Any, info: core_schema.ValidationInfo[Any]) -> Any:
    if isinstance(info.context, VisitCounter):
        info.context.count()
    return value


def _count_values(arguments: Any) -> int:
    count, waiting = 0, [arguments]
    while waiting:
        one = waiting.pop()
        count += 1
        waiting += one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
    return count
