"""Inference is not disclosure: the majority of a block, read from a protected release.

For every block take the race and ethnicity with the highest released count and infer it of
everybody there.  Its precision is the true count of that cell over the true count of the block
(Francis 2022).  No record is linked to anybody, so this is what a release is for; an attack has to
be compared with it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayesrisk import _validation as check
from bayesrisk._files.text import shown
from bayesrisk._random import Seed, generator
from bayesrisk._show import displayed
from bayesrisk._version import __version__
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.reconstruction.linkage import Persons, person_frame
from bayesrisk.risk.linkage.without_record import SIZE_CLASSES, size_class


@displayed
@dataclass(frozen=True)
class MajorityInference:
    """Majority inference from several releases of one truth, a row for each block.

    Attributes
    ----------
    blocks : pandas.DataFrame
        ``release``, ``block``, ``population`` (true), ``majority`` (column of the released counts
        with the highest one, the first of equal ones), ``released`` and ``true`` count of it, and
        ``precision`` (true count over population, no threshold applied).  Blocks in which nobody
        lives are left out: nobody there can be guessed.
    releases : tuple of str
        Names of the releases, in order.
    version : str
        Version of bayesrisk.
    """

    blocks: pd.DataFrame
    releases: tuple[str, ...]
    version: str = __version__

    def curve(self, *, threshold: int) -> pd.DataFrame:
        """Return recall against precision for every release.

        Recall at a precision is the share of all records in blocks of at least that precision.
        A block whose true majority count is below the threshold (the paper: 5) has precision zero.
        Columns ``release``, ``threshold``, ``precision`` (each value once, falling), ``recall``.
        """
        check.integer(threshold, "threshold", lower=1)
        parts = []
        for release in self.releases:
            rows = self._kept(release, threshold)
            people = rows.groupby("precision")["population"].sum().sort_index(ascending=False)
            parts.append(
                pd.DataFrame(
                    {
                        "release": release,
                        "threshold": threshold,
                        "precision": people.index.to_numpy(float),
                        "recall": people.cumsum().to_numpy() / people.sum(),
                    }
                )
            )
        return pd.concat(parts, ignore_index=True)

    def summary(self, *, threshold: int, precisions: Sequence[float]) -> pd.DataFrame:
        """Return mean precision, and recall at given precisions (Table 1 of the paper).

        Columns ``release, threshold, mean_precision`` (over the inferred records),
        ``inferred_share`` (records in blocks at or above the threshold), and ``recall_at_P`` for
        each precision P.
        """
        check.integer(threshold, "threshold", lower=1)
        wanted = check.real_array(list(precisions), "precisions", lower=0.0, upper=1.0)
        rows = []
        for release in self.releases:
            kept = self._kept(release, threshold)
            people = kept["population"].to_numpy(float)
            inferred = kept["true"].to_numpy() >= threshold
            total, reached = people.sum(), people[inferred].sum()
            hits = (kept["precision"].to_numpy() * people).sum()
            rows.append(
                {
                    "release": release,
                    "threshold": threshold,
                    "mean_precision": hits / reached if reached else np.nan,
                    "inferred_share": reached / total,
                    **{
                        f"recall_at_{p:g}": people[inferred & (kept["precision"] >= p)].sum()
                        / total
                        for p in wanted
                    },
                }
            )
        return pd.DataFrame(rows)

    def by_block_size(self, *, threshold: int) -> pd.DataFrame:
        """Return precision and error of the majority count by size of the block.

        For every release and class: ``blocks``, ``population``, ``precision`` (weighted by people;
        0 below the threshold), and of the error released minus true count ``mean_error``,
        ``sd_error`` and ``mean_absolute_error`` over blocks.
        """
        check.integer(threshold, "threshold", lower=1)
        rows = []
        for release in self.releases:
            kept = self._kept(release, threshold)
            classes = size_class(kept["population"])
            for number, label in enumerate(SIZE_CLASSES):
                part = kept[classes == number]
                if part.empty:
                    continue
                error = (part["released"] - part["true"]).to_numpy(float)
                rows.append(
                    {
                        "release": release,
                        "block_size": label,
                        "blocks": len(part),
                        "population": int(part["population"].sum()),
                        "precision": np.average(part["precision"], weights=part["population"]),
                        "mean_error": error.mean(),
                        "sd_error": error.std(),
                        "mean_absolute_error": np.abs(error).mean(),
                    }
                )
        return pd.DataFrame(rows)

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each release and block."""
        return self.blocks

    def _kept(self, release: str, threshold: int) -> pd.DataFrame:
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
    """Infer everybody's race and ethnicity from the majority of the block, for several releases.

    Parameters
    ----------
    releases : mapping of str to pandas.DataFrame
        Released counts by name: a row for each block (the index), a column for each race and
        ethnicity.  Noisy counts may be negative; a block or column that is absent counts zero.
    truth : pandas.DataFrame
        True counts in the same form.

    Returns
    -------
    MajorityInference
        Precision of the inference for every block with people, and for every release.

    Examples
    --------
    >>> truth = pd.DataFrame({"white": [8, 1], "black": [2, 9]}, index=["a", "b"])
    >>> noisy = pd.DataFrame({"white": [7, 6], "black": [3, 5]}, index=["a", "b"])
    >>> found = majority_inference({"exact": truth, "noisy": noisy}, truth=truth)
    >>> found.blocks["precision"].tolist()
    [0.8, 0.9, 0.8, 0.1]
    """
    if not isinstance(releases, Mapping) or not releases:
        raise ArgumentError(
            f"releases must map at least one name to its counts, got {shown(releases)}"
        )
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
        parts.append(
            pd.DataFrame(
                {
                    "release": name,
                    "block": true.index,
                    "population": people.to_numpy(),
                    "majority": true.columns.to_numpy()[best],
                    "released": values[rows, best],
                    "true": matrix[rows, best],
                    "precision": matrix[rows, best] / people.to_numpy(),
                }
            )
        )
    return MajorityInference(pd.concat(parts, ignore_index=True), tuple(releases))


