"""Statements made from attacks' results: prior, without the own record, and posterior.

An attack gives its statements, its beliefs in them, and the true records that they may be about.
This module finds which are right, and what the attack says without one of these records.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from inspect import signature
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import betaln, gammaln, xlog1py, xlogy

from bayesrisk._base import validation as check
from bayesrisk._base.validation import BoolArray, CodeArray, FloatArray, IntArray
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, DataError, quote
from bayesrisk.inference import RecordPrior
from bayesrisk.interfaces import Attack, AttackResult, Mechanism
from bayesrisk.reconstruction import (
    Claims,
    Reconstruction,
    Status,
    claim_sentences,
    make_attack,
    record_form,
    verify_claims,
)
from bayesrisk.reconstruction.claims.result import several
from bayesrisk.reconstruction.persons import RECORDS, Persons, person_frame
from bayesrisk.release import Release
from bayesrisk.risk.linkage.agreement import WITHOUT
from bayesrisk.risk.linkage.majority import MajorityInference, race_ethnicity_counts
from bayesrisk.risk.statements.records import (
    ABOUT,
    PLACE,
    attributes_asked,
    claims_of_records,
    coarsened,
    in_words,
    unanimous,
)
from bayesrisk.risk.statements.residual import Counterfactual
from bayesrisk.risk.statements.statements import COLUMNS, GROUP, Statements, risk_ratio
from bayesrisk.tables import Microdata, Records
from bayesrisk.tables.microdata import OCCUPIED, read_microdata


class Composition(NamedTuple):
    """Prior of a record: its possible cells and their probabilities."""

    cells: IntArray
    shares: FloatArray
    concentration: float | None
    name: str
    prior: RecordPrior | Records

    @classmethod
    def read(cls, prior: RecordPrior | Records) -> Composition:
        """Return the composition of a prior or of records, limited to cells that occur."""
        if isinstance(prior, Records):
            cells, counts = np.unique(prior.cells(), return_counts=True)
            return cls(cells, counts / counts.sum(), None, "composition", prior)
        shares = prior.shares_of_cells
        cells = np.flatnonzero(shares)
        return cls(cells, shares[cells], prior.concentration, prior.name, prior)

    def codes(self) -> dict[str, IntArray]:
        """Return the codes of the cells."""
        schema = self.prior.schema
        index = schema.indices(self.cells)
        return {name: position + schema.attribute(name).first for name, position in index.items()}


@dataclass(frozen=True)
class AttackStatements:
    """An attack's statements, and a way to run the attack again."""

    attack: str
    adversary: str
    # ``target``, ``statement``, ``people``, ``prior``, ``posterior`` (missing where the attack
    # says nothing), ``certain`` (nothing else fits), then the attack's own columns
    rows: pd.DataFrame
    level: str | None  # of the places whose tables the attack reads together; None for all
    # Numbers of statements and of the records of the truth that each may be about, and whether it
    # is true of them
    subjects: Callable[[Records], tuple[IntArray, IntArray, BoolArray]]
    # What the attack says of some statements, given another release; missing where nothing
    rerun: Callable[[Release, IntArray], FloatArray]


