"""Choosing plug-ins by name: the package's own, registered ones, and those of other packages."""

import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import EntryPoint
from typing import Any

from bayesrisk._files.parse import shown
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, BayesRiskWarning


def check_registration(
    name: Any, factory: Any, *, kind: str, own: Mapping[str, Any] | None = None
) -> None:
    """Refuse a name that is not text or is the package's own, and what cannot be called."""
    if not isinstance(name, str) or not name:
        raise ArgumentTypeError(f"name must be text, got {shown(name)}")
    if own and name in own:
        raise ArgumentError(f"name must not be one of the package's own {kind}s, got {shown(name)}")
    if not callable(factory):
        raise ArgumentTypeError(f"factory must be callable, got {shown(factory)}")


def find(
    name: str,
    *,
    kind: str,
    own: Mapping[str, str | Callable[..., Any]],
    registered: Mapping[str, Callable[..., Any]],
    points: Callable[[], Iterable[EntryPoint]],
) -> Callable[..., Any]:
    """Return what a name stands for: the package's own first, then registered, then plug-ins.

    ``own`` holds callables or ``module:attribute``; ``points`` gives the plug-ins of that name.
    One that fails to load is skipped with a warning.
    """
    if name in own:
        mine = own[name]
        found = _load(EntryPoint(name, mine, kind), kind) if isinstance(mine, str) else mine
    elif name in registered:
        found = registered[name]
    else:
        loaded = (_load(point, kind) for point in points())
        found = next((factory for factory in loaded if factory is not None), None)
    if found is None:
        raise ArgumentError(f"{kind} {name!r} cannot be loaded")
    return found


def build(
    name: str,
    factory: Callable[..., Any],
    parameters: Mapping[str, Any],
    *,
    kind: str,
    protocol: type,
    needs: str,
) -> Any:
    """Call a factory with keyword parameters, and check what it makes against its protocol."""
    try:
        signature = inspect.signature(factory)
    except ValueError:
        pass  # a factory without a signature checks for itself
    else:
        _check_names(f"{kind} {name!r}", signature, parameters)
    made = factory(**parameters)
    if not isinstance(made, protocol):
        raise ArgumentTypeError(f"{kind} {name!r} must have {needs}, got {shown(made)}")
    return made


def _load(point: EntryPoint, kind: str) -> Callable[..., Any] | None:
    """Return what an entry point names, or warn and return None."""
    try:
        factory = point.load()
    except Exception as error:
        text = f"{kind} {point.name!r} is skipped: {error}"
        warnings.warn(text, BayesRiskWarning, stacklevel=4)
        return None
    return factory if callable(factory) else None


def _check_names(what: str, signature: inspect.Signature, given: Mapping[str, Any]) -> None:
    """Refuse parameters that a factory lacks or still needs, all of them at once."""
    try:
        signature.bind(**given)
    except TypeError as error:
        named = {n: p for n, p in signature.parameters.items() if p.kind is not p.VAR_KEYWORD}
        needed = [
            n for n, p in named.items() if p.default is p.empty and p.kind is not p.VAR_POSITIONAL
        ]
        raise ArgumentError(
            f"{what}: {error}; needed: {', '.join(needed) or 'nothing'}; "
            f"possible: {', '.join(named) or 'nothing'}"
        ) from error
