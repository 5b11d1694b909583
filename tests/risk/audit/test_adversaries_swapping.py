"""What is lost by reading one place at a time under swapping, against every place together."""

import csv
import functools
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from oracles import swapping as oracle
from scipy.stats import chisquare

import bayesrisk as br
from bayesrisk.mechanisms import make_mechanism
from bayesrisk.release import Release, TrueCounts
from bayesrisk.risk.audit import Adversary, AuditedPopulation, AuditQuestion
from bayesrisk.tables import Attribute, Geography, Records, Schema, Table, Workload

SCHEMA = Schema(
    "two", (Attribute("key", 1), Attribute("value", 2)),
    Geography("towns", ("tract", "block"), (1, 3)),
)  # fmt: skip
WORKLOAD = Workload(
    SCHEMA, {("block", "V"): Table("V", ("0", "1"), {"value": np.eye(2, dtype=int)})}
)
KEY = {
    "swap_key": ["key"], "unique_by": ["key"], "within": "tract", "unique_within": "tract",
    "unit": "person",
}  # fmt: skip
TABLE = Path(__file__).parents[3] / "docs/explanation/attacks/swapped-one-place.csv"


@pytest.mark.parametrize(
    ("sizes", "pairs"), [((1, 1), 1), ((2, 3), 1), ((3, 2), 2), ((1, 3), 2), ((2, 2, 2), 2)]
)
@pytest.mark.parametrize("a", [0.7, 6.0])
def test_numbers_of_people_say_what_every_data_set_and_exchange_say(sizes, pairs, a):
    listed = oracle.joint_by_listing(sizes, pairs, 0.2, a)
    counted = oracle.joint(sizes, pairs, 0.2, a)
    assert set(listed) == {seen for seen, both in counted.items() if sum(both)}
    for seen, both in listed.items():
        np.testing.assert_allclose(counted[seen], both, rtol=1e-12)
    assert sum(map(sum, listed.values())) == pytest.approx(1.0)


def test_very_many_places_are_the_limit_of_many():
    """Of places that are many, each with two people, one pair hits anybody with 2 / people."""
    limit = oracle.joint_of_many(2, 2 / 14, 0.3, 2.0)
    for seen, both in limit.items():
        few = np.zeros(2)
        for published, pair in oracle.joint((2,) * 7, 1, 0.3, 2.0).items():
            few += np.array(pair) * (published[0] == seen[0])
        np.testing.assert_allclose(few, both, atol=0.012)


def people(values):
    frame = pd.DataFrame(
        {"key": 0, "value": np.concatenate(values),
         "block": np.repeat(["100", "101", "102"][: len(values)], [len(v) for v in values])}
    )  # fmt: skip
    return Records.from_frame(frame, schema=SCHEMA)


def test_the_mechanism_draws_pairs_as_the_oracle_does():
    values = ([1, 0, 0], [1, 1], [0, 0, 1])
    swapping = make_mechanism("swapping", rate="1/2", neighbours=100, tiers=[["1", "1"]], **KEY)
    records = people(values)
    flat, expected = np.concatenate(values), Counter()
    for weight, now in oracle.exchanges([3, 2, 3], 2):
        seen = np.bincount(np.array(now)[flat == 1], minlength=3)
        expected[tuple(seen.tolist())] += weight
    rng = np.random.default_rng(8)
    drawn = Counter()
    for _ in range(1000):
        after = swapping.swap(records, rng=rng).microdata.persons
        places = np.array([int(code) - 100 for code in after.geoids])
        drawn[tuple(np.bincount(places[after.codes("value") == 1], minlength=3).tolist())] += 1
    assert set(drawn) <= set(expected)
    cells = sorted(expected)
    test = chisquare([drawn[c] for c in cells], [1000 * expected[c] for c in cells])
    assert test.pvalue > 1e-3


@pytest.mark.parametrize("a", [2.0, 10.0])
def test_audits_read_swapped_tables_as_the_page_says(a):
    """The reading of the package, for every published number of a place of ten."""
    rate, share = 0.2, 0.25
    for ones in range(11):
        first = [1] * ones + [0] * (10 - ones)
        data = br.tables.microdata.as_microdata(people((first, [1, 0, 0])))
        question = AuditQuestion(WORKLOAD, ("value",), (Adversary("outsider"),), a)
        of = AuditedPopulation(data, question, seed=1)
        share = float(of.prior(0).shares[1])
        tables = make_mechanism("identity").release(data, workload=WORKLOAD, rng=1).tables
        spec = make_mechanism("swapping", rate="1/5", **KEY).spec
        release = Release(spec, tables)
        assert not any(isinstance(law, TrueCounts) for law in release.spec.tables.values())
        rows = of.statements("s", "s", 0, Same(release), release, np.array([0]))
        told = rows[(rows["attack"] == "swap-aware") & (rows["statement"] == "value 1")]
        expected = oracle.of_the_place([ones], 10, rate, share, a)
        assert told["posterior"].item() == pytest.approx(expected, abs=1e-12)


class Same:
    """A mechanism whose release does not depend on the records: here nobody asks for it."""

    def __init__(self, release):
        self._release, self.spec = release, release.spec

    def release(self, microdata, *, workload, rng=None):
        return self._release


SCOPES = {
    "two of 10": (10, 10),
    "three of 10": (10, 10, 10),
    "very many of 10": 10,
    "very many of 30": 30,
}


def lost(scope, rate, a, reader):
    of = SCOPES[scope]
    if isinstance(of, int):
        size, law = of, oracle.joint_of_many(of, rate, 0.2, a)
    else:
        size, pairs = of[0], round(rate * sum(of) / 2)
        rate = 2 * pairs / sum(of)
        law = oracle.joint(of, pairs, 0.2, a)
    return oracle.loss(law, functools.partial(told, reader, size, rate, a))


def told(reader, size, rate, a, seen):
    return reader(seen, size, rate, 0.2, a)


def printed():
    """Return the rows of the table of the page."""
    with TABLE.open(encoding="utf-8", newline="") as stream:
        return [row for row in csv.reader(stream) if row[0] in SCOPES]


def check_row(row):
    scope, rate = row[0], float(row[1].rstrip(" %")) / 100
    for a, cells in ((2.0, row[2:6]), (10.0, row[6:10])):
        mine = lost(scope, rate, a, oracle.of_the_place)
        before = lost(scope, rate, a, oracle.swap_aware)
        found = 100 * mine["exact"], 100 * mine["mine"], mine["log"], before["log"]
        for value, cell in zip(found, cells, strict=True):
            assert float(cell) == pytest.approx(value, abs=0.051 if value > 1 else 0.00051)
        assert mine["log"] >= 0.0
        assert mine["log"] < before["log"]


def test_the_page_says_what_is_lost_by_one_place_at_a_time():
    rows = printed()
    assert len(rows) == 10
    assert lost("two of 10", 0.1, 2.0, oracle.of_the_place)["apart"] == pytest.approx(
        0.0211, abs=5e-5
    )
    for row in rows:
        rate, points = float(row[1].rstrip(" %")), float(row[2]) - float(row[3])
        assert points <= (1.15 if rate <= 10 else 1.75)
        if row[0] != "three of 10":
            for a in (2.0, 10.0):
                more = lost(row[0], rate / 100, a, oracle.of_the_place)["promised"]
                assert more < 0 or rate == 50
    for row in rows:
        if row[0] != "three of 10":
            check_row(row)


@pytest.mark.slow
def test_the_page_says_what_is_lost_of_three_places():
    for row in printed():
        check_row(row)
