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

from bayesrisk._base import validation as check
from bayesrisk._base.display import Tabular, displayed, number
from bayesrisk._base.randomness import Seed, generator, seeded
from bayesrisk._base.validation import FloatArray, IntArray
from bayesrisk._version import __version__
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, DataError, quote
from bayesrisk.interfaces import AttackResult
from bayesrisk.reconstruction import linkage
from bayesrisk.risk.intervals import stratified_rates
from bayesrisk.risk.linkage import agreement
from bayesrisk.tables import PublishedTables
from bayesrisk.tables.recoding import CENRACE

_KNOWN = ("block", "sex", "age", "person")
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
        target (``size_class`` of the block, ``in_truth``, ``modal``, ``unique``,
        ``zero_variability``: 1 yes, 0 no, -1 unknown), with the records of the attacker's file,
        putative and confirmed, and of these those of equal age; ``left_out_modal`` and
        ``left_out_proportional`` are the confirmed ones that guessers without the target's record
        would have on average among the putative.
    sources, attackers : tuple of str
        Whose records were linked, the guessers ``MDG`` and ``PRG`` last; and to which files.
    baseline_from : str
        The source whose blocks, sexes and ages the guessers used.
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
        """Return the sums of a panel of targets; arguments as of :meth:`to_frame`."""
        rows = self._rows(panel, zero_variability)
        counts = self._counts(rows)
        return agreement.PanelSums(counts, self._moments(rows, counts))

    def frame_rates(
        self, frame_sizes: pd.Series, *, panel: str = "all", zero_variability: bool = False
    ) -> pd.DataFrame:
        """Return the precision in all blocks of a frame of which those linked are a sample.

        ``frame_sizes`` has the published population of every block of the frame that has any, by
        block; those of the attackers' files too.  Rows of :func:`stratified_rates` for each
        ``attacker`` and ``source``: ``trials`` are putative and ``hits`` confirmed
        re-identifications, ``rate`` is the precision of the targets that :meth:`to_frame`
        describes.
        """
        check.instance(frame_sizes, pd.Series, "frame_sizes")
        sizes = pd.Series(frame_sizes.to_numpy(), index=frame_sizes.index.astype(str))
        if not sizes.index.is_unique:
            twice = sizes.index[sizes.index.duplicated()][0]
            raise ArgumentError(f"frame_sizes must have every block once, got {quote(twice)} again")
        rows, parts = self._rows(panel, zero_variability), []
        for attacker in self.attackers:
            blocks = self.tally.loc[self.tally["attacker"] == attacker, "block"].unique()
            lost = ~np.isin(blocks, sizes.index)
            if lost.any():
                raise ArgumentError(
                    f"frame_sizes must have every block of the files, got none of {blocks[lost][0]}"
                )
            for source in self.sources:
                links = rows[(rows["attacker"] == attacker) & (rows["source"] == source)]
                sums = links.groupby("block")[["confirmed", "putative"]].sum().reindex(blocks)
                hits, trials = sums.fillna(0.0).to_numpy(float).T
                block_sizes, sure = sizes.loc[blocks], self.confidence
                rates = stratified_rates(
                    hits, trials, block_sizes, frame_sizes=sizes, confidence=sure
                )
                parts.append(rates.assign(attacker=attacker, source=source))
        table = pd.concat(parts, ignore_index=True)
        return table[["attacker", "source", *table.columns[:-2]]]

    def _rows(self, panel: str, zero_variability: bool) -> pd.DataFrame:
        """Return the rows of the tally that belong to a panel."""
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
        """Return the counts of a panel in the order of the published tables."""
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
        """Return sums over the blocks that belong to each row of the counts."""
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
    truth: pd.DataFrame | linkage.Persons,
    baseline_from: str | linkage.Guesses,
    rng: Seed,
    zero_variability_blocks: pd.Series | list[str] | None = None,
    confidence: float = 0.95,
) -> Reidentification:
    """Return the links of attackers to known people, those that are right, and guesses.

    Parameters
    ----------
    sources, attackers : mapping of str to pandas.DataFrame or Persons
        Records as for :func:`compare_with_truth`, and files of known persons, both by name; of
        these ``block, sex, age, person``.
    truth, baseline_from : pandas.DataFrame or Persons, str or Guesses
        As for :func:`compare_with_truth`, with the column ``person``, a person only once.
    rng : Generator or int
        Source of the choices among equal records, and of the proportional guesses.
    zero_variability_blocks : sequence of str, optional
        Blocks of proved zero solution variability.
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
        name: linkage.person_frame(file, columns=_KNOWN, source=name)
        for name, file in attackers.items()
    }
    return link_targets(sources, files, targets, guesses, random, confidence=confidence)


def panel_targets(
    truth: pd.DataFrame | linkage.Persons,
    proved: set[str] | None,
    everywhere: IntArray | None = None,
) -> pd.DataFrame:
    """Return the true records with everything that puts them into panels, and the guessers.

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
    """Link records to attackers' files, all of them checked, and confirm the links.

    ``elsewhere`` has for each attacker ``person, modal, unique, zero_variability`` of those whose
    true record is in a place that ``targets`` has not.
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
    """Return codes of blocks with all their digits."""
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
    """Return an attacker's file with what the truth says of the same persons."""
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
    """Return for each target whether a record was linked to it, and whether it was right."""
    links = linkage.match_records(
        records, target, keys=[("block", "sex", "age"), ("block", "sex", "agebin")], rng=rng
    )
    attached: IntArray = np.full(len(target), -2, np.int64)  # -2: nothing was linked
    attached[links.right] = linkage.race_ethnicity(records)[links.left]
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


