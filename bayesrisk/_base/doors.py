"""Functions that make an object, which holds a question, and return one of its answers."""

import inspect
from collections.abc import Callable
from typing import TypeVar

_Function = TypeVar("_Function", bound=Callable[..., object])


def door(question: type) -> Callable[[_Function], _Function]:
    """Show the arguments of a question in the signature of a function that takes them by name."""

    def show(function: _Function) -> _Function:
        signature = inspect.signature(function)
        own_parameters = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        parameters = [*own_parameters, *inspect.signature(question).parameters.values()]
        function.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return function

    return show
