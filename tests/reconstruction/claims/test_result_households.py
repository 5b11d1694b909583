"""Claims about households: structural rules, tenure, words, the sample, the attack, the hazard."""

import functools
import itertools
import json

import numpy as np
import pandas as pd
import pytest
from claims_cases import as_patterns, odd_case
from oracles import claims as oracle
from solver_cases import WrongPresolve

from bayesrisk import Release, datasets as samples, make_mechanism, simulate_population, tabulate
from bayesrisk.census import household_cells, population_spec
from bayesrisk.exceptions import ArgumentTypeError
from bayesrisk.mechanisms import available_mechanisms
from bayesrisk.reconstruction import available_attacks, claim_sentences, find_claims, make_attack
from bayesrisk.reconstruction.claims.search import decide as _decide
from bayesrisk.tables import Workload

DHC = Workload.named("household-dhc")
NAMES = DHC.schema.names


@pytest.fixture(scope="module")
def county():
    return samples.load_microdata("synthetic-county").households


def small_blocks(county, most, n):
    """Records of blocks with few households and no vacant units."""
    frame = pd.DataFrame({"block": county.geoids, "vacancy": county.codes("vacancy")})
    size = frame.groupby("block")["vacancy"].agg(["size", "max"])
    chosen = size[(size["size"] <= most) & (size["max"] == 0)].index[:n]
    return [county.take(np.flatnonzero(county.geoids == block)) for block in chosen]


@functools.cache
def possible(cash):
    """Return the possible cells, where all rents are in cash or of both kinds; and weights."""
    cells = household_cells()
    if cash:
        cells = cells[DHC.schema.codes(cells)["tenure"] != 4]
    return cells, DHC.incidence(cells, level="block").tocsc()


def data_sets(records, cash):
    """All multisets of possible cells with the tables of some records, by trying them all."""
    tables, (cells, weights) = tabulate(records, DHC), possible(cash)
    counts = np.concatenate([tables.counts["block", t].toarray()[0] for t in DHC.at("block")])
    zero = np.flatnonzero(counts == 0)
    live = np.flatnonzero(np.asarray(weights[zero].sum(axis=0)).ravel() == 0)
    dense = weights[:, live].toarray()
    found = []
    for chosen in itertools.combinations_with_replacement(range(live.size), len(records)):
        if np.array_equal(dense[:, list(chosen)].sum(axis=1), counts):
            found.append(np.bincount(chosen, minlength=live.size))
    return tables, cells[live], np.array(found)


@pytest.mark.parametrize("tenure", ["merged", "cash", "four-way"])
def test_households_are_those_of_every_data_set(county, tenure):
    blocks = small_blocks(county, 2, 5) if tenure != "merged" else small_blocks(county, 3, 4)
    tried = 0
    for records in blocks:
        if tenure == "cash" and (records.codes("tenure") == 4).any():
            continue
        tables, live, sets = data_sets(records, tenure == "cash")
        if not len(sets):
            continue
        codes = DHC.schema.codes(live)
        if tenure != "four-way":
            codes["tenure"] = np.where(codes["tenure"] == 4, 3, codes["tenure"])
        coded = np.stack([codes[n] for n in NAMES], axis=1)
        row = coded[np.flatnonzero(sets[0])[0]]
        found = find_claims(tables, tenure=tenure, refuted=True)
        known = {}
        for claim in found.claims.itertuples(index=False):
            pattern = tuple(None if pd.isna(v) else int(v) for v in claim[1:11])
            known[pattern] = claim.status, claim.multiplicity
        for size in (1, 2, 3, 9, 10):
            for used in itertools.islice(itertools.combinations(range(10), size), 60):
                match = (coded[:, used] == row[list(used)]).all(axis=1)
                counts = set((sets @ match).tolist())
                pattern = tuple(int(row[a]) if a in used else None for a in range(10))
                if len(counts) == 1 and counts != {0}:
                    assert known[pattern] == ("verified", counts.pop())
                elif pattern in known:
                    assert known[pattern][0] == "refuted"
        tried += 1
    assert tried >= 3


def test_without_rules_fewer_claims_are_certain(county):
    (records,) = small_blocks(county, 3, 1)
    tables = tabulate(records, DHC)
    ruled, plain = (find_claims(tables, structural_rules=rules).claims for rules in (True, False))
    keys = [*NAMES, "multiplicity"]
    both = plain[keys].astype(object).merge(ruled[keys].astype(object), on=keys)
    assert len(both) == len(plain) <= len(ruled)


