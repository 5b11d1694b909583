"""Re-identification of records, confirmed against the truth and compared with guessers.

An adversary links reconstructed records to a file of known people by block, sex and age, and so
attaches race and ethnicity to them (putative). The truth says which are right (confirmed). The same
is done with the records of guessers, who link nobody. What the attack achieves beyond them is due
to the targets' own records (Abowd et al. 2023, Algorithms 1 to 4; Francis 2022).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from bayesrisk._base import validation as check
from bayesrisk._base.display import displayed, number
from bayesrisk._base.randomness import Seed, generator, seeded
from bayesrisk._base.validation import FloatArray, IntArray
from bayesrisk._version import __version__
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, DataError
from bayesrisk.reconstruction import linkage
from bayesrisk.reconstruction.matching import match_records
from bayesrisk.reconstruction.persons import KNOWN, Persons, person_frame, race_ethnicity
from bayesrisk.risk.linkage import agreement

_KIND = ["size_class", "in_truth", "modal", "unique", "zero_variability"]
_GROUPS = ["source", "attacker", "block", *_KIND]
_PLACE = ["block_size", "attacker", "source"]


@displayed
@dataclass(frozen=True)
class Reidentification(agreement.Rates):
    """Putative and confirmed re-identifications, counted by kind of target.

    Attributes
    ----------
    tally : pandas.DataFrame
        A row for each source of records, attacker's file, block (that of the file) and kind of
        target. Kinds are ``size_class`` of the block, ``in_truth``, ``modal``, ``unique`` and
        ``zero_variability`` (1 yes, 0 no, -1 unknown). A row has the numbers of records in the
        attacker's file, putative and confirmed, and of those with equal age. ``left_out_modal`` and
        ``left_out_proportional`` are the expected confirmed ones among the putative, for guessers
        without the target's record.
    sources, attackers : tuple of str
        The linked sources of records, the guessers ``MDG`` and ``PRG`` last; and the attackers'
        files.
    baseline_from : str
        The source whose blocks, sexes and ages the guessers use.
    confidence, version : float, str
        Confidence of the intervals, between 0 and 1, and the version of bayesrisk.
    """

    tally: pd.DataFrame
    sources: tuple[str, ...]
    attackers: tuple[str, ...]
    baseline_from: str
    confidence: float
    version: str = __version__

    def _answer(self) -> list[str]:
        return [
            f"{row.source}, file {row.attacker}: {row.confirmed:,} of {row.putative:,} links "
            f"confirmed, precision {number(row.precision)} ({number(row.precision_lower)} to "
            f"{number(row.precision_upper)}); a guesser without the record "
            f"{number(row.left_out)}, ratio {number(row.left_out_ratio)}."
            for row in self._shown_frame().itertuples()
        ]

    def _shown_frame(self) -> pd.DataFrame:
        names = ("attacker", "source", "putative", "confirmed", "precision", "precision_lower")
        more = ("precision_upper", "left_out", "left_out_ratio")
        return self.to_frame(by_size=False)[[*names, *more]]

    def panel_sums(self, panel: str, *, zero_variability: bool) -> agreement.PanelSums:
        """Return the sums for a panel of targets, with arguments as in :meth:`to_frame`."""
        rows = self._rows(panel, zero_variability)
        counts = self._counts(rows)
        return agreement.PanelSums(counts, self._moments(rows, counts))

    def _rows(self, panel: str, zero_variability: bool) -> pd.DataFrame:
        check.choice(panel, "panel", agreement.PANELS)
        check.flag(zero_variability, "zero_variability")
        rows = self.tally
        if panel == "in-truth":
            rows = rows[rows["in_truth"] == 1]
        elif panel != "all":
            rows = rows[rows["modal"] == int(panel == "modal")]
        if panel == "nonmodal-unique":
            rows = rows[rows["unique"] == 1]
        if zero_variability:
            zero = self.tally["zero_variability"]
            if len(zero) and (zero < 0).all():  # of nobody there is nothing to know
                raise ArgumentError("zero_variability", "must have been given to reidentification")
            rows = rows[rows["zero_variability"] == 1]
        return rows

    def _counts(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return a panel's counts, in the order of the published tables."""
        sized = {
            label: rows[rows["size_class"] == i] for i, label in enumerate(agreement.SIZE_CLASSES)
        }
        parts = {
            label: part.groupby(["attacker", "source"])[agreement.COUNTS].sum()
            for label, part in {"All": rows, **sized}.items()
        }
        wanted = pd.MultiIndex.from_product([self.attackers, self.sources])
        frames = [part.reindex(wanted, fill_value=0) for part in parts.values()]
        table = pd.concat(frames, keys=parts, names=_PLACE)
        return table.reset_index().astype(dict.fromkeys(agreement.COUNTS, "int64"))

    def _moments(self, rows: pd.DataFrame, counts: pd.DataFrame) -> FloatArray:
        """Return sums over blocks for each row of the counts."""
        names = ["attacker", "source", "size_class", "block"]
        sums = rows.groupby(names, sort=True)[["confirmed", *agreement.LEFT_OUT, "putative"]].sum()
        sums = sums.reset_index()
        size = np.append(agreement.SIZE_CLASSES, "none")[sums["size_class"]]
        sums = pd.concat([sums.assign(block_size="All"), sums.assign(block_size=size)])
        return agreement.left_out_sums(sums, "confirmed", "putative", agreement.LEFT_OUT, counts)


