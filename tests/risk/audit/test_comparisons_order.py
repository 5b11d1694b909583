"""Nothing is ranked against what can be made from it: many towns, by beliefs that are listed."""

import functools
import itertools

import numpy as np
import pandas as pd
import pytest
from towns import draw_town, targets_of

from bayesrisk.mechanisms import make_mechanism
from bayesrisk.risk.audit import audit_measures, compare
from bayesrisk.risk.audit.constructions import constructions
from bayesrisk.tables import Attribute, Geography, Schema, Table, Workload

PEOPLE = Schema("people", (Attribute("race", 4),), Geography("towns", ("block",), (3,)))
WORK = Workload(PEOPLE, {("block", "R"): Table("R", tuple("abcd"), {"race": np.eye(4, dtype=int)})})
RANGES = ([0, 1, 2, 3, 4, 6, 10, 20], [0, 1, 3, 6, 10, 20], [0, 1, 6, 20], [0, 6, 20])
PAIRS, ONE = ((0, 1), (2, 3)), ((0, 1, 2, 3),)


def recipe(setting):
    """Return the mechanism of a setting of the oracle."""
    kind, *more = setting
    if kind == "both":
        return {"mechanism": "composition", "parameters": {
            "releases": {f"r{i}": recipe(one) for i, one in enumerate(more)}}}  # fmt: skip
    shares = {"sensitivity": "add-remove", "level_shares": {"block": 1}, "table_shares": {"R": 1}}
    name, parameters = {
        "none": lambda: ("identity", {}),
        "ranges": lambda: ("ranges", {"edges": list(more[0])}),
        "threshold": lambda: ("threshold", {"least": more[0]}),
        "nearest": lambda: ("rounding", {"base": more[0], "method": "nearest"}),
        "random": lambda: ("rounding", {"base": more[0], "method": "random"}),
        "gauss": lambda: ("discrete-gaussian", shares | {"rho": f"1/{2 * more[0]}"}),
        "laplace": lambda: ("discrete-laplace", shares | {"epsilon": f"1/{more[0]}"}),
        "merged": lambda: ("recode", {"groups": {"race": [list(g) for g in more[0]]}}),
    }[kind]()
    return {"mechanism": name, "parameters": parameters}


@functools.cache
def spec(setting):
    made = recipe(setting)
    return make_mechanism(made["mechanism"], **made["parameters"]).spec


NONE = ("none",)
FINE, MIDDLE, COARSE, COARSEST = (("ranges", tuple(edges)) for edges in RANGES)
#: Fifteen pairs: the second is made from the first.
MADE = [
    (NONE, FINE), (FINE, MIDDLE), (MIDDLE, COARSE), (COARSE, COARSEST),
    (NONE, ("threshold", 3)), (("threshold", 3), ("threshold", 5)),
    (("threshold", 5), ("threshold", 9)), (("threshold", 3), COARSEST),
    (("nearest", 3), ("nearest", 9)), (("random", 2), ("random", 6)),
    (NONE, ("merged", PAIRS)), (("merged", PAIRS), ("merged", ONE)),
    (("gauss", 4), ("gauss", 16)), (("laplace", 1), ("laplace", 3)),
    (("both", ("gauss", 4), FINE), ("both", ("gauss", 16), COARSE)),
]  # fmt: skip


@functools.cache
def town(number):
    return draw_town(np.random.default_rng(number))


@functools.cache
def targets(number, setting):
    return targets_of(town(number), setting, str(setting), seed=number)


def pair(number, clear, faint, **about):
    both = pd.concat([targets(number, clear), targets(number, faint)], ignore_index=True)
    return compare(both, **about).iloc[0]


def check_pairs(number, some):
    for clear, faint in some:
        names = str(clear), str(faint)
        made = constructions(dict(zip(names, map(spec, (clear, faint)), strict=True)), WORK)
        assert made == [names]
        assert pair(number, clear, faint, constructions=made)["verdict"] == "no more"
        # Even where nothing is known of how it is made: no verdict against it.
        assert pair(number, clear, faint)["verdict"] != "more", (number, names)


def test_no_pair_is_ranked_against_what_is_made_from_it():
    for number in range(3):
        check_pairs(number, MADE[number::3])


