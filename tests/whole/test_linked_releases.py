"""Releases of persons, of households and of places that overlap: everything against enumeration."""

import dataclasses
import itertools
import math
from collections import Counter

import numpy as np
import pytest
from claims_cases import as_bounds
from hypothesis import given, settings, strategies as st
from joint_places import KINDS, LAYOUTS, data_sets, joint
from oracles import claims as claims_oracle, record_law as oracle
from oracles.reconstruction import solutions
from range_cases import strongest_claims
from two_years import ranges_of_two_years

from bayesrisk import Release
from bayesrisk.inference import MemberQuestion, RecordQuestion, microdata_posterior
from bayesrisk.inference.microdata.posterior import absent_member_posterior
from bayesrisk.reconstruction import count_bounds, find_claims, reconstruct

CASES = [(layout, linked) for layout in LAYOUTS for linked in (False, True)]


def asked_of(case, rng):
    """Return questions, and for each the number of records of each kind that it counts."""
    schema, found = case.prior.schema, []
    cells = np.indices(schema.shape).reshape(len(schema.shape), -1)
    place = None if case.places == 1 else f"1{int(rng.integers(case.places)):02d}"
    if case.link is None:
        codes = cells[0] == 1
        found = [
            (RecordQuestion({schema.names[0]: [1]}, place=place), codes),
            (RecordQuestion({schema.names[0]: [1]}, at_least=2), codes),
            (RecordQuestion({schema.names[0]: [1]}, among={}), codes),
        ]
        return [(*pair, np.ones(codes.size, int)) for pair in found]
    members = case.link.members[cells[-1]]
    women, size, rented = members[:, 1], members.sum(axis=1), cells[0] == 1
    pair = case.link.condition({"size": [2], "rented": [1]})
    return [
        (RecordQuestion({"rented": [1]}, at_least=1, place=place), rented, rented),
        (RecordQuestion(pair), rented & (size == 2), rented),
        (MemberQuestion({"sex": [1]}, place=place, link=case.link), women, size),
        (MemberQuestion({"sex": [1]}, at_least=2, link=case.link), women, size),
        (MemberQuestion({}, at_least=3, place=place, link=case.link), size, size),
        (MemberQuestion({"sex": [1]}, among={}, place=place, link=case.link), women, size),
    ]


def off_enumeration(case, rng):
    """Return the largest difference between beliefs and their enumeration."""
    prior = case.prior
    about = len(prior.shares), prior.shares, prior.concentration, prior.size
    law = oracle.posterior(case.places, *about, case.terms())
    release = Release.combine(case.releases, link=case.link)
    asked = asked_of(case, rng)
    if case.places > 1 and "tract" in release.tables.workload.levels:
        return off_place(case, release, law, asked, "tract", "1")
    # Blocks are independent: one of them is asked about.
    at = int(rng.integers(case.places))
    alone = [(w, (x[at],)) for w, x in law]
    asked = [one for one in asked if one[0].place in (None, f"1{at:02d}")]
    return off_place(case, release, alone, asked, "block", f"1{at:02d}")


def off_place(case, release, law, asked, level, code):
    questions = [q for q, *_ in asked]
    where = {"level": level, "place": code, "prior": case.prior, "engine": "exact"}
    answers = microdata_posterior(release, questions, **where).answers["posterior"]
    off = []
    for (question, part, group), value in zip(asked, answers, strict=True):

        def number(histograms, weights, place=question.place):
            chosen = histograms
            if place is not None and len(histograms) > 1:
                chosen = [histograms[int(place[1:])]]
            return sum(int(np.dot(weights, x)) for x in chosen)

        held = [(w, number(x, part), number(x, group)) for w, x in law]
        if question.among is not None:
            below = math.fsum(w * g for w, _, g in held)
            if below < 1e-12:
                continue
            expected = math.fsum(w * k for w, k, _ in held) / below
        elif question.at_least is None:
            expected = math.fsum(w * k for w, k, _ in held)
        else:
            expected = math.fsum(w for w, k, _ in held if k >= question.at_least)
        off.append(abs(value - expected))
    return max(off, default=0.0)


def beliefs(seeds):
    worst = 0.0
    for seed in seeds:
        rng = np.random.default_rng([seed, 5])
        layout, linked = CASES[seed % len(CASES)]
        kinds = [KINDS[int(rng.integers(len(KINDS)))] for _ in range(2)]
        case = joint(seed, linked=linked, layout=layout, kinds=kinds)
        worst = max(worst, off_enumeration(case, rng))
    return worst


@settings(max_examples=12)
@given(st.integers(0, 10**6))
def test_beliefs_equal_enumeration(seed):
    assert beliefs([seed]) < 1e-9


