"""The same statements about the same people under every protection.

An attack makes other statements about other people under each protection, so that a share or a
quantile over them compares different questions.  Here the questions are fixed by the truth: for
every person, what does the attack say of what that person is?
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from bayesrisk import _validation as check
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.reconstruction.linkage import Persons, person_frame
from bayesrisk.risk.intervals import binomial_interval, clustered_interval
from bayesrisk.risk.linkage.agreement import WITHOUT
from bayesrisk.risk.statements.claims import COLUMNS
from bayesrisk.risk.statements.statements import (
    ABOUT,
    GROUP,
    PLACE,
    RECORDS,
    Statements,
    claims_of_records,
)


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

    So protections can be compared: rows are the same people and the same questions.  The reader is
    not a careful one: what swapped or noisy tables state is believed like true counts.

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


# -----------------------------------------------------------------------------
# Residual risk: what an attack finds about people in the data beyond what it finds of others.


_MEASURES = ("correct", "posterior")


def residual_risk(
    statements: Statements,
    control: Statements,
    *,
    measure: str = "correct",
    units: str | None = None,
    confidence: float = 0.95,
) -> pd.DataFrame:
    r"""Return the success of an attack beyond its success on people who are not in the data.

    .. math:: R = \frac{s - c}{1 - c}

    where s is the success on people in the data and c that on a control group: people like them
    whose records the release was made without.  Statistics help against both alike; what is left
    is due to the records being there.

    Parameters
    ----------
    statements : Statements
        About people in the data.
    control : Statements
        Of the same attacks and protections, about people who are not in the data.
    measure : {"correct", "posterior"}, default "correct"
        What success is: the share of statements that are true, those of unknown truth left out; or
        the mean posterior, the success of who draws at random what to say, where statements are
        the truth about given people (:func:`statements_about_people`).
    units : str, optional
        Column of both whose values stand and fall together, such as ``"block"``; by default every
        statement stands for itself.
    confidence : float, default 0.95
        Of the intervals, in (0, 1).

    Returns
    -------
    pandas.DataFrame
        A row for each ``attack``, ``adversary`` and ``protection`` of ``statements``:
        ``statements`` and ``controls`` (how many are judged), ``success`` and ``control`` with
        ``_lower`` and ``_upper``; ``residual`` with ``lower`` and ``upper``.  A residual risk of
        1 is an attack that always succeeds on people in the data and not always on others; 0 or
        less says that being in the data did not help it.  Missing where nothing is judged on one
        side, or the control always succeeds.

    Notes
    -----
    Intervals of success are Clopper and Pearson's, for the effective number of statements where
    there are units.  The residual risk rises with s and falls with c, so that ends taken from
    intervals of both at ``(1 + confidence) / 2`` hold it with at least the confidence, whatever the
    dependence of the two groups.  The control must be drawn like the people in the data.

    References
    ----------
    Giomi, Boenisch, Wehmeyer and Tasnádi (2023, PoPETs 2023(2), 312-328, arXiv:2211.10459), with
    Wilson intervals; Francis and Wagner (2024) measure the gain over a baseline in the same form.

    Examples
    --------
    >>> rows = pd.DataFrame({"attack": "guess", "adversary": "outsider", "protection": "none",
    ...     "target": ["1", "2", "3", "4"], "statement": "a", "people": 1, "prior": 0.5,
    ...     "posterior": 1.0, "status": "believed", "correct": [True, True, True, False]})
    >>> others = rows.assign(correct=[True, False, True, False])
    >>> residual_risk(Statements(rows), Statements(others))["residual"].tolist()
    [0.5]
    """
    own = check.instance(statements, Statements, "statements").frame
    others = check.instance(control, Statements, "control").frame
    check.choice(measure, "measure", _MEASURES)
    sure = check.scalar(confidence, "confidence", lower=0.0, upper=1.0, bounds="()")
    if units is not None:
        check.text(units, "units")
        for who, frame in (("statements", own), ("control", others)):
            if units not in frame:
                raise DataError(f"{who}: must have the column {units!r} of units")
    groups = dict(iter(others.groupby(GROUP, sort=False)))
    lines = []
    for key, rows in own.groupby(GROUP, sort=False):
        if key not in groups:
            raise DataError(f"control: must have statements of {', '.join(map(str, key))}")
        line: dict[str, object] = dict(zip(GROUP, key, strict=True))
        ends, rates = [], []
        for name, number, part in (
            ("success", "statements", rows),
            ("control", "controls", groups[key]),
        ):
            hits, labels = _hits(part, measure, units)
            line[number] = len(hits)
            rates.append(float(hits.mean()) if len(hits) else np.nan)
            line[name] = rates[-1]
            line[f"{name}_lower"], line[f"{name}_upper"] = _interval(hits, labels, sure)
            ends.append(_interval(hits, labels, (1.0 + sure) / 2.0))
        (s_low, s_high), (c_low, c_high) = ends
        line["residual"] = _residual(*rates)
        line["lower"], line["upper"] = _residual(s_low, c_high), _residual(s_high, c_low)
        lines.append(line)
    if not lines:
        raise ArgumentError("statements must be at least one, got none")
    return pd.DataFrame(lines)


def _hits(
    rows: pd.DataFrame, measure: str, units: str | None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return what each judged statement contributes to success, and its unit."""
    judged = rows[rows[measure].notna()]
    labels = None if units is None else judged[units].astype("str").to_numpy()
    return judged[measure].to_numpy(np.float64), labels


def _interval(
    hits: np.ndarray, labels: np.ndarray | None, confidence: float
) -> tuple[float, float]:
    if labels is None:
        low, high = binomial_interval(hits.sum(), len(hits), confidence=confidence)
        return float(low), float(high)
    return clustered_interval(hits, labels, confidence=confidence)


def _residual(success: float, control: float) -> float:
    """Return (s - c) / (1 - c): minus infinity, or missing, where the control always succeeds."""
    if control == 1.0:
        return np.nan if np.isnan(success) or success == 1.0 else -np.inf
    return (success - control) / (1.0 - control)