def pairs_that_agree(rows: pd.DataFrame, people: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Return pairs of rows and people that agree on the keys, with both row numbers."""
    left = rows.assign(statement_row=np.arange(len(rows)))
    right = people.assign(record=np.arange(len(people)))
    return left.merge(right, on=keys, suffixes=("", "_true"))


def stated_by_reconstruction(
    result: Reconstruction,
    release: Release,
    prior: Composition,
    *,
    stated: Sequence[str],
    known: Sequence[str] = (),
    attack: Attack | None = None,
) -> AttackStatements:
    """Return statements about the values of reconstructed records with the known attributes."""
    space, level = result.problem.space, result.problem.level
    about_target, about_it = attributes_asked(space.schema, known, stated)
    place, columns = [level, *about_target], [level, *about_target, *about_it]
    groups = record_form(result)[columns].groupby(columns, sort=True).size()
    rows: pd.DataFrame = groups.rename("people").reset_index()
    rows["posterior"] = rows["people"] / rows.groupby(place)["people"].transform("sum")
    cells = pd.DataFrame(coarsened(space, space.schema.indices(prior.cells)))
    law = cells.assign(share=prior.shares)
    part = _composition(rows, law, [*about_target, *about_it])
    whole = _composition(rows, law, about_target)
    labelled = space.schema.labelled(rows[columns])
    rows["target"], rows["statement"] = in_words(labelled, place), in_words(labelled, about_it)
    if not (whole > 0).all():
        raise ArgumentError("prior", f"must allow records like {rows['target'][whole.argmin()]!r}")
    rows["prior"] = part / whole
    rows["certain"] = rows[level].isin(result.geoids[np.array(result.status) == Status.UNIQUE])
    usual = attack or make_attack(
        "reconstruction",
        scope=result.scope,
        nearest=Status.INFEASIBLE not in result.status,
        taken_as_true=True,
    )

    def subjects(truth: Records) -> tuple[IntArray, IntArray, BoolArray]:
        people = pd.DataFrame(coarsened(space, space.schema.indices(truth.cells())))
        people[level] = truth.schema.geography.ancestors(truth.geoids, level)
        pairs = pairs_that_agree(rows[columns], people, place)
        holds = np.all([pairs[n] == pairs[f"{n}_true"] for n in about_it], axis=0)
        return pairs["statement_row"].to_numpy(), pairs["record"].to_numpy(), holds

    def rerun(other: Release, numbers: IntArray) -> FloatArray:
        records = record_form(usual.run(other))[columns]  # type: ignore[arg-type]
        chosen = rows.iloc[numbers]
        in_place, agreeing = (
            chosen[key].merge(records.value_counts(key).reset_index(), how="left", on=key)["count"]
            for key in (place, columns)
        )
        share: FloatArray = (agreeing.fillna(0.0) / in_place).to_numpy(np.float64)
        return share

    scope = (
        None if result.extra or result.scope not in release.tables.workload.levels else result.scope
    )
    return AttackStatements("reconstruction", "linker", rows, scope, subjects, rerun)


def _composition(rows: pd.DataFrame, law: pd.DataFrame, names: list[str]) -> FloatArray:
    """Return the share of a composition that has each row's values."""
    if not names:
        return np.ones(len(rows))
    sums = law.groupby(names)["share"].sum().reset_index()
    return rows[names].merge(sums, on=names, how="left")["share"].fillna(0.0).to_numpy(np.float64)


def stated_by_claims(
    result: Claims, release: Release, prior: Composition, *, readable: str | None = "here"
) -> AttackStatements:
    """Return statements from verified claims about an exact number of records."""
    chosen = result.to_frame(readable=readable)
    chosen = chosen[(chosen["multiplicity"] > 0) & ~several(chosen)].reset_index(drop=True)
    patterns, number = result.coded(chosen), chosen["multiplicity"].to_numpy()
    ranges = "at_least" in chosen
    codes, shares = prior.codes(), prior.shares
    for name, among in result.among.items():
        shares = np.where(np.isin(codes[name], among), shares, 0.0)
    if not shares.any():
        raise ArgumentError("prior", f"must allow records among {dict(result.among)}")
    coded = result.coded(pd.DataFrame({name: codes[name] for name in result.columns}))
    agreeing = np.array([shares[_match(one, coded)].sum() for one in patterns])
    p = np.minimum(agreeing / shares.sum(), 1.0)
    size = result.blocks.set_index(result.level)["records"].reindex(chosen[result.level]).to_numpy()
    a = None if prior.concentration is None else prior.concentration * shares.sum()
    rows = pd.DataFrame(
        {
            "target": chosen[result.level],
            "statement": claim_sentences(result, chosen),
            "people": number,
            "prior": _count_law(number, size, p, a),
            "posterior": 1.0,
            "certain": True,
            "n_columns": chosen["n_columns"],
        }
    )

    def subjects(truth: Records) -> tuple[IntArray, IntArray, BoolArray]:
        inside = np.ones(len(truth), np.bool_)
        for name, among in result.among.items():
            inside &= np.isin(truth.codes(name), among)
        people = result.coded(pd.DataFrame({name: truth.codes(name) for name in result.columns}))
        places = truth.schema.geography.ancestors(truth.geoids, result.level)
        matches = [
            np.flatnonzero(inside & (places == place) & _match(one, people))
            for place, one in zip(chosen[result.level], patterns, strict=True)
        ]
        n_matches = np.array([len(one) for one in matches], np.int64)
        statement = np.repeat(np.arange(len(chosen)), n_matches)
        return (
            statement,
            np.concatenate([*matches, np.zeros(0, np.int64)]),
            (n_matches == number)[statement],
        )

    def rerun(other: Release, numbers: IntArray) -> FloatArray:
        """Return each claim's probability of one more record, given what is verified without it."""
        statements = chosen.iloc[numbers][[result.level, *result.columns]]
        decided = [
            verify_claims(
                other.tables,
                statements.assign(multiplicity=number[numbers] - less),
                level=result.level,
                columns=result.columns,
                among=result.among,
                taken_as_true=not ranges,
            ).claims["status"]
            for less in (1, 0)
        ]
        if len(decided[0]) < len(numbers):  # no records have such counts
            return np.full(len(numbers), np.nan)
        fewer, equal = (one.to_numpy() == Status.VERIFIED for one in decided)
        m, n, q = number[numbers], size[numbers] - 1, p[numbers]
        one = q if a is None else (a * q + m - 1) / (a + n)
        more = q if a is None else (a * q + m) / (a + n)
        return np.select([fewer, equal], [one, 1.0 - more], np.nan)

    return AttackStatements("claims", "outsider", rows, result.level, subjects, rerun)


_LEAST = 1e-300  # of a parameter of a beta law


def _match(pattern: CodeArray, coded: CodeArray) -> BoolArray:
    """Return a mask of the coded records that a pattern describes; -1 means any code."""
    fits: BoolArray = np.all((pattern == -1) | (coded == pattern), axis=1)
    return fits


def _count_law(m: IntArray, n: IntArray, p: FloatArray, a: float | None) -> FloatArray:
    """Return P(m of n records have a property of share p): binomial, or beta-binomial."""
    log = gammaln(n + 1.0) - gammaln(m + 1.0) - gammaln(n - m + 1.0)
    if a is None:
        log = log + xlogy(m, p) + xlog1py(n - m, -p)
    else:  # a share of 0 or 1 is the limit of others
        with_it, rest = a * p + _LEAST, a * (1.0 - p) + _LEAST
        log = log + betaln(m + with_it, n - m + rest) - betaln(with_it, rest)
    return np.asarray(np.exp(log), np.float64)


def stated_by_majority(
    result: MajorityInference,
    release: Release,
    prior: Composition,
    *,
    name: str | None = None,
    level: str = "block",
) -> AttackStatements:
    """Return statements that people have the commonest race and Hispanic origin of their place."""
    release_name = result.releases[0] if name is None and len(result.releases) == 1 else name
    check.choice(release_name, "name", result.releases)
    counts = race_ethnicity_counts(release.tables, level=level)
    blocks = result.blocks[result.blocks["release"] == release_name].reset_index(drop=True)
    cell = pd.to_numeric(blocks["majority"], errors="coerce").to_numpy(np.float64)
    if not np.isin(cell, counts.columns).all():
        raise ArgumentError("result", "must be of counts of race by Hispanic origin")
    majority = cell.astype(np.int64)
    geoids = blocks["block"].astype("str").to_numpy()
    codes = prior.codes()
    law = np.bincount(
        2 * (codes["race"] - 1) + codes["hisp"], prior.shares, minlength=counts.shape[1]
    )

    def share(table: pd.DataFrame, numbers: IntArray) -> FloatArray:
        people = table.reindex(geoids[numbers]).clip(lower=0).to_numpy(np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            part = people[np.arange(len(numbers)), majority[numbers]] / people.sum(axis=1)
        return np.asarray(part, np.float64)

    posterior = share(counts, np.arange(len(blocks)))
    rows = pd.DataFrame(
        {
            "target": [f"anybody in {level} {geoid}" for geoid in geoids],
            "statement": [f"race {one // 2 + 1} hisp {one % 2}" for one in majority],
            "people": blocks["population"],
            "prior": law[majority],
            "posterior": posterior,
            "certain": posterior == 1.0,
        }
    )

    def subjects(truth: Records) -> tuple[IntArray, IntArray, BoolArray]:
        cells = 2 * (truth.codes("race") - 1) + truth.codes("hisp")
        places = truth.schema.geography.ancestors(truth.geoids, level)
        homes, people = (pd.DataFrame({"place": codes}) for codes in (geoids, places))
        pairs = pairs_that_agree(homes, people, ["place"])
        row, record = pairs["statement_row"].to_numpy(), pairs["record"].to_numpy()
        return row, record, cells[record] == majority[row]

    def rerun(other: Release, numbers: IntArray) -> FloatArray:
        return share(race_ethnicity_counts(other.tables, level=level), numbers)

    return AttackStatements("majority", "outsider", rows, level, subjects, rerun)


def result_statements(
    result: AttackResult,
    *,
    release: Release,
    prior: RecordPrior | Records,
    truth: Microdata | Records | None,
    without: bool,
    mechanism: Mechanism | None,
    rng: int | None,
    options: Mapping[str, Any],
) -> Statements:
    """Return the statements of a result; see :meth:`AttackResult.statements`."""
    check.instance(release, Release, "release")
    if not isinstance(prior, Records):
        check.instance(prior, RecordPrior, "prior")
    check.flag(without, "without")
    if prior.schema != release.tables.workload.schema:
        raise ArgumentError(
            f"prior must be of schema {release.tables.workload.schema.name!r}, "
            f"got {quote(prior.schema.name)}"
        )
    if not result.stated_by:
        raise ArgumentTypeError("statements", f"must be written by {type(result).__name__} itself")
    state: Callable[..., AttackStatements] = EntryPoint("", result.stated_by, "").load()
    try:
        signature(state).bind(result, release, prior, **options)
    except TypeError as error:
        names = ", ".join(list(signature(state).parameters)[3:])
        raise ArgumentTypeError(
            "options", f"must be those of the attack ({names}): {error}"
        ) from error
    composition = Composition.read(prior)
    stated = state(result, release, composition, **options)
    rows = stated.rows
    silent = rows["posterior"].isna()
    proved = rows["certain"] & ~silent & release.spec.true_counts
    rows = rows.assign(
        attack=stated.attack,
        adversary=stated.adversary,
        protection=release.spec.mechanism,
        posterior=rows["posterior"].where(~silent, rows["prior"]),
        status=np.select([silent, proved], ["unstated", "proved"], "believed"),
        baseline=composition.name,
    ).drop(columns="certain")
    if truth is not None:
        other = Counterfactual(release, read_microdata(truth, "truth"), mechanism, rng)
        statement, record, holds = stated.subjects(other.records)
        rows["correct"] = unanimous(
            np.bincount(statement, minlength=len(rows)).astype(np.float64),
            np.bincount(statement, holds, minlength=len(rows)).astype(np.float64),
        )
        if without and other.possible:
            rows["without"] = _without(stated, other, statement, record)
    places = {"places": OCCUPIED} if release.spec.places == OCCUPIED else {}
    return Statements(rows.assign(**places))


def _without(
    stated: AttackStatements, other: Counterfactual, statement: IntArray, record: IntArray
) -> FloatArray:
    """Return each statement's mean belief when one of its people is left out."""
    prior = stated.rows["prior"].to_numpy(np.float64)
    total, people = np.zeros(prior.size), np.zeros(prior.size)
    pairs = pd.DataFrame({"statement": statement, "record": record})
    pairs["group"] = other.groups(record)
    for _, part in pairs.groupby("group", sort=False):
        # People with one record leave the same release behind: the attack is asked once.
        index, times = np.unique(part["statement"].to_numpy(), return_counts=True)
        released, belief = other.without(int(part["record"].iloc[0]), stated.level), None
        if all(len(places) for places in released.tables.geoids.values()):
            with contextlib.suppress(DataError):  # counts that cannot be of anybody
                belief = stated.rerun(released, index)
        belief = np.full(index.size, np.nan) if belief is None else belief
        total[index] += times * np.where(np.isnan(belief), prior[index], belief)
        people[index] += times
    with np.errstate(divide="ignore", invalid="ignore"):
        return total / people


def statements_about_people(
    statements: Statements, truth: pd.DataFrame | Persons, *, prior_weight: float
) -> Statements:
    """Return a reader's belief in the truth about every person, under each protection.

    The target is a person of the truth. The statement is the person's own race and Hispanic origin.
    The reader takes the reconstructed records at their word:

    - The prior is that of :meth:`Statements.of`, from the true records without the person's own; it
      is the same under every protection.
    - The posterior is the share of the reconstructed records of the person's block, sex and age bin
      that state the truth; 0 if all state something else. Its status is ``proved`` if the block is
      proved, else ``believed``.
    - Without such a record the posterior is the prior: status ``unstated``, ratio 1.

    Columns include ``block, sex, agebin, race, hisp`` and ``baseline``. Each attack and protection
    has a row for each record of the truth, in its order. ``target`` is its number from 1, and
    ``people`` is 1.

    Parameters
    ----------
    statements : Statements
        Statements of reconstructions (:meth:`Statements.of`), under one or several protections.
    truth : pandas.DataFrame or Persons
        Confidential records ``block, sex, age, race, hisp``.
    prior_weight : float
        Number of records for which the whole area's composition counts in the prior, >= 0.

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
