"""Solution variability by population and by block size, in the layouts of the published tables."""

import numpy as np
import pandas as pd

from bayesrisk import _validation as check
from bayesrisk._random import Seed, generator
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.reconstruction.linkage.persons import Persons, person_frame
from bayesrisk.risk.linkage.target_groups import SIZE_CLASSES, size_class

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

    Raises
    ------
    ArgumentError
        If ``step`` does not divide 100.
    DataError
        If a column is missing, or bounds are not in order within 0 and 1.

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


def uniques_by_block_size(
    records: pd.DataFrame | Persons, *, variability: pd.DataFrame
) -> pd.DataFrame:
    """Return population uniques and blocks of zero variability by block size (Table S5).

    Parameters
    ----------
    records : pandas.DataFrame or Persons
        ``block, sex, age`` of everybody; unique means alone in block, sex and age bin.
    variability : pandas.DataFrame
        For each block ``block, population, lower, upper``; zero variability is an upper bound of 0.

    Returns
    -------
    pandas.DataFrame
        A row for each class of block size: ``blocks, population, unique_percentage``, and of the
        blocks of zero variability ``zero_blocks, zero_population, zero_block_percentage,
        zero_population_percentage``.

    Raises
    ------
    DataError
        If a column is missing, a value is out of range, or the populations of the two tables
        differ in a block.

    Examples
    --------
    >>> records = pd.DataFrame({"block": ["1" * 15] * 3, "sex": [0, 0, 1], "age": [3, 3, 9]})
    >>> bounds = pd.DataFrame({"block": ["1" * 15], "population": 3, "lower": 0.0, "upper": 0.0})
    >>> table = uniques_by_block_size(records, variability=bounds)
    >>> table.loc[0, "unique_percentage"].round(1), table.loc[0, "zero_block_percentage"]
    (np.float64(33.3), np.float64(100.0))
    """
    return unique_table(unique_sums(records, variability=variability))


def unique_sums(records: pd.DataFrame | Persons, *, variability: pd.DataFrame) -> pd.DataFrame:
    """Return for each class of block size the sums that :func:`unique_table` is made of."""
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
    """Return the table of :func:`uniques_by_block_size` from sums of one area or more."""
    sums = sums[sums["blocks"] > 0]
    found = pd.DataFrame(
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
    return found