@seeded
def reidentify(
    sources: agreement.Sources,
    attackers: agreement.Sources,
    *,
    truth: pd.DataFrame | Persons,
    baseline_from: str | linkage.Guesses,
    rng: Seed,
    zero_variability_blocks: pd.Series | list[str] | None = None,
    confidence: float = 0.95,
) -> Reidentification:
    """Return the numbers of known people linked, and linked rightly, beside guessing.

    Parameters
    ----------
    sources, attackers : mapping of str to pandas.DataFrame or Persons
        Records as for :func:`compare_with_truth`, and files of known people, both by name. The
        files need ``block, sex, age, person``.
    truth, baseline_from : pandas.DataFrame or Persons, str or Guesses
        As for :func:`compare_with_truth`, with the column ``person``, in which each person occurs
        once.
    rng : Generator or int
        Source of the choices among equal records, and of the proportional guesses.
    zero_variability_blocks : sequence of str, optional
        Blocks with proved zero solution variability.
    confidence : float in (0, 1), default 0.95

    Examples
    --------
    >>> truth = pd.DataFrame(
    ...     {"block": "010010201001000", "sex": [0, 1], "age": [30, 41], "race": [1, 2], "hisp": 0}
    ... ).assign(person=[7, 8])
    >>> links = reidentify(
    ...     {"records": truth}, {"all": truth}, truth=truth, baseline_from="records", rng=1
    ... )
    >>> links.to_frame(by_size=False)[["source", "putative", "confirmed"]].values[:2].tolist()
    [['records', 2, 2], ['MDG', 2, 1]]
    """
    _check_names(sources, attackers)
    check.scalar(confidence, "confidence", lower=0.0, upper=1.0, bounds="()")
    random = generator(rng)
    proved = _codes(zero_variability_blocks)
    targets = panel_targets(truth, proved)
    guesses = agreement.read_guesses(baseline_from, sources, random)
    files = {
        name: person_frame(file, columns=KNOWN, source=name) for name, file in attackers.items()
    }
    return link_targets(sources, files, targets, guesses, random, confidence=confidence)


def panel_targets(
    truth: pd.DataFrame | Persons, proved: set[str] | None, everywhere: IntArray | None = None
) -> pd.DataFrame:
    """Return the true records with the columns of panels and guessers.

    ``proved`` are the blocks of proved zero variability; ``everywhere`` counts the cells of all
    records of a truth that is held in pieces.
    """
    targets = agreement.left_out(agreement.describe_truth(truth, everywhere))
    targets["zero_variability"] = -1
    if proved is not None:
        targets["zero_variability"] = targets["block"].isin(proved).astype(np.int64)
    return targets