# -----------------------------------------------------------------------------
# Counts of race by Hispanic origin: the form in which majority inference compares releases.


_ADULT = 18
#: Tables of races, and of races of those who are not Hispanic; of everybody and of adults.
_SF1 = {False: ("P8", "P9"), True: ("P10", "P11")}
_PL94 = {False: "hispanic * cenrace", True: "votingage * hispanic * cenrace"}


def race_ethnicity_counts(
    source: PublishedTables | pd.DataFrame | linkage.Persons,
    *,
    level: str = "block",
    adults: bool = False,
) -> pd.DataFrame:
    """Return counts of race by Hispanic origin for each place, from tables or from records.

    Parameters
    ----------
    source : PublishedTables, pandas.DataFrame or Persons
        Tables P8 and P9 (for adults P10 and P11) of the 2010 Summary File 1, or the redistricting
        tables with Hispanic origin by race; noisy ones too.  Or records with ``block``, ``race``
        and ``hisp`` (for adults also ``age``).
    level : str, default "block"
        Level of the places; for records ``block``.
    adults : bool, default False
        Whether only people of 18 years and over count.

    Returns
    -------
    pandas.DataFrame
        A row for each place, in order, and 126 columns of int64: cell ``2 (race - 1) + hisp``, race
        the mask 1 to 63.  Withheld counts are zero; Hispanics of a race are everybody of the race
        (P8) less those who are not Hispanic (P9).

    Examples
    --------
    >>> records = pd.DataFrame(
    ...     {"block": "010010201001000", "race": [1, 1, 2], "hisp": [0, 0, 1]}
    ... )
    >>> counts = race_ethnicity_counts(records)
    >>> counts.loc["010010201001000", [0, 3]].tolist(), int(counts.to_numpy().sum())
    ([2, 1], 3)
    """
    adults = check.flag(adults, "adults")
    if isinstance(source, PublishedTables):
        places, counts = _published(source, level, adults=adults)
    elif isinstance(source, pd.DataFrame | linkage.Persons):
        check.choice(level, "level", ("block",))
        places, counts = _counted(source, adults=adults)
    else:
        raise ArgumentTypeError("source", "must be PublishedTables or a DataFrame", got=source)
    return pd.DataFrame(counts, index=pd.Index(places, name=level), columns=range(linkage.CELLS))


