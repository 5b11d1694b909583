"""Re-identification of records, confirmed against the truth, beside what a guesser achieves.

An adversary links reconstructed records to a file of its own on block, sex and age, and so attaches
race and ethnicity to persons it knows (putative).  The truth says which are right (confirmed).
The same is done with the records of the guessers, who link nobody to anything: what the attack
achieves beyond them is due to the targets' own records (Abowd et al. 2023, Algorithms 1 to 4;
Francis 2022).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk._random import Seed, generator
from bayesrisk._show import displayed, number
from bayesrisk._version import __version__
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError
from bayesrisk.reconstruction.linkage.guessers import Guesses
from bayesrisk.reconstruction.linkage.matching import match_records
from bayesrisk.reconstruction.linkage.persons import Persons, person_frame, race_ethnicity
from bayesrisk.risk.intervals import clustered_intervals
from bayesrisk.risk.linkage.baselines import (
    LEFT_OUT,
    MODAL,
    PROPORTIONAL,
    Sources,
    better_published,
    guesses_of,
    left_out,
    left_out_columns,
    with_guessers,
)
from bayesrisk.risk.linkage.target_groups import PANELS, SIZE_CLASSES, describe_truth

__all__ = ["Reidentification", "reidentify"]

_KNOWN = ("block", "sex", "age", "person")
_KIND = ["size_class", "in_truth", "modal", "unique", "zero_variability"]
_GROUPS = ["source", "attacker", "block", *_KIND]
_COUNTS = ["attacker_records", "putative", "putative_exact", "confirmed", "confirmed_exact"]
_PLACE = ["block_size", "attacker", "source"]


@displayed
@dataclass(frozen=True)
class Reidentification:
    """Putative and confirmed re-identifications, counted by kind of target.

    Attributes
    ----------
    tally : pandas.DataFrame
        A row for each source of records, attacker's file, block (that of the file) and kind of
        target (``size_class`` of the block, ``in_truth``, ``modal``, ``unique``,
        ``zero_variability``: 1 yes, 0 no, -1 unknown), with the records of the attacker's file,
        putative and confirmed, and of these those of equal age; ``left_out_modal`` and
        ``left_out_proportional`` are the confirmed ones that guessers without the target's record
        would have on average among the putative.
    sources, attackers : tuple of str
        Whose records were linked, the guessers ``MDG`` and ``PRG`` last; and to which files.
    baseline_from : str
        The source whose blocks, sexes and ages the guessers used.
    confidence : float
        Confidence of the intervals, between 0 and 1.
    version : str
        Version of bayesrisk.
    """

    tally: pd.DataFrame
    sources: tuple[str, ...]
    attackers: tuple[str, ...]
    baseline_from: str
    confidence: float
    version: str = __version__

    def _answer(self) -> list[str]:
        lines = []
        for row in self._shown_frame().itertuples():
            lines.append(
                f"{row.source}, file {row.attacker}: {row.confirmed:,} of {row.putative:,} links "
                f"confirmed, precision {number(row.precision)} ({number(row.precision_lower)} to "
                f"{number(row.precision_upper)}); a guesser without the record "
                f"{number(row.left_out)}, ratio {number(row.left_out_ratio)}."
            )
        return lines

    def _shown_frame(self) -> pd.DataFrame:
        names = ("attacker", "source", "putative", "confirmed", "precision", "precision_lower")
        more = ("precision_upper", "left_out", "left_out_ratio")
        return self.to_frame(by_size=False)[[*names, *more]]

    def to_frame(
        self, *, panel: str = "all", zero_variability: bool = False, by_size: bool = True
    ) -> pd.DataFrame:
        """Return rates with their intervals, baselines and ratios.

        Precision is confirmed over putative, its interval takes blocks as the independent units:
        people of one block are linked and guessed together.  Recall comes in the two conventions of
        the literature: confirmed over attacker's records (Abowd et al. 2023) and putative over
        attacker's records (Francis 2022).

        There are two baselines.  ``baseline_precision`` is the precision of the better of the two
        guessers in their published form, who link records of their own and count the target's
        record among those they guess from; ``precision_ratio`` compares with it.  ``left_out`` is
        how often a guesser who knows the other people of the target's block, and not the target's
        record, is right about the people that the source linked (:func:`inference_without_record`,
        the better of the two); ``left_out_ratio`` compares with that, and is the one that says
        what is due to the targets' own records.  ``baseline_guesser`` and ``left_out_guesser``
        name the guesser and its kind.

        Parameters
        ----------
        panel : str, default "all"
            Targets by the truth: ``all``, ``in-truth`` (the attacker's block, sex and age bin are
            right), ``modal``, ``nonmodal``, ``nonmodal-unique``.
        zero_variability : bool, default False
            Whether only blocks of proved zero solution variability count.
        by_size : bool, default True
            Whether there is a row for each class of block size under the one for all blocks.

        Returns
        -------
        pandas.DataFrame
            A row for each attacker, source and class: counts; ``precision, precision_lower,
            precision_upper, recall_confirmed, recall_putative``; ``baseline_precision,
            baseline_guesser, precision_ratio``; ``left_out, left_out_guesser, left_out_ratio,
            left_out_ratio_lower, left_out_ratio_upper``.

        Raises
        ------
        ArgumentError
            If the panel is unknown, or zero variability is asked for and was not given.

        Notes
        -----
        In simulations with blocks of very different sizes, 10 to 1,000 of them, 95 % intervals of
        precision held the true rate in 94 to 99 % of cases; in 86 % at worst for rates near 0 or 1
        that depend strongly on the block.  The interval of the ratio does not count that the better
        guesser was chosen by the same data.
        """
        rows = self._rows(panel, zero_variability)
        counts = self._counts(rows, by_size)
        putative, confirmed = counts["putative"], counts["confirmed"]
        records = counts["attacker_records"]
        blocks, place = self._by_block(rows, counts)
        n = len(counts)
        lower, upper = clustered_intervals(
            blocks["confirmed"], blocks["putative"], place, n, confidence=self.confidence
        )
        counts["precision"] = confirmed / putative.where(putative > 0)
        counts["precision_lower"], counts["precision_upper"] = lower, upper
        counts["recall_confirmed"] = confirmed / records.where(records > 0)
        counts["recall_putative"] = putative / records.where(records > 0)
        baseline, name = better_published(counts, "precision", ["block_size", "attacker"])
        counts["baseline_precision"], counts["baseline_guesser"] = baseline, name
        counts["precision_ratio"] = counts["precision"] / counts["baseline_precision"].where(
            baseline > 0
        )
        without = left_out_columns(
            blocks["confirmed"],
            [blocks[guesser] for guesser in LEFT_OUT],
            blocks["putative"],
            place,
            n,
            confidence=self.confidence,
        )
        return counts.assign(**without)

    def to_layout(self, *, panel: str = "all", zero_variability: bool = False) -> pd.DataFrame:
        """Return putative, confirmed and precision in percent as the published tables lay them out.

        Parameters
        ----------
        panel : str, default "all"
            Targets, as for :meth:`to_frame`: ``all`` (Tables S6 and S12), ``modal`` (S9 and S13),
            ``nonmodal`` (S11).
        zero_variability : bool, default False
            Whether only blocks of proved zero solution variability count.

        Returns
        -------
        pandas.DataFrame
            Rows (block size, source), columns (attacker, ``Putative`` | ``Confirmed`` |
            ``Precision Percentage``).

        Raises
        ------
        ArgumentError
            If the panel is unknown, or zero variability is asked for and was not given.
        """
        rates = self.to_frame(panel=panel, zero_variability=zero_variability)
        shown = rates[["block_size", "source", "attacker"]].assign(
            Putative=rates["putative"],
            Confirmed=rates["confirmed"],
            **{"Precision Percentage": 100.0 * rates["precision"]},
        )
        wide = shown.pivot(index=["block_size", "source"], columns="attacker")
        wide = wide.swaplevel(axis="columns")
        rows = pd.MultiIndex.from_product([("All", *SIZE_CLASSES), self.sources])
        kinds = ("Putative", "Confirmed", "Precision Percentage")
        columns = pd.MultiIndex.from_product([self.attackers, kinds])
        return wide.reindex(index=rows, columns=columns).rename_axis(["block_size", "source"])

    def to_panels(self, *, panels: Sequence[str], zero_variability: bool = False) -> pd.DataFrame:
        """Return panels of targets over blocks of all sizes, as two published tables lay them out.

        Parameters
        ----------
        panels : sequence of str
            Targets, as for :meth:`to_frame`: ``["all", "in-truth"]`` (Table S7), or ``["nonmodal",
            "nonmodal-unique"]`` with zero variability (S8).
        zero_variability : bool, default False
            Whether only blocks of proved zero solution variability count.

        Returns
        -------
        pandas.DataFrame
            Rows (panel, source), columns (attacker, ``Population`` | ``Putative`` | ``Putative
            Percentage`` | ``Confirmed`` | ``Confirmed Percentage`` | ``Precision Percentage``);
            the population is that of the attacker's file.

        Raises
        ------
        ArgumentError
            If a panel is unknown, or zero variability is asked for and was not given.
        """
        shown = {
            "Population": "attacker_records",
            "Putative": "putative",
            "Putative Percentage": "recall_putative",
            "Confirmed": "confirmed",
            "Confirmed Percentage": "recall_confirmed",
            "Precision Percentage": "precision",
        }
        parts = []
        for panel in panels:
            rates = self.to_frame(panel=panel, zero_variability=zero_variability, by_size=False)
            columns = {
                name: rates[of] * (100.0 if name.endswith("Percentage") else 1)
                for name, of in shown.items()
            }
            parts.append(rates[["source", "attacker"]].assign(panel=panel, **columns))
        wide = pd.concat(parts).pivot(index=["panel", "source"], columns="attacker")
        rows = pd.MultiIndex.from_product([panels, self.sources], names=["panel", "source"])
        wanted = pd.MultiIndex.from_product([self.attackers, shown])
        return wide.swaplevel(axis="columns").reindex(index=rows, columns=wanted)

    def _rows(self, panel: str, zero_variability: bool) -> pd.DataFrame:
        """Return the rows of the tally that belong to a panel."""
        check.choice(panel, "panel", PANELS)
        rows = self.tally
        if panel == "in-truth":
            rows = rows[rows["in_truth"] == 1]
        elif panel != "all":
            rows = rows[rows["modal"] == int(panel == "modal")]
        if panel == "nonmodal-unique":
            rows = rows[rows["unique"] == 1]
        if zero_variability:
            if (self.tally["zero_variability"] < 0).all():
                raise ArgumentError("zero_variability must have been given to reidentification")
            rows = rows[rows["zero_variability"] == 1]
        return rows

    def _counts(self, rows: pd.DataFrame, by_size: bool) -> pd.DataFrame:
        """Return the counts of a panel in the order of the published tables."""
        everything = rows.groupby(["attacker", "source"])[_COUNTS].sum()
        parts = {"All": everything}
        if by_size:
            for number, label in enumerate(SIZE_CLASSES):
                of_size = rows[rows["size_class"] == number]
                parts[label] = of_size.groupby(["attacker", "source"])[_COUNTS].sum()
        wanted = pd.MultiIndex.from_product([self.attackers, self.sources])
        frames = [part.reindex(wanted, fill_value=0) for part in parts.values()]
        table = pd.concat(frames, keys=parts, names=_PLACE)
        return table.reset_index().astype(dict.fromkeys(_COUNTS, "int64"))

    def _by_block(
        self, rows: pd.DataFrame, counts: pd.DataFrame
    ) -> tuple[pd.DataFrame, NDArray[np.int64]]:
        """Return sums over each block, and the row of the counts to which each sum belongs."""
        names = ["attacker", "source", "size_class", "block"]
        sums = rows.groupby(names, sort=True)[["confirmed", *LEFT_OUT, "putative"]].sum()
        sums = sums.reset_index()
        size = np.append(SIZE_CLASSES, "none")[sums["size_class"]]
        both = pd.concat([sums.assign(block_size="All"), sums.assign(block_size=size)])
        place = pd.MultiIndex.from_frame(counts[_PLACE]).get_indexer(
            pd.MultiIndex.from_frame(both[_PLACE])
        )
        return both[place >= 0], place[place >= 0]


def reidentify(
    sources: Sources,
    attackers: Sources,
    *,
    truth: pd.DataFrame | Persons,
    baseline_from: str | Guesses,
    rng: Seed,
    zero_variability_blocks: pd.Series | list[str] | None = None,
    confidence: float = 0.95,
) -> Reidentification:
    """Link records to attackers' files, confirm the links, and let guessers do the same.

    Parameters
    ----------
    sources : mapping of str to pandas.DataFrame or Persons
        Reconstructed or released records by name: ``block, sex, age, race, hisp``.
    attackers : mapping of str to pandas.DataFrame or Persons
        Files of known persons by name: ``block, sex, age, person``.
    truth : pandas.DataFrame or Persons
        Confidential records: ``block, sex, age, race, hisp, person``, a person only once.
    baseline_from : str or Guesses
        The source whose records the guessers start from; or what they said, drawn once
        (:meth:`Guesses.draw`), so that several tables have the same baseline.
    rng : Generator or int
        Source of the choices among equal records, and of the proportional guesses.
    zero_variability_blocks : sequence of str, optional
        Blocks of proved zero solution variability.
    confidence : float, default 0.95
        Confidence of the intervals, between 0 and 1.

    Returns
    -------
    Reidentification
        Counts by kind of target, for every source and both guessers.

    Raises
    ------
    ArgumentError
        If there is no source or attacker, or ``baseline_from`` is not a source.
    DataError
        If a file lacks a column or has a value out of range: source, row and column are named.

    Examples
    --------
    >>> truth = pd.DataFrame(
    ...     {"block": "010010201001000", "sex": [0, 1], "age": [30, 41], "race": [1, 2], "hisp": 0}
    ... ).assign(person=[7, 8])
    >>> found = reidentify(
    ...     {"records": truth}, {"all": truth}, truth=truth, baseline_from="records", rng=1
    ... )
    >>> found.to_frame(by_size=False)[["source", "putative", "confirmed"]].values[:2].tolist()
    [['records', 2, 2], ['MDG', 2, 1]]
    """
    _check_names(sources, attackers)
    check.scalar(confidence, "confidence", lower=0.0, upper=1.0, bounds="()")
    random = generator(rng)
    proved = _codes(zero_variability_blocks)
    known = left_out(describe_truth(truth))
    known["zero_variability"] = -1
    if proved is not None:
        known["zero_variability"] = known["block"].isin(proved).astype(np.int64)
    guesses = guesses_of(baseline_from, sources, random)
    everything = with_guessers(sources, guesses)
    parts = []
    for attacker, file in attackers.items():
        target = _targets(person_frame(file, columns=_KNOWN, source=attacker), known)
        for source, records in everything.items():
            outcome = _outcome(records, target, random)
            kinds = outcome.groupby(["block", *_KIND], sort=True)
            counted = kinds[[*_COUNTS, *LEFT_OUT]].sum().reset_index()
            parts.append(counted.assign(source=source, attacker=attacker))
    tally = pd.concat(parts, ignore_index=True)[[*_GROUPS, *_COUNTS, *LEFT_OUT]]
    return Reidentification(tally, tuple(everything), tuple(attackers), guesses.source, confidence)


def _codes(blocks: pd.Series | list[str] | None) -> set[str] | None:
    """Return codes of blocks with all their digits."""
    if blocks is None:
        return None
    given = check.items(blocks, "zero_variability_blocks")
    if not all(isinstance(block, (str, int, np.integer)) for block in given):
        raise ArgumentTypeError("zero_variability_blocks must be codes, text or whole numbers")
    return {str(block).zfill(15) for block in given}


def _check_names(sources: Sources, attackers: Sources) -> None:
    for name, files in (("sources", sources), ("attackers", attackers)):
        if not isinstance(files, Mapping) or not files:
            raise ArgumentError(
                f"{name} must map at least one name to its records, got {shown(files)}"
            )
        check.texts(tuple(files), name)
    taken = {MODAL, PROPORTIONAL} & set(sources)
    if taken:
        raise ArgumentError(f"sources must not be called {sorted(taken)}: these are the guessers")


def _targets(file: pd.DataFrame, known: pd.DataFrame) -> pd.DataFrame:
    """Return an attacker's file with what the truth says of the same persons."""
    about = ["person", "cell", "modal", "unique", "zero_variability", *LEFT_OUT]
    place = ["block", "sex", "agebin"]
    renamed = known[[*about, *place, "age"]].rename(
        columns={name: f"true_{name}" for name in (*place, "age", "cell")}
    )
    target = file.merge(renamed, on="person", how="left", validate="many_to_one")
    population = known.drop_duplicates("block").set_index("block")["size_class"]
    target["size_class"] = target["block"].map(population).fillna(-1).astype(np.int64)
    target["in_truth"] = np.logical_and.reduce(
        [(target[name] == target[f"true_{name}"]).to_numpy(dtype=bool) for name in place]
    ).astype(np.int64)
    target["same_age"] = (target["age"] == target["true_age"]).to_numpy(dtype=bool)
    for name in ("modal", "unique", "zero_variability"):
        target[name] = target[name].astype("float64").fillna(-1).astype(np.int64)
    target["true_cell"] = target["true_cell"].fillna(-1).astype(np.int64)
    return target


def _outcome(records: pd.DataFrame, target: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Return for each target whether a record was linked to it, and whether it was right."""
    links = match_records(
        records, target, keys=[("block", "sex", "age"), ("block", "sex", "agebin")], rng=rng
    )
    attached: NDArray[np.int64] = np.full(len(target), -2, np.int64)  # -2: nothing was linked
    attached[links.right] = race_ethnicity(records)[links.left]
    exact = np.zeros(len(target), dtype=bool)
    exact[links.right[links.match_pass == 0]] = True
    confirmed = (attached == target["true_cell"].to_numpy()) & (target["in_truth"].to_numpy() == 1)
    # A guess counts where a link would: it is about that person, at the place that is true.
    judged = (attached >= 0) & (target["in_truth"].to_numpy() == 1)
    return target[["block", *_KIND]].assign(
        attacker_records=1,
        putative=attached >= 0,
        putative_exact=exact,
        confirmed=confirmed,
        confirmed_exact=confirmed & exact & target["same_age"].to_numpy(),
        **{name: np.where(judged, target[name].to_numpy(float), 0.0) for name in LEFT_OUT},
    )
