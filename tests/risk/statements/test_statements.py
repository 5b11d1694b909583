"""Statements of a reconstruction: priors by removing records, posteriors by counting people."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from oracles import linkage as oracle
from scipy.stats import binomtest

from bayesrisk.census import population_spec, simulate_population
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError
from bayesrisk.mechanisms import Identity, make_mechanism
from bayesrisk.reconstruction import make_attack, match_records, record_form
from bayesrisk.reconstruction.linkage import modal_cells
from bayesrisk.reconstruction.persons import age_bin, person_frame, race_ethnicity
from bayesrisk.release import MechanismSpec
from bayesrisk.risk import Statements
from bayesrisk.risk.linkage.agreement import size_class
from bayesrisk.risk.statements.statements import COLUMNS
from bayesrisk.tables import Workload

BOTH = Workload.named("sf1-block").union(Workload.named("sf1-tract"))


@pytest.fixture(scope="module")
def tract():
    return simulate_population(population_spec("tract", n_blocks=40), rng=4)


@pytest.fixture(scope="module")
def truth(tract):
    frame = tract.persons.to_frame()[["block", "sex", "age", "race", "hisp"]]
    return frame.assign(person=np.arange(len(frame)))


@pytest.fixture(scope="module")
def attacked(tract):
    release = make_mechanism("identity").release(tract, workload=BOTH, rng=1)
    return release, make_attack("reconstruction", scope="tract").run(release)


@pytest.fixture(scope="module")
def rows(attacked):
    return Statements.of(attacked[1], spec=attacked[0].spec, prior_weight=1.0).frame


def test_proved_posteriors_are_shares_of_the_true_people(rows, truth):
    people = truth.assign(agebin=age_bin(truth["age"]))
    place = ["block", "sex", "agebin"]
    share = people.groupby([*place, "race", "hisp"]).size() / people.groupby(place).size()
    proved = rows[rows["status"] == "proved"]
    index = pd.MultiIndex.from_frame(proved[[*place, "race", "hisp"]])
    np.testing.assert_allclose(proved["posterior"], share.loc[index], rtol=1e-14)
    # Over the statements about one target the posteriors add up to one.
    sums = proved.groupby("target")["posterior"].sum()
    np.testing.assert_allclose(sums, 1.0, rtol=1e-12)


def test_priors_are_those_without_the_targets_record(attacked):
    found, weight = attacked[1], 0.7
    rows = Statements.of(found, spec=attacked[0].spec, prior_weight=weight).frame
    frame = found.to_frame()
    for row in rows.sample(60, random_state=1).itertuples():
        mine = (frame["race"] == row.race) & (frame["hisp"] == row.hisp)
        at = mine & (frame["block"] == row.block) & (frame["sex"] == row.sex)
        target = frame.index[at & (frame["agebin"] == row.agebin)][0]
        rest, same = frame.drop(index=target), mine.drop(index=target)
        near = rest["block"] == row.block
        expected = (same[near].sum() + weight * same.mean()) / (near.sum() + weight)
        assert row.prior == pytest.approx(expected, rel=1e-12)
        assert row.people == (at & (frame["agebin"] == row.agebin)).sum()


def test_a_person_alone_has_the_prior_of_the_area(attacked):
    rows = Statements.of(attacked[1], spec=attacked[0].spec, prior_weight=0.0).frame
    alone = rows[rows.groupby("block")["people"].transform("sum") == 1]
    frame = attacked[1].to_frame()
    for row in alone.itertuples():
        same = (frame["race"] == row.race) & (frame["hisp"] == row.hisp)
        assert row.prior == pytest.approx((same.sum() - 1) / (len(frame) - 1))
    assert rows["prior"].between(0.0, 1.0).all()


def test_the_frame_of_every_attack(rows):
    assert tuple(rows)[: len(COLUMNS)] == COLUMNS
    assert set(rows["adversary"]) == {"linker"}
    assert set(rows["attack"]) == {"reconstruction"}
    assert set(rows["protection"]) == {"none"}
    proved = rows[rows["status"] == "proved"]
    np.testing.assert_allclose(proved["ratio"], proved["posterior"] / proved["prior"])
    open_ = rows[rows["status"] == "unverified"]
    assert len(open_)
    assert open_[["posterior", "lower", "upper", "ratio"]].isna().all(axis=None)


def test_the_truth_gives_the_others_a_rate_with_an_interval(attacked, truth):
    found, spec = attacked[1], attacked[0].spec
    rows = Statements.of(found, spec=spec, prior_weight=1.0, truth=truth, rng=1).frame
    assert set(rows["status"]) == {"proved", "estimated"}
    guessed = rows[rows["status"] == "estimated"]
    assert (guessed["lower"] <= guessed["posterior"]).all()
    assert (guessed["posterior"] <= guessed["upper"]).all()
    assert_near_expected_rates(guessed, truth)
    again = Statements.of(found, spec=spec, prior_weight=1.0, truth=truth, rng=1).frame
    pd.testing.assert_frame_equal(rows, again)


def assert_near_expected_rates(guessed, truth):
    """Links within a block, sex and bin are uniform: so many are right on average."""
    place, cell = ["block", "sex", "agebin"], ["race", "hisp"]
    people = truth.assign(agebin=age_bin(truth["age"]))
    theirs = people.groupby([*place, *cell]).size() / people.groupby(place).size()
    index = pd.MultiIndex.from_frame(guessed[[*place, *cell]])
    rows = guessed.assign(chance=theirs.reindex(index, fill_value=0.0).to_numpy())
    assert rows["posterior"].nunique() > 4
    for rate, part in rows.groupby("posterior"):
        # Pairs within a key are a random permutation: the variance of the number that is right is
        # at most twice that of independent chances, 1/4 each.
        error = 6.0 * np.sqrt(0.5 / part["people"].sum())
        assert rate == pytest.approx(np.average(part["chance"], weights=part["people"]), abs=error)


def test_nothing_is_proved_about_people_after_swapping(tract, truth):
    swapping = make_mechanism(
        "swapping", rate="1/4", swap_key=["size"], unique_by=["race"], within="tract",
        unique_within="tract", unit="household",
    )  # fmt: skip
    release = swapping.release(tract, workload=BOTH, rng=2)
    found = make_attack("reconstruction", scope="tract", taken_as_true=True).run(release)
    assert "unique" in found.status  # of the tables; they are not those of the people
    rows = Statements.of(found, spec=release.spec, prior_weight=1.0, truth=truth, rng=1).frame
    assert set(rows["status"]) == {"estimated"}
    assert (rows["posterior"] < 1.0).any()


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"prior_weight": -1.0}, ArgumentError, "prior_weight must be >= 0"),
        ({"spec": "identity"}, ArgumentTypeError, "spec must be a MechanismSpec"),
        ({"found": 3}, ArgumentTypeError, "result must be a Reconstruction"),
        ({"truth": pd.DataFrame()}, ArgumentTypeError, "rng must be given with truth"),
    ],
)
def test_refusals(attacked, change, error, words):
    options = {"found": attacked[1], "spec": Identity().spec, "prior_weight": 1.0}
    options |= change
    found = options.pop("found")
    with pytest.raises(error, match=words):
        Statements.of(found, **options)


def test_intervals_of_estimated_statements_take_blocks_as_units(attacked, truth):
    """Links of one block stand and fall together: as if nothing were proved, by hand."""
    spec = MechanismSpec("swapping", {})
    rows = Statements.of(
        attacked[1], spec=spec, prior_weight=1.0, truth=truth, rng=3, confidence=0.9
    ).frame
    records = record_form(attacked[1])
    records = person_frame(records, columns=("block", "sex", "age", "race", "hisp"), source="r")
    people = truth.assign(agebin=age_bin(truth["age"]))
    keys = [("block", "sex", "age"), ("block", "sex", "agebin")]
    links = match_records(records, people, keys=keys, rng=3)
    left, right = records.iloc[links.left], people.iloc[links.right]
    linked = pd.DataFrame(
        {
            "block": left["block"].to_numpy(),
            "modal": (race_ethnicity(records) == modal_cells(records))[links.left],
            "hit": (left[["race", "hisp"]].to_numpy() == right[["race", "hisp"]].to_numpy()).all(1),
        }
    )
    population = records.groupby("block").size()
    linked["size"] = size_class(population.loc[linked["block"]])
    wider = 0
    for (size, modal), part in linked.groupby(["size", "modal"]):
        by_block = part.groupby("block")["hit"].agg(["sum", "size"])
        expected = oracle.clustered_interval(by_block["sum"], by_block["size"], 0.9)
        mode = pd.Series(modal_cells(records), records["block"]).groupby(level=0).first()
        same = 2 * (rows["race"] - 1) + rows["hisp"] == mode.loc[rows["block"]].to_numpy()
        mine = rows[(size_class(population.loc[rows["block"]]) == size) & (same == modal)]
        assert set(mine["posterior"]) == {part["hit"].mean()}
        np.testing.assert_allclose(mine["lower"].unique(), expected[0], rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(mine["upper"].unique(), expected[1], rtol=1e-8, atol=1e-12)
        naive = binomtest(int(part["hit"].sum()), len(part)).proportion_ci(0.9)
        wider += expected[1] - expected[0] > 1.001 * (naive.high - naive.low)
    assert wider >= 2


def test_places_listed_because_somebody_lives_there_are_said(attacked, rows):
    release, result = attacked
    assert release.spec.places == "public"
    assert "places" not in rows
    spec = replace(release.spec, places="occupied")
    said = Statements.of(result, spec=spec, prior_weight=1.0).frame
    assert (said["places"] == "occupied").all()
    pd.testing.assert_frame_equal(said[rows.columns], rows)
