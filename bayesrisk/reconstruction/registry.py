"""Attacks by name: the package's own, registered ones, and plug-ins of other packages.

A plug-in is a class in the entry-point group ``bayesrisk.attacks`` whose constructor takes keyword
parameters and checks them, and which follows the protocol :class:`bayesrisk.interfaces.Attack`.
One that fails to load is skipped with a warning.
"""

from collections.abc import Callable
from enum import StrEnum

from bayesrisk._base.plugins import Registry
from bayesrisk.interfaces import Attack

# -----------------------------------------------------------------------------
# What is known of a block, or of a question about it, in the words that all attacks share.


class Status(StrEnum):
    """The status of a block, a solution or a question; every member is its text.

    Of solutions (records, households, values of an integer program):

    - ``UNIQUE``: proved that no other records fit;
    - ``PROVED``: proved to be the best, or the only number;
    - ``FEASIBLE``: they fit; others do, or might;
    - ``NEAREST``: none fit; these deviate least;
    - ``BOUNDED``: a number lies between two proved bounds;
    - ``INFEASIBLE``: proved that nothing fits what was published;
    - ``UNKNOWN``: no solution is given, and none is excluded;
    - ``NOT_RUN``: nothing was looked for.

    Of questions (does a claim hold, does a household violate a limit):

    - ``VERIFIED``, ``REFUTED``: proved to hold in every solution, or to fail in one;
    - ``VIOLATION``, ``POSSIBLE``: proved in every solution, or missing in one;
    - ``UNDECIDED``: a limit left the question open;
    - ``DECIDED``: no question about the block is open;
    - ``EMPTY``: there is nobody to ask about.

    Examples
    --------
    >>> Status.UNIQUE == "unique", Status("undecided")
    (True, 'undecided')
    """

    UNIQUE = "unique"
    PROVED = "proved"
    FEASIBLE = "feasible"
    NEAREST = "nearest"
    BOUNDED = "bounded"
    INFEASIBLE = "infeasible"
    UNKNOWN = "unknown"
    NOT_RUN = "none"
    VERIFIED = "verified"
    REFUTED = "refuted"
    VIOLATION = "violation"
    POSSIBLE = "possible"
    UNDECIDED = "undecided"
    DECIDED = "decided"
    EMPTY = "empty"

    def __repr__(self) -> str:
        """Return the text in quotes, as of any text."""
        return repr(self.value)


_OWN = {
    "claims": "bayesrisk.reconstruction.claims.result:ClaimsAttack",
    "reconstruction": "bayesrisk.reconstruction.records.reconstruction:ReconstructionAttack",
}
REGISTRY: Registry[Attack] = Registry(
    "attack", builtin=_OWN, protocol=Attack, needs="name and run()"
)


def register_attack(name: str, factory: Callable[..., Attack]) -> None:
    """Make an attack available under a name, for this process.

    Parameters
    ----------
    name : str
        Name to choose it by; it may replace a plug-in, not one of the package's own.
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
    """Return the names of the attacks that can be chosen, sorted.

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
