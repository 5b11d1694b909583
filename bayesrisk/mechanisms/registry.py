"""Mechanisms by name: the package's own, registered ones, and plug-ins of other packages.

A plug-in is a class in the entry-point group ``bayesrisk.mechanisms`` whose constructor takes
keyword parameters and checks them, and which follows the protocol
:class:`bayesrisk.interfaces.Mechanism`.  One that fails to load is skipped with a warning.
"""

import inspect
import warnings
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from bayesrisk import _validation as check
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, BayesRiskWarning
from bayesrisk.interfaces import Mechanism

__all__ = ["available_mechanisms", "make_mechanism", "register_mechanism"]

_GROUP = "bayesrisk.mechanisms"
_OWN = {
    "identity": "bayesrisk.mechanisms.identity:Identity",
    "discrete-gaussian": "bayesrisk.mechanisms.noise:DiscreteGaussianMechanism",
    "discrete-laplace": "bayesrisk.mechanisms.noise:DiscreteLaplaceMechanism",
    "rounding": "bayesrisk.mechanisms.rounding:Rounding",
    "suppression": "bayesrisk.mechanisms.suppression:Suppression",
    "swapping": "bayesrisk.mechanisms.swapping:Swapping",
    "topdown": "bayesrisk.mechanisms.topdown:TopDown",
    "bottom-up": "bayesrisk.mechanisms.bottom_up:BottomUp",
}
_registered: dict[str, Callable[..., Mechanism]] = {}


def register_mechanism(name: str, factory: Callable[..., Mechanism]) -> None:
    """Make a mechanism available under a name, for this process.

    Parameters
    ----------
    name : str
        Name to choose it by; it may replace a plug-in, not one of the package's own.
    factory : callable
        Class of the mechanism, or a function that takes its keyword parameters.

    Raises
    ------
    ArgumentTypeError
        If ``name`` is no text, or ``factory`` cannot be called.
    ArgumentError
        If the name is one of the package's own.

    Returns
    -------
    None
        Nothing.

    Examples
    --------
    >>> from bayesrisk.mechanisms import Identity
    >>> register_mechanism("as-it-is", Identity)
    >>> make_mechanism("as-it-is").spec.mechanism
    'identity'
    """
    if not isinstance(name, str) or not name:
        raise ArgumentTypeError(f"name must be text, got {name!r}")
    if name in _OWN:
        raise ArgumentError(f"name must not be one of the package's own mechanisms, got {name!r}")
    if not callable(factory):
        raise ArgumentTypeError(f"factory must be callable, got {factory!r}")
    _registered[name] = factory


def available_mechanisms() -> list[str]:
    """Return the names of the mechanisms that can be chosen.

    Returns
    -------
    list of str
        Sorted names.

    Raises
    ------
    OSError
        If the installation is unreadable.

    Examples
    --------
    >>> {"identity", "swapping", "topdown"} <= set(available_mechanisms())
    True
    """
    return sorted(
        {point.name for point in entry_points(group=_GROUP)} | set(_OWN) | set(_registered)
    )


def make_mechanism(name: str, **parameters: Any) -> Mechanism:
    """Return a mechanism by name.

    Parameters
    ----------
    name : str
        One of :func:`available_mechanisms`.
    **parameters : Any
        Parameters of the mechanism; its class documents them.

    Returns
    -------
    Mechanism
        Ready to release.

    Raises
    ------
    ArgumentError
        If the name is unknown, the plug-in behind it cannot be loaded, or a parameter is unknown,
        missing or out of range.

    Examples
    --------
    >>> make_mechanism("rounding", base=5, method="nearest").spec.parameters
    {'base': 5, 'method': 'nearest'}
    """
    check.choice(name, "mechanism", tuple(available_mechanisms()))
    factory = _factory(name)
    if factory is None:
        raise ArgumentError(f"mechanism {name!r} cannot be loaded")
    try:
        inspect.signature(factory).bind(**parameters)
    except TypeError as error:
        raise ArgumentError(f"mechanism {name!r}: {error}") from error
    except ValueError:
        pass  # a factory without a signature checks for itself
    mechanism = factory(**parameters)
    if not isinstance(mechanism, Mechanism):
        raise ArgumentTypeError(
            f"mechanism {name!r} must have spec and release(), got {mechanism!r}"
        )
    return mechanism


def _factory(name: str) -> Callable[..., Mechanism] | None:
    """Return the class behind a name; the package's own come first, then registered ones."""
    if name in _OWN:
        return _load(EntryPoint(name, _OWN[name], _GROUP))
    if name in _registered:
        return _registered[name]
    loaded = [_load(point) for point in entry_points(group=_GROUP, name=name)]
    return next((factory for factory in loaded if factory is not None), None)


def _load(point: EntryPoint) -> Callable[..., Mechanism] | None:
    """Return what an entry point names, or warn and return None."""
    try:
        factory = point.load()
    except Exception as error:
        text = f"mechanism {point.name!r} is skipped: {error}"
        warnings.warn(text, BayesRiskWarning, stacklevel=4)
        return None
    return factory if callable(factory) else None