@pytest.mark.slow
def test_beliefs_of_two_thousand_pairs_equal_enumeration():
    assert beliefs(range(2000)) < 1e-9


def listed(case, places, rows):
    """Return every data set of some places that some rows allow, and the matrix of the rows."""
    matrix, ends = data_sets(case)
    width = matrix.shape[1] // case.places
    columns = np.concatenate([np.arange(p * width, (p + 1) * width) for p in places])
    part, low, high = matrix[np.ix_(rows, columns)], *ends[rows].T
    held = part > 0
    most = np.where(held, high[:, None] // np.maximum(part, 1), 10**6).min(axis=0)
    return np.array(solutions(part, np.zeros_like(most), most, low, high, most=10**5)), part


def told_apart(tables, scope):
    """Return (kinds, groups): which kinds of records some attribute of the tables tells apart."""
    schema, work = tables.workload.schema, tables.workload
    used = [t for (level, _), t in work.tables.items() if scope == "tract" or level == "block"]
    groups = claims_oracle.code_groups(schema, used)
    codes = np.indices(schema.shape).reshape(len(schema.shape), -1)
    labels = [np.array(groups[n])[own] for n, own in zip(schema.names, codes, strict=True)]
    group = np.unique(np.array(labels), axis=1, return_inverse=True)[1].ravel()
    return np.eye(group.max() + 1, dtype=int)[group]


MISSED = Counter()


def wrong_bounds(case, scope):
    """Return how many bounds and statuses differ from enumeration, and how many there are.

    A place of which only one list fits is ``feasible`` where another of the same larger place has
    several: statuses of places that are solved together are those of all of them.  ``MISSED``
    counts these.
    """
    tables = case.combined()
    scope = scope if scope in tables.workload.levels else "block"
    found = count_bounds(tables, scope=scope).counts
    found = found.set_index(["level", "geoid", "table", "cell"])
    status = dict(zip(tables.geoids["block"], reconstruct(tables, scope=scope).status, strict=True))
    wrong = number = 0
    told = told_apart(tables, scope)
    groups = [[p] for p in range(case.places)] if scope == "block" else [range(case.places)]
    for places in groups:
        rows = [
            at
            for at, row in enumerate(case.rows)
            if (row[1] == "block" or scope == "tract") and set(row[5]) <= set(places)
        ]
        every, matrix = listed(case, list(places), rows)
        sums = every @ matrix.T
        for at, row in enumerate(rows):
            release, level, code, table, cell, *_ = case.rows[row]
            key = level, code, f"{release}: {table}", cell
            if key not in found.index:  # stated by the other release, too
                continue
            ends = found.loc[key, ["low", "high"]].tolist()
            wrong += ends != [sums[:, at].min(), sums[:, at].max()]
            number += 1
        for at, p in enumerate(places):
            own = np.split(every, len(places), axis=1)[at] @ told
            said, alone = status[f"1{p:02d}"] == "unique", len(np.unique(own, axis=0)) == 1
            together = len(places) > 1 and alone and not said and len(every) > 1
            wrong += said != alone and not together
            MISSED.update([together])
            number += 1
    return wrong, number


def wrong_claims(case):
    """Return how many claims about one block are false or missed, and how many there are."""
    joint_tables = case.combined()
    schema, tables = case.prior.schema, list(joint_tables.workload.at("block").values())
    every, _ = listed(case, [0], list(range(len(case.rows))))
    truth = strongest_claims(schema, tables, np.arange(schema.size), every)
    found = find_claims(joint_tables)
    if "at_least" not in found.claims:
        truth = {pattern: claim for pattern, claim in truth.items() if not claim[1]}
    wrong = set(as_bounds(found.to_frame(), schema, tables).items()) ^ set(truth.items())
    return len(wrong), len(truth)


def proofs(seeds):
    """Return numbers of wrong bounds and claims, and of all, over pairs of releases."""
    found = np.zeros(4, np.int64)
    for seed in seeds:
        layout, linked = CASES[seed % len(CASES)]
        case = joint(seed, linked=linked, layout=layout)
        for scope in ("block", "tract"):
            found[:2] += wrong_bounds(case, scope)
        if case.places == 1:
            found[2:] += wrong_claims(case)
    return found.tolist()


@pytest.mark.parametrize("start", [0, 12])
def test_proofs_are_those_of_every_data_set(start):
    wrong_ends, ends, wrong, _ = proofs(range(start, start + 12))
    assert (wrong_ends, wrong) == (0, 0)
    assert ends > 100


def test_claims_are_those_of_every_data_set():
    found = [wrong_claims(joint(s, linked=bool(s % 2), layout="same")) for s in range(30)]
    wrong, claims = np.sum(found, axis=0)
    assert wrong == 0
    assert claims >= 10


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 2000, 500))
def test_proofs_of_two_thousand_pairs_are_those_of_every_data_set(start):
    MISSED.clear()
    wrong_ends, ends, wrong, claims = proofs(range(start, start + 500))
    assert MISSED[True] < 0.01 * MISSED.total()
    assert (wrong_ends, wrong) == (0, 0)
    assert ends > 1000
    assert claims > 100


