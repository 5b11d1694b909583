"""Cell keys against the published method in plain Python, and their law against simulation."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from oracles.mechanisms import AGES, PEOPLE, SEX, TOTAL, people_workload, population
from scipy.stats import binomtest

from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, DataError
from bayesrisk.inference import RecordPrior, RecordQuestion, microdata_posterior
from bayesrisk.mechanisms import make_mechanism
from bayesrisk.mechanisms.cell_key import CellKey
from bayesrisk.release import MechanismSpec
from bayesrisk.risk import mechanism_risk
from bayesrisk.risk.audit import Adversary, AuditedPopulation, AuditQuestion, release_differences
from bayesrisk.risk.audit.population import mean_errors
from bayesrisk.risk.audit.reading import readings
from bayesrisk.risk.mechanism.hypotheses import MechanismQuestion
from bayesrisk.tables import Table, tabulate
from bayesrisk.tables.likelihoods import UNBOUNDED, CellKeySpec, RoundingSpec

EXAMPLE = {
    "cell-key": {
        "ptable": [{0: 1}, {-1: "1/2", 1: "1/2"}, {-1: "1/4", 0: "1/2", 1: "1/4"}],
        "keys": 8,
    }
}
ASKED = people_workload(TOTAL, SEX, AGES)


def table_by_key(counts, keys, seed=0):
    """Return a random change of at most 3 for every count from 0 and key."""
    rng = np.random.default_rng(seed)
    rows = np.arange(counts + 1)[:, None]
    changes = np.maximum(rng.integers(-3, 4, size=(counts + 1, keys)), -rows)
    changes[0] = 0
    return changes


def as_frame(changes):
    """Return a perturbation table in the form of statistical offices: counts begin with 1."""
    count, key = (part.ravel() for part in np.indices(changes.shape))
    frame = pd.DataFrame({"pcv": count, "ckey": key, "pvalue": changes.ravel()})
    return frame[frame.pcv > 0].sample(frac=1.0, random_state=1)


def drawn_keys(data, keys, seed):
    """Return the key of each record, drawn in the order of blocks, then of codes."""
    frame = data.for_schema(ASKED.schema).to_frame()
    columns = ["block", *ASKED.schema.names]
    order = frame.sort_values(columns, kind="stable").index
    key = np.empty(len(frame), dtype=int)
    key[order] = np.random.default_rng(seed).integers(keys, size=len(frame))
    return key


def members(data, workload):
    """Return the rows of the records of every cell of every place, one record at a time."""
    found = {}
    records = data.for_schema(workload.schema)
    for row, record in enumerate(records.to_frame().to_dict("records")):
        for (level, name), table in workload.tables.items():
            width = workload.schema.geography.width(level)
            for cell in range(len(table.cells)):
                weight = 1
                for attribute, factor in table.factors.items():
                    weight *= int(factor[cell, record[attribute]])
                if weight:
                    place = record["block"][:width]
                    found.setdefault((level, name, cell, place), []).append((row, weight))
    return found


def published(release, level, name, cell, place):
    return int(release.tables.count(level, name, place)[cell])


@pytest.mark.parametrize(("rows", "repeat", "keys"), [(6, 3, 16), (3, 1, 256), (200, 1, 5)])
def test_tables_are_those_of_the_published_method(rows, repeat, keys):
    """Sum of keys modulo their number; larger counts take the last rows in turn."""
    data, changes = population(3), table_by_key(rows, keys)
    mechanism = CellKey(ptable=as_frame(changes), keys=keys, repeat=repeat)
    made = mechanism.release(data, workload=ASKED, rng=5)
    key = drawn_keys(data, keys, 5)
    expected = {}
    for cell, people in members(data, ASKED).items():
        count = len(people)
        cell_key = sum(int(key[row]) for row, _ in people) % keys
        row = count if count <= rows else (count - 1) % repeat + rows - repeat + 1
        assert rows % repeat == 0
        expected[cell] = count + int(changes[row, cell_key])
    moved = 0
    for (level, name), counts in made.tables.counts.items():
        for place in made.tables.geoids[level].tolist():
            for cell in range(counts.shape[1]):
                found = published(made, level, name, cell, place)
                assert found == expected.get((level, name, cell, place), 0)
                moved += (level, name, cell, place) in expected
    assert moved == len(expected) > 100
    assert CellKey(ptable=changes.tolist(), keys=keys, repeat=repeat).spec == mechanism.spec


def test_a_perturbation_table_is_read_from_a_file(tmp_path):
    frame = as_frame(table_by_key(5, 16))
    frame.to_csv(tmp_path / "ptable.csv", index=False)
    read = CellKey(ptable=tmp_path / "ptable.csv", keys=16, repeat=2)
    assert read.spec == CellKey(ptable=frame, keys=16, repeat=2).spec
    frame.astype(str).replace({"pvalue": {"3": "x"}}).to_csv(tmp_path / "bad.csv", index=False)
    row = int((frame["pvalue"] == 3).to_numpy().argmax()) + 1
    with pytest.raises(DataError, match=rf"bad.csv: row {row}, column 'pvalue'.*'x'"):
        CellKey(ptable=str(tmp_path / "bad.csv"), keys=16)


def test_weights_multiply_counts_and_not_keys():
    weighed = Table("years", ("men", "women"), {"sex": np.eye(2, dtype=int) * [[3], [1]]})
    asked, data = people_workload(weighed), population(2)
    changes = table_by_key(500, 4)
    made = CellKey(ptable=changes.tolist(), keys=4).release(data, workload=asked, rng=1)
    key = drawn_keys(data, 4, 1)
    for (level, name, cell, place), people in members(data, asked).items():
        count = sum(weight for _, weight in people)
        change = changes[count, sum(int(key[row]) for row, _ in people) % 4]
        assert published(made, level, name, cell, place) == count + change


def test_the_law_is_that_of_simulated_releases():
    data = population(6, blocks=3, households=8)
    mechanism = make_mechanism("cell-key", **EXAMPLE["cell-key"])
    truth, prepared = tabulate(data, ASKED), mechanism.prepare(data, workload=ASKED)
    cell = ("block", "ages")
    true = truth.counts[cell].toarray()[truth.counts[cell].toarray() > 0]
    there = truth.counts[cell].toarray() > 0
    number = 800
    releases = (prepared.draw(seed).tables for seed in range(number))
    drawn = np.array([tables.counts[cell].toarray()[there] for tables in releases])
    law, wrong = mechanism.spec.others, RoundingSpec(3, "random")
    p_values, controls = [], []
    for at, count in enumerate(true.tolist()):
        for number_out in range(count + 3):
            hits = int(np.count_nonzero(drawn[:, at] == number_out))
            chance = float(law.probability(number_out, count))
            assert chance > 0.0 or hits == 0
            if 0.0 < chance < 1.0:
                p_values.append(binomtest(hits, number, chance).pvalue)
            other = float(wrong.probability(number_out, count))
            controls.append(binomtest(hits, number, other).pvalue if 0.0 < other < 1.0 else 1.0)
    assert len(p_values) > 10
    assert min(p_values) > 1e-3 / len(p_values)
    assert min(controls) < 1e-12


@st.composite
def laws(draw):
    """Return a random law, in exact shares, and the changes by key that it came from."""
    keys, rows = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    changes = [[0] * keys]
    for count in range(1, rows + 1):
        changes.append(draw(st.lists(st.integers(-count, 4), min_size=keys, max_size=keys)))
    repeat = draw(st.integers(1, rows))
    shares = [
        ", ".join(f"{d}: {Fraction(row.count(d), keys)}" for d in dict.fromkeys(row))
        for row in changes
    ]
    return CellKeySpec(tuple(shares), repeat), changes, repeat


@given(laws())
def test_supports_and_probabilities_are_those_of_all_keys(given_law):
    law, changes, repeat = given_law
    rows, counts = len(changes) - 1, np.arange(30)

    def row(count):
        while count > rows:
            count -= repeat
        return changes[count]

    assert law.rows(counts).tolist() == [
        next(c for c in range(count, -1, -repeat) if c <= rows) for count in counts.tolist()
    ]
    outcomes = [[count + d for d in row(count)] for count in counts.tolist()]
    for number in range(-3, 20):
        share = np.array([made.count(number) / len(made) for made in outcomes])
        assert law.probability(number, counts) == pytest.approx(share, abs=1e-15)
        inside = np.flatnonzero(share > 0)
        low, high = (int(end) for end in law.support(number))
        assert (low > high) if not inside.size else (low, high) == (inside[0], inside[-1])
    assert law.releases(2, 7, tail=0.5).tolist() == sorted({y for m in outcomes[2:8] for y in m})
    assert law.exact == all(d == 0 for one in changes for d in one)
    assert law.independent == law.exact
    assert law.support(np.zeros((2, 3), int))[0].shape == (2, 3)
    assert np.all(law.support(0)[1] < UNBOUNDED)
    assert MechanismSpec.from_dict(MechanismSpec("x", {}, {}, law).to_dict()).others == law
    assert law.probability([[3]], [-1, 2]).tolist()[0][0] == 0.0


def released(seed=0):
    data = population(6, blocks=3, households=8)
    return data, make_mechanism("cell-key", **EXAMPLE["cell-key"]).release(
        data, workload=ASKED, rng=seed
    )


def test_a_posterior_is_refused_and_says_why():
    _, made = released()
    with pytest.raises(ArgumentError, match=r"'cell-key' .* same records change alike"):
        microdata_posterior(
            made,
            [RecordQuestion({})],
            level="block",
            place=str(made.tables.geoids["block"][0]),
            prior=RecordPrior.uniform_data_sets(PEOPLE),
        )
    assert [one.name for one in readings(made, {})] == ["working-error"]


def test_an_audit_reads_cell_keys_by_a_working_error():
    data, _ = released()
    asked = people_workload(SEX, AGES, levels=("block",))
    question = AuditQuestion(asked, ("sex",), (Adversary.named("outsider"),), 3.0)
    audited = AuditedPopulation(data.persons, question, seed=1)
    mechanism = make_mechanism("cell-key", **EXAMPLE["cell-key"])
    made = audited.release("p", 0, mechanism)
    told = audited.statements("p", "p", 0, mechanism, made, np.arange(3))
    assert set(told["attack"]) == {"working-error"}
    assert told["randomised"].all()
    key = "block", "sex"
    off = made.tables.counts[key].toarray() - audited.truth.counts[key].toarray()
    errors = mean_errors(audited.error_sums(made)).set_index("table")
    assert errors.loc["sex", "mean_squared_error"] == pytest.approx(np.mean(off**2))


def test_what_no_key_leads_to_is_noticed():
    data, made = released()
    found = release_differences(made, tabulate(data, ASKED))
    assert found["possible"].all()
    assert set(found["table"]) == {"total", "sex", "ages"}
    other = make_mechanism("rounding", base=5, method="nearest").release(
        data, workload=ASKED, rng=0
    )
    wrong = type(made)(made.spec, other.tables)
    assert not release_differences(wrong, tabulate(data, ASKED))["possible"].all()


def test_risk_of_a_target_is_simulated():
    data, _ = released()
    observed = [("block", "sex"), ("block", "ages")]
    question = MechanismQuestion(ASKED, observed, alternatives=[None], prior=0.2)
    by_itself = make_mechanism("rounding", base=3, method="random")
    mechanisms = by_itself, make_mechanism("cell-key", **EXAMPLE["cell-key"])
    methods = [
        mechanism_risk(data.persons, m, 0, question, draws=64, rng=1).method for m in mechanisms
    ]
    assert methods == ["closed-form", "simulated"]


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"ptable": [{0: 1}, {0: "3/4"}]}, ArgumentError, r"ptable\[1\] .* sum to 1, got '0: 3/4'"),
        ({"ptable": [{0: 1}, {0: "3/4", -2: "1/4"}]}, ArgumentError, "count of 1 negative.*-2"),
        ({"ptable": [{0: 1}, {0: "2/3", 1: "1/3"}]}, ArgumentError, "multiple of 1/256, got"),
        ({"ptable": [{0: 1}, {0: 2, 1: -1}]}, ArgumentError, "multiple of 1/256, got -1"),
        ({"ptable": [{1: 1}, {0: 1}]}, ArgumentError, "leave a count of 0 as it is"),
        ({"ptable": [{0: 1}]}, ArgumentError, "then say what happens to a count of 1"),
        ({"ptable": []}, ArgumentError, "leave a count of 0"),
        ({"ptable": [{0: 1}, {"up": 1}]}, ArgumentTypeError, r"ptable\[1\]\['up'\]: change"),
        ({"ptable": [[0, 0], [1, 0, 1]], "keys": 2}, ArgumentError, "change for 2 keys, got 3"),
        ({"ptable": [[0, 0], [-2, 0]], "keys": 2}, ArgumentError, "count of 1 negative"),
        ({"ptable": [[0, 0], [1, -1]], "keys": 1}, ArgumentError, "keys must be"),
        ({"ptable": [{0: 1}, {0: 1}], "repeat": 2}, ArgumentError, "repeat must be"),
        ({"ptable": [{0: 1}] * 70, "keys": 65536}, ArgumentError, "at most 64 counts"),
        ({"ptable": pd.DataFrame({"pcv": [1]})}, ArgumentError, "no 'ckey'"),
        ({"ptable": as_frame(table_by_key(3, 4)), "keys": 3}, ArgumentError, "ckey from 0 to 2"),
        ({"ptable": as_frame(table_by_key(3, 4)), "keys": 5}, ArgumentError, "each of 5 ckey"),
        ({"ptable": as_frame(table_by_key(3, 4))[1:], "keys": 4}, ArgumentError, "got 11 rows"),
        ({"ptable": 3}, ArgumentTypeError, r"ptable must be a sequence, got 3: write \[3\]"),
        ({"ptable": "no-such.csv"}, DataError, "no-such.csv"),
    ],
)
def test_bad_perturbation_tables_are_refused(options, error, said):
    with pytest.raises(error, match=said):
        CellKey(**options)


@pytest.mark.parametrize(
    ("rows", "error", "said"),
    [
        (["0: 1", "0: 1/2, 0: 1/2"], ArgumentError, "every change once"),
        (["0: 1", "0: 3/2, 1: -1/2"], ArgumentError, "shares > 0"),
        (["0: 1", 3], ArgumentTypeError, "ptable"),
        (["0: 1", "0: 1/2"], ArgumentError, r"ptable\[1\] .* sum to 1, got '0: 1/2'"),
        (["0: 1", "0 1"], ArgumentError, "like '-1: 1/2, 1: 1/2', got '0 1'"),
        (["0: 1", "0: half"], ArgumentError, "share of change 0"),
    ],
)
def test_bad_laws_are_refused(rows, error, said):
    with pytest.raises(error, match=said):
        CellKeySpec(rows)
