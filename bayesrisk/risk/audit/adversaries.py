"""Adversaries: what each knows before a release, and the prior that follows from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from bayesrisk import _validation as check
from bayesrisk._show import displayed
from bayesrisk._types import FloatArray
from bayesrisk.inference import RecordPrior

#: Share of the other people of the place whose records an adversary of this name knows.
ADVERSARIES = {"outsider": 0.0, "linker": 0.0, "insider": 0.5, "knows-all-but-one": 1.0}


@displayed
@dataclass(frozen=True)
class Adversary:
    """Who asks: what is known of the target, and of the others of its place.

    Everybody knows the place of the target, and the composition of all other places.

    Attributes
    ----------
    name : str
        How the adversary is called in results.
    known : tuple of str
        Attributes of the target that are known, besides its place.
    neighbours : float, default 0
        Share, in [0, 1], of the other people of the place whose whole records are known.

    Examples
    --------
    >>> Adversary.named("linker", known=["sex", "age"])
    Adversary(name='linker', known=('sex', 'age'), neighbours=0)
    >>> Adversary.named("knows-all-but-one").neighbours
    1.0
    """

    name: str
    known: tuple[str, ...] = ()
    neighbours: float = 0.0

    def __post_init__(self) -> None:
        check.text(self.name, "name")
        object.__setattr__(self, "known", check.texts(self.known, "known"))
        share = check.scalar(self.neighbours, "neighbours", lower=0.0, upper=1.0)
        object.__setattr__(self, "neighbours", share)

    @classmethod
    def named(cls, name: str, *, known: Sequence[str] = ()) -> Self:
        """Return one of the four adversaries.

        Parameters
        ----------
        name : {"outsider", "linker", "insider", "knows-all-but-one"}
            ``outsider`` and ``linker`` know nobody else's record, ``insider`` half of those of the
            place, ``knows-all-but-one`` all of them.
        known : sequence of str
            Attributes of the target that are known, which make an outsider a linker.

        Returns
        -------
        Adversary
            With this name.
        """
        check.choice(name, "name", tuple(ADVERSARIES))
        return cls(name, check.texts(known, "known"), ADVERSARIES[name])


def prior_knowing(prior: RecordPrior, records: FloatArray, others: int | None) -> RecordPrior:
    r"""Return the prior of the other records of a place, some being known.

    With a concentration A the known records k say what people of the place are like,

    .. math:: A' = A + |k|, \quad \theta'_c = (A \theta_c + k_c) / A';

    without one they say nothing about others.

    With ``MicrodataSystem.less``, which takes the known records off the counts, this says the same
    as :class:`~bayesrisk.inference.KnownRecords` of relation ``at least`` for each of them.  An
    audit uses it since one system then serves all targets of a place, and since whoever knows all
    other records also knows their number (``others``), which no condition on records says.

    Parameters
    ----------
    prior : RecordPrior
        Prior of all records of the place.
    records : ndarray of float, shape (cells of the schema,)
        Known records.
    others : int, optional
        Number of the other records, where it is known.
    """
    size = prior.size
    known = int(records.sum())
    if others is not None:
        size = np.zeros(others + 1)
        size[others] = 1.0
    elif size is not None and known:
        size = size[known:] / size[known:].sum()
    if prior.concentration is None or not known:
        return replace(prior, size=size)
    more = prior.concentration + known
    shares = (prior.concentration * prior.shares_of_cells + records) / more
    return replace(prior, shares=shares / shares.sum(), concentration=more, size=size)


def prior_of_others(prior: RecordPrior) -> RecordPrior:
    """Return the prior of the other records of the place of a target.

    A place with more people is the more probably the target's: with n of them it has m = n - 1
    others with probability proportional to (m + 1) P(m + 1).
    """
    if prior.size is None:
        return prior
    size = prior.size[1:] * np.arange(1, prior.size.size)
    return replace(prior, size=size / size.sum())
