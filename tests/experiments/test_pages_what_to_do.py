"""What to do after a report: each branch of each report, and commands that exist."""

import functools
import math
import re
import shlex
from types import SimpleNamespace

import numpy as np
import pytest
from first_screen import errors_of, frames_of, statements_of
from typer.testing import CliRunner

from bayesrisk.census.studies import measurement_counts, measurement_risk
from bayesrisk.census.studies.linkage_words import link_advice, occupancy_advice
from bayesrisk.census.studies.occupancy_results import attack_advice as household_advice
from bayesrisk.cli.app import app
from bayesrisk.experiments.audit.screen import audit_advice, first_screen
from bayesrisk.experiments.pages import what_to_do
from bayesrisk.experiments.plan_report import _advice as plan_advice
from bayesrisk.experiments.release_report import release_advice
from bayesrisk.experiments.sweep_report import Average
from bayesrisk.experiments.table_reports import attack_advice, claims_advice, proof_advice

STATES = {
    name: str(what_to_do(**{name: "@"})[1]).partition("@")[0]
    for name in ("finding", "undecided", "basis")
}


@functools.cache
def help_of(*names):
    done = CliRunner().invoke(app, [*names, "--help"])
    assert done.exit_code == 0, done.output
    return done.output


def told(part):
    """Return the state and the numbers of a paragraph, whose commands exist."""
    kind, text = part
    assert kind == "advice"
    (state,) = (name for name, start in STATES.items() if text.startswith(start))
    for line in re.findall("`(bayesrisk .*?)`", text):
        _, *words = shlex.split(line)
        names = re.match("census( occupancy)? [a-z]+|[a-z]+", " ".join(words))[0].split()
        options = {word for word in words if word.startswith("--")}
        assert options <= {*re.findall(r"--[a-z-]+", help_of(*names))}, line
    said = re.sub("`.*?`", "", text)
    assert "protects" not in said
    assert ".." not in said
    assert "True" not in said
    return state, [int(n.replace(",", "")) for n in re.findall(r"\d[\d,]*(?!\.?\d)", said)]


def test_one_rule_has_three_states_that_differ():
    assert len({*STATES.values()}) == 3
    assert told(what_to_do("5 things", undecided="6", basis="7", step="8.")) == ("finding", [5, 8])
    assert told(what_to_do(undecided="6 things", basis="7")) == ("undecided", [6])
    assert told(what_to_do(basis="7 things Dr.")) == ("basis", [7])
    assert what_to_do(undecided=np.True_) == what_to_do(undecided=True)
    assert told(what_to_do(undecided=np.False_, basis="7")) == ("basis", [7])


# Published tables.


def attacked(recovered=0, single=0, weaker=0, conflict=False, ended=True):
    files = ["my tables.csv"]
    return attack_advice(recovered, single, weaker, files, conflict=conflict, ended=ended)


@pytest.mark.parametrize(
    ("facts", "state", "said", "limit"),
    [
        ({"recovered": 2}, "finding", [2], "recovered=0"),
        ({"single": 1}, "finding", [1], "proved=0"),
        ({"recovered": 2, "single": 3, "ended": False}, "finding", [2, 3], "recovered=0"),
        ({"weaker": 4}, "undecided", [], ""),
        ({"ended": False}, "undecided", [], "--time-limit none"),
        ({"recovered": 2, "conflict": True}, "undecided", [], "reading.toml"),
        ({}, "basis", [], ""),
    ],
)
def test_after_an_attack(facts, state, said, limit):
    part = attacked(**facts)
    found = told(part)
    assert (found[0], found[1][: len(said)]) == (state, said)
    assert limit in part[1]
    assert ("my tables.csv" in part[1]) == ("conflict" in facts or facts == {"ended": False})


@pytest.mark.parametrize(
    ("claims", "single", "more", "state"),
    [
        (9, 4, {}, "finding"),
        (9, 0, {}, "undecided"),
        (0, 0, {"statuses": {"unknown": 2, "decided": 5}}, "undecided"),
        (0, 0, {"statuses": {"decided": 5}}, "basis"),
        (9, 4, {"taken_as_true": True}, "undecided"),
    ],
)
def test_after_claims(claims, single, more, state):
    facts = {"claims": claims, "singletons": single, "statuses": {}, "taken_as_true": False, **more}
    found, said = told(claims_advice(facts, 3))
    assert found == state
    numbers = {"finding": [single], "basis": [3], "undecided": [2] * ("statuses" in more)}
    assert said[:1] == numbers[state]


