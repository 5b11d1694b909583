"""What is believed of a target, against complete enumeration of all data sets."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import event, given, settings, strategies as st
from oracles import audit as oracle, record_law
from random_places import COARSE, KINDS, place
from scipy.stats import chi2

from bayesrisk.constraints.solvers import Deadline
from bayesrisk.exceptions import DataError
from bayesrisk.inference import KnownRecords, RecordPrior, RecordQuestion
from bayesrisk.inference.microdata import posterior
from bayesrisk.inference.microdata.posterior import RecordLaw, _exact, record_law as find_law
from bayesrisk.inference.microdata.questions import question_functions
from bayesrisk.inference.microdata.system import make_system
from bayesrisk.release import MechanismSpec, NoiseSpec, Release
from bayesrisk.risk.audit.adversaries import (
    Removals,
    TargetQuestion,
    belief_without_record,
    posterior_belief,
    prior_belief,
    prior_knowing,
    prior_of_others,
    reweighted_belief,
)
from bayesrisk.tables import Attribute, Geography, PublishedTables, Schema, Table, Workload

#: Of a t statistic with the 19 degrees of freedom of batches, |t| > 7 has probability 1e-6.
FAR = 7.0


class Case:
    """A random place, one of its records as the target, and what the oracle says of it."""

    def __init__(self, seed, kind):
        rng = np.random.default_rng([seed, 77])
        self.release, self.prior, terms, (self.truth,) = place(seed, kind)
        _, self.n_cells, shares, self.concentration, size, cells = terms
        self.shares = shares.tolist()
        self.there = bool(self.truth.sum())
        if not self.there:
            return
        self.record = int(rng.choice(np.repeat(np.arange(self.n_cells), self.truth)))
        shape = self.prior.schema.shape
        index = np.indices(shape).reshape(len(shape), -1)
        possible = np.ones(self.n_cells, bool)
        if len(shape) > 1 and rng.random() < 0.7:
            possible = index[0] == index[0][self.record]
        self.asked = TargetQuestion(possible, index[-1].astype(np.int64), shape[-1])
        self.group = (possible.tolist(), index[-1].tolist(), shape[-1])
        one = (1, self.n_cells, shares, self.concentration, size)
        self.all_law = record_law.posterior(*one, cells)
        others = (*one[:-1], oracle.size_of_others(size))
        self.others_law = record_law.posterior(*others, oracle.less(cells, self.record))

    def system(self):
        return make_system(self.release, level="block", place="100", prior=self.prior)

    def laws(self, **limit):
        """Return the classes of the system, and the laws of all records and of the others."""
        system = self.system()
        one = np.zeros(system.classes.size, np.int64)
        of = system.classes.labels(np.array([self.record]))[0]
        one[of] = 1
        less = replace(system, prior=prior_of_others(self.prior)).without_records(0, one)
        shares = self.asked.shares(system.classes, self.prior.shares_of_cells)
        return int(of), shares, find_law(system, rng=1, **limit), find_law(less, rng=2, **limit)

    def expected(self):
        posterior = oracle.after(self.all_law, *self.group)
        return np.array(posterior), np.array(
            oracle.without(self.others_law, self.shares, self.concentration, *self.group)
        )


def cases(kind, seeds):
    return [case for case in (Case(seed, kind) for seed in seeds) if case.there]


def score(found, expected, *, least=0.0):
    """Return the error in standard errors of the value that is most open; None where exact.

    Errors have a floor, one over the number of draws: with ``least`` only those well above it.
    """
    if least and found.error.max() < least:
        return None
    if found.error.max() < 1e-12:
        np.testing.assert_allclose(found.probability, expected, rtol=1e-9, atol=1e-9)
        return None
    # A value that no draw had is missed by less than what all draws together could show.
    at = int(found.error.argmax())
    return (found.probability[at] - expected[at]) / found.error[at]


def agree(scores):
    """Refuse errors that are too small; return the scores."""
    z = np.array([s for s in scores if s is not None])
    if not z.size:
        return z
    assert np.abs(z).max() < FAR
    # Mean square 19/17, of which 4 standard errors and a half for draws that are not independent.
    assert (z**2).mean() < 19 / 17 * 1.5 + 4 * np.sqrt(2.9 / z.size)
    return z


def not_too_wide(scores):
    """Return whether scores are as large as those of so many normal errors are, but for 1e-4."""
    z = np.array([s for s in scores if s is not None])
    return z.size >= 10 and (z**2).sum() > chi2.ppf(1e-4, z.size)


#: So few pairs of sums that what is more than trivial takes a chain.
CHAINS = {"max_pairs": 30}


def beliefs(kind, seeds, limit, **least):
    """Compare posterior and without with the oracle; return scores, and how many were exact."""
    scores, exact = [], 0
    for case in cases(kind, seeds):
        _, shares, law, other = case.laws(**limit)
        after, alone = case.expected()
        exact += (law.draws is None) + (other.draws is None)
        if law.decided:
            scores.append(score(posterior_belief(law, 0, shares), after, **least))
        if other.decided:
            told = belief_without_record(other, 0, shares, case.prior, case.asked)
            scores.append(score(told, alone, **least))
    return scores, exact


#: Among how many places there are some that need a chain.
QUICK = {"noisy": range(25)}


@pytest.mark.parametrize("kind", [*KINDS, COARSE])
def test_exact_beliefs_agree_with_enumeration(kind):
    scores, exact = beliefs(kind, range(12), {})
    assert exact == len(scores) > 10  # each compared to 1e-9
    assert not any(scores)


@given(seed=st.integers(0, 2**32 - 1), kind=st.sampled_from(["noisy", "exact", "mixed"]))
@settings(deadline=None, max_examples=60)
def test_the_law_without_each_record_is_that_of_the_others_and_of_enumeration(seed, kind):
    """All records of a place from one law of all, beside a law of the others of each."""
    for case in cases(kind, [seed]):
        if case.concentration is None:
            return
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(posterior, "place_law", lambda *_: None)
            of, shares, _, other = case.laws()
            law = find_law(case.system(), removed=range(len(shares)))
        means = law.reduced_means.get(int(law.group[of]))
        if means is None:  # hardly ever there, or by two sides
            return
        event("one law")
        found, alone = (
            belief_without_record(one, 0, shares, case.prior, case.asked).probability
            for one in (replace(law, mean=means), other)
        )
        np.testing.assert_allclose(found, alone, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(found, case.expected()[1], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("exact", "withheld")])
def test_beliefs_of_chains_agree_with_enumeration(kind):
    assert agree(beliefs(kind, QUICK.get(kind, range(12)), CHAINS)[0]).size > 0


@pytest.mark.slow
def test_beliefs_of_many_places_agree_with_enumeration():
    assert agree([s for kind in KINDS for s in beliefs(kind, range(100, 160), CHAINS)[0]]).size > 20
    wide = [s for kind in KINDS for s in beliefs(kind, range(100, 160), CHAINS, least=0.003)[0]]
    assert not_too_wide(wide)  # errors that are far too large would agree with anything


def test_before_is_the_composition_of_the_group():
    for case in cases("mixed", range(20)):
        expected = oracle.before(case.shares, *case.group)
        found = prior_belief(case.prior, case.asked)
        np.testing.assert_allclose(found.probability, expected, rtol=1e-12)
        assert not found.error.any()


def by_weights(seeds, *, any_record=False):
    scores, refused = [], 0
    for case in cases("noisy", seeds):
        record, shares, law, _ = case.laws(**CHAINS)
        if law.draws is None or not law.decided or case.concentration is None:
            continue
        removals = Removals.make(case.system(), law) if any_record else None
        found = reweighted_belief(law, 0, shares, case.prior, case.asked, record, removals)
        if found is None:
            refused += 1
        else:
            scores.append(score(found, case.expected()[1]))
    return scores, refused


@pytest.mark.parametrize("any_record", [False, True])
def test_weights_give_what_the_law_of_the_others_gives(any_record):
    scores, _ = by_weights(range(14), any_record=any_record)
    assert agree(scores).size > 2


def races(number):
    """Return a schema of people of so many races."""
    geography = Geography("towns", ("block",), (3,))
    return Schema("people", (Attribute("race", number),), geography)


def one_table(released, variance, prior):
    """Return the system of one place with a noisy count of each race."""
    eye = np.eye(len(released), dtype=int)
    table = Table("R", tuple("abc"[: len(released)]), {"race": eye})
    workload = Workload(prior.schema, {("block", "R"): table})
    spec = MechanismSpec("by hand", {}, {("block", "R"): NoiseSpec("discrete-gaussian", variance)})
    counts = {("block", "R"): np.array([released])}
    release = Release(spec, PublishedTables(workload, {"block": ["100"]}, counts))
    return make_system(release, level="block", place="100", prior=prior)


def independent(mass, released, seeds, *, variance=2, any_record=False, draws=1000):
    """Return errors in standard errors of what weights say, of independent draws of the law.

    And the shares of beliefs that are given up, and of draws of which none has the record alone.
    """
    shares = np.array([0.6, 0.4 - mass / 2.0, mass / 2.0])  # concentration 2
    size, eye = np.full(19, 1 / 19), np.eye(3, dtype=int)
    terms = [
        ([0], row, lambda s, r=r: -((s - r) ** 2) / (2.0 * float(Fraction(variance))))
        for row, r in zip(eye.tolist(), released, strict=True)
    ]
    law = record_law.posterior(1, 3, shares, 2.0, size, terms)
    others = record_law.posterior(
        1, 3, shares, 2.0, oracle.size_of_others(size), oracle.less(terms, 2)
    )
    exact = oracle.without(others, shares, 2.0, [True] * 3, [0, 1, 2], 3)
    weight, x = np.array([w for w, _ in law]), np.array([x for _, (x,) in law])
    prior = RecordPrior(races(3), shares, 2.0, size)
    system = one_table(released, variance, prior)
    asked = TargetQuestion(np.ones(3, bool), np.arange(3), 3)
    z, given_up, unseen = [], 0, 0
    for seed in range(seeds):
        drawn = x[np.random.default_rng(seed).choice(weight.size, (4, draws // 4), p=weight)]
        unseen += not (drawn[..., 2] == 1).any()
        law = RecordLaw(
            np.arange(3), np.ones(3), 2.0 * shares, drawn.mean(axis=(0, 1)), drawn, "people"
        )
        removals = Removals.make(system, law) if any_record else None
        found = reweighted_belief(law, 0, np.eye(3), prior, asked, 2, removals)
        if found is None:
            given_up += 1
        else:
            z.append((found.probability - exact) / found.error)
    return np.array(z), given_up / seeds, unseen / seeds


@pytest.mark.parametrize(("mass", "released"), [(0.002, [5, 4, 7]), (0.02, [5, 4, 6])])
def test_samples_that_miss_large_weights_by_chance_are_not_kept(mass, released):
    """A record alone weighs 500 or 50 times as much as among others, and few draws have one so."""
    z, given_up, unseen = independent(mass, released, 40)
    assert unseen > 0.3 or mass > 0.002
    assert given_up == 1.0
    assert not z.size


@pytest.mark.parametrize("released", [[5, 4, 7], [5, 4, 1]])
def test_where_another_record_is_removed_a_rare_one_needs_no_draws(released):
    """No count has much to say, and a thousandth of the prior is of the target's kind."""
    assert independent(0.002, released, 20, variance=20)[1] == 1.0
    z, given_up, unseen = independent(0.002, released, 100, variance=20, any_record=True)
    assert given_up == 0.0
    assert unseen > 0.1
    assert 0.85 < np.sqrt(np.mean(z**2)) < 1.15
    assert np.abs(z).max() < 4.5


