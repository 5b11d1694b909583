"""Attacks by name: built-in, registered, and from plug-ins.

A plug-in is a class in the entry-point group ``bayesrisk.attacks``. Its constructor takes keyword
parameters and checks them, and it follows the protocol :class:`bayesrisk.interfaces.Attack`. A
plug-in that fails to load is skipped with a warning.
"""

from collections.abc import Callable

from bayesrisk._base.plugins import Registry
from bayesrisk.interfaces import Attack

_OWN = {
    "claims": "bayesrisk.reconstruction.claims.verification:ClaimsAttack",
    "reconstruction": "bayesrisk.reconstruction.records.reconstruction:ReconstructionAttack",
}
REGISTRY: Registry[Attack] = Registry(
    "attack", builtin=_OWN, protocol=Attack, needs="name and run()"
)


def register_attack(name: str, factory: Callable[..., Attack]) -> None:
    """Register an attack under a name, for this process.

    Parameters
    ----------
    name : str
        Name to choose it by; it may replace a plug-in, but no attack of the package.
    factory : callable
        Class of the attack, or a function that takes its keyword parameters.

    Examples
    --------
    >>> from bayesrisk.reconstruction.records.reconstruction import ReconstructionAttack
    >>> register_attack("blocks", ReconstructionAttack)
    >>> make_attack("blocks", scope="block").name
    'reconstruction'
    """
    REGISTRY.register(name, factory)


def available_attacks() -> list[str]:
    """Return the sorted names of all available attacks.

    Examples
    --------
    >>> "reconstruction" in available_attacks()
    True
    """
    return REGISTRY.available()


def make_attack(name: str, /, **parameters: object) -> Attack:
    """Return an attack by name.

    Parameters
    ----------
    name : str
        One of :func:`available_attacks`.
    **parameters : object
        Parameters of the attack; its class documents them.

    Examples
    --------
    >>> make_attack("reconstruction", scope="tract").scope
    'tract'
    """
    return REGISTRY.make(name, **parameters)