@pytest.mark.slow
@pytest.mark.parametrize("number", range(20))
def test_no_pair_of_many_towns_is_ranked_against_what_is_made_from_it(number):
    check_pairs(number, MADE)


def test_gains_would_rank_against_what_is_made():
    """Negative control: gains rise where a table is made coarser, in a pair of thirteen here."""
    wrong = order = pairs = 0
    ladders = [NONE, FINE, MIDDLE, COARSE, COARSEST], [NONE, *(("threshold", n) for n in (3, 5, 9))]
    for number, ladder in itertools.product(range(12), ladders):
        every = pd.concat([targets(number, one) for one in ladder], ignore_index=True)
        measures = audit_measures(every).query("group == 'everybody'")
        gain, answers = (measures[name].tolist() for name in ("gain", "answers_posterior"))
        for clear, faint in itertools.combinations(range(len(ladder)), 2):
            wrong += gain[faint] > gain[clear]
            order += answers[faint] < answers[clear]
            pairs += 1
    assert (wrong, order, pairs) == (15, 0, 192)


@pytest.mark.slow
def test_equal_settings_with_draws_of_their_own_are_told_apart_in_one_of_twenty_at_most():
    """By construction they are equal; here nothing is known of it, and 200 audits are independent.

    Each has the releases of other seeds, and every verdict or difference counts.
    """
    told = 0
    for number in range(200):
        setting = (("gauss", 4), ("random", 3), ("laplace", 2))[number % 3]
        one, other = (
            targets_of(town(number % 10), setting, name, seed=2 * number + i + 1000, releases=6)
            for i, name in enumerate("ab")
        )
        row = compare(pd.concat([one, other], ignore_index=True)).iloc[0]
        apart = row["verdict"] != "cannot tell"
        for count in ("doubled", "proved"):
            apart |= row[f"{count}_lower"] > 0.0 or row[f"{count}_upper"] < 0.0
        told += bool(apart)
    assert told <= 10


@pytest.mark.slow
def test_no_weaker_setting_of_one_mechanism_is_surely_safer():
    """Over 50 seeds, without what is known by construction; the stronger one mostly is."""
    right = 0
    for number in range(50):
        for weak, strong in ((("gauss", 4), ("gauss", 9)), (("random", 3), ("random", 5))):
            row = pair(number, weak, strong)
            assert row["verdict"] != "more"
            right += row["verdict"] == "less"
    assert right > 60


@pytest.mark.slow
def test_intervals_of_answers_cover_their_long_run():
    """Of this population: audits of eight releases each, beside the mean of all of them."""
    setting, audits = ("gauss", 4), 100
    inside = {"answers_posterior": 0, "own_factor": 0, "doubled": 0}
    for number in range(4):
        every = targets_of(town(number), setting, "p", releases=8 * audits, seed=77)
        long_run = audit_measures(every).iloc[0]
        for audit in range(audits):
            mine = every[every["release"] // 8 == audit]
            row = audit_measures(mine).iloc[0]
            for name in inside:
                low, high = row[f"{name}_lower"], row[f"{name}_upper"]
                inside[name] += not (low > long_run[name] or high < long_run[name])
    # 93 to 97 %, and 3 standard errors of so many audits.
    spare = 3.0 * np.sqrt(0.05 * 0.95 / (4 * audits))
    for name, number in inside.items():
        assert 0.93 - spare < number / (4 * audits) < 0.97 + spare, name


@pytest.mark.slow
def test_intervals_for_populations_like_it_cover():
    """Towns of the same law: the mean over many of them lies in the interval of each."""
    audits = 300
    rows = []
    for number in range(audits):
        people = draw_town(np.random.default_rng(5000 + number))
        rows.append(audit_measures(targets_of(people, COARSE, "p")).iloc[0])
    found = pd.DataFrame(rows)
    score, people = np.log(found["answers_posterior"].to_numpy(float)), found["targets"].to_numpy()
    long_run = np.exp(np.average(score, weights=people))
    low, high = (found[f"answers_posterior_like_{end}"].to_numpy() for end in ("lower", "upper"))
    inside = (low <= long_run) & (long_run <= high)
    spare = 3.0 * np.sqrt(0.05 * 0.95 / audits)
    assert 0.93 - spare < inside.mean() < 0.97 + spare
