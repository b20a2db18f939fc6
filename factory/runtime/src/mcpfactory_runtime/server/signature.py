"""Conversion of a handler's signature to a JSON Schema and an argument validator.

Built-in types need no pydantic (`schemas.builtin_types`). If one annotation needs pydantic, `schemas.pydantic_schemas`
converts all annotations.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Sequence,
)
from contextlib import suppress
from copy import deepcopy
from functools import partial, wraps
from typing import Any, Final, get_args, get_origin, get_type_hints

from pydantic_core import SchemaValidator, ValidationError, from_json

from mcpfactory_runtime.protocol.errors import INTERNAL_ERROR, McpError
from mcpfactory_runtime.schemas.builtin_types import builtin_schema
from mcpfactory_runtime.types import Json

Handler = Callable[..., Any]


class InjectedParameter:
    """Base class of annotations, such as `Context`, for parameters whose values the server supplies."""

    __slots__ = ()


class ArgumentsError(ValueError):
    """Error for invalid arguments, with all problems in the message."""


class Signature:
    """Parsed signature of a handler.

    Attributes:
        schema: JSON Schema 2020-12 of the arguments.
        description: the docstring without its sections.
        context: name of the parameter that takes the `Context`, or None.
        returns: the return annotation, or `inspect.Signature.empty`.
        names: the arguments, in order.
        reads_json_text: True accepts JSON text for a list or an object, because some models send such text.
    """

    __slots__ = (
        "_defaults", "_validate", "context", "description", "names", "reads_json_text", "required", "returns", "schema",
    )  # fmt: skip

    def __init__(
        self,
        *,
        schema: Json,
        description: str,
        context: str | None,
        returns: Any,
        validator: Any,
        defaults: dict[str, Callable[[], Any]],
    ) -> None:
        self.schema = schema
        self.description = description
        self.context = context
        self.returns = returns
        self.names = list(schema["properties"])
        self.required = set(schema.get("required", ()))
        self.reads_json_text = False
        self._validate = validator.validate_python
        self._defaults = defaults

    def bind(self, arguments: Json) -> Json:
        """Return the validated and converted keyword arguments for the handler."""
        try:
            bound: Json = self._validate(arguments)
        except ValidationError as error:
            bound = self._validate_parsed(arguments, error)
        for name, make in self._defaults.items():
            if name not in bound:
                bound[name] = make()
        return bound

    def _validate_parsed(self, arguments: Json, error: ValidationError) -> Json:
        """Validate again with the JSON texts in the invalid arguments parsed, or raise ArgumentsError."""
        wrong = {problem["loc"][0] for problem in error.errors(include_url=False) if problem["loc"]}
        parsed = {name: _parsed(value) if name in wrong else value for name, value in arguments.items()}
        if self.reads_json_text and parsed != arguments:
            try:
                valid: Json = self._validate(parsed)
                return valid
            except ValidationError as second:
                error = second
        raise ArgumentsError(self._explain(error)) from None

    def _explain(self, error: ValidationError) -> str:
        lines = []
        for problem in error.errors(include_url=False, include_context=False):
            place = ".".join(str(part) for part in problem["loc"])
            if problem["type"] == "extra_forbidden":
                known = ", ".join(self.names) or "none"
                lines.append(f"{place}: there is no such argument. hint: the arguments are {known}")
            elif problem["type"] == "missing":
                lines.append(f"{place}: required but missing")
            else:
                lines.append(f"{place or 'arguments'}: {problem['msg']}, got {_shown(problem['input'])}")
        return "\n".join(lines)


def _parsed(value: Any) -> Any:
    """Return the list or object in a JSON text, or any other value unchanged."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        with suppress(ValueError):
            return from_json(value)
    return value


def read_signature(handler: Handler) -> Signature:
    """Read a handler's signature."""
    hints = resolved_hints(handler)
    description, sentences = read_docstring(inspect.getdoc(unwrap_partial(handler)))
    parameters: dict[str, tuple[Any, Any, bool]] = {}
    context = None
    bound = handler.keywords if isinstance(handler, partial) else {}
    for parameter in inspect.signature(handler).parameters.values():
        if parameter.name in bound:  # callers must not replace a value that the author has chosen
            continue
        annotation = hints.get(parameter.name, Any)
        if parameter.name == "self" and not parameters and "self" not in hints:
            raise TypeError(
                f"{_name(handler)}: the method has no object\nhint: register the method of an object: "
                f"server.tool(thing.{getattr(handler, '__name__', 'method')})"
            )
        if takes_context(annotation):
            if context is not None:
                raise TypeError(
                    f"{_name(handler)}: {context} and {parameter.name} both take the Context\nhint: remove one of them"
                )
            context = parameter.name
        else:
            _refuse_kind(handler, parameter)
            parameters[parameter.name] = (annotation, parameter.default, parameter.default is parameter.empty)
    schema, validator, defaults = _arguments(handler, parameters)
    _refuse_defaults(handler, parameters, validator)
    for name, (_, default, _required) in parameters.items():
        if isinstance(default, list | dict | set):
            defaults.setdefault(name, partial(deepcopy, default))  # calls must not share a mutable default
    described = {name: _description(annotation) for name, (annotation, *_) in parameters.items()}
    for name, sentence in (*((name, text) for name, text in described.items() if text), *sentences.items()):
        if name in schema["properties"]:
            schema["properties"][name].setdefault("description", sentence)
    return Signature(
        schema=schema,
        description=description,
        context=context,
        returns=hints.get("return", inspect.Signature.empty),
        validator=validator,
        defaults=defaults,
    )


