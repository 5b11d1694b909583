"""Whether a mechanism can protect one part after the other."""

from bayesrisk import _validation as check
from bayesrisk.exceptions import ArgumentError
from bayesrisk.interfaces import Mechanism
from bayesrisk.tables import Workload


def check_reach(mechanism: Mechanism, workload: Workload, level: str, *, whole: str) -> None:
    """Refuse a mechanism that needs more than the records of a part.

    Parameters
    ----------
    mechanism : Mechanism
        The protection.
    workload : Workload
        Tables to publish.
    level : str
        Level of the parts.
    whole : str
        What to do instead with all records at once, in words.

    Raises
    ------
    ArgumentError
        If it does, or does not say (``acts_within``).
    """
    name, geography = mechanism.spec.mechanism, workload.schema.geography
    says = getattr(mechanism, "acts_within", None)
    reach = None if says is None else says(workload)
    if reach is None:
        raise ArgumentError(
            f"mechanism {name!r} does not say within which places it acts (acts_within), so that "
            f"it needs all records at once: {whole}"
        )
    check.choice(reach, f"acts_within of mechanism {name!r}", geography.levels)
    if geography.rank(reach) < geography.rank(level):
        parts = f"have parts by {reach}, " if geography.width(reach) else ""
        raise ArgumentError(
            f"mechanism {name!r} protects each {reach} as a whole, and a part is one {level}: let "
            f"it act within a {level} (levels of tables and budgets, regions of swapping), {parts}"
            f"or {whole}"
        )
