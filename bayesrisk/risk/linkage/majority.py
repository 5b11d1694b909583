"""The most common race and ethnicity of a block, inferred from a protected release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from bayesrisk._base import validation as check
from bayesrisk._base.display import Tabular, displayed
from bayesrisk._base.validation import IntArray
from bayesrisk._version import __version__
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, DataError
from bayesrisk.interfaces import AttackResult
from bayesrisk.reconstruction.persons import CELLS, Persons, person_frame, race_ethnicity
from bayesrisk.risk.linkage import agreement
from bayesrisk.tables import PublishedTables
from bayesrisk.tables.records import CENRACE


@displayed
@dataclass(frozen=True)
class MajorityInference(AttackResult, Tabular):
    """Majorities of blocks inferred from several releases of one truth, one row per block.

    Attributes
    ----------
    blocks : pandas.DataFrame
        ``release``, ``block`` and ``population`` (true); ``majority``, the column with the highest
        released count, the first if several are equal; its ``released`` and ``true`` counts; and
        ``precision``, the true count over population without a threshold. Blocks without people are
        left out, as nobody there can be guessed.
    releases, version : tuple of str, str
        Names of the releases, in order, and the version of bayesrisk.
    """

    stated_by = "bayesrisk.risk.statements.results:stated_by_majority"

    blocks: pd.DataFrame
    releases: tuple[str, ...]
    version: str = __version__

    def curve(self, *, threshold: int) -> pd.DataFrame:
        """Return the precision-recall curve of every release.

        Recall at a precision is the share of all records in blocks of at least that precision. A
        block whose true majority count is below the threshold (the paper: 5) has precision zero.
        Columns are ``release``, ``threshold``, ``precision`` (each value once, falling) and
        ``recall``.
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

        Columns are ``release, threshold, mean_precision`` (over the inferred records),
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

        Columns for every release and class are ``blocks``, ``population`` and ``precision``
        (weighted by people; 0 below the threshold). For the error, released minus true count, they
        are ``mean_error``, ``sd_error`` and ``mean_absolute_error`` over blocks.
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
    """Return blocks with the same release, true count and precision merged into one row.

    Their ``population`` is the total. Rows of several areas may be concatenated and condensed
    again. Then :meth:`MajorityInference.curve` and :meth:`MajorityInference.summary` give the same
    as from the blocks.
    """
    names = ["release", "true", "precision"]
    return blocks.groupby(names, sort=True)["population"].sum().reset_index()


def majority_inference(
    releases: Mapping[str, pd.DataFrame], *, truth: pd.DataFrame
) -> MajorityInference:
    """Return each block's most frequent race and ethnicity by the releases, with its precision.

    Parameters
    ----------
    releases : mapping of str to pandas.DataFrame
        Released counts by name: a row for each block (the index), a column for each race and
        ethnicity. Noisy counts may be negative; a missing block or column counts as zero.
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


_ADULT = 18
#: Tables of races, and of races of those who are not Hispanic; of everybody and of adults.
_SF1 = {False: ("P8", "P9"), True: ("P10", "P11")}
_PL94 = {False: "hispanic * cenrace", True: "votingage * hispanic * cenrace"}


def race_ethnicity_counts(
    source: PublishedTables | pd.DataFrame | Persons, *, level: str = "block", adults: bool = False
) -> pd.DataFrame:
    """Return counts of race by Hispanic origin for each place, from tables or records.

    Parameters
    ----------
    source : PublishedTables, pandas.DataFrame or Persons
        Tables P8 and P9 (for adults P10 and P11) of the 2010 Summary File 1, or the redistricting
        tables with Hispanic origin by race; also noisy ones. Or records with ``block``, ``race``
        and ``hisp`` (for adults also ``age``).
    level : str, default "block"
        Level of the places; for records ``block``.
    adults : bool, default False
        Whether only people aged 18 years and over count.

    Returns
    -------
    pandas.DataFrame
        A row for each place, in order, and 126 columns of int64: cell ``2 (race - 1) + hisp``, with
        race the mask 1 to 63. Withheld counts are zero. Hispanics of a race are all people of the
        race (P8) less those who are not Hispanic (P9).

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
    elif isinstance(source, pd.DataFrame | Persons):
        check.choice(level, "level", ("block",))
        places, counts = _counted(source, adults=adults)
    else:
        raise ArgumentTypeError("source", "must be PublishedTables or a DataFrame", got=source)
    return pd.DataFrame(counts, index=pd.Index(places, name=level), columns=range(CELLS))


def _counted(records: pd.DataFrame | Persons, *, adults: bool) -> tuple[list[str], IntArray]:
    columns = ("block", *(("age",) if adults else ()), "race", "hisp")
    frame = person_frame(records, columns=columns, source="source" + ", adults" * adults)
    # A block where only children live stays in the list of places, with counts of zero.
    block, blocks = pd.factorize(frame["block"], sort=True)
    cells = block * CELLS + race_ethnicity(frame)
    if adults:
        cells = cells[frame["age"].to_numpy() >= _ADULT]
    counts = np.bincount(cells, minlength=len(blocks) * CELLS).astype(np.int64)
    return list(blocks), counts.reshape(-1, CELLS)


def _published(tables: PublishedTables, level: str, *, adults: bool) -> tuple[list[str], IntArray]:
    check.choice(level, "level", tables.workload.levels)
    published = tables.workload.at(level)
    places = tables.geoids[level].tolist()
    if set(_SF1[adults]) <= set(published):
        races, by_origin = _SF1[adults]
        everybody = _by_race(tables, level, races)
        not_hispanic = _by_race(tables, level, by_origin)
        return places, np.stack([not_hispanic, everybody - not_hispanic], axis=2).reshape(
            len(places), CELLS
        )
    if _PL94[adults] in published:
        dense = tables.counts[level, _PL94[adults]].toarray()
        by_origin_and_race = dense.reshape(len(places), -1, 2, 63)[:, -1]
        counts = np.empty((len(places), 63, 2), np.int64)
        counts[:, CENRACE - 1] = by_origin_and_race.transpose(0, 2, 1)
        return places, counts.reshape(len(places), CELLS)
    wanted = f"{' and '.join(_SF1[adults])}, or {_PL94[adults]!r}"
    raise ArgumentError(
        "source", f"must have tables {wanted} at level {level!r}", shown=", ".join(published)
    )


def _by_race(tables: PublishedTables, level: str, name: str) -> IntArray:
    """Return the counts of the 63 races, from the cells that count a single race."""
    table = tables.workload.tables[level, name]
    weights = np.asarray(table.factors["race"])
    races = np.flatnonzero(weights.sum(axis=1) == 1)
    counts = np.zeros((len(tables.geoids[level]), 63), np.int64)
    counts[:, weights[races].argmax(axis=1)] = tables.counts[level, name].toarray()[:, races]
    return counts