def _description(annotation: Any) -> str:
    """Return the text in an annotation such as `Annotated[int, "how many"]`."""
    return next((one for one in getattr(annotation, "__metadata__", ()) if isinstance(one, str)), "")


def handler_parameter_names(handler: Handler) -> tuple[list[str], str | None]:
    """Return the names of all parameters except the Context parameter, and the name of the Context parameter."""
    hints = resolved_hints(handler)
    names = list(inspect.signature(handler).parameters)
    context = next((name for name in names if takes_context(hints.get(name))), None)
    return [name for name in names if name != context], context


def takes_context(annotation: Any) -> bool:
    """Return True if a parameter with this annotation takes the `Context`."""
    return any(InjectedParameter in getattr(kind, "__mro__", ()) for kind in (annotation, *get_args(annotation)))


def resolved_hints(handler: Handler) -> dict[str, Any]:
    """Return the handler's annotations with names resolved."""
    handler = unwrap_partial(handler)
    target = handler if inspect.isroutine(handler) else type(handler).__call__
    try:
        return get_type_hints(target, include_extras=True)
    except NameError as error:
        raise TypeError(
            f"{_name(handler)}: {error}\nhint: import the types of a handler's parameters at "
            "module level, outside `if TYPE_CHECKING:`"
        ) from None


def unwrap_partial(handler: Handler) -> Handler:
    """Return the function of a `functools.partial`, or any other handler unchanged."""
    while isinstance(handler, partial):
        handler = handler.func
    return handler


def is_async(handler: Handler) -> bool:
    """Return True if calling the handler returns an awaitable."""
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(getattr(handler, "__call__", None))  # noqa: B004 - callable objects with an async __call__


_MANY: Final = (AsyncGenerator, AsyncIterable, AsyncIterator, Generator, Iterable, Iterator)


def result_annotation(annotation: Any) -> Any:
    """Return the annotation of a result. The result of a generator is a list."""
    return list[get_args(annotation)[0]] if get_origin(annotation) in _MANY else annotation  # type: ignore[misc]  # known at run time


def generator_to_list(handler: Handler) -> Handler:
    """Convert a generator handler to a function that returns a list."""
    if inspect.isgeneratorfunction(handler):

        @wraps(handler)
        def gathered(*arguments: Any, **named: Any) -> list[Any]:
            return list(handler(*arguments, **named))

        return gathered
    if not inspect.isasyncgenfunction(handler):
        return handler

    @wraps(handler)
    async def collected(*arguments: Any, **named: Any) -> list[Any]:
        return [value async for value in handler(*arguments, **named)]

    return collected


def argument_binder(schema: Json) -> Callable[[Json], Json]:
    """Return a function that checks arguments against a JSON Schema."""
    from mcpfactory_runtime.schemas.references import UnusableSchemaError  # noqa: PLC0415 - only for generated tools
    from mcpfactory_runtime.schemas.validation import compile_schema  # noqa: PLC0415 - only for generated tools
    from mcpfactory_runtime.schemas.value_validation import ArgumentError  # noqa: PLC0415 - only for generated tools

    try:
        validator = compile_schema(schema)
    except UnusableSchemaError as error:
        raise McpError(INTERNAL_ERROR, f"The tool's arguments cannot be checked: {error}") from None

    def bind(arguments: Json) -> Json:
        try:
            return validator.validate(arguments)
        except ArgumentError as error:
            raise ArgumentsError(str(error)) from None

    return bind


def _arguments(
    handler: Handler, parameters: dict[str, tuple[Any, Any, bool]]
) -> tuple[Json, Any, dict[str, Callable[[], Any]]]:
    """Return the JSON Schema, the validator, and factories for the defaults that are set with `Field(...)`."""
    known = {name: _plain(annotation, default) for name, (annotation, default, _) in parameters.items()}
    defaults: dict[str, Callable[[], Any]] = {}
    if all(known.values()):
        fields = {}
        schema: Json = {"type": "object", "properties": {}, "required": []}
        for name, pair in known.items():
            assert pair is not None
            required = parameters[name][2]
            fields[name] = {"type": "typed-dict-field", "schema": pair[0], "required": required}
            schema["properties"][name] = pair[1]
        core: Any = {"type": "typed-dict", "fields": fields, "extra_behavior": "forbid"}
        validator: Any = SchemaValidator(core)
    else:
        from mcpfactory_runtime.schemas import pydantic_schemas  # noqa: PLC0415 - this is the lazy import of pydantic

        for name, (annotation, default, _) in list(parameters.items()):
            is_field, make = pydantic_schemas.pydantic_field_default(default)
            if is_field:
                parameters[name] = (annotation, default, make is None)
                if make is not None:
                    defaults[name] = make
        try:
            validator, schema = pydantic_schemas.arguments_schema(parameters)
        except TypeError as error:
            raise TypeError(f"{_name(handler)}: {error}") from error
        schema.setdefault("properties", {})
    _finish(schema, parameters)
    return schema, validator, defaults