def _counted(
    records: pd.DataFrame | linkage.Persons, *, adults: bool
) -> tuple[list[str], IntArray]:
    columns = ("block", *(("age",) if adults else ()), "race", "hisp")
    frame = linkage.person_frame(records, columns=columns, source="source" + ", adults" * adults)
    # A block where only children live stays in the list of places, with counts of zero.
    block, blocks = pd.factorize(frame["block"], sort=True)
    cells = block * linkage.CELLS + linkage.race_ethnicity(frame)
    if adults:
        cells = cells[frame["age"].to_numpy() >= _ADULT]
    counts = np.bincount(cells, minlength=len(blocks) * linkage.CELLS).astype(np.int64)
    return list(blocks), counts.reshape(-1, linkage.CELLS)


def _published(tables: PublishedTables, level: str, *, adults: bool) -> tuple[list[str], IntArray]:
    check.choice(level, "level", tables.workload.levels)
    published = tables.workload.at(level)
    places = tables.geoids[level].tolist()
    if set(_SF1[adults]) <= set(published):
        races, by_origin = _SF1[adults]
        everybody = _by_race(tables, level, races)
        not_hispanic = _by_race(tables, level, by_origin)
        return places, np.stack([not_hispanic, everybody - not_hispanic], axis=2).reshape(
            len(places), linkage.CELLS
        )
    if _PL94[adults] in published:
        dense = tables.counts[level, _PL94[adults]].toarray()
        by_origin_and_race = dense.reshape(len(places), -1, 2, 63)[:, -1]
        counts = np.empty((len(places), 63, 2), np.int64)
        counts[:, CENRACE - 1] = by_origin_and_race.transpose(0, 2, 1)
        return places, counts.reshape(len(places), linkage.CELLS)
    wanted = f"{' and '.join(_SF1[adults])}, or {_PL94[adults]!r}"
    raise ArgumentError(
        "source", f"must have tables {wanted} at level {level!r}", shown=", ".join(published)
    )


def _by_race(tables: PublishedTables, level: str, name: str) -> IntArray:
    """Return the counts of the 63 races: the cells of a table that count one race each."""
    table = tables.workload.tables[level, name]
    weights = np.asarray(table.factors["race"])
    races = np.flatnonzero(weights.sum(axis=1) == 1)
    counts = np.zeros((len(tables.geoids[level]), 63), np.int64)
    counts[:, weights[races].argmax(axis=1)] = tables.counts[level, name].toarray()[:, races]
    return counts


# -----------------------------------------------------------------------------
# The majority of a block, read from a protected release: the race and ethnicity with the highest
# released count is inferred of everybody there (Francis 2022).  No record is linked to anybody, so
# this is what a release is for; an attack has to be compared with it.


