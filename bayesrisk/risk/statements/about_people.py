"""The same statements about the same people under every protection."""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from bayesrisk._base import validation as check
from bayesrisk.exceptions import DataError
from bayesrisk.reconstruction.persons import Persons, person_frame
from bayesrisk.risk.linkage.agreement import WITHOUT
from bayesrisk.risk.statements.columns import COLUMNS, risk_ratio

if TYPE_CHECKING:
    pass
from bayesrisk.risk.statements.records import ABOUT, PLACE, RECORDS, claims_of_records
from bayesrisk.risk.statements.statements import GROUP, Statements


def statements_about_people(
    statements: Statements, truth: pd.DataFrame | Persons, *, prior_weight: float
) -> Statements:
    """Return a reader's belief in the truth about every person, under each protection.

    The target is a person of the truth, the statement the person's own race and Hispanic origin.
    The reader takes the reconstructed records at their word:

    - The prior is that of :meth:`Statements.of`, from the true records without the
      person's own; it is the same under every protection.
    - The posterior is the share of the reconstructed records of the person's block, sex and age bin
      that state the truth: 0 where they all say something else.  Status ``proved`` where the block
      is proved, else ``believed``.
    - Where there is no such record the posterior is the prior: status ``unstated``, ratio 1.

    There are ``block, sex, agebin, race, hisp`` and ``baseline``. Each attack and protection has a
    row for each record of the truth, in its order, ``target`` its number from 1, ``people`` 1.

    Parameters
    ----------
    statements : Statements
        Of reconstructions (:meth:`Statements.of`), under one protection or several.
    truth : pandas.DataFrame or Persons
        Confidential records ``block, sex, age, race, hisp``.
    prior_weight : float
        Number of records that the composition of the whole area counts for in the prior, >= 0.

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
    >>> said = Statements.of(found, spec=release.spec, prior_weight=1.0)
    >>> rows = statements_about_people(said, people, prior_weight=1.0)
    >>> rows.frame[["prior", "posterior", "ratio", "status"]].values.tolist()
    [[0.5, 1.0, 2.0, 'proved'], [0.5, 1.0, 2.0, 'proved'], [0.0, 1.0, inf, 'proved']]
    """
    frame = check.instance(statements, Statements, "statements").frame
    frame = check.frame(frame, "statements", ABOUT)
    weight = check.scalar(prior_weight, "prior_weight", lower=0.0)
    people = person_frame(truth, columns=RECORDS, source="truth")
    priors = claims_of_records(people, weight)[[*ABOUT, "statement", "prior"]]
    targets = people[ABOUT].merge(priors, on=ABOUT, how="left", validate="many_to_one")
    targets["target"] = [f"person {number}" for number in range(1, len(targets) + 1)]
    targets["people"] = 1
    parts = []
    for (attack, adversary, protection), rows in frame.groupby(GROUP, sort=False):
        twice = rows.duplicated(ABOUT)
        if twice.any():
            raise DataError(
                f"statements: {attack}, {protection}: {rows.loc[twice, 'target'].iloc[0]}, "
                f"{rows.loc[twice, 'statement'].iloc[0]}: is there twice; give each release a "
                "protection of its own name"
            )
        # Records of each place, sex and age bin, and whether they are proved
        places = rows.assign(proved=rows["status"] == "proved").groupby(PLACE, sort=False)
        believed = places.agg(records=("people", "sum"), proved=("proved", "min")).astype("float64")
        part = targets.merge(believed.reset_index(), on=PLACE, how="left")
        stated = rows[[*ABOUT, "people"]].rename(columns={"people": "stated"})
        part = part.merge(stated, on=ABOUT, how="left")
        silent = part["records"].isna()
        belief = (part["stated"].fillna(0.0) / part["records"]).where(~silent, part["prior"])
        status = np.where(silent, "unstated", np.where(part["proved"] == 1, "proved", "believed"))
        ratio = np.where(silent, 1.0, risk_ratio(belief.to_numpy(), part["prior"].to_numpy()))
        labels = {"attack": str(attack), "adversary": str(adversary), "protection": str(protection)}
        part["posterior"] = part["lower"] = part["upper"] = belief
        part["ratio"], part["status"] = ratio, status
        parts.append(part.assign(**labels, baseline=WITHOUT, correct=True))
    columns = [*(name for name in COLUMNS if name != "without"), *ABOUT, "baseline"]
    whole = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)
    return Statements(whole[columns])