def test_removals_that_miss_large_weights_by_chance_are_not_kept():
    """With little noise only one of the target's kind leaves the others as they are without it."""
    for mass, released in ((0.002, [5, 4, 7]), (0.02, [5, 4, 6])):
        assert independent(mass, released, 40, variance="1/4", any_record=True)[1] == 1.0
    z, given_up, _ = independent(0.002, [5, 4, 7], 100, any_record=True)
    assert given_up > 0.8
    assert np.abs(z).max(initial=0.0) < 4.5


@pytest.mark.parametrize("any_record", [False, True])
@pytest.mark.parametrize("mass", [0.05, 0.2, 0.6])
def test_errors_of_weights_are_those_of_independent_draws(mass, any_record):
    z, given_up, _ = independent(mass, [5, 4, 5], 200, any_record=any_record)
    assert given_up < 0.5
    assert 0.9 < np.sqrt(np.mean(z**2)) < 1.1
    assert np.abs(z).max() < 4.5  # of 600, with 19 degrees of freedom


@pytest.mark.parametrize("any_record", [False, True])
def test_weights_of_another_record_give_another_answer(any_record):
    """Negative control: six people of two kinds, counted with little noise, and the wrong kind."""
    prior = RecordPrior(races(2), np.array([0.5, 0.5]), 2.0, np.full(13, 1 / 13))
    system = one_table([4, 2], "1/4", prior)
    asked = TargetQuestion(np.ones(2, bool), np.array([0, 1]), 2)
    law, shares = find_law(system, rng=1, **CHAINS), np.eye(2)
    removals = Removals.make(system, law) if any_record else None
    right, wrong = (reweighted_belief(law, 0, shares, prior, asked, r, removals) for r in (0, 1))
    less = replace(system, prior=prior_of_others(prior)).without_records(0, np.array([1, 0]))
    alone = belief_without_record(find_law(less, rng=2), 0, shares, prior, asked)
    assert abs(right.probability[0] - alone.probability[0]) < 5.0 * np.hypot(
        right.error[0], alone.error[0]
    )
    # (1 + 3) / (2 + 5) of the others are of the first kind, and (1 + 4) / 7 would be.
    assert abs(alone.probability[0] - 4 / 7) < 0.03
    assert abs(wrong.probability[0] - 5 / 7) < 0.03


