"""Agreement of reconstructed records with the truth, beside that of the guessers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk._random import Seed, generator
from bayesrisk._show import displayed
from bayesrisk._types import FloatArray
from bayesrisk._version import __version__
from bayesrisk.exceptions import ArgumentError
from bayesrisk.reconstruction.linkage.guessers import Guesses
from bayesrisk.reconstruction.linkage.matching import match_records
from bayesrisk.reconstruction.linkage.persons import Persons, person_frame
from bayesrisk.risk.linkage.baselines import (
    LEFT_OUT,
    RECORDS,
    Sources,
    better_published,
    guesses_of,
    left_out,
    left_out_columns,
    left_out_sums,
    share_intervals,
    with_guessers,
)
from bayesrisk.risk.linkage.target_groups import SIZE_CLASSES, size_class

_SHARED = ("block", "sex", "race", "hisp")
_KINDS = ("exact", "binned")


@displayed
@dataclass(frozen=True)
class Agreement:
    """How many true records each source of records has, by size of the block.

    Attributes
    ----------
    blocks : pandas.DataFrame
        For each source and block ``population`` (true records), ``exact`` (agreement with the age
        in years) and ``binned`` (with the age in years or the age bin), and how many a guesser
        without the target's record would have on average: ``exact_left_out_modal``,
        ``exact_left_out_proportional`` and the same for ``binned``.
    sources : tuple of str
        Sources in order, the guessers ``MDG`` and ``PRG`` last.
    baseline_from : str
        The source whose records the guessers started from.
    confidence : float
        Confidence of the intervals, between 0 and 1.
    version : str
        Version of bayesrisk.
    """

    blocks: pd.DataFrame
    sources: tuple[str, ...]
    baseline_from: str
    confidence: float
    version: str = __version__

    @property
    def tally(self) -> pd.DataFrame:
        """Counts by ``source`` and ``block_size`` (``All`` and the classes)."""
        blocks = self._labelled()
        names = ["population", *_KINDS]
        rows = pd.MultiIndex.from_product([self.sources, ("All", *SIZE_CLASSES)])
        sums = blocks.groupby(["source", "block_size"])[names].sum().reindex(rows, fill_value=0)
        return sums.rename_axis(["source", "block_size"]).reset_index()

    def _labelled(self) -> pd.DataFrame:
        """Return every block twice, in the row of all blocks and in that of its size."""
        size = np.asarray(SIZE_CLASSES)[size_class(self.blocks["population"])]
        parts = [self.blocks.assign(block_size=label) for label in ("All", size)]
        return pd.concat(parts, ignore_index=True)

    def to_frame(self) -> pd.DataFrame:
        """Return the counts with their rates, intervals, baselines and ratios.

        Blocks are the independent units of the intervals.  There are two baselines, as in
        :meth:`Reidentification.to_frame`: the published guessers, who count the target's record
        among those they guess from (``exact_baseline, exact_ratio``), and guessers who know the
        other people of the target's block only (``exact_left_out, exact_left_out_ratio``).  The
        latter take block, sex and age from the source ``baseline_from``; they agree with a true
        record if that source has one of its block, sex and age, and they guess its race and
        ethnicity.

        Returns
        -------
        pandas.DataFrame
            A row for each class of block size and source.  For ``exact`` and ``binned``:
            ``_rate, _lower, _upper``; ``_baseline, _baseline_guesser, _ratio``; ``_left_out,
            _left_out_guesser, _left_out_ratio, _left_out_ratio_lower, _left_out_ratio_upper``.
        """
        return agreement_rates(self.sums(), confidence=self.confidence)

    def sums(self) -> AgreementSums:
        """Return what the rates are made of."""
        table = self.tally
        blocks = self._labelled()
        keys = ["source", "block_size"]
        place = pd.MultiIndex.from_frame(table[keys]).get_indexer(
            pd.MultiIndex.from_frame(blocks[keys])
        )
        moments = {
            kind: left_out_sums(
                blocks[kind],
                [blocks[f"{kind}_{guesser}"] for guesser in LEFT_OUT],
                blocks["population"],
                place,
                len(table),
            )
            for kind in _KINDS
        }
        return AgreementSums(table, moments)

    def to_layout(self) -> pd.DataFrame:
        """Return counts and percentages as the published table lays them out.

        Returns
        -------
        pandas.DataFrame
            Rows (block size, source), columns ``Population`` and (``Agreement`` | ``Agreement
            Percentage``, ``Exact Age`` | ``Binned Age``): Abowd et al. (2023), Table S10.
        """
        return agreement_layout(self.to_frame(), self.sources)


class AgreementSums(NamedTuple):
    """Counts by source and class of block size, and the sums that their intervals need.

    ``counts`` is :attr:`Agreement.tally`; ``moments`` has for ``exact`` and ``binned`` a column for
    each of its rows, see :func:`left_out_sums`.
    """

    counts: pd.DataFrame
    moments: Mapping[str, FloatArray]

    def plus(self, other: AgreementSums) -> AgreementSums:
        """Return the sums over the blocks of both areas, of the same sources."""
        names = ["population", *_KINDS]
        counts = self.counts.assign(**{n: self.counts[n] + other.counts[n] for n in names})
        return AgreementSums(counts, {k: self.moments[k] + other.moments[k] for k in _KINDS})


def agreement_rates(sums: AgreementSums, *, confidence: float) -> pd.DataFrame:
    """Return the table of :meth:`Agreement.to_frame`."""
    table = sums.counts.copy()
    people = table["population"].where(table["population"] > 0)
    for kind in _KINDS:
        moments = sums.moments[kind]
        lower, upper = share_intervals(moments, confidence=confidence)
        table[f"{kind}_rate"] = table[kind] / people
        table[f"{kind}_lower"], table[f"{kind}_upper"] = lower, upper
        baseline, name = better_published(table, f"{kind}_rate", ["block_size"])
        table[f"{kind}_baseline"], table[f"{kind}_baseline_guesser"] = baseline, name
        table[f"{kind}_ratio"] = table[f"{kind}_rate"] / table[f"{kind}_baseline"].where(
            baseline > 0
        )
        found = left_out_columns(moments, confidence=confidence)
        table = table.assign(**{f"{kind}_{key}": column for key, column in found.items()})
    return table


def agreement_layout(rates: pd.DataFrame, sources: tuple[str, ...]) -> pd.DataFrame:
    """Return rates in the published layout, see :meth:`Agreement.to_layout`."""
    table = rates.set_index(["block_size", "source"])
    columns = {
        ("Population", ""): table["population"],
        ("Agreement", "Exact Age"): table["exact"],
        ("Agreement", "Binned Age"): table["binned"],
        ("Agreement Percentage", "Exact Age"): 100.0 * table["exact_rate"],
        ("Agreement Percentage", "Binned Age"): 100.0 * table["binned_rate"],
    }
    rows = pd.MultiIndex.from_product([("All", *SIZE_CLASSES), sources])
    found = pd.DataFrame(columns).reindex(rows).rename_axis(["block_size", "source"])
    return found


def compare_with_truth(
    sources: Sources,
    *,
    truth: pd.DataFrame | Persons,
    baseline_from: str | Guesses,
    rng: Seed,
    confidence: float = 0.95,
) -> Agreement:
    """Match records with the truth on all features, first by exact age, then by age bin.

    Parameters
    ----------
    sources : mapping of str to pandas.DataFrame or Persons
        Reconstructed or released records by name: ``block, sex, age, race, hisp``.
    truth : pandas.DataFrame or Persons
        Confidential records with the same columns.
    baseline_from : str or Guesses
        The source whose records the guessers start from; or what they said, drawn once
        (:meth:`Guesses.draw`), so that several tables have the same baseline.
    rng : Generator or int
        Source of the proportional guesses (the counts do not depend on other choices).
    confidence : float, default 0.95
        Confidence of the intervals, between 0 and 1.

    Returns
    -------
    Agreement
        Counts for every source and both guessers (Abowd et al. 2023, Algorithm 2).

    Raises
    ------
    DataError
        If a file lacks a column or has a value out of range: source, row and column are named.

    Examples
    --------
    >>> truth = pd.DataFrame(
    ...     {"block": "010010201001000", "sex": [0, 1], "age": [30, 41], "race": [1, 2], "hisp": 0}
    ... )
    >>> found = compare_with_truth({"same": truth}, truth=truth, baseline_from="same", rng=1)
    >>> int(found.to_frame()["exact"].iloc[0])
    2
    """
    if not isinstance(sources, Mapping) or not sources:
        raise ArgumentError(
            f"sources must map at least one name to its records, got {shown(sources)}"
        )
    check.scalar(confidence, "confidence", lower=0.0, upper=1.0, bounds="()")
    random = generator(rng)
    known = left_out(person_frame(truth, columns=RECORDS, source="truth"))
    guesses = guesses_of(baseline_from, sources, random)
    everything = with_guessers(sources, guesses)
    block, geoids = pd.factorize(known["block"])
    ages = [("age",), ("agebin",)]

    def per_block(records: pd.DataFrame, shared: tuple[str, ...]) -> list[pd.DataFrame]:
        """Return how many true records match exactly, and in all, with their left-out chances."""
        pairs = match_records(records, known, keys=[(*shared, *age) for age in ages], rng=random)
        found = []
        for rows in (pairs.right[pairs.match_pass == 0], pairs.right):
            weights = {"matched": np.ones(rows.size)}
            weights |= {name: known[name].to_numpy()[rows] for name in LEFT_OUT}
            columns = {
                name: np.bincount(block[rows], weight, len(geoids))
                for name, weight in weights.items()
            }
            found.append(pd.DataFrame(columns))
        return found

    parts = []
    for source, records in everything.items():
        counts = {
            kind: part["matched"].astype("int64")
            for kind, part in zip(_KINDS, per_block(records, _SHARED), strict=True)
        }
        size = np.bincount(block, minlength=len(geoids))
        about = {"source": source, "block": np.asarray(geoids, dtype=object), "population": size}
        parts.append(pd.DataFrame({**about, **counts}))
    base = guesses.records.frame
    without = {
        f"{kind}_{name}": np.tile(part[name], len(parts))
        for kind, part in zip(_KINDS, per_block(base, ("block", "sex")), strict=True)
        for name in LEFT_OUT
    }
    blocks = pd.concat(parts, ignore_index=True).assign(**without)
    return Agreement(blocks, tuple(everything), guesses.source, confidence)