def _plain(annotation: Any, default: Any) -> tuple[Json, Json] | None:
    if type(default).__module__.startswith("pydantic"):  # `= Field(...)`
        return None
    return builtin_schema(annotation)


def _finish(schema: Json, parameters: dict[str, tuple[Any, Any, bool]]) -> None:
    """Add required names and plain defaults to the schema, and forbid additional properties."""
    schema["required"] = [name for name, (_, _, required) in parameters.items() if required]
    if not schema["required"]:
        del schema["required"]
    schema["additionalProperties"] = False
    for name, (_, default, required) in parameters.items():
        if not required and isinstance(default, str | int | float | bool | None | list | dict):
            schema["properties"].get(name, {}).setdefault("default", default)


_OTHER_TYPE: Final = re.compile(r"(?:int|float|bool|string|list|dict)_(?:type|parsing|from_float)")


def _refuse_defaults(handler: Handler, parameters: dict[str, tuple[Any, Any, bool]], validator: Any) -> None:
    """Refuse defaults of the wrong type, and defaults that are not among the choices.

    Accept other invalid defaults, because such defaults may mean "not given".
    """
    plain = {name: one for name, (_, one, _) in parameters.items() if isinstance(one, str | int | float | list | dict)}
    for problem in _problems(validator, plain):
        name, kind = problem["loc"][0] if problem["loc"] else "", problem["type"]
        # An empty text may mean that the argument is missing.
        no_choice = kind == "literal_error" and plain.get(name) != ""
        if name in plain and (no_choice or _OTHER_TYPE.fullmatch(kind)):
            raise TypeError(
                f"{_name(handler)}: the default of {name} cannot be {_shown(plain[name])}: "
                f"{problem['msg']}\nhint: set another default, or another type for {name}"
            )


def _problems(validator: Any, values: dict[str, Any]) -> Sequence[Any]:
    """Return the problems that a validator finds."""
    try:
        validator.validate_python(values)
    except ValidationError as error:
        return error.errors(include_url=False, include_context=False)
    except Exception:  # noqa: BLE001 - an author's validator may raise anything
        return ()
    return ()


def _refuse_kind(handler: Handler, parameter: inspect.Parameter) -> None:
    if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        raise TypeError(
            f"{_name(handler)}: {parameter} cannot be an argument of a tool, resource or prompt\nhint: write "
            "one named parameter for each argument"
        )


def _name(handler: Handler) -> str:
    return getattr(handler, "__qualname__", repr(handler))


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


# -- docstrings in Google's style ------------------------------------------------------------------------------------

_SECTION: Final = re.compile(
    r"^(args|arguments|parameters|params|returns?|yields?|raises|attributes|examples?|notes?|see also|todo|warnings?)"
    r":\s*$",
    re.IGNORECASE,
)
_ARGUMENT_SECTIONS: Final = {"args", "arguments", "parameters", "params"}
# Sections that stay in a tool's description, because these sections help the model.
_KEPT_SECTIONS: Final = {"example", "examples", "note", "notes", "warning", "warnings"}
_ARGUMENT: Final = re.compile(r"^\*{0,2}(?P<name>\w+)\s*(?:\([^)]*\))?\s*:\s*(?P<text>.*)$")


def read_docstring(docstring: str | None) -> tuple[str, dict[str, str]]:
    """Split a docstring into the tool's description and the descriptions of the arguments."""
    if not docstring:
        return "", {}
    description: list[str] = []
    arguments: list[str] = []
    target: list[str] | None = description
    for line in inspect.cleandoc(docstring).splitlines():
        section = _SECTION.match(line)
        if section:
            name = section[1].lower()
            target = arguments if name in _ARGUMENT_SECTIONS else description if name in _KEPT_SECTIONS else None
            if target is description:
                description.append(line)
            continue
        if target is not None:
            target.append(line)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(description)).strip(), _read_arguments(arguments)


def _read_arguments(lines: list[str]) -> dict[str, str]:
    texts: dict[str, str] = {}
    name, indent = "", None
    for line in lines:
        stripped = line.strip()
        depth = len(line) - len(line.lstrip())
        if not stripped:
            continue
        indent = depth if indent is None else indent
        match = _ARGUMENT.match(stripped) if depth <= indent else None
        if match:
            name = match["name"]
            texts[name] = match["text"].strip()
        elif name:
            texts[name] = f"{texts[name]} {stripped}".strip()
    return texts
