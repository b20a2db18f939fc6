"""Dependencies: values that are created for a call, passed to the handler, and closed after the call.

>>> async def find(title: str, shelf: Annotated[Shelf, Depends(open_shelf)]) -> list[str]: ...

At registration, `with_dependencies` wraps each handler that has dependencies.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import update_wrapper
from types import TracebackType
from typing import Annotated, Any, Final, get_args, get_origin

from mcpfactory_runtime.server.signature import (
    InjectedParameter,
    generator_to_list,
    is_async,
    resolved_hints,
    takes_context,
)
from mcpfactory_runtime.server.threads import in_thread

Provider = Callable[..., Any]
Handler = Callable[..., Any]

_CONTEXT: Final = "mcpfactory_context"  # name of the wrapper's context parameter if the handler takes no context
_overrides: Final[dict[Provider, Provider]] = {}


class Dependency:
    """Marker of a parameter whose value comes from a provider."""

    __slots__ = ("provider",)

    def __init__(self, provider: Provider) -> None:
        self.provider = provider


def Depends(provider: Provider) -> Any:  # noqa: N802 - a marker with the name that FastAPI uses
    """Mark a parameter whose value comes from a provider.

    Use the marker in the annotation, as in `Annotated[Shelf, Depends(open_shelf)]`, or as the default value.

    Args:
        provider: a function, a class, or a generator function that yields once. Functions may be `async`. A generator
            is resumed after the call. Each parameter of a provider must be a `Context`, be a dependency, or have a
            default. A provider runs once per call, and all parameters with this provider get the same value.
    """
    return Dependency(provider)


@contextmanager
def override(provider: Provider, replacement: Provider) -> Iterator[None]:
    """Replace a provider in the whole process until the block ends, for tests."""
    before = _overrides.get(provider)
    _overrides[provider] = replacement
    try:
        yield
    finally:
        if before is None:
            del _overrides[provider]
        else:
            _overrides[provider] = before


def with_dependencies(handler: Handler) -> Handler:
    """Return a wrapper that supplies the handler's dependencies, or the handler itself if it has no dependencies.

    The wrapper takes only the parameters without a dependency.

    Raises:
        TypeError: a provider depends on itself, or has a parameter without a value.
    """
    hints = resolved_hints(handler)
    parameters = inspect.signature(handler).parameters
    wanted = {
        name: mark.provider for name, one in parameters.items() if (mark := _mark(one, hints.get(name))) is not None
    }
    if not wanted:
        return handler
    makers = {name: _Maker(provider) for name, provider in wanted.items()}
    kept = [one.replace(annotation=hints.get(name, Any)) for name, one in parameters.items() if name not in wanted]
    context = next((one.name for one in kept if takes_context(one.annotation)), None)
    call: Any = _wrapper(handler, makers, context)
    update_wrapper(call, handler)
    del call.__wrapped__
    if context is None and any(maker.wants_context for maker in makers.values()):
        kept.append(inspect.Parameter(_CONTEXT, inspect.Parameter.KEYWORD_ONLY, annotation=InjectedParameter))
    call.__signature__ = inspect.Signature(kept, return_annotation=hints.get("return", inspect.Signature.empty))
    call.__annotations__ = {one.name: one.annotation for one in kept}
    if "return" in hints:
        call.__annotations__["return"] = hints["return"]
    return call  # type: ignore[no-any-return]  # attributes of functions have no types


def _wrapper(handler: Handler, makers: dict[str, _Maker], context_name: str | None) -> Handler:
    run = generator_to_list(handler)  # collect the items of a generator before the provided values are closed

    async def call(**arguments: Any) -> Any:
        context = arguments.pop(_CONTEXT, None) if context_name is None else arguments[context_name]
        async with AsyncExitStack() as stack:
            made: dict[Provider, Any] = {}
            for name, maker in makers.items():
                arguments[name] = await maker.make(context, stack, made)
            if is_async(run):
                return await run(**arguments)
            return await _wait_uncancelled(in_thread(run, arguments))

    return call


class _Maker:
    def __init__(self, provider: Provider, chain: tuple[Provider, ...] = ()) -> None:
        if provider in chain:
            cycle = " → ".join(map(_name, (*chain, provider)))
            raise TypeError(f"{_name(provider)} depends on itself\nhint: break the cycle {cycle}")
        self.provider = provider
        self._makers: dict[str, _Maker] = {}
        self._contexts: list[str] = []
        for parameter, annotation in _parameters(provider):
            mark = _mark(parameter, annotation)
            if mark is not None:
                self._makers[parameter.name] = _Maker(mark.provider, (*chain, provider))
            elif takes_context(annotation):
                self._contexts.append(parameter.name)
            elif parameter.default is parameter.empty and parameter.kind not in _COLLECTING:
                raise TypeError(
                    f"{_name(provider)}: the parameter {parameter.name} has no value\nhint: use a Context, a dependency or a default for the parameter"
                )

    @property
    def wants_context(self) -> bool:
        """Return True if the provider or one of its dependencies takes the context."""
        return bool(self._contexts) or any(maker.wants_context for maker in self._makers.values())

    async def make(self, context: Any, stack: AsyncExitStack, made: dict[Provider, Any]) -> Any:
        """Return the provider's value for a call, and store the value in `made`."""
        if self.provider in made:
            return made[self.provider]
        replacement = _overrides.get(self.provider)
        if replacement is not None:
            value = await _Maker(replacement).make(context, stack, made)
        else:
            arguments: dict[str, Any] = dict.fromkeys(self._contexts, context)
            for name, maker in self._makers.items():
                arguments[name] = await maker.make(context, stack, made)
            value = await self._open(arguments, stack)
        made[self.provider] = value
        return value

    async def _open(self, arguments: dict[str, Any], stack: AsyncExitStack) -> Any:
        generator = inspect.unwrap(self.provider)  # unwrap the decorator `@contextmanager`
        if inspect.isasyncgenfunction(generator) or inspect.isgeneratorfunction(generator):
            return await stack.enter_async_context(_Opened(generator, arguments))
        if is_async(self.provider):
            return await self.provider(**arguments)
        return await _wait_uncancelled(in_thread(self.provider, arguments))


