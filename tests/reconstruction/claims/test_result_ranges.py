"""Claims from counts that are rounded, in ranges or withheld: against every data set they allow."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from claims_cases import as_bounds, case, matching, small_schema
from oracles import claims as oracle
from range_cases import publish, range_case, strongest_claims
from solver_cases import Silent

import bayesrisk as br
from bayesrisk.exceptions import ArgumentError
from bayesrisk.reconstruction import claim_sentences, find_claims, verify_claims
from bayesrisk.reconstruction.claims.search import decide as _decide
from bayesrisk.reconstruction.claims.verification import generate_claims
from bayesrisk.reconstruction.records import problem as _problem
from bayesrisk.release import NoiseSpec, RangeSpec, RoundingSpec, SuppressedCounts
from bayesrisk.tables import Table


def differences(seeds):
    """Return how many claims are false or missed, and how many there are of both kinds."""
    wrong, kinds = 0, np.zeros(2, np.int64)
    for seed in seeds:
        for known_rule in (True, False):
            schema, tables, cells, published, sets, _ = range_case(seed, known_rule=known_rule)
            truth = strongest_claims(schema, tables, cells, sets)
            found = find_claims(published, cells=cells, known_rule=known_rule)
            assert found.blocks["status"].iloc[0] in ("decided", "empty")
            if "at_least" not in found.claims:  # of counts that are exact, or withheld by no rule
                truth = {p: claim for p, claim in truth.items() if not claim[1]}
            wrong += len(set(as_bounds(found.to_frame(), schema, tables).items()) ^ truth.items())
            kinds += [sum(at_least == kind for _, at_least in truth.values()) for kind in (0, 1)]
    return wrong, kinds


@pytest.mark.parametrize("known_rule", [True, False])
def test_claims_of_a_problem_that_was_posed_are_those_of_its_tables(known_rule):
    for seed in range(60):
        _, _, cells, published, *_ = range_case(seed, known_rule=known_rule)
        asked = {"cells": cells, "known_rule": known_rule, "taken_as_true": seed % 2 == 1}
        expected = find_claims(published, **asked)
        for rule in (True, False):
            posed = _problem.published_problem(published, scope=None, known_rule=rule)
            found = find_claims(posed, **asked)
            pd.testing.assert_frame_equal(found.claims, expected.claims)
            pd.testing.assert_frame_equal(found.blocks, expected.blocks)


@pytest.mark.parametrize("start", [0, 500, 1900, 2000])
def test_claims_are_those_of_every_data_set_that_is_allowed(start):
    wrong, kinds = differences(range(start, start + 40))
    assert wrong == 0
    assert kinds.min() > 20


def test_counts_without_a_largest_one_prove_none_exactly():
    """Two totals that are both withheld because they are 1 or more: one record, or any number."""
    schema = small_schema(2, 2)
    tables = [Table("N", ("N_0",), {}), Table("T", ("T_0",), {"a1": np.ones((1, 2), dtype=int)})]
    found = find_claims(publish(schema, tables, [SuppressedCounts(1)] * 2, [0, 0], [True, True]))
    assert len(found.claims) == 3
    assert found.claims["at_least"].all()
    assert found.claims["multiplicity"].tolist() == [1, 1, 1]
    asked = found.claims.assign(at_least=False)
    tables = publish(schema, tables, [SuppressedCounts(1)] * 2, [0, 0], [True, True])
    assert verify_claims(tables, asked).claims["status"].tolist() == ["refuted"] * 3


@pytest.mark.slow
@pytest.mark.parametrize("start", range(10_000, 15_000, 500))
def test_ten_thousand_readings_of_small_releases_without_a_difference(start):
    assert differences(range(start, start + 500))[0] == 0


def test_a_wrong_support_is_seen(monkeypatch):
    """Rounded counts read as if they were below the number only."""
    right = RoundingSpec.support

    def narrow(self, released):
        low, high = right(self, released)
        return low, np.maximum(np.minimum(high, released), low)

    monkeypatch.setattr(RoundingSpec, "support", narrow)
    with pytest.raises(AssertionError):
        assert differences(range(40))[0] == 0


def questions(schema, tables, rng, sets, cells):
    """Return a frame of questions about patterns at random, and which are true."""
    rows, wanted = [], []
    for _ in range(12):
        used = rng.random(len(schema.names)) < 0.6
        used[rng.integers(len(used))] = True
        codes = [
            int(rng.integers(n)) if u else pd.NA for n, u in zip(schema.shape, used, strict=True)
        ]
        rows.append(("001", *codes, int(rng.integers(0, 4)), bool(rng.random() < 0.5)))
    frame = pd.DataFrame(rows, columns=["block", *schema.names, "multiplicity", "at_least"])
    for row in frame.itertuples(index=False):
        counts = sets @ matching(schema, tables, cells, row)
        m = row.multiplicity
        wanted.append(counts.min() >= m if row.at_least else set(counts.tolist()) == {m})
    return frame.astype(dict.fromkeys(schema.names, "Int16")), np.array(wanted)


@pytest.mark.parametrize("exact", [False, True])
def test_claims_that_are_asked_for_are_decided_like_the_data_sets(exact):
    rng = np.random.default_rng(6)
    seen = np.zeros(2, np.int64)
    for seed in range(700, 740):
        made = case(seed) if exact else range_case(seed)
        schema, tables, cells, published, sets, _ = made
        frame, wanted = questions(schema, tables, rng, sets, cells)
        decided = verify_claims(published, frame, cells=cells).claims
        assert set(decided["status"]) <= {"verified", "refuted"}
        assert ((decided["status"] == "verified") == wanted).all()
        pd.testing.assert_series_equal(decided["multiplicity"], frame["multiplicity"])
        seen += np.bincount(wanted, minlength=2)
    assert seen.min() > 60


def test_candidates_hold_wherever_the_claims_do():
    for seed in range(800, 830):
        schema, tables, cells, published, sets, _ = range_case(seed)
        truth = strongest_claims(schema, tables, cells, sets)
        candidates = generate_claims(published, cells=cells, n_solutions=4)
        if "at_least" not in candidates.claims:
            continue
        said = as_bounds(candidates.claims, schema, tables)
        assert set(candidates.claims["status"]) <= {"undecided"}
        # No candidate says less than what is true: data sets give the smallest number from above.
        assert all(said[pattern][0] >= m for pattern, (m, _) in truth.items())
        decided = verify_claims(published, candidates, cells=cells).claims
        for row, claim in zip(decided["status"], said.items(), strict=True):
            pattern, (m, at_least) = claim
            known = truth.get(pattern, (0, True))
            assert (row == "verified") == (known[0] >= m and (at_least or known == (m, False)))


def test_base_one_and_ranges_of_one_count_are_exact_counts():
    for seed in range(900, 915):
        _, _, cells, published, _, _ = case(seed)
        plain = find_claims(published, cells=cells)
        for law in (RoundingSpec(1, "nearest"), RangeSpec((0,), (0,), 1), SuppressedCounts()):
            laws = dict.fromkeys(published.workload.tables, law)
            found = find_claims(dataclasses.replace(published, laws=laws), cells=cells)
            for name in ("claims", "blocks", "rows"):
                pd.testing.assert_frame_equal(getattr(found, name), getattr(plain, name))
            assert "at_least" not in found.claims


def test_counts_taken_as_true_and_laws_that_exclude_nothing():
    _, _, cells, published, *_ = range_case(3)
    rounded = dict.fromkeys(published.workload.tables, RoundingSpec(3, "nearest"))
    noisy = dict.fromkeys(published.workload.tables, NoiseSpec("discrete-gaussian", 2))
    by_hand = find_claims(dataclasses.replace(published, laws={}), cells=cells)
    for laws in (rounded, noisy):
        stated = dataclasses.replace(published, laws=laws)
        naive = find_claims(stated, cells=cells, taken_as_true=True)
        pd.testing.assert_frame_equal(naive.claims, by_hand.claims)
        assert naive.taken_as_true
    with pytest.raises(ArgumentError, match=r"'noise'.*taken_as_true"):
        find_claims(stated, cells=cells)
    with pytest.raises(ArgumentError, match="known_rule must be"):
        find_claims(published, cells=cells, known_rule="yes")


def crossed():
    """Two attributes of two codes, a table of each and one of both."""
    schema = small_schema(2, 2)
    a = Table("A", ("A_0", "A_1"), {"a0": np.eye(2, dtype=int)})
    b = Table("B", ("B_0", "B_1"), {"a1": np.eye(2, dtype=int)})
    return schema, [a, b]


def test_counts_that_no_data_set_has_name_the_cells():
    schema, tables = crossed()

    def said(laws, numbers, hidden=(False,) * 4, **how):
        found = find_claims(publish(schema, tables, laws, numbers, hidden), **how)
        return found.blocks.iloc[0]["status"], found.blocks.iloc[0]["conflict"]

    three = RoundingSpec(3, "nearest")
    assert said([three, None], [3, 3, 2, 2])[0] == "decided"
    assert said([three, None], [3, 3, 1, 2]) == (
        "infeasible",
        "contradict each other: A_0 = 3 (2 to 4), A_1 = 3 (2 to 4), B_0 = 1, B_1 = 2",
    )
    assert said([three, None], [4, 3, 2, 2]) == (
        "infeasible",
        "no count is published as this number: A_0 = 4",
    )
    assert said([three, None], [3, 0, 0, 0]) == (
        "infeasible",
        "all possible records are ruled out by zeros: A_0 = 3 (2 to 4)",
    )
    # Withheld because it is 3 or more, and 2 people in all.
    law = SuppressedCounts(3)
    withheld = [0, 0, 1, 1], [True, False, False, False]
    assert said([law, None], *withheld, known_rule=False)[0] == "decided"
    status, conflict = said([law, None], *withheld)
    assert status == "infeasible"
    assert "A_0 withheld (3 or more)" in conflict
    top = RangeSpec((0, 1, 3), (0, 1, 3))
    assert "A_0 = 3 (3 or more)" in said([top, None], [3, 0, 1, 1])[1]


def test_the_smallest_contradiction_is_one_of_few_cells():
    """Of three tables the two that clash are named; none of the cells can be left out."""
    schema, tables = crossed()
    c = Table("C", ("C_0", "C_1", "C_2", "C_3"), {"a0": np.eye(2, dtype=int).repeat(2, 0),
              "a1": np.tile(np.eye(2, dtype=int), (2, 1))})  # fmt: skip
    three = RoundingSpec(3, "nearest")
    numbers = [9, 9, 3, 3, 0, 0, 0, 0]
    found = find_claims(publish(schema, [*tables, c], [three] * 3, numbers, [False] * 8))
    conflict = found.blocks.iloc[0]["conflict"]
    assert found.blocks.iloc[0]["status"] == "infeasible"
    assert (
        conflict == "contradict each other: A_0 = 9 (8 to 10), C_0 = 0 (0 to 1), C_1 = 0 (0 to 1)"
    )


def test_a_limit_never_makes_a_claim(monkeypatch):
    """Neither searches nor the solver answer: what is said is still true, and less of it."""
    missed = 0
    monkeypatch.setattr(_decide, "_NODES", 1)
    for seed in range(1000, 1040):
        schema, tables, cells, published, sets, _ = range_case(seed)
        truth = strongest_claims(schema, tables, cells, sets)
        found = find_claims(published, cells=cells, solver=Silent())
        for pattern, (m, at_least) in as_bounds(found.to_frame(), schema, tables).items():
            known = truth[pattern]
            assert known[0] >= m
            assert at_least or known == (m, False)
        if "at_least" in found.claims:
            known = as_bounds(found.to_frame(), schema, tables)
            less = sum(known.get(pattern) != claim for pattern, claim in truth.items())
            assert less == 0 or found.blocks["status"].iloc[0] in ("undecided", "unknown")
            missed += less
    late = find_claims(published, cells=cells, time_limit=1e-9)
    assert late.blocks["status"].iloc[0] in ("unknown", "empty")


def largest_stated(low, inside, overlap):
    """Return the largest sum of smallest counts over cells inside that share no record."""
    best = 0
    for bits in range(1 << len(inside)):
        chosen = [inside[i] for i in range(len(inside)) if bits >> i & 1]
        if not any(overlap[a, b] for i, a in enumerate(chosen) for b in chosen[:i]):
            best = max(best, int(low[chosen].sum()))
    return best


def test_readable_claims_are_what_one_table_states():
    seen = np.zeros(2, np.int64)
    for seed in range(1100, 1160):
        schema, tables, cells, published, _, _ = range_case(seed)
        found = find_claims(published, cells=cells).to_frame()
        if "at_least" not in found:
            continue
        ends = [published.support("block", t.name) for t in tables]
        high = np.concatenate([h[0] for _, h in ends])
        weights = oracle.weights_of(schema, tables, cells)
        live = ~((weights > 0) & (high == 0)[:, None]).any(axis=0)
        for row in found[found["at_least"]].itertuples(index=False):
            match = matching(schema, tables, cells, row)
            for column, part in (("readable", np.ones_like(live)), ("readable_here", live)):
                stated = False
                for table, (low, _) in zip(tables, ends, strict=True):
                    own = oracle.weights_of(schema, [table], cells)[:, part]
                    fits = (own.max(axis=1, initial=0) == 1) & ~own[:, ~match[part]].any(axis=1)
                    overlap = (own @ own.T) > 0
                    inside = np.flatnonzero(fits).tolist()
                    stated |= largest_stated(low[0], inside, overlap) >= row.multiplicity
                nested = any(
                    (oracle.weights_of(schema, [t], cells) > 0).sum(axis=0).max() > 1
                    for t in tables
                )
                answer = getattr(row, column)
                assert answer == stated or (nested and stated)
                seen[int(stated)] += 1
    assert seen.min() > 10


def test_places_are_read_each_by_itself_however_many_at_a_time(monkeypatch):
    monkeypatch.setattr(_problem, "WHOLE", 4)
    schema, tables = crossed()
    law = RoundingSpec(3, "nearest")
    one = publish(schema, tables, [law, None], [3, 0, 2, 1], [False] * 4)
    counts = {
        key: sp.csr_array(np.vstack([matrix.toarray()] * 10)) for key, matrix in one.counts.items()
    }
    places = np.array([f"{i:03d}" for i in range(10)])
    laws = {("block", "A"): law}
    many = br.PublishedTables(one.workload, {"block": places}, counts, {}, laws)
    single, found = find_claims(one).to_frame(), find_claims(many).to_frame()
    assert len(found) == 10 * len(single)
    last = found[found["block"] == "009"].drop(columns="block").reset_index(drop=True)
    pd.testing.assert_frame_equal(last, single.drop(columns="block"))


@pytest.fixture(scope="module")
def hospital():
    folder = br.datasets.path("hospital")
    schema = br.Workload.read(folder / "tables.toml").schema
    names = ("region", "age", "diagnosis")
    pairs = [("region", "age"), ("region", "diagnosis"), ("age", "diagnosis")]
    work = br.Workload.of(schema, [(), *[(name,) for name in names], *pairs])
    records = br.Records.read(folder / "records.csv", schema=schema)
    rounding = br.make_mechanism("rounding", base=3, method="nearest")
    return records, rounding.release(records, workload=work, rng=1)


def test_what_rounded_tables_of_sixty_patients_prove(hospital):
    """As integer programs say of every published cell, by SciPy: three counts, fifty-one bounds."""
    records, release = hospital
    found = find_claims(release.tables)
    frame = found.to_frame()
    assert found.blocks["status"].tolist() == ["decided"]
    assert frame["at_least"].value_counts().to_dict() == {True: 49, False: 3}
    number = br.risk.count_claims(found, frame, records)
    at_least, m = frame["at_least"].to_numpy(), frame["multiplicity"].to_numpy()
    assert (np.where(at_least, number >= m, number == m)).all()
    new = claim_sentences(found, found.to_frame(readable="here"))
    assert "Seven records with diagnosis infection." in new
    assert "At least one record with region Centre, age 65-79, diagnosis heart." in new
    assert len(new) == 5
    assert "0 of them are about exactly one record" in repr(found).replace("\n  ", " ")


def test_what_bounds_are_worth(hospital):
    records, release = hospital
    found = find_claims(release.tables)
    share = br.risk.claim_precision(found, records).set_index(["kind", "columns"])
    assert share.loc[("any", 0), "precision"] == 1.0
    assert "singleton" not in share.index.get_level_values("kind")
    priors = br.risk.claim_priors(found, records, level="all", readable=None)
    n = found.blocks["records"].iloc[0]
    for row in priors.sample(12, random_state=1).itertuples():
        draws = np.random.default_rng(1).binomial(n, row.share, 200_000)
        true = draws >= row.multiplicity if row.at_least else draws == row.multiplicity
        assert true.mean() == pytest.approx(row.prior, abs=0.006)
    covered = found.covered(singletons=False, readable=None)
    assert covered["covered"].max() > 0
    assert found.covered(readable=None)["covered"].max() == 0