def link_targets(
    sources: agreement.Sources,
    attackers: Mapping[str, pd.DataFrame],
    targets: pd.DataFrame,
    guesses: linkage.Guesses,
    rng: np.random.Generator,
    *,
    elsewhere: Mapping[str, pd.DataFrame] | None = None,
    confidence: float,
) -> Reidentification:
    """Return links of records to attackers' checked files, confirmed against the truth.

    ``elsewhere`` has for each attacker ``person, modal, unique, zero_variability`` of those whose
    true record is in a place that ``targets`` has not. ``confidence`` is that of all intervals.
    """
    frames = agreement.with_guessers(sources, guesses)
    parts = []
    for attacker, file in attackers.items():
        target = _targets(file, targets, None if elsewhere is None else elsewhere.get(attacker))
        for source, records in frames.items():
            outcome = _outcome(records, target, rng)
            kinds = outcome.groupby(["block", *_KIND], sort=True)
            counted = kinds[[*agreement.COUNTS, *agreement.LEFT_OUT]].sum().reset_index()
            parts.append(counted.assign(source=source, attacker=attacker))
    tally = pd.concat(parts, ignore_index=True)[[*_GROUPS, *agreement.COUNTS, *agreement.LEFT_OUT]]
    return Reidentification(tally, tuple(frames), tuple(attackers), guesses.source, confidence)


def _codes(blocks: pd.Series | list[str] | None) -> set[str] | None:
    if blocks is None:
        return None
    codes = check.items(blocks, "zero_variability_blocks")
    if not all(isinstance(block, (str, int, np.integer)) for block in codes):
        raise ArgumentTypeError("zero_variability_blocks", "must be codes, text or whole numbers")
    return {str(block).zfill(15) for block in codes}


def _check_names(sources: agreement.Sources, attackers: agreement.Sources) -> None:
    for name, files in (("sources", sources), ("attackers", attackers)):
        if not isinstance(files, Mapping) or not files:
            raise ArgumentError(name, "must map at least one name to its records", got=files)
        check.texts(tuple(files), name)
    clash = {agreement.MODAL, agreement.PROPORTIONAL} & set(sources)
    if clash:
        raise ArgumentError(f"sources must not be called {sorted(clash)}: these are the guessers")


def _targets(
    file: pd.DataFrame, truth: pd.DataFrame, elsewhere: pd.DataFrame | None
) -> pd.DataFrame:
    """Return an attacker's file, joined with the truth about the same persons."""
    columns = ["person", "cell", "modal", "unique", "zero_variability", *agreement.LEFT_OUT]
    place = ["block", "sex", "agebin"]
    renamed = truth[[*columns, *place, "age"]].rename(
        columns={name: f"true_{name}" for name in (*place, "age", "cell")}
    )
    if elsewhere is not None and len(elsewhere):
        # Their true block is another one, so that nothing about the place can be right.
        unknown = dict.fromkeys(("true_cell", "true_sex", "true_agebin", "true_age"), -1)
        rows = elsewhere.assign(true_block="", **unknown, **dict.fromkeys(agreement.LEFT_OUT, 0.0))
        renamed = pd.concat([renamed, rows[list(renamed)]], ignore_index=True)
    try:
        target = file.merge(renamed, on="person", how="left", validate="many_to_one")
    except ValueError as error:
        raise DataError(
            f"attackers: column 'person': must hold what that of truth does "
            f"({renamed['person'].dtype}), got {file['person'].dtype}"
        ) from error
    population = truth.drop_duplicates("block").set_index("block")["size_class"]
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
    """Return for each target whether a record was linked to it, and whether rightly."""
    links = match_records(
        records, target, keys=[("block", "sex", "age"), ("block", "sex", "agebin")], rng=rng
    )
    attached: IntArray = np.full(len(target), -2, np.int64)  # -2: nothing was linked
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
        **{
            name: np.where(judged, target[name].to_numpy(float), 0.0) for name in agreement.LEFT_OUT
        },
    )
