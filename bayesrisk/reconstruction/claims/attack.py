"""Verified claims as an attack on a release: what the registry knows it by."""

from typing import Any

from bayesrisk.exceptions import ArgumentTypeError
from bayesrisk.reconstruction.claims.options import ClaimOptions
from bayesrisk.reconstruction.claims.verification import Claims, find_claims
from bayesrisk.release import Release


class ClaimsAttack:
    """Claims about records that hold in whatever has the published counts of a release.

    Parameters
    ----------
    **options : object
        Those of :class:`ClaimOptions`, by name.

    Examples
    --------
    >>> ClaimsAttack(max_columns=3).name
    'claims'
    """

    name = "claims"

    def __init__(self, **options: Any) -> None:
        self.options = ClaimOptions.given(options)

    def run(self, release: Release) -> Claims:
        """Return the claims that the tables of a release prove.

        Parameters
        ----------
        release : Release
            What was published; nothing else is read.

        Returns
        -------
        Claims
            What is certain of the tables: of the people, if published counts are true counts.

        Raises
        ------
        ArgumentError
            If an option is out of range for these tables, or their counts need not be true and
            ``taken_as_true`` is not set.
        """
        if not isinstance(release, Release):
            raise ArgumentTypeError(f"release must be a Release, got {type(release).__name__}")
        return find_claims(release.tables, **vars(self.options))