class _Opened:
    """Context manager for a generator, which gets an error of the call but cannot suppress the error."""

    def __init__(self, generator: Provider, arguments: dict[str, Any]) -> None:
        if inspect.isasyncgenfunction(generator):
            self._manager: Any = asynccontextmanager(generator)(**arguments)
            self._threaded = False
        else:
            self._manager = contextmanager(generator)(**arguments)
            self._threaded = True

    async def __aenter__(self) -> Any:
        if not self._threaded:
            return await self._manager.__aenter__()
        entered = in_thread(self._manager.__enter__, {})
        try:
            return await _wait_uncancelled(entered)
        except asyncio.CancelledError as error:
            if entered.done() and not entered.cancelled() and entered.exception() is None:
                await self.__aexit__(type(error), error, error.__traceback__)
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._threaded:
            await _wait_uncancelled(in_thread(lambda: self._manager.__exit__(kind, error, traceback), {}))
        else:
            await self._manager.__aexit__(kind, error, traceback)


async def _wait_uncancelled(future: asyncio.Future[Any]) -> Any:
    """Wait for a thread even if the call is canceled, so that dependencies stay open while the thread runs."""
    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        if not future.cancelled():
            future.exception()  # mark the exception as retrieved, so that asyncio logs no warning
        raise cancelled
    return future.result()


_COLLECTING: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def _parameters(provider: Provider) -> Iterator[tuple[inspect.Parameter, Any]]:
    try:
        signature = inspect.signature(provider)
    except ValueError:  # a built-in type may have no signature, and is called without arguments
        return
    hints = resolved_hints(vars(provider).get("__init__", object.__init__) if isinstance(provider, type) else provider)
    for parameter in signature.parameters.values():
        yield parameter, hints.get(parameter.name)


def _mark(parameter: inspect.Parameter, annotation: Any) -> Dependency | None:
    if isinstance(parameter.default, Dependency):
        return parameter.default
    if get_origin(annotation) is Annotated:
        return next((one for one in get_args(annotation)[1:] if isinstance(one, Dependency)), None)
    return None


def _name(provider: Provider) -> str:
    return getattr(provider, "__qualname__", repr(provider))