@pytest.mark.parametrize(
    ("proved", "statuses", "taken", "state"),
    [
        (7, {"unique": 2, "unknown": 1}, False, "finding"),
        (0, {"feasible": 4}, False, "basis"),
        (0, {"feasible": 4, "contradictory": 1}, False, "undecided"),
        (7, {"unique": 2}, True, "undecided"),
    ],
)
def test_after_proofs_of_records_and_of_households(proved, statuses, taken, state):
    facts = {"statuses": statuses, "taken_as_true": taken}
    found, said = told(proof_advice(facts, "7 records are proved" if proved else ""))
    assert (found, said[:1]) == (state, {"finding": [7], "basis": []}.get(state, [1] * (not taken)))
    if proved:
        facts["statuses"] = {"violation": 5}
        found, said = told(household_advice(facts))
        assert (found, said[:1]) == (state, [] if taken else [5])


def test_after_a_release():
    assert told(release_advice({"simulation": True, "random": False}))[0] == "finding"
    release = {"simulation": True, "random": True}
    assert told(release_advice(release))[0] == "finding"
    for random in (True, False):
        part = release_advice({"simulation": False, "random": random})
        assert told(part)[0] == "undecided"
        assert ("bayesrisk audit" in part[1]) == random
        assert ("bayesrisk attack" in part[1]) != random


def test_after_a_plan():
    assert told(plan_advice(SimpleNamespace(rules={"block": {"R": "identity"}})))[0] == "basis"
    assert told(plan_advice(SimpleNamespace(rules={})))[0] == "finding"


# Noise.


@pytest.mark.parametrize(
    ("ratio", "state"),
    [(np.float64(1.63), "undecided"), (None, "undecided"), (1.001, "basis"), (0.9, "basis")],
)
def test_after_a_sweep(ratio, state):
    average = Average("Noise", "large", "1/864 (0.116%)", 1 / 864, 0.002, ratio, sensitivity=2**0.5)
    assert told(average.advice)[0] == state
    if state == "undecided":
        assert "--prior 1/864 --sensitivity 1.41421" in average.advice[1]


@pytest.mark.parametrize(
    ("cells", "more", "state"), [(0, 0, "undecided"), (9, 0, "basis"), (9, 2, "undecided")]
)
def test_after_noisy_counts(cells, more, state):
    facts = {"cells": cells, "more_than_known": more, "prior": 0.25, "query": "total"}
    part = measurement_risk.advice(facts)
    assert told(part)[0] == state
    assert "--prior 0.25 --unit" in part[1]


@pytest.mark.parametrize(
    ("counts", "exact", "state", "said"),
    [({}, {}, "undecided", []), ({"Block": 9}, {"Block": 0}, "basis", []),
     ({"Block": 9, "Tract": 3}, {"Block": 0, "Tract": 3}, "undecided", [])],
)  # fmt: skip
def test_after_posteriors_of_counts(counts, exact, state, said):
    part = measurement_counts.advice({"counts": counts, "exact": exact, "query": "total"})
    assert told(part) == (state, said)


# Links and households.


def linked(low, high, putative=50):
    return {"putative": putative, "left_out_ratio_lower": low, "left_out_ratio_upper": high}


@pytest.mark.parametrize(
    ("every", "unlike", "state"),
    [
        (linked(1.2, 1.5), linked(0.8, 1.5), "finding"),
        (linked(0.9, 1.1), linked(1.6, 3.7), "finding"),
        (linked(0.9, 1.1), linked(0.6, 1.7), "undecided"),
        (linked(math.nan, math.nan), linked(0.6, 0.7), "undecided"),
        (linked(0.5, 0.9), linked(0.6, 0.7), "undecided"),
        (linked(math.nan, math.nan, 0), linked(math.nan, math.nan, 0), "basis"),
    ],
)
def test_after_links(every, unlike, state):
    attackers = [{"name": "file", "all": every, "nonmodal": unlike}]
    assert told(link_advice(attackers))[0] == state
    assert (
        told(link_advice([{**attackers[0], "all": linked(1.1, 1.2)}, *attackers]))[0] == "finding"
    )


