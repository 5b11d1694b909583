"""Statements of a reconstruction about people known by some of their attributes."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from bayesrisk._base import validation as check
from bayesrisk._base.randomness import Seed
from bayesrisk._base.validation import FloatArray, IntArray
from bayesrisk.exceptions import ArgumentError
from bayesrisk.reconstruction import match_records
from bayesrisk.reconstruction.linkage import modal_cells
from bayesrisk.reconstruction.persons import CELLS, race_ethnicity
from bayesrisk.risk.intervals import block_moments, group_sums, moment_intervals
from bayesrisk.risk.linkage.agreement import SIZE_CLASSES, size_class
from bayesrisk.tables import Schema
from bayesrisk.tables.cells import CellSpace


def leave_one_out(
    agreeing: ArrayLike, population: ArrayLike, everywhere: ArrayLike, total: int, weight: float
) -> FloatArray:
    """Return ``(c - 1 + w s) / (n - 1 + w)``, a guesser's belief without the target's record.

    ``c`` of ``n`` records of a place are as stated, and a share ``s`` of all other records.
    """
    rest = np.asarray(population, np.float64) - 1.0
    share: FloatArray = (np.asarray(everywhere, np.float64) - 1.0) / max(total - 1, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        prior = (np.asarray(agreeing, np.float64) - 1.0 + weight * share) / (rest + weight)
    return np.where(rest + weight > 0, prior, share)


def attributes_asked(
    schema: Schema, knowledge: Sequence[str] | None, stated: Sequence[str] | None
) -> tuple[list[str], list[str]]:
    """Return the known and the stated attributes; raise if any is unknown or named twice."""
    about_target, about_it = (
        [check.choice(attribute, name, schema.names) for attribute in check.texts(attributes, name)]
        for name, attributes in (("known", knowledge or ()), ("stated", stated or ()))
    )
    if not about_it:
        raise ArgumentError("stated", f"must name an attribute of {schema.name!r}", shown="none")
    check.each_once(about_target + about_it, "known and stated")
    return about_target, about_it


def coarsened(space: CellSpace, index: Mapping[str, IntArray]) -> dict[str, IntArray]:
    """Recode each attribute so that codes the tables cannot distinguish share one code."""
    return {
        name: space.first[name][space.bins[name][codes]] + space.schema.attribute(name).first
        for name, codes in index.items()
    }


def agreement(
    rows: pd.DataFrame, people: pd.DataFrame, place: list[str], claim: list[str]
) -> pd.Series:
    """Return whether each statement is true of all, or of none, of the people it is about.

    Missing if it is true of some of them, or if nobody of the kind lives there.
    """
    inhabitants = people.groupby(place).size().rename("there").reset_index()
    right = people.groupby(claim).size().rename("right").reset_index()
    counts = rows[claim].merge(inhabitants, on=place, how="left").merge(right, on=claim, how="left")
    everybody = counts["there"].to_numpy(np.float64)
    truth = unanimous(everybody, counts["right"].fillna(0.0).to_numpy(np.float64))
    return truth.set_axis(rows.index)


def unanimous(everybody: FloatArray, right: FloatArray) -> pd.Series:
    """Return True if a statement holds for all, False if for none, missing otherwise."""
    truth = pd.Series(right > 0, dtype="boolean")
    return truth.where((everybody > 0) & ((right == 0) | (right == everybody)))


def in_words(labelled: pd.DataFrame, names: list[str]) -> list[str]:
    """Return each row in words, such as ``block 1 sex 2``; empty labels are left out."""
    columns = [labelled[name].astype("str") for name in names]
    rows = (zip(names, row, strict=True) for row in zip(*columns, strict=True))
    return [" ".join(f"{n} {t}" for n, t in pairs if t) or "anybody" for pairs in rows]


#: What is known of a target, and what is stated.
PLACE = ["block", "sex", "agebin"]
ABOUT = [*PLACE, "race", "hisp"]


def claims_of_records(records: pd.DataFrame, weight: float) -> pd.DataFrame:
    """Return the distinct claims, with the number of records that make each, and priors."""
    records = records.assign(cell=race_ethnicity(records), stratum=_strata(records))
    keys = [*PLACE, "cell", "stratum"]  # records of one cell in one block share their stratum
    rows = records.groupby(keys, sort=True).size().rename("people").reset_index()
    rows["alike"] = rows.groupby(PLACE)["people"].transform("sum")
    population = rows.groupby("block")["people"].transform("sum").to_numpy(float)
    agreeing = rows.groupby(["block", "cell"])["people"].transform("sum").to_numpy(float)
    everywhere = np.bincount(records["cell"], minlength=CELLS)[rows["cell"]]
    rows["prior"] = leave_one_out(agreeing, population, everywhere, len(records), weight)
    rows["race"], rows["hisp"] = rows["cell"] // 2 + 1, rows.pop("cell") % 2
    text = rows[ABOUT].astype("str")
    rows["target"] = text["block"] + " sex " + text["sex"] + " agebin " + text["agebin"]
    rows["statement"] = "race " + text["race"] + " hisp " + text["hisp"]
    return rows


def _strata(records: pd.DataFrame) -> NDArray[np.int64]:
    """Return each record's stratum: its block's size class, and whether it is modal there."""
    population = records.groupby("block", sort=False)["sex"].transform("size")
    modal = race_ethnicity(records) == modal_cells(records)
    stratum: NDArray[np.int64] = 2 * size_class(population) + modal.astype(np.int64)
    return stratum


def confirmed_records(
    records: pd.DataFrame,
    people: pd.DataFrame,
    proved: NDArray[np.str_],
    rng: Seed,
    confidence: float,
) -> Mapping[str, FloatArray]:
    """Return the share of right links in blocks without proof, by stratum.

    A stratum without links has the rate of all modal, or nonmodal, ones. ``confidence`` is that of
    the intervals.
    """
    keys = [("block", "sex", "age"), ("block", "sex", "agebin")]
    links = match_records(records, people, keys=keys, rng=rng)
    right = race_ethnicity(records)[links.left] == race_ethnicity(people)[links.right]
    unproved = ~records["block"].isin(proved).to_numpy()[links.left]
    stratum = _strata(records)[links.left][unproved]
    # Links of one block stand and fall together: blocks are the units, each in one class of size.
    block, geoids = pd.factorize(records["block"].to_numpy()[links.left][unproved])
    strata = 2 * len(SIZE_CLASSES)
    pairs, pair = np.unique(stratum * max(len(geoids), 1) + block, return_inverse=True)
    moments = block_moments(np.bincount(pair, right[unproved]), np.bincount(pair))
    sums = group_sums(moments, pairs // max(len(geoids), 1), strata)
    every = np.tile(sums.reshape(len(sums), -1, 2).sum(axis=1), len(SIZE_CLASSES))
    sums = np.where(sums[0] > 0, sums, every)
    lower, upper = moment_intervals(sums, confidence=confidence)
    with np.errstate(invalid="ignore"):
        return {"posterior": sums[6] / sums[1], "lower": lower, "upper": upper}
