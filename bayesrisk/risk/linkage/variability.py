"""Solution variability by population and block size, in published tables' layouts."""

from __future__ import annotations

import numpy as np
import pandas as pd

from bayesrisk._base import validation as check
from bayesrisk._base.randomness import Seed, generator
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.reconstruction.persons import Persons, person_frame
from bayesrisk.risk.linkage import agreement

_NEEDED = ("block", "population", "lower", "upper")


def checked_variability(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table of bounds, checked, without empty blocks."""
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
    """Return population-weighted quantiles of solution variability (compare Table S4).

    Blocks are sorted by their upper bounds, ties in random order, and cut where the cumulative
    population reaches each percentage. The printed table differs: it has equal numbers of blocks,
    names each row by its lower end, and counts a record twice, as removed and as added.

    Parameters
    ----------
    variability : pandas.DataFrame
        For each block ``block, population, lower, upper``, the bounds of its solution variability.
    rng : Generator or int
        Order of blocks with equal variability.
    step : int, default 5
        Percentages between quantiles; divides 100.

    Returns
    -------
    pandas.DataFrame
        ``cumulative_percentage``; ``quantile_lower`` and ``quantile_upper`` in percent, equal if
        every block is proved; ``population`` and ``cumulative_population``. ``variable_records`` is
        population times upper bound. ``cumulative_variability`` is their cumulative share of the
        population in percent.

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
    """Return the quantiles from checked ``population, lower, upper`` of inhabited blocks."""
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


def unique_sums(records: pd.DataFrame | Persons, *, variability: pd.DataFrame) -> pd.DataFrame:
    """Return the sums by size class from which :func:`unique_table` is computed.

    ``records`` have ``block, sex, age`` of everybody; unique means alone in block, sex and age bin.
    Zero variability is an upper bound of 0.
    """
    people = person_frame(records, columns=("block", "sex", "age"), source="records")
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
    """Return population uniques and zero-variability blocks by block size (Table S5)."""
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