def flagged(name, low, violating=6, putative=4):
    return {
        "protection": name, "violating": violating, "putative": putative, "precision_lower": low,
        "precision_baseline": 0.3,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "state", "cases"),
    [
        ([flagged("none", 0.5), flagged("swapping", 0.4)], "finding", 2),
        ([flagged("none", 0.5), flagged("swapping", 0.1)], "finding", 1),
        ([flagged("none", 0.2), flagged("swapping", math.nan, putative=0)], "undecided", 0),
        ([flagged("none", math.nan, violating=0, putative=0)], "basis", 0),
    ],
)
def test_after_a_study_of_households(rows, state, cases):
    part = occupancy_advice(rows, {"none": "no protection", "swapping": "swapping"})
    assert told(part)[0] == state
    assert ("no protection" in part[1]) + ("swapping" in part[1]) == cases


# Audits.


def audited(gains, sizes, *, people=30, **options):
    frames = frames_of(statements_of(gains, people=people), errors_of(sizes))
    screen = first_screen(frames["measures"], frames["comparisons"], frames["costs"])
    return screen, audit_advice(screen, "race", **options)


def test_after_an_audit_that_tells_protections_apart():
    screen, part = audited({"none": 0.45, "noise, so": 0.05}, {"none": 0.0, "noise, so": 2.5})
    assert screen.plain == "none"
    state, said = told(part)
    assert state == "finding"
    assert said[:2] == [round(screen.rows["none"]["doubled"]), 30]
    assert "--protection 'noise, so'" in part[1]
    assert "off by 2.5" in part[1]
    # What is advised says whom it still affects; of nobody it says nothing.
    for number in (7, 0):
        less = dict(screen.rows["noise, so"], doubled=number, doubled_lower=number / 2, proved=0)
        rows = {**screen.rows, "noise, so": less | {"proved_lower": 0, "proved_upper": 0}}
        rows["noise, so"]["doubled_upper"] = 2 * number
        text = audit_advice(screen._replace(rows=rows), "race", met="noise, so")[1]
        assert text.endswith(" 7 of 30 people.") == (number == 7)
        assert text.count(" people") == 1 + (number == 7)
    # What was not reached, or has too few people, is not told.
    assert told(audit_advice(screen, "race", ["other"]))[0] == "undecided"
    rows = {name: {**row, "targets": 3, "left_out": 27} for name, row in screen.rows.items()}
    assert told(audit_advice(screen._replace(rows=rows), "race"))[0] == "undecided"


def test_after_an_audit_that_does_not():
    same = {"noise, one": 0.1, "noise, two": 0.1}
    screen, part = audited(same, dict.fromkeys(same, 2.5))
    assert told(part)[0] == "undecided"
    assert "--from-audit" not in part[1]
    # A goal that one of them meets, or none.
    met = audit_advice(screen, "race", met="noise, two")
    assert "'noise, two'" in met[1]
    assert told(audit_advice(screen, "race", met=""))[0] == "undecided"


@pytest.mark.parametrize(
    ("name", "gain", "state", "release"),
    [
        ("none", 0.45, "finding", False),
        ("noise", 0.45, "undecided", True),
        ("noise", 0.0, "basis", True),
    ],
)
def test_after_an_audit_of_one_protection(name, gain, state, release):
    screen, part = audited({name: gain}, {name: 2.5 * (name == "noise")})
    assert told(part)[0] == state
    assert ("--from-audit THIS-FOLDER --protection noise" in part[1]) == release
    assert ("bayesrisk audit" in part[1]) != release
    if state == "basis":  # of a sample in which nobody was seen nothing is sure
        row = dict(screen.rows[name], targets=20, people=30, doubled=0.0, proved=0.0)
        row |= {f"{m}_{end}": math.nan for m in ("doubled", "proved") for end in ("lower", "upper")}
        assert told(audit_advice(screen._replace(rows={name: row}), "race"))[0] == "undecided"
