"""The same statements about the same people: against loops, and what protections may not do."""

import numpy as np
import pytest
from oracles import linkage as oracle

from bayesrisk.census import population_spec, simulate_population
from bayesrisk.mechanisms import make_mechanism
from bayesrisk.reconstruction import make_attack
from bayesrisk.risk import Statements, statements_about_people
from bayesrisk.tables import Workload

SWAPPING = {
    "rate": "1/5", "swap_key": ["size", "adults"], "unique_by": ["race", "age"], "within": "tract",
    "unique_within": "tract", "unit": "household",
}  # fmt: skip


def attacked(seed):
    """True people, and what is stated about them after no protection, swapping and noise."""
    tract = simulate_population(population_spec("tract", n_blocks=25), rng=seed)
    truth = tract.persons.to_frame()[["block", "sex", "age", "race", "hisp"]]
    statements, records = [], {}
    measured = Workload.named("sf1-block").select(tables=["P8", "P9", "P12"])
    noise = {"rho": "1", "measurements": measured.to_dict(), "invariants": [("block", "P1")]}
    for name, options in (("none", {}), ("swapping", SWAPPING), ("topdown", noise)):
        release = make_mechanism(name, **options).release(
            tract, workload=Workload.named("sf1-block"), rng=1
        )
        attack = make_attack("reconstruction", scope="block", taken_as_true=True)
        found = attack.run(release)
        records[name] = found.to_frame()
        statements.append(
            Statements.of(found, spec=release.spec, prior_weight=1.0, truth=truth, rng=1)
        )
    return truth, Statements.concat(statements), records


@pytest.fixture(scope="module")
def case():
    return attacked(3)


def test_beliefs_are_shares_of_the_records_of_the_persons_kind(case):
    truth, statements, records = case
    rows = statements_about_people(statements, truth, prior_weight=0.7).frame
    assert rows["correct"].all()
    assert rows["people"].eq(1).all()
    n = len(truth)
    people = truth.assign(agebin=[oracle.age_bin(age) for age in truth["age"]])
    rng = np.random.default_rng(1)
    for number, (name, found) in enumerate(records.items()):
        part = rows.iloc[number * n : (number + 1) * n]
        assert set(part["protection"]) == {name}
        assert part["target"].tolist() == [f"person {i + 1}" for i in range(n)]
        for i in rng.choice(n, 60, replace=False):
            person, row = people.iloc[i], part.iloc[i]
            rest = truth.drop(index=truth.index[i])
            alike = (rest["race"] == person.race) & (rest["hisp"] == person.hisp)
            near = rest["block"] == person.block
            prior = (alike[near].sum() + 0.7 * alike.mean()) / (near.sum() + 0.7)
            assert row["prior"] == pytest.approx(prior, rel=1e-12)
            at = found[(found["block"] == person.block) & (found["sex"] == person.sex)]
            at = at[at["agebin"] == person.agebin]
            if at.empty:
                assert (row["status"], row["posterior"], row["ratio"]) == ("unstated", prior, 1.0)
                continue
            right = ((at["race"] == person.race) & (at["hisp"] == person.hisp)).mean()
            assert row["posterior"] == row["lower"] == row["upper"] == right
            assert row["status"] in ("proved", "believed")
            if prior > 0:
                assert row["ratio"] == pytest.approx(right / prior, rel=1e-12)
    assert set(rows.loc[rows["protection"] != "none", "status"]) == {"believed", "unstated"}
    proved = rows[rows["status"] == "proved"]
    assert len(proved) > 0.5 * n


def test_protections_are_compared_on_the_same_people(case):
    """Over what each attack happens to state swapping looks worse than nothing; here it cannot."""
    truth, statements, _ = case
    rows = statements_about_people(statements, truth, prior_weight=1.0)
    summary = rows.summary().set_index("protection")
    assert summary["comparable"].all()
    assert summary["statements"].nunique() == summary["prior"].round(12).nunique() == 1
    assert not statements.summary()["comparable"].any()
    for name in ("posterior", "at_least_10"):
        assert summary.loc["none", name] > summary.loc["swapping", name]
        assert summary.loc["swapping", name] > summary.loc["topdown", name]
    # The pooled rates, a negative control: more statements far above their prior after swapping.
    stated = statements.frame
    pooled = stated.assign(strong=stated["people"] * (stated["ratio"] > 10))
    strong = pooled.groupby("protection")["strong"].sum()
    assert strong["swapping"] > strong["none"]


def test_a_person_of_whom_nobody_speaks_keeps_the_prior(case):
    truth, statements, _ = case
    gone = statements.frame["block"] == truth["block"].iloc[0]
    fewer = Statements(statements.frame[~gone])
    rows = statements_about_people(fewer, truth, prior_weight=1.0).frame
    mine = rows[rows["block"] == truth["block"].iloc[0]]
    assert set(mine["status"]) == {"unstated"}
    assert (mine["posterior"] == mine["prior"]).all()
    assert (mine["ratio"] == 1.0).all()
    none = Statements(statements.frame.iloc[:0])
    nothing = statements_about_people(none, truth, prior_weight=1.0)
    assert len(nothing) == 0
    assert list(nothing.frame) == list(rows)