@pytest.mark.slow
def test_weights_give_what_the_law_of_the_others_gives_in_many_places():
    for any_record in (False, True):
        assert agree(by_weights(range(200, 230), any_record=any_record)[0]).size > 5


def test_weights_are_refused_where_no_draw_has_such_a_record():
    case = Case(10, "noisy")
    record, shares, law, _ = case.laws(**CHAINS)
    draws = law.draws.copy()
    draws[..., law.group[record]] = 0
    bare = type(law)(law.group, law.weight, law.mass, law.mean, draws, law.engine)
    assert reweighted_belief(bare, 0, shares, case.prior, case.asked, record) is None


def test_records_that_contradict_true_counts_are_refused():
    case = next(c for c in cases("exact", range(30)) if c.n_cells > 3)
    system = case.system()
    many = np.full(system.classes.size, 50, np.int64)
    with pytest.raises(DataError, match="release states -"):
        system.without_records(0, many)


def two_ways(case, counts):
    """Return the shares of all kinds among the others, from known records said in two ways.

    One takes the known records off what is published and off the prior, as an audit does; the
    other tells :class:`KnownRecords`.  ``counts`` says whether the known teach what others are.
    """
    schema, prior = case.prior.schema, case.prior
    cells = np.indices(schema.shape).reshape(len(schema.shape), -1).T.tolist()
    where = [{a: [c] for a, c in zip(schema.names, cell, strict=True)} for cell in cells]
    asked = [RecordQuestion(w, among={}) for w in where]
    at = {"level": "block", "place": "100", "prior": prior}
    conditions = [t for question in asked for t in question.tables(schema)]
    known = case.truth // 2 + case.truth % 2
    told = [KnownRecords(w, int(n)) for w, n in zip(where, known, strict=True) if n]
    system = make_system(case.release, **at, conditions=conditions, known_people=told)
    first = _exact(system, asked, question_functions(asked, system), Deadline()).answers
    system = make_system(case.release, **at, conditions=conditions)
    of = system.classes.labels(np.arange(schema.size))
    less = system.without_records(
        0, np.bincount(of, known, minlength=system.classes.size).astype(int)
    )
    less = replace(less, prior=prior_knowing(prior, known * float(counts), None))
    if not counts and prior.size is not None:
        size = prior.size[known.sum() :]
        less = replace(less, prior=replace(less.prior, size=size / size.sum()))
    return first, _exact(less, asked, question_functions(asked, less), Deadline()).answers


@pytest.mark.parametrize("kind", [*KINDS, COARSE])
def test_known_records_say_the_same_in_both_ways(kind):
    found = [(case, *two_ways(case, counts=True)) for case in cases(kind, range(30))]
    assert len(found) > 10
    for _, one, other in found:
        np.testing.assert_allclose(one["posterior"], other["posterior"], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(one["prior"], other["prior"], rtol=1e-9, atol=1e-12)


def test_known_records_that_teach_nothing_are_something_else():
    """Negative control: with a concentration, the others are like those who are known."""
    far = [
        np.nanmax(np.abs(one["posterior"] - other["posterior"]), initial=0.0)
        for case in cases("noisy", range(30))
        if case.prior.concentration is not None
        for one, other in [two_ways(case, counts=False)]
    ]
    assert max(far) > 0.05
