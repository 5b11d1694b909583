"""Agreement of reconstructed records with the truth, beside that of the guessers."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from bayesrisk import _validation as check
from bayesrisk._random import Seed, generator
from bayesrisk._version import __version__
from bayesrisk.exceptions import ArgumentError
from bayesrisk.reconstruction.guessers import modal_guess, proportional_guess
from bayesrisk.reconstruction.matching import match_records
from bayesrisk.reconstruction.person_frame import person_frame
from bayesrisk.risk._panels import SIZE_CLASSES, binomial_interval, size_class

__all__ = ["Agreement", "agreement"]

_COLUMNS = ("block", "sex", "age", "race", "hisp")
_SHARED = ("block", "sex", "race", "hisp")
MODAL, PROPORTIONAL = "MDG", "PRG"


@dataclass(frozen=True)
class Agreement:
    """How many true records each source of records has, by size of the block.

    Attributes
    ----------
    tally : pandas.DataFrame
        ``source``, ``block_size`` (``All`` and the classes), ``population`` (true records),
        ``exact`` (agreement with the age in years) and ``binned`` (with the age in years or the
        age bin).
    sources : tuple of str
        Sources in order, the guessers ``MDG`` and ``PRG`` last.
    baseline_from : str
        The source whose records the guessers started from.
    level : float
        Level of the intervals.
    version : str
        Version of bayesrisk.
    """

    tally: pd.DataFrame
    sources: tuple[str, ...]
    baseline_from: str
    level: float
    version: str = __version__

    def to_frame(self) -> pd.DataFrame:
        """Return the counts with their rates, intervals, baselines and ratios.

        Returns
        -------
        pandas.DataFrame
            A row for each class of block size and source.
        """
        table = self.tally.copy()
        people = table["population"].where(table["population"] > 0)
        for kind in ("exact", "binned"):
            lower, upper = binomial_interval(table[kind], table["population"], level=self.level)
            table[f"{kind}_rate"] = table[kind] / people
            table[f"{kind}_lower"], table[f"{kind}_upper"] = lower, upper
            guessed = table[table["source"].isin([MODAL, PROPORTIONAL])]
            best = guessed.groupby("block_size")[f"{kind}_rate"].max()
            baseline = table["block_size"].map(best)
            table[f"{kind}_baseline"] = baseline
            table[f"{kind}_ratio"] = table[f"{kind}_rate"] / baseline.where(baseline > 0)
        return table

    def to_layout(self) -> pd.DataFrame:
        """Return counts and percentages as the published table lays them out.

        Returns
        -------
        pandas.DataFrame
            Rows (block size, source), columns ``Population`` and (``Agreement`` | ``Agreement
            Percentage``, ``Exact Age`` | ``Binned Age``): Abowd et al. (2023), Table S10.
        """
        table = self.to_frame().set_index(["block_size", "source"])
        columns = {
            ("Population", ""): table["population"],
            ("Agreement", "Exact Age"): table["exact"],
            ("Agreement", "Binned Age"): table["binned"],
            ("Agreement Percentage", "Exact Age"): 100.0 * table["exact_rate"],
            ("Agreement Percentage", "Binned Age"): 100.0 * table["binned_rate"],
        }
        rows = pd.MultiIndex.from_product([("All", *SIZE_CLASSES), self.sources])
        found = pd.DataFrame(columns).reindex(rows).rename_axis(["block_size", "source"])
        return found


def agreement(
    sources: Mapping[str, pd.DataFrame],
    *,
    truth: pd.DataFrame,
    baseline_from: str,
    rng: Seed,
    level: float = 0.95,
) -> Agreement:
    """Match records with the truth on all features, first by exact age, then by age bin.

    Parameters
    ----------
    sources : mapping of str to pandas.DataFrame
        Reconstructed or released records by name: ``block, sex, age, race, hisp``.
    truth : pandas.DataFrame
        Confidential records with the same columns.
    baseline_from : str
        The source whose records the guessers start from.
    rng : Generator or int
        Source of the proportional guesses (the counts do not depend on other choices).
    level : float, default 0.95
        Level of the Clopper-Pearson intervals.

    Returns
    -------
    Agreement
        Counts for every source and both guessers (Abowd et al. 2023, Algorithm 2).

    Raises
    ------
    ArgumentError
        If there is no source, or ``baseline_from`` is not one.
    DataError
        If a file lacks a column or has a value out of range: source, row and column are named.

    Examples
    --------
    >>> truth = pd.DataFrame(
    ...     {"block": "010010201001000", "sex": [0, 1], "age": [30, 41], "race": [1, 2], "hisp": 0}
    ... )
    >>> found = agreement({"same": truth}, truth=truth, baseline_from="same", rng=1)
    >>> int(found.to_frame()["exact"].iloc[0])
    2
    """
    if not isinstance(sources, Mapping) or not sources:
        raise ArgumentError(f"sources must map at least one name to its records, got {sources!r}")
    check.choice(baseline_from, "baseline_from", tuple(sources))
    check.scalar(level, "level", lower=0.0, upper=1.0, bounds="()")
    random = generator(rng)
    known = person_frame(truth, columns=_COLUMNS, source="truth")
    classes = size_class(known.groupby("block", sort=False)["sex"].transform("size"))
    base = person_frame(sources[baseline_from], columns=_COLUMNS, source=baseline_from)
    everything = {
        **{n: person_frame(f, columns=_COLUMNS, source=n) for n, f in sources.items()},
        MODAL: modal_guess(base),
        PROPORTIONAL: proportional_guess(base, rng=random),
    }
    rows = []
    for source, records in everything.items():
        pairs = match_records(
            records, known, keys=[(*_SHARED, "age"), (*_SHARED, "agebin")], rng=random
        )
        matched = classes[pairs.right]
        exact = matched[pairs.match_pass == 0]
        for label, chosen in [("All", None), *((c, i) for i, c in enumerate(SIZE_CLASSES))]:
            counts = [
                int(part.size if chosen is None else np.count_nonzero(part == chosen))
                for part in (classes, exact, matched)
            ]
            rows.append((source, label, *counts))
    tally = pd.DataFrame(rows, columns=["source", "block_size", "population", "exact", "binned"])
    return Agreement(tally, tuple(everything), baseline_from, level)