def _counts(table: pd.DataFrame, source: str, *, lower: int | None) -> pd.DataFrame:
    """Return a table of counts as int64, after checking it."""
    if check.frame(table, source).empty:
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
    values: NDArray[np.int64] = counts.to_numpy()
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
    check.frame(table, "variability", _NEEDED)
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
        raise ArgumentError(f"step must divide 100, got {step}")
    return quantile_table(checked_variability(variability), rng=rng, step=step)


def quantile_table(table: pd.DataFrame, *, rng: Seed, step: int = 5) -> pd.DataFrame:
    """Return the same for blocks with people, checked already: ``population, lower, upper``."""
    tie = generator(rng).random(len(table))
    table = table.iloc[np.lexsort((tie, table["upper"].to_numpy()))]
    lower = np.sort(table["lower"].to_numpy(float), kind="stable")
    upper, people = table["upper"].to_numpy(float), table["population"].to_numpy(np.int64)
    by_lower = np.argsort(table["lower"].to_numpy(float), kind="stable")
    cumulative = np.cumsum(people)
    total = int(cumulative[-1]) if people.size else 0
    percentages = np.arange(step, 101, step)
    # The block in which the cumulative population reaches the percentage.
    at = np.searchsorted(cumulative, percentages * total / 100.0)
    at_lower = np.searchsorted(np.cumsum(people[by_lower]), percentages * total / 100.0)
    reached = cumulative[at]
    records = np.cumsum(people * upper)[at]
    return pd.DataFrame(
        {
            "cumulative_percentage": percentages,
            "quantile_lower": 100.0 * lower[at_lower],
            "quantile_upper": 100.0 * upper[at],
            "population": np.diff(reached, prepend=0),
            "cumulative_population": reached,
            "variable_records": np.diff(records, prepend=0.0),
            "cumulative_variability": 100.0 * records / total,
        }
    )


def unique_sums(records: pd.DataFrame | Persons, *, variability: pd.DataFrame) -> pd.DataFrame:
    """Return for each class of block size the sums that :func:`unique_table` is made of.

    ``records`` have ``block, sex, age`` of everybody; unique means alone in block, sex and age bin.
    Zero variability is an upper bound of 0.
    """
    people = person_frame(records, columns=("block", "sex", "age"), source="records")
    alike = people.groupby(["block", "sex", "agebin"])["age"].transform("size")
    blocks = (
        people.assign(unique=alike == 1)
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
    label = np.asarray(SIZE_CLASSES)[size_class(blocks["population"])]
    return blocks.assign(blocks=1).groupby(label).sum().reindex(SIZE_CLASSES, fill_value=0)


def unique_table(sums: pd.DataFrame) -> pd.DataFrame:
    """Return population uniques and blocks of zero variability by block size (Table S5)."""
    sums = sums[sums["blocks"] > 0]
    return pd.DataFrame(
        {
            "block_size": sums.index,
            "blocks": sums["blocks"].to_numpy(np.int64),
            "population": sums["population"].to_numpy(np.int64),
            "unique_percentage": (100.0 * sums["uniques"] / sums["population"]).to_numpy(float),
            "zero_blocks": sums["zero"].to_numpy(np.int64),
            "zero_population": sums["zero_population"].to_numpy(np.int64),
            "zero_block_percentage": (100.0 * sums["zero"] / sums["blocks"]).to_numpy(float),
            "zero_population_percentage": (
                100.0 * sums["zero_population"] / sums["population"]
            ).to_numpy(float),
        }
    )
