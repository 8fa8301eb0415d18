"""How a function of the core becomes a method of an API.

The core's functions take what they need of the invocation (`scope`, made by the API for one call) before their
own arguments. As methods they lose that first argument, get two last ones (`connection_target` and
`additional_headers`), exist under both spellings of their names, take keywords in both spellings, and run by
the bridge, so that they serve asynchronous and synchronous code alike.
"""

from __future__ import annotations

import abc
import functools
import inspect
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, cast

from shared.apis import bridge
from shared.apis.environment import Target
from shared.apis.naming import near, to_camel, to_snake

type Headers = Mapping[str, str | None]

TARGET: Final = "connection_target"
HEADERS: Final = "additional_headers"


class Named:
    """Something that names its members that are near to one that it has not."""

    def __getattr__(self, name: str) -> Any:
        """For type checkers, the other spelling of every method; at run time, what is not there."""
        known = [known for known in dir(self) if not known.startswith("_")]
        raise AttributeError(f"{type(self).__name__} has no '{name}'{near(name, known)}", name=name, obj=self)


class Api[S](Named, abc.ABC):
    """What the methods need of an API: a scope for one call, made in the caller's context."""

    @abc.abstractmethod
    def scope(self, target: Target, headers: Headers | None) -> S: ...


class _Method:
    """Puts what it carries under both names into the class that it is an attribute of."""

    def __init__(self, function: Callable[..., Any] | staticmethod[..., Any]) -> None:
        self._function = function

    def __set_name__(self, owner: type, name: str) -> None:
        for spelling in (name, to_snake(name), to_camel(name)):
            setattr(owner, spelling, self._function)


def operation(
    core: Callable[..., Coroutine[Any, Any, Any]], *order: str, headers: str = HEADERS
) -> Callable[..., Any]:
    """A method that runs `core(scope, …)` by the bridge.

    `order`: all of the method's arguments in another order than the usual one, by name. `headers`: what the
    argument with the additional headers is called.
    """
    return _method(core, lambda scope, bound: bridge.call(lambda: core(scope, **bound)), order, headers)


def iteration(core: Callable[..., Any]) -> Callable[..., Any]:
    """A method that returns what `core(scope, …)` returns: something that calls the bridge itself."""
    return _method(core, lambda scope, bound: core(scope, **bound), (), HEADERS)


def helper(function: Callable[..., Any]) -> Callable[..., Any]:
    """A method that needs neither an invocation nor a network."""
    return cast("Callable[..., Any]", _Method(staticmethod(function)))


def _method(
    core: Callable[..., Any],
    run: Callable[[Any, dict[str, Any]], Any],
    order: tuple[str, ...],
    headers: str,
) -> Callable[..., Any]:
    signature = _signature(core, order, headers)

    @functools.wraps(core)
    def method(self: Api[Any], *args: Any, **kwargs: Any) -> Any:
        named = {name if name in signature.parameters else to_snake(name): kwargs[name] for name in kwargs}
        if len(named) < len(kwargs):
            raise TypeError(f"{core.__name__}() got an argument in both of its spellings")
        try:
            bound = signature.bind(self, *args, **named).arguments
        except TypeError as error:
            raise TypeError(f"{core.__name__}() {error}") from None
        del bound["self"]
        scope = self.scope(bound.pop(TARGET, None), bound.pop(headers, None))
        return run(scope, bound)

    method.__signature__ = signature  # type: ignore[attr-defined]
    return cast("Callable[..., Any]", _Method(method))


def _signature(core: Callable[..., Any], order: tuple[str, ...], headers: str) -> inspect.Signature:
    given = inspect.signature(core)
    parameters = list(given.parameters.values())[1:]
    last = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters += [
        inspect.Parameter(TARGET, last, default=None, annotation="Target"),
        inspect.Parameter(headers, last, default=None, annotation="Headers | None"),
    ]
    if order:
        named = {parameter.name: parameter for parameter in parameters}
        parameters = [named[name] for name in order]
    itself = inspect.Parameter("self", last)
    return given.replace(parameters=[itself, *parameters])
