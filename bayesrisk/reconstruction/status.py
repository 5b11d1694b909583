"""What is known of a block, or of a question about it, in the words that all attacks share."""

from enum import StrEnum


class Status(StrEnum):
    """What an attack knows of a block, a solution or a question; every member is its text.

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