@displayed
@dataclass(frozen=True)
class MajorityInference(AttackResult, Tabular):
    """Majority inference from several releases of one truth, a row for each block.

    Attributes
    ----------
    blocks : pandas.DataFrame
        ``release``, ``block``, ``population`` (true), ``majority`` (column of the released counts
        with the highest one, the first of equal ones), ``released`` and ``true`` count of it, and
        ``precision`` (true count over population, no threshold applied).  Blocks in which nobody
        lives are left out: nobody there can be guessed.
    releases, version : tuple of str, str
        Names of the releases, in order, and the version of bayesrisk.
    """

    stated_by = "bayesrisk.risk.statements.results:stated_by_majority"

    blocks: pd.DataFrame
    releases: tuple[str, ...]
    version: str = __version__

    def curve(self, *, threshold: int) -> pd.DataFrame:
        """Return recall against precision for every release.

        Recall at a precision is the share of all records in blocks of at least that precision.
        A block whose true majority count is below the threshold (the paper: 5) has precision zero.
        Columns ``release``, ``threshold``, ``precision`` (each value once, falling), ``recall``.
        """
        parts = []
        for release in self.releases:
            rows = self._release_blocks(release, threshold)
            people = rows.groupby("precision")["population"].sum().sort_index(ascending=False)
            curve = (people.cumsum() / people.sum()).rename("recall").reset_index()
            parts.append(curve.astype(float).assign(release=release, threshold=threshold))
        names = ["release", "threshold", "precision", "recall"]
        return pd.concat(parts, ignore_index=True)[names]

    def summary(self, *, threshold: int, precisions: Sequence[float]) -> pd.DataFrame:
        """Return mean precision, and recall at given precisions (Table 1 of the paper).

        Columns ``release, threshold, mean_precision`` (over the inferred records),
        ``inferred_share`` (records in blocks at or above the threshold), and ``recall_at_P`` for
        each precision P.
        """
        wanted = check.real_array(list(precisions), "precisions", lower=0.0, upper=1.0)
        rows = []
        for release in self.releases:
            blocks = self._release_blocks(release, threshold)
            people = blocks["population"].to_numpy(float)
            inferred = blocks["true"].to_numpy() >= threshold
            total, reached = people.sum(), people[inferred].sum()
            hits = (blocks["precision"].to_numpy() * people).sum()
            row = {
                "release": release,
                "threshold": threshold,
                "mean_precision": hits / reached if reached else np.nan,
                "inferred_share": reached / total,
            }
            for p in wanted:
                sure = inferred & (blocks["precision"] >= p)
                row[f"recall_at_{p:g}"] = people[sure].sum() / total
            rows.append(row)
        return pd.DataFrame(rows)

    def by_block_size(self, *, threshold: int) -> pd.DataFrame:
        """Return precision and error of the majority count by size of the block.

        For every release and class: ``blocks``, ``population``, ``precision`` (weighted by people;
        0 below the threshold), and of the error released minus true count ``mean_error``,
        ``sd_error`` and ``mean_absolute_error`` over blocks.
        """
        rows = []
        for release in self.releases:
            blocks = self._release_blocks(release, threshold)
            classes = agreement.size_class(blocks["population"])
            for place in np.unique(classes):
                part = blocks[classes == place]
                error = (part["released"] - part["true"]).to_numpy(float)
                row = {
                    "release": release,
                    "block_size": agreement.SIZE_CLASSES[place],
                    "blocks": len(part),
                    "population": int(part["population"].sum()),
                    "precision": np.average(part["precision"], weights=part["population"]),
                    "mean_error": error.mean(),
                    "sd_error": error.std(),
                    "mean_absolute_error": np.abs(error).mean(),
                }
                rows.append(row)
        return pd.DataFrame(rows)

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each release and block."""
        return self.blocks

    def _release_blocks(self, release: str, threshold: int) -> pd.DataFrame:
        check.integer(threshold, "threshold", lower=1)
        rows = self.blocks[self.blocks["release"] == release]
        return rows.assign(precision=rows["precision"].where(rows["true"] >= threshold, 0.0))


def condensed(blocks: pd.DataFrame) -> pd.DataFrame:
    """Return blocks of one kind as one row: of one release, true count and precision.

    Their ``population`` is that of all of them.  :meth:`MajorityInference.curve` and
    :meth:`MajorityInference.summary` of the rows of any number of areas, put under each other and
    condensed again, are those of the blocks.
    """
    names = ["release", "true", "precision"]
    return blocks.groupby(names, sort=True)["population"].sum().reset_index()


def majority_inference(
    releases: Mapping[str, pd.DataFrame], *, truth: pd.DataFrame
) -> MajorityInference:
    """Return the rate at which the most common race and ethnicity of a block is right.

    Parameters
    ----------
    releases : mapping of str to pandas.DataFrame
        Released counts by name: a row for each block (the index), a column for each race and
        ethnicity.  Noisy counts may be negative; a block or column that is absent counts zero.
    truth : pandas.DataFrame
        True counts in the same form.

    Examples
    --------
    >>> truth = pd.DataFrame({"white": [8, 1], "black": [2, 9]}, index=["a", "b"])
    >>> noisy = pd.DataFrame({"white": [7, 6], "black": [3, 5]}, index=["a", "b"])
    >>> found = majority_inference({"exact": truth, "noisy": noisy}, truth=truth)
    >>> found.blocks["precision"].tolist()
    [0.8, 0.9, 0.8, 0.1]
    """
    if not isinstance(releases, Mapping) or not releases:
        raise ArgumentError("releases", "must map at least one name to its counts", got=releases)
    true = _counts(truth, "truth", lower=0)
    people = true.sum(axis=1)
    true, people = true[people > 0], people[people > 0]
    matrix = true.to_numpy()
    parts = []
    for name, release in releases.items():
        counts = _counts(release, name, lower=None)
        strange = counts.columns.difference(true.columns)
        if len(strange):
            raise DataError(f"{name}: column {strange[0]!r} must be a column of the truth")
        values = counts.reindex(index=true.index, columns=true.columns, fill_value=0).to_numpy()
        best = values.argmax(axis=1)
        rows = np.arange(len(best))
        columns = {
            "release": name,
            "block": true.index,
            "population": people.to_numpy(),
            "majority": true.columns.to_numpy()[best],
            "released": values[rows, best],
            "true": matrix[rows, best],
            "precision": matrix[rows, best] / people.to_numpy(),
        }
        parts.append(pd.DataFrame(columns))
    return MajorityInference(pd.concat(parts, ignore_index=True), tuple(releases))


def _counts(table: pd.DataFrame, source: str, *, lower: int | None) -> pd.DataFrame:
    """Return a table of counts as int64, after checking it."""
    table = check.frame(table, source)
    if table.empty:
        raise DataError(f"{source}: must be a table of counts with blocks and columns")
    for axis, labels in (("block", table.index), ("column", table.columns)):
        if not labels.is_unique:
            raise DataError(f"{source}: {axis} {labels[labels.duplicated()][0]!r} occurs twice")
    for name in table.columns:
        if not pd.api.types.is_integer_dtype(table[name].dtype) or table[name].isna().any():
            raise DataError(
                f"{source}: column {name!r} must hold whole numbers, got {table[name].dtype}"
            )
    counts: pd.DataFrame = table.astype("int64")
    values: IntArray = counts.to_numpy()
    if lower is not None and (values < lower).any():
        row, column = (int(i) for i in np.argwhere(values < lower)[0])
        raise DataError(
            f"{source}: block {table.index[row]!r}, column {table.columns[column]!r}: must be "
            f">= {lower}, got {values[row, column]}"
        )
    return counts


# -----------------------------------------------------------------------------
# Solution variability by population and by block size, in the layouts of the published tables.


_NEEDED = ("block", "population", "lower", "upper")


def checked_variability(table: pd.DataFrame) -> pd.DataFrame:
    """Return the blocks with people of a table of bounds, checked."""
    table = check.frame(table, "variability", _NEEDED)
    for name in _NEEDED[1:]:
        if not pd.api.types.is_numeric_dtype(table[name].dtype):
            raise DataError(f"variability: column {name!r} must hold numbers")
    bad = (table["lower"] > table["upper"]) | (table["lower"] < 0) | (table["upper"] > 1)
    if bad.any():
        row = int(np.argmax(bad.to_numpy()))
        raise DataError(
            f"variability: row {row + 1}: lower and upper must satisfy 0 <= lower <= upper <= 1, "
            f"got {table['lower'].iloc[row]} and {table['upper'].iloc[row]}"
        )
    return table[table["population"] > 0].assign(
        block=lambda t: t["block"].astype("str").str.zfill(15)
    )


def variability_quantiles(variability: pd.DataFrame, *, rng: Seed, step: int = 5) -> pd.DataFrame:
    """Return quantiles of solution variability weighted by population (compare Table S4).

    Blocks are put in order of their upper bounds, ties in random order, and cut where the
    cumulative population reaches each percentage.  The printed table is cut into equal numbers of
    blocks, names each row by its lower end, and counts a record twice, as removed and as added.

    Parameters
    ----------
    variability : pandas.DataFrame
        For each block ``block, population, lower, upper``: bounds of its solution variability.
    rng : Generator or int
        Order of blocks of equal variability.
    step : int, default 5
        Percentages between quantiles; divides 100.

    Returns
    -------
    pandas.DataFrame
        ``cumulative_percentage``, the ``quantile_lower`` and ``quantile_upper`` in percent (equal
        where every block is proved), ``population`` and ``cumulative_population``,
        ``variable_records`` (population times upper bound) and ``cumulative_variability``, their
        cumulative share of the population in percent.

    Examples
    --------
    >>> blocks = pd.DataFrame({"block": ["1", "2"], "population": [3, 1], "lower": [0, 0.5]})
    >>> table = variability_quantiles(blocks.assign(upper=blocks["lower"]), rng=1, step=50)
    >>> table["quantile_upper"].tolist(), table["cumulative_variability"].tolist()
    ([0.0, 50.0], [0.0, 12.5])
    """
    step = check.integer(step, "step", lower=1, upper=100)
    if 100 % step:
        raise ArgumentError("step", "must divide 100", shown=step)
    return quantile_table(checked_variability(variability), rng=rng, step=step)


def quantile_table(table: pd.DataFrame, *, rng: Seed, step: int = 5) -> pd.DataFrame:
    """Return the quantiles of blocks with people: ``population, lower, upper``, checked."""
    tie = generator(rng).random(len(table))
    table = table.iloc[np.lexsort((tie, table["upper"].to_numpy()))]
    lower = np.sort(table["lower"].to_numpy(float), kind="stable")
    upper, people = table["upper"].to_numpy(float), table["population"].to_numpy(np.int64)
    by_lower = np.argsort(table["lower"].to_numpy(float), kind="stable")
    cumulative = np.cumsum(people)
    total = int(cumulative[-1]) if people.size else 0
    percentages = np.arange(step, 101, step)
    # The block in which the cumulative population reaches the percentage.
    index = np.searchsorted(cumulative, percentages * total / 100.0)
    lower_index = np.searchsorted(np.cumsum(people[by_lower]), percentages * total / 100.0)
    reached = cumulative[index]
    records = np.cumsum(people * upper)[index]
    return pd.DataFrame(
        {
            "cumulative_percentage": percentages,
            "quantile_lower": 100.0 * lower[lower_index],
            "quantile_upper": 100.0 * upper[index],
            "population": np.diff(reached, prepend=0),
            "cumulative_population": reached,
            "variable_records": np.diff(records, prepend=0.0),
            "cumulative_variability": 100.0 * records / total,
        }
    )


def unique_sums(
    records: pd.DataFrame | linkage.Persons, *, variability: pd.DataFrame
) -> pd.DataFrame:
    """Return for each class of block size the sums that :func:`unique_table` is made of.

    ``records`` have ``block, sex, age`` of everybody; unique means alone in block, sex and age bin.
    Zero variability is an upper bound of 0.
    """
    people = linkage.person_frame(records, columns=("block", "sex", "age"), source="records")
    group_size = people.groupby(["block", "sex", "agebin"])["age"].transform("size")
    blocks = (
        people.assign(unique=group_size == 1)
        .groupby("block")
        .agg(population=("sex", "size"), uniques=("unique", "sum"))
    )
    bounds = checked_variability(variability).set_index("block")
    stated = bounds["population"].reindex(blocks.index)
    if stated.isna().any() or (stated != blocks["population"]).any():
        block = blocks.index[(stated != blocks["population"]).to_numpy()][0]
        raise DataError(
            f"variability: block {block}: population must be {blocks['population'][block]}, "
            f"got {stated[block]}"
        )
    blocks["zero"] = bounds["upper"].reindex(blocks.index).to_numpy() == 0
    blocks["zero_population"] = blocks["population"].where(blocks["zero"], 0)
    label = np.asarray(agreement.SIZE_CLASSES)[agreement.size_class(blocks["population"])]
    return (
        blocks.assign(blocks=1).groupby(label).sum().reindex(agreement.SIZE_CLASSES, fill_value=0)
    )


def unique_table(sums: pd.DataFrame) -> pd.DataFrame:
    """Return population uniques and blocks of zero variability by block size (Table S5)."""
    sums = sums[sums["blocks"] > 0]
    table = sums[["blocks", "population"]].astype("int64")
    table["unique_percentage"] = 100.0 * sums["uniques"] / sums["population"]
    table["zero_blocks"] = sums["zero"].astype("int64")
    table["zero_population"] = sums["zero_population"].astype("int64")
    table["zero_block_percentage"] = 100.0 * sums["zero"] / sums["blocks"]
    table["zero_population_percentage"] = 100.0 * sums["zero_population"] / sums["population"]
    shares = [name for name in table if str(name).endswith("percentage")]
    table = table.astype(dict.fromkeys(shares, "float64"))
    return table.rename_axis("block_size").reset_index()