def proofs_of_years(seeds):
    """Return numbers of wrong bounds, of bounds, of wrong claims and of claims about two years."""
    found = np.zeros(4, np.int64)
    for seed in seeds:
        case = ranges_of_two_years(seed)
        found += (*wrong_bounds(case, "block"), *wrong_claims(case))
    return found.tolist()


def test_proofs_about_two_years_are_those_of_every_list_of_trajectories():
    wrong_ends, ends, wrong, claims = proofs_of_years(range(25))
    assert (wrong_ends, wrong) == (0, 0)
    assert ends > 100
    assert claims >= 5


@pytest.mark.slow
def test_proofs_about_a_thousand_pairs_of_years_are_those_of_every_list():
    wrong_ends, ends, wrong, claims = proofs_of_years(range(1000))
    assert (wrong_ends, wrong) == (0, 0)
    assert ends > 4000
    assert claims > 200


def test_one_table_more_would_be_seen():
    """The tests above can fail: with the first release alone bounds are wider."""
    wrong = 0
    for seed in range(3, 60, 6):
        case = joint(seed, linked=True, layout="nested")
        case.releases = {"r0": case.releases["r0"]}
        wrong += wrong_bounds(case, "block")[0]
    assert wrong > 0


def enumerated_absence(case, where, among):
    """Return P(where | among, release) of a person whom the release is without, person by person.

    Every list of households, and every person of each as the one who was left out.
    """
    prior, (terms, link) = case.prior, (case.terms(), case.link)
    codes = np.indices(prior.schema.shape).reshape(2, -1)
    weights = np.array([w for _, w, _ in terms]).reshape(len(terms), -1)
    column = {(int(r), int(m)): at for at, (r, m) in enumerate(codes.T)}
    known = {tuple(row): at for at, row in enumerate(link.members.tolist())}
    parts = np.zeros(2)
    for n in range(1, prior.size.size):
        for chosen in itertools.product(range(prior.schema.size), repeat=n):
            weight = prior.size[n] * math.prod(prior.shares[k] for k in chosen)
            if not weight:
                continue
            for at, kind in enumerate(chosen):
                rented, composition = codes[:, kind]
                own = link.members[composition]
                for person in np.flatnonzero(own):
                    rest = own.copy()
                    rest[person] -= 1
                    kinds = [*chosen[:at], *chosen[at + 1 :]]
                    if rest.any():
                        kinds.append(column[int(rented), known[tuple(rest.tolist())]])
                    counts = weights[:, kinds].sum(axis=1)
                    value = math.fsum(f(int(c)) for (*_, f), c in zip(terms, counts, strict=True))
                    share = weight * own[person] * math.exp(value) * (person in among)
                    parts += share * np.array([person in where, 1])
    return parts[0] / parts[1] if parts[1] else math.nan


def absence(seeds):
    """Return the largest difference from enumeration, and how many could be asked."""
    worst, number = 0.0, 0
    for seed in seeds:
        rng = np.random.default_rng([seed, 6])
        kinds = [KINDS[int(rng.integers(len(KINDS)))] for _ in range(2)]
        case = joint(seed, linked=True, layout="same", kinds=kinds)
        size = case.prior.size[:3] / case.prior.size[:3].sum()
        case.prior = dataclasses.replace(case.prior, concentration=None, size=size)
        expected = enumerated_absence(case, {1}, {0, 1})
        if math.isnan(expected) or not case.prior.size[1:].any():
            continue
        release = Release.combine(case.releases, link=case.link)
        asked = [MemberQuestion({"sex": [1]}, among={}, link=case.link)]
        where = {"level": "block", "place": "100", "prior": case.prior}
        found = absent_member_posterior(release, asked, **where)
        worst, number = max(worst, abs(float(found[0]) - expected)), number + 1
    return worst, number


def test_a_person_left_out_of_both_releases_equals_enumeration():
    worst, number = absence(range(12))
    assert worst < 1e-9
    assert number >= 6


@pytest.mark.slow
def test_three_hundred_persons_left_out_equal_enumeration():
    worst, number = absence(range(300))
    assert worst < 1e-9
    assert number >= 150
