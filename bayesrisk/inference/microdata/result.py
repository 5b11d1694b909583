"""What a release says about the records of a place, as it is returned."""

from __future__ import annotations

from dataclasses import dataclass, field

import pandas as pd

from bayesrisk import _validation as check
from bayesrisk._show import displayed
from bayesrisk._types import IntArray
from bayesrisk.exceptions import ArgumentError
from bayesrisk.inference.microdata._records import Ranking, ranked
from bayesrisk.inference.microdata.system import MicrodataSystem
from bayesrisk.inference.sampling.chains import Samples


@dataclass(frozen=True)
class FoundLaw:
    """The law of every unknown, of which place and class and known people they are."""

    ranking: Ranking
    system: MicrodataSystem
    cell_of: IntArray
    names: list[str]
    agreed: bool = True


@displayed
@dataclass(frozen=True)
class MicrodataPosterior:
    """What a release says about the records of a place.

    Attributes
    ----------
    answers : pandas.DataFrame
        One row for each question: ``question``, ``prior``, ``posterior``, ``error`` (0 where it
        is exact), ``lower``, ``upper`` (the 95 % interval of the Monte Carlo error, Clopper and
        Pearson's for probabilities), ``status`` (``exact``, ``sampled``, or ``undecided`` where
        chains do not agree: there is no posterior then), ``r_hat`` and ``ess``.
    expected : pandas.DataFrame
        One row for each class of records that may be there: ``place``, a column for each
        attribute (its codes, ``a-b`` for a range), and ``expected``, the posterior mean of their
        number.
    engine : str
        ``exact``, ``people`` or ``lattice``.
    reason : str
        Why this engine.
    points : int
        Points that were weighed, of an exact law; 0 else.
    samples : Samples or None
        Draws of the numbers that questions are about, for ArviZ; None where the law is exact, and
        where they would be more than 2^25 numbers.
    """

    answers: pd.DataFrame
    expected: pd.DataFrame
    engine: str
    reason: str
    points: int
    samples: Samples | None
    _law: FoundLaw = field(repr=False)

    def ranked_records(self, top: int = 100) -> pd.DataFrame:
        """Return the records that are most probably there.

        For each class c of a place and k = 1, 2, ..., the probability that at least k records of
        the class are there.  An adversary who lists those of probability q or more is right with
        each of them so often.

        Parameters
        ----------
        top : int, default 100
            How many.

        Returns
        -------
        pandas.DataFrame
            ``place``, a column for each attribute as in ``expected``, ``known`` (of which known
            people, by what is known; empty for all others), ``number`` k, ``probability`` and
            ``error``: 0 where it is exact, else the standard error between chains.  People whose
            class is known are left out, and do not count in k.

        Raises
        ------
        ArgumentError
            If the chains do not agree.

        Notes
        -----
        Chains count up to k = 2^25 / (chains * classes of all places), at least 1.
        """
        check.integer(top, "top", lower=1)
        if not self._law.agreed:
            raise ArgumentError("draws must be more for a ranking: the chains do not agree")
        law = self._law
        return ranked(law.ranking, law.system, law.cell_of, law.names, top)

    def _answer(self) -> list[str]:
        lines = [f"{len(self.answers)} questions answered, {self.engine}: {self.reason}."]
        for row in self.answers.head(6).itertuples():
            lines.append(
                f"{row.question}: {row.posterior:.4g} ({row.status}), before {row.prior:.4g}"
            )
        return lines
