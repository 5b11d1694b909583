"""What an attack claims about people, each claim with its prior and posterior.

One form for every attack: a row says what is claimed of whom, what the same adversary would have
inferred without the target's record (prior), what the attack makes of it (posterior), and whether
that is proved or estimated.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayesrisk import _validation as check
from bayesrisk._random import Seed
from bayesrisk.exceptions import ArgumentTypeError
from bayesrisk.reconstruction import Reconstruction, match_records, modal_cells, record_form
from bayesrisk.reconstruction.linkage.persons import CELLS, person_frame, race_ethnicity
from bayesrisk.release import MechanismSpec
from bayesrisk.risk.intervals import block_moments, moment_intervals
from bayesrisk.risk.linkage.baselines import WITHOUT
from bayesrisk.risk.linkage.target_groups import SIZE_CLASSES, size_class

__all__ = [
    "STATEMENT_COLUMNS",
    "STATEMENT_STATUS",
    "claims_of_records",
    "comparable_statements",
    "reconstruction_statements",
]

#: Columns that the statements of every attack have.
STATEMENT_COLUMNS = (
    "attack",
    "protection",
    "target",
    "statement",
    "people",
    "prior",
    "posterior",
    "lower",
    "upper",
    "ratio",
    "status",
)
#: What a posterior is: proved, an estimate, not there; of statements about given people also the
#: belief of who takes records at their word, or the prior because nothing was stated.
STATEMENT_STATUS = ("proved", "estimated", "unverified", "believed", "unstated")
_PLACE = ["block", "sex", "agebin"]
_RECORDS = ("block", "sex", "age", "race", "hisp")


def reconstruction_statements(
    found: Reconstruction,
    *,
    spec: MechanismSpec,
    prior_weight: float,
    truth: pd.DataFrame | None = None,
    rng: Seed | None = None,
    level: float = 0.95,
) -> pd.DataFrame:
    """Return what a reconstruction says about people known by block, sex and age.

    The target is a person known to live in a block, with sex and age bin; the statement is a race
    and Hispanic origin that a reconstructed record of that block, sex and bin has.

    - The prior is the share of the statement among the block's other records: with ``n`` records,
      ``c`` of them as stated, ``(c - 1 + w s) / (n - 1 + w)``, where ``s`` is the share among all
      other records and ``w`` the ``prior_weight``: what a proportional guesser infers who never
      sees the target's record.
    - Where the block is proved unique and the published counts are true ones, the posterior is the
      share among the records of the block, sex and bin: exactly 1 where they all agree.
    - Elsewhere it is the rate at which such links are confirmed, in blocks without proof: by class
      of block size, and apart for what most records of the block are and for the rest.  It is an
      estimate, and needs the truth.

    A rate of confirmation is right on average over the statements of its kind.  It is not what an
    adversary should believe of one of them: a rare race and a common one that are both not the
    block's mode have the same rate and priors far apart, and their ratios differ for that reason
    alone.  Under another protection the statements are others, about other people: to compare
    protections, ask the same of the same people (:func:`statements_about_people`).

    Parameters
    ----------
    found : Reconstruction
        Of person tables.
    spec : MechanismSpec
        How the tables were protected.  After swapping or noise nothing is proved about people,
        whatever is proved about the tables.
    prior_weight : float
        Number of records that the composition of the whole area counts for in the prior, >= 0.
    truth : pandas.DataFrame, optional
        Confidential records ``block, sex, age, race, hisp``, for rates of confirmation.
    rng : Generator or int, optional
        Source of the choices among equal records; needed with ``truth``.
    level : float, default 0.95
        Level of the intervals of estimated posteriors.

    Returns
    -------
    pandas.DataFrame
        ``STATEMENT_COLUMNS``, ``block, sex, agebin, race, hisp``, and ``baseline``, which says
        that the prior leaves the target's own record out.  ``people`` is the number of
        records with the statement, ``status`` one of ``proved``, ``estimated`` and ``unverified``
        (no truth was given, or no link of the kind was found: no posterior).  ``lower`` and
        ``upper`` bound estimated posteriors, with blocks, not people, as the independent units.

    Raises
    ------
    ArgumentError
        If a number is out of range.
    ArgumentTypeError
        If ``found`` or ``spec`` has the wrong type, or ``truth`` comes without ``rng``.
    DataError
        If the truth lacks a column or has a value out of range.

    Examples
    --------
    >>> from bayesrisk.mechanisms import Identity
    >>> from bayesrisk.reconstruction import make_attack
    >>> from bayesrisk.tables import Records, Schema, Workload
    >>> people = pd.DataFrame({"block": ["500010101001000"] * 3, "sex": 0, "age": [7, 31, 52],
    ...                        "race": [1, 1, 2], "hisp": 0})
    >>> release = Identity().release(Records.from_frame(people, schema=Schema.named("sf1-person")),
    ...                              workload=Workload.named("sf1-block"), rng=1)
    >>> found = make_attack("reconstruction", scope="block").run(release)
    >>> rows = reconstruction_statements(found, spec=release.spec, prior_weight=1.0)
    >>> rows[["race", "prior", "posterior", "status"]].values.tolist()[-1]
    [2, 0.0, 1.0, 'proved']
    """
    if not isinstance(found, Reconstruction):
        raise ArgumentTypeError(f"found must be a Reconstruction, got {type(found).__name__}")
    if not isinstance(spec, MechanismSpec):
        raise ArgumentTypeError(f"spec must be a MechanismSpec, got {type(spec).__name__}")
    if truth is not None and rng is None:
        raise ArgumentTypeError("rng must be given with truth, got None")
    weight = check.scalar(prior_weight, "prior_weight", lower=0.0)
    records = person_frame(record_form(found), columns=_RECORDS, source="records")
    rows = claims_of_records(records, weight)
    exact = spec.true_counts
    unique = found.geoids[np.array(found.status) == "unique"] if exact else np.array([], str)
    rows["status"] = np.where(rows["block"].isin(unique), "proved", "unverified")
    proved = rows["status"] == "proved"
    rows["posterior"] = (rows["people"] / rows.pop("alike")).where(proved)
    rows["lower"] = rows["upper"] = rows["posterior"]
    if truth is not None and rng is not None and not proved.all():
        rates = _confirmed(records, truth, unique, rng, level)
        for name in ("posterior", "lower", "upper"):
            rows[name] = rows[name].where(proved, rates[name][rows["stratum"]])
        # Nothing of the kind was linked anywhere: there is no rate.
        rows.loc[~proved & rows["posterior"].notna(), "status"] = "estimated"
    with np.errstate(divide="ignore", invalid="ignore"):
        rows["ratio"] = rows["posterior"].to_numpy() / rows["prior"].to_numpy()
    about = {"attack": "reconstruction", "protection": spec.mechanism, "baseline": WITHOUT}
    return rows.assign(**about)[[*STATEMENT_COLUMNS, *_PLACE, "race", "hisp", "baseline"]]


def claims_of_records(records: pd.DataFrame, weight: float) -> pd.DataFrame:
    """Return the different claims, how many records make each, and their priors."""
    records = records.assign(cell=race_ethnicity(records), stratum=_strata(records))
    keys = [*_PLACE, "cell", "stratum"]  # records of one cell in one block share their stratum
    rows = records.groupby(keys, sort=True).size().rename("people").reset_index()
    rows["alike"] = rows.groupby(_PLACE)["people"].transform("sum")
    population = rows.groupby("block")["people"].transform("sum").to_numpy(float)
    same = rows.groupby(["block", "cell"])["people"].transform("sum").to_numpy(float)
    others = population - 1.0
    everywhere = np.bincount(records["cell"], minlength=CELLS)[rows["cell"]]
    share = (everywhere - 1.0) / max(len(records) - 1, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        prior = (same - 1.0 + weight * share) / (others + weight)
    rows["prior"] = np.where(others + weight > 0, prior, share)
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
    truth: pd.DataFrame,
    proved: NDArray[np.str_],
    rng: Seed,
    level: float,
) -> Mapping[str, NDArray[np.float64]]:
    """Return the share of links that are right in blocks without proof, by stratum.

    A stratum without links has the rate of all modal, or nonmodal, ones.
    """
    people = person_frame(truth, columns=_RECORDS, source="truth")
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
    lower, upper = moment_intervals(known, level=level)
    with np.errstate(invalid="ignore"):
        return {"posterior": known[6] / known[1], "lower": lower, "upper": upper}


def comparable_statements(statements: pd.DataFrame) -> dict[str, bool]:
    """Return for each attack whether all of its protections have the same statements.

    The same ones are about the same targets; an attack with a single protection has them.
    """
    found = {}
    for attack, rows in statements.groupby("attack", sort=False):
        asked = rows.groupby(["target", "statement"], sort=False).ngroup().to_numpy()
        sets = [np.sort(asked[at]) for at in rows.groupby("protection").indices.values()]
        found[str(attack)] = all(np.array_equal(sets[0], other) for other in sets[1:])
    return found