def test_words():
    found = find_claims(tabulate(one_unit(), DHC), columns=["tenure", "hispanic"])
    texts = claim_sentences(found)
    assert texts == [
        "One household. The home is rented or occupied without payment of rent.",
        "One household. The householder is not of Hispanic or Latino origin.",
        "One household. The home is rented or occupied without payment of rent. "
        "The householder is not of Hispanic or Latino origin.",
    ]
    full = find_claims(tabulate(one_unit(), DHC)).to_frame().query("n_columns == 10")
    assert claim_sentences(find_claims(tabulate(one_unit(), DHC)), full) == [
        "One household of 2 people. It is a female householder without spouse or partner, with "
        "nonrelatives only. The home is rented or occupied without payment of rent. Nobody in it "
        "is under 18 or 65 or over. The householder is Black, not of Hispanic or Latino origin, "
        "and 25 to 34 years old."
    ]
    vacancy = find_claims(tabulate(one_unit(), DHC), columns=["vacancy"])
    assert claim_sentences(vacancy) == ["One household, occupied."]
    with pytest.raises(ArgumentTypeError, match="claims must be a Claims"):
        claim_sentences(3)


def one_unit():
    from bayesrisk.tables import Records

    unit = {"tenure": 3, "vacancy": 0, "size": 2, "type": 7, "detailed_type": 8, "under_18": 1}
    unit |= {"over_65": 1, "hispanic": 1, "hhage": 2, "race": 2}
    frame = pd.DataFrame({"block": ["500010101001000"], **{k: [v] for k, v in unit.items()}})
    return Records.from_frame(frame, schema=DHC.schema)


def test_a_vacant_block_has_no_claims(county):
    units = county.take(np.flatnonzero(county.codes("vacancy") > 0)[:1])
    found = find_claims(tabulate(units, DHC))
    assert found.blocks[["status", "records"]].values.tolist() == [["decided", 0]]
    assert len(found.claims) == 0


def test_the_sample_can_be_made_again():
    catalogue = json.loads((samples.folder() / "catalogue.json").read_text(encoding="utf-8"))
    recipe = catalogue["fifty-blocks"]["recipe"]
    stored = samples.load_microdata("fifty-blocks")
    first, last = recipe["states"]
    chosen = stored.blocks.loc[stored.blocks["chosen"], "block"].tolist()
    assert len(chosen) == last - first + 1 == 50
    for state in (first, last):
        spec = population_spec(recipe["preset"], state=str(state), **recipe["changes"])
        made = simulate_population(spec, rng=recipe["rng"] + state - first).households
        own = stored.households.take(
            np.flatnonzero(np.char.startswith(stored.households.geoids, str(state)))
        )
        assert np.array_equal(made.cells(), own.cells())
        assert np.array_equal(made.geoids, own.geoids)
        sizes = pd.Series(made.geoids[made.codes("vacancy") == 0]).value_counts().sort_index()
        nearest = (sizes - int(np.median(sizes))).abs()
        assert sizes.index[int(np.argmin(nearest))] in chosen
    folder = samples.path("fifty-blocks")
    assert sum(file.stat().st_size for file in folder.iterdir()) < 300_000


def test_the_attack_reads_a_release(county):
    assert "claims" in available_attacks()
    assert "none" in available_mechanisms()
    records = small_blocks(county, 3, 1)[0]
    release = make_mechanism("identity").release(records, workload=DHC, rng=1)
    assert isinstance(release, Release)
    found = make_attack("claims", max_columns=2).run(release)
    assert found.claims.equals(find_claims(release.tables, max_columns=2).claims)
    with pytest.raises(ArgumentTypeError, match="release must be a Release, got 3"):
        make_attack("claims").run(3)
    with pytest.raises(ArgumentTypeError, match="colour is no argument of find_claims"):
        make_attack("claims", colour=1)


def test_a_wrong_infeasible_never_becomes_a_claim(monkeypatch):
    monkeypatch.setattr(_decide, "_NODES", 0)  # all that bounds leave open goes to the solver
    tried, liar = 0, WrongPresolve()
    for seed in range(120):
        schema, tables, cells, published, sets, most = odd_case(seed)
        if most > 9 or not len(sets):
            continue
        truth = oracle.true_claims(schema, tables, cells, sets, schema.names, 1)
        for solver in ("highs", liar):
            found = find_claims(published, cells=cells, solver=solver)
            assert as_patterns(found.to_frame(), schema, tables) == truth
        tried += 1
    assert tried > 20
    assert liar.lies > 0
