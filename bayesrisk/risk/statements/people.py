"""The same statements about the same people under every protection.

An attack makes other statements about other people under each protection, so that a share or a
quantile over them compares different questions.  Here the questions are fixed by the truth: for
every person, what does the attack say of what that person is?
"""

import numpy as np
import pandas as pd

from bayesrisk import _validation as check
from bayesrisk.exceptions import DataError
from bayesrisk.reconstruction.linkage.persons import Persons, person_frame
from bayesrisk.risk.linkage.baselines import WITHOUT
from bayesrisk.risk.statements._reconstruction import ABOUT, PLACE, RECORDS, claims_of_records
from bayesrisk.risk.statements.columns import COLUMNS
from bayesrisk.risk.statements.statements import Statements
from bayesrisk.risk.statements.summary import GROUP


def statements_about_people(
    statements: Statements, truth: pd.DataFrame | Persons, *, prior_weight: float
) -> Statements:
    """Return what a reader believes of the truth about every person, under each protection.

    The target is a person of the truth, the statement the person's own race and Hispanic origin.
    The reader takes the reconstructed records at their word.

    - The prior is that of :meth:`Statements.of`, from the true records without the
      person's own; it is the same under every protection.
    - The posterior is the share of the reconstructed records of the person's block, sex and age bin
      that state the truth: 0 where they all say something else.  Status ``proved`` where the block
      is proved, else ``believed``.
    - Where there is no such record nothing is said, and the posterior is the prior: status
      ``unstated``, ratio 1.

    So protections can be compared: rows are the same people and the same questions.  The mean
    posterior is the share of people about whom a record of their place, sex and age bin, drawn at
    random, is right (people about whom nothing is said with their prior).  The reader is not a
    careful one: what swapped or noisy tables state is believed like true counts.  How often such
    statements are true is the rate of confirmation (:meth:`Statements.of`).

    Parameters
    ----------
    statements : Statements
        Of reconstructions (:meth:`Statements.of`), under one protection or several.
    truth : pandas.DataFrame or Persons
        Confidential records ``block, sex, age, race, hisp``.
    prior_weight : float
        Number of records that the composition of the whole area counts for in the prior, >= 0.

    Returns
    -------
    Statements
        With ``block, sex, agebin, race, hisp`` and ``baseline``; for each attack and protection a
        row for each record of the truth, in its order, ``target`` its number from 1, ``people`` 1;
        all of them are correct.  ``lower`` and ``upper`` are the posterior: nothing is estimated.

    Raises
    ------
    DataError
        If a column is missing or a value out of range, or a protection makes a statement twice
        (two releases under one name).

    Examples
    --------
    >>> from bayesrisk.mechanisms import Identity
    >>> from bayesrisk.reconstruction import make_attack
    >>> from bayesrisk.risk import Statements
    >>> from bayesrisk.tables import Records, Schema, Workload
    >>> people = pd.DataFrame({"block": ["500010101001000"] * 3, "sex": 0, "age": [7, 31, 52],
    ...                        "race": [1, 1, 2], "hisp": 0})
    >>> release = Identity().release(Records.from_frame(people, schema=Schema.named("sf1-person")),
    ...                              workload=Workload.named("sf1-block"), rng=1)
    >>> found = make_attack("reconstruction", scope="block").run(release)
    >>> said = Statements.of(found, spec=release.spec, prior_weight=1.0)
    >>> rows = statements_about_people(said, people, prior_weight=1.0)
    >>> rows.frame[["prior", "posterior", "ratio", "status"]].values.tolist()
    [[0.5, 1.0, 2.0, 'proved'], [0.5, 1.0, 2.0, 'proved'], [0.0, 1.0, inf, 'proved']]
    """
    said = check.instance(statements, Statements, "statements").frame
    weight = check.scalar(prior_weight, "prior_weight", lower=0.0)
    for name in ABOUT:
        if name not in said:
            raise DataError(f"statements: must have a column {name!r}")
    people = person_frame(truth, columns=RECORDS, source="truth")
    priors = claims_of_records(people, weight)[[*ABOUT, "statement", "prior"]]
    targets = people[ABOUT].merge(priors, on=ABOUT, how="left", validate="many_to_one")
    targets["target"] = [f"person {number}" for number in range(1, len(targets) + 1)]
    targets["people"] = 1
    parts = []
    for (attack, adversary, protection), rows in said.groupby(GROUP, sort=False):
        twice = rows.duplicated(ABOUT)
        if twice.any():
            raise DataError(
                f"statements: {attack}, {protection}: {rows.loc[twice, 'target'].iloc[0]}, "
                f"{rows.loc[twice, 'statement'].iloc[0]}: is there twice; give each release a "
                "protection of its own name"
            )
        part = targets.merge(_believed(rows), on=PLACE, how="left")
        stated = rows[[*ABOUT, "people"]].rename(columns={"people": "stated"})
        part = part.merge(stated, on=ABOUT, how="left")
        silent = part["records"].isna()
        belief = (part["stated"].fillna(0.0) / part["records"]).where(~silent, part["prior"])
        status = np.where(silent, "unstated", np.where(part["proved"] == 1, "proved", "believed"))
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(silent, 1.0, belief.to_numpy() / part["prior"].to_numpy())
        about = (str(attack), str(adversary), str(protection))
        part["attack"], part["adversary"], part["protection"] = about
        part["baseline"], part["correct"] = WITHOUT, True
        part["posterior"] = part["lower"] = part["upper"] = belief
        part["ratio"], part["status"] = ratio, status
        parts.append(part)
    columns = [*(name for name in COLUMNS if name != "without"), *ABOUT, "baseline"]
    if not parts:
        return Statements(pd.DataFrame(columns=columns))
    return Statements(pd.concat(parts, ignore_index=True)[columns])


def _believed(rows: pd.DataFrame) -> pd.DataFrame:
    """Return for each place, sex and age bin its records, and whether they are proved."""
    proved = rows.assign(proved=rows["status"] == "proved")
    found = proved.groupby(PLACE, sort=False).agg(
        records=("people", "sum"), proved=("proved", "min")
    )
    return found.astype("float64").reset_index()
