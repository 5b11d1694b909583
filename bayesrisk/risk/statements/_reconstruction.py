"""What a reconstruction says about people known by block, sex and age."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayesrisk import _validation as check
from bayesrisk._random import Seed
from bayesrisk.exceptions import ArgumentTypeError
from bayesrisk.reconstruction import Reconstruction, match_records, modal_cells, record_form
from bayesrisk.reconstruction.linkage.persons import CELLS, Persons, person_frame, race_ethnicity
from bayesrisk.reconstruction.status import Status
from bayesrisk.release import MechanismSpec
from bayesrisk.risk.intervals import block_moments, moment_intervals
from bayesrisk.risk.linkage.baselines import WITHOUT
from bayesrisk.risk.linkage.target_groups import SIZE_CLASSES, size_class
from bayesrisk.risk.statements._own_records import (
    agreement,
    leave_one_out,
    statements_of_own_records,
)
from bayesrisk.risk.statements.columns import COLUMNS
from bayesrisk.tables import Records

#: What is known of a target, and what is stated.
PLACE = ["block", "sex", "agebin"]
ABOUT = [*PLACE, "race", "hisp"]
RECORDS = ("block", "sex", "age", "race", "hisp")


def statements_of_reconstruction(
    found: Reconstruction,
    *,
    spec: MechanismSpec,
    prior_weight: float,
    truth: pd.DataFrame | Persons | Records | None = None,
    rng: Seed | None = None,
    confidence: float = 0.95,
    known: Sequence[str] | None = None,
    stated: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Return the statements; see :meth:`Statements.of`."""
    if known is not None or stated is not None:
        weight = check.scalar(prior_weight, "prior_weight", lower=0.0)
        return statements_of_own_records(
            found, spec=spec, weight=weight, known=known, stated=stated, truth=truth
        )
    if not set(RECORDS[1:]) <= set(found.problem.space.schema.names):
        raise ArgumentTypeError(
            "known and stated must name attributes of schema "
            f"{found.problem.space.schema.name!r}, which is none of persons: got None"
        )
    if truth is not None and rng is None:
        raise ArgumentTypeError("rng must be given with truth, got None")
    weight = check.scalar(prior_weight, "prior_weight", lower=0.0)
    if isinstance(truth, Records):
        raise ArgumentTypeError("truth must be a DataFrame or Persons without stated, got Records")
    records = person_frame(record_form(found), columns=RECORDS, source="records")
    rows = claims_of_records(records, weight)
    exact = spec.true_counts
    unique = found.geoids[np.array(found.status) == Status.UNIQUE] if exact else np.array([], str)
    rows["status"] = np.where(rows["block"].isin(unique), "proved", "unverified")
    proved = rows["status"] == "proved"
    rows["posterior"] = (rows["people"] / rows.pop("alike")).where(proved)
    rows["lower"] = rows["upper"] = rows["posterior"]
    if truth is not None and rng is not None:
        people = person_frame(truth, columns=RECORDS, source="truth")
        rows["correct"] = agreement(rows, people, PLACE, ABOUT)
    if truth is not None and rng is not None and not proved.all():
        rates = _confirmed(records, people, unique, rng, confidence)
        for name in ("posterior", "lower", "upper"):
            rows[name] = rows[name].where(proved, rates[name][rows["stratum"]])
        # Nothing of the kind was linked anywhere: there is no rate.
        rows.loc[~proved & rows["posterior"].notna(), "status"] = "estimated"
    about = {"attack": "reconstruction", "adversary": "linker", "protection": spec.mechanism}
    return rows.drop(columns="stratum").assign(**about, baseline=WITHOUT)[
        [*(name for name in COLUMNS if name in rows or name in about), *ABOUT, "baseline"]
    ]


def claims_of_records(records: pd.DataFrame, weight: float) -> pd.DataFrame:
    """Return the different claims, how many records make each, and their priors."""
    records = records.assign(cell=race_ethnicity(records), stratum=_strata(records))
    keys = [*PLACE, "cell", "stratum"]  # records of one cell in one block share their stratum
    rows = records.groupby(keys, sort=True).size().rename("people").reset_index()
    rows["alike"] = rows.groupby(PLACE)["people"].transform("sum")
    population = rows.groupby("block")["people"].transform("sum").to_numpy(float)
    same = rows.groupby(["block", "cell"])["people"].transform("sum").to_numpy(float)
    everywhere = np.bincount(records["cell"], minlength=CELLS)[rows["cell"]]
    rows["prior"] = leave_one_out(same, population, everywhere, len(records), weight)
    rows["race"], rows["hisp"] = rows["cell"] // 2 + 1, rows.pop("cell") % 2
    text = {name: rows[name].astype("str") for name in ("block", "sex", "agebin", "race", "hisp")}
    rows["target"] = text["block"] + " sex " + text["sex"] + " agebin " + text["agebin"]
    rows["statement"] = "race " + text["race"] + " hisp " + text["hisp"]
    return rows


def _strata(records: pd.DataFrame) -> NDArray[np.int64]:
    """Return for each record the class of its block's size, and whether it is the block's mode."""
    population = records.groupby("block", sort=False)["sex"].transform("size")
    modal = race_ethnicity(records) == modal_cells(records)
    stratum: NDArray[np.int64] = 2 * size_class(population) + modal.astype(np.int64)
    return stratum


def _confirmed(
    records: pd.DataFrame,
    people: pd.DataFrame,
    proved: NDArray[np.str_],
    rng: Seed,
    confidence: float,
) -> Mapping[str, NDArray[np.float64]]:
    """Return the share of links that are right in blocks without proof, by stratum.

    A stratum without links has the rate of all modal, or nonmodal, ones.
    """
    keys = [("block", "sex", "age"), ("block", "sex", "agebin")]
    links = match_records(records, people, keys=keys, rng=rng)
    right = race_ethnicity(records)[links.left] == race_ethnicity(people)[links.right]
    looked = ~records["block"].isin(proved).to_numpy()[links.left]
    stratum = _strata(records)[links.left][looked]
    # Links of one block stand and fall together: blocks are the units, each in one class of size.
    block, geoids = pd.factorize(records["block"].to_numpy()[links.left][looked])
    strata = 2 * len(SIZE_CLASSES)
    pairs, at = np.unique(stratum * max(len(geoids), 1) + block, return_inverse=True)
    moments = block_moments(np.bincount(at, right[looked]), np.bincount(at))
    label = pairs // max(len(geoids), 1)
    sums = np.stack([np.bincount(label, row, strata) for row in moments])
    every = np.tile(sums.reshape(len(sums), -1, 2).sum(axis=1), len(SIZE_CLASSES))
    known: NDArray[np.float64] = np.where(sums[0] > 0, sums, every).astype(np.float64)
    lower, upper = moment_intervals(known, confidence=confidence)
    with np.errstate(invalid="ignore"):
        return {"posterior": known[6] / known[1], "lower": lower, "upper": upper}
