"""Mechanisms by name: the package's own, registered ones, and plug-ins of other packages.

A plug-in is a class in the entry-point group ``bayesrisk.mechanisms`` whose constructor takes
keyword parameters and checks them, and which follows the protocol
:class:`bayesrisk.interfaces.Mechanism`.  One that fails to load is skipped with a warning.
"""

from collections.abc import Callable
from typing import Any

from bayesrisk._files.text import shown
from bayesrisk._plugins import Registry
from bayesrisk.exceptions import ArgumentTypeError
from bayesrisk.interfaces import Mechanism
from bayesrisk.mechanisms.base import Dial

_OWN = {
    "identity": "bayesrisk.mechanisms.rounding:Identity",
    "discrete-gaussian": "bayesrisk.mechanisms.noise:DiscreteGaussianMechanism",
    "discrete-laplace": "bayesrisk.mechanisms.noise:DiscreteLaplaceMechanism",
    "rounding": "bayesrisk.mechanisms.rounding:Rounding",
    "ranges": "bayesrisk.mechanisms.coarsening:Ranges",
    "threshold": "bayesrisk.mechanisms.coarsening:Threshold",
    "cms-11": "bayesrisk.mechanisms.coarsening:cms_11",
    "nearest-5": "bayesrisk.mechanisms.coarsening:nearest_5",
    "ons-10-5": "bayesrisk.mechanisms.coarsening:ons_10_5",
    "opensafely-midpoint-6": "bayesrisk.mechanisms.coarsening:opensafely_midpoint_6",
    "cell-key": "bayesrisk.mechanisms.cell_key:CellKey",
    "recode": "bayesrisk.mechanisms.recode:Recode",
    "suppression": "bayesrisk.mechanisms.suppression.mechanism:Suppression",
    "swapping": "bayesrisk.mechanisms.swapping.mechanism:Swapping",
    "topdown": "bayesrisk.mechanisms.topdown.mechanism:TopDown",
    "bottom-up": "bayesrisk.mechanisms.bottom_up:BottomUp",
    "composition": "bayesrisk.mechanisms.composition:ReleaseComposition",
}
REGISTRY: Registry[Mechanism] = Registry(
    "mechanism", own=_OWN, protocol=Mechanism, needs="spec and release()"
)


def register_mechanism(name: str, factory: Callable[..., Mechanism]) -> None:
    """Make a mechanism available under a name, for this process.

    Parameters
    ----------
    name : str
        Name to choose it by; it may replace a plug-in, not one of the package's own.
    factory : callable
        Class of the mechanism, or a function that takes its keyword parameters.

    Examples
    --------
    >>> from bayesrisk.mechanisms import Identity
    >>> register_mechanism("as-it-is", Identity)
    >>> make_mechanism("as-it-is").spec.mechanism
    'identity'
    """
    REGISTRY.register(name, factory)


def available_mechanisms() -> list[str]:
    """Return the names of the mechanisms that can be chosen, sorted.

    Returns
    -------
    list of str
        The package's own, registered ones, and those of plug-ins.

    Examples
    --------
    >>> {"identity", "swapping", "topdown"} <= set(available_mechanisms())
    True
    """
    return REGISTRY.available()


def make_mechanism(name: str, /, **parameters: Any) -> Mechanism:
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

    Examples
    --------
    >>> make_mechanism("rounding", base=5, method="nearest").spec.parameters
    {'base': 5, 'method': 'nearest'}
    """
    return REGISTRY.make(name, **parameters)


def mechanism_dial(name: str) -> Dial | None:
    """Return the parameter of a mechanism of this name that a search may turn.

    Examples
    --------
    >>> mechanism_dial("swapping")
    Dial(name='rate', strongest=0.5, weakest=0.001, whole=False)
    """
    dial = getattr(REGISTRY.factory(name), "dial", None)
    if dial is not None and not isinstance(dial, Dial):
        raise ArgumentTypeError(f"dial of mechanism {name!r} must be a Dial, got {shown(dial)}")
    return dial
