"""What one more person would change: against complete enumeration, and where it answers."""

import numpy as np
import pytest
from oracles import record_law as oracle
from random_places import one_block, place, three_levels, town

from bayesrisk.inference import KnownRecords, RecordPrior, RecordQuestion, microdata_posterior
from bayesrisk.inference.microdata.chains import PeopleChain, draw
from bayesrisk.inference.microdata.expected_counts import ExpectedCounts, mecke_terms
from bayesrisk.inference.microdata.people_model import ChainState, people_model, put
from bayesrisk.inference.microdata.questions import estimate_answers, question_functions
from bayesrisk.inference.microdata.system import make_system
from bayesrisk.inference.sampling.chains import effective_size
from bayesrisk.release import NoiseSpec

EXTEND = ExpectedCounts.extend_chains
FACTORS = ("nothing", "number", "likelihood", "size")
#: About a kind of the two that are rare.
ASKED = [RecordQuestion({"kind": [1]}, among={"kind": [1, 2]})]


def levels_terms(release, members):
    """Return the oracle's terms of tables of the two sexes: Gaussian noise of variance 4."""
    found = []
    for (level, name), counts in release.tables.counts.items():
        for geoid, row in zip(release.tables.geoids[level], counts.toarray(), strict=True):
            covered = [i for i, block in enumerate(members) if block.startswith(str(geoid))]
            for sex, count in enumerate(row):
                weights = [int(sex == 0), int(sex == 1)]
                found.append((covered, weights, lambda s, c=int(count): -((s - c) ** 2) / 8))
        assert name == "sex"
    return found


def enumerated(seed, kind):
    """Return a system whose classes are all cells, and every state of it with its weight."""
    if kind == "three levels":
        release, prior = three_levels(seed, 2)
        terms = levels_terms(release, ["1100", "1101", "1200", "1201"])
        law = oracle.posterior(4, 2, prior.shares, None, prior.size, terms)
        level, cells = "tract", [{"sex": [s]} for s in range(2)]
    else:
        release, prior, terms, _ = place(seed, "noisy", int(kind))
        level, schema = ("block" if kind == "1" else "tract"), prior.schema
        law = oracle.posterior(*terms)
        codes = np.indices(schema.shape).reshape(len(schema.shape), -1).T.tolist()
        cells = [{a: [c] for a, c in zip(schema.names, row, strict=True)} for row in codes]
    apart = [t for cell in cells for t in RecordQuestion(cell).tables(prior.schema)]
    where = {"level": level, "place": release.tables.geoids[level][0]}
    system = make_system(release, prior=prior, conditions=apart, **where)
    assert system.classes.size == len(cells)
    return system, law


def changed(of, x, what):
    """Return the terms of all counts of a state, some factor left out."""
    model = of.arrays
    spot = of.spot.copy()
    put(model, spot, x)
    people = x.sum(axis=1)
    room = np.zeros((5, 2), int), np.zeros(1), np.zeros(x.shape[1])
    state = ChainState(np.zeros(1, int), people, x, spot, *room)
    if what == "likelihood":
        model = model._replace(table=np.zeros_like(model.table))
    if what == "size":
        model = model._replace(log_size=np.zeros_like(model.log_size))
    parts, classes = np.divmod(np.arange(x.size), x.shape[1])
    found = np.empty(x.size)
    mecke_terms(model, state, parts, classes, found)
    return found / (people[parts] + 1) if what == "number" else found


@pytest.mark.parametrize("kind", ["1", "2", "three levels"])
def test_the_equation_holds_for_every_count_by_enumeration(kind):
    """Both sides are summed over all states; it does not hold if a factor is left out."""
    worst, concentrations = dict.fromkeys(FACTORS, 0.0), set()
    for seed in range(6 if kind == "1" else 3):
        system, law = enumerated(seed, kind)
        concentrations.add(system.prior.concentration)
        of = people_model(system)
        mean, found = np.zeros(len(of.strata) * of.classes), dict.fromkeys(FACTORS, 0.0)
        for weight, x in law:
            state = np.array(x, np.int64)
            mean += weight * state.ravel()
            for what in FACTORS:
                found[what] += weight * changed(of, state, what)
        for what, sums in found.items():
            worst[what] = max(worst[what], np.abs(sums - mean).max() / mean.max())
    assert len(concentrations) > 1 or kind != "1"
    assert worst.pop("nothing") < 1e-9
    if kind == "three levels":  # its size law is flat, but ends
        del worst["size"]
    assert min(worst.values()) > 0.05


def test_the_equation_holds_where_every_number_of_people_has_the_same_weight():
    """Up to the most people that a chain has room for, with knowledge that shifts the law."""
    release, prior = one_block(
        NoiseSpec("discrete-gaussian", 1), [1, 0, 1], np.eye(3, dtype=int), 2
    )
    known = [KnownRecords({"kind": [0]})]
    for concentration in (None, 2.0):
        prior = RecordPrior(prior.schema, np.array([0.6, 0.3, 0.1]), concentration)
        system = make_system(release, level="block", place="1", prior=prior, known_people=known)
        of = people_model(system)
        most = int(of.arrays.first[-1])
        shares = of.arrays.mass[0] / of.arrays.mass[0].sum()  # of the others, given the known one
        sums = [
            ([0], np.eye(3, dtype=int)[c].tolist(), lambda s, r=r: -((s - r) ** 2) / 2)
            for c, r in enumerate([0, 0, 1])  # one of the first kind is known
        ]
        alone = None if concentration is None else concentration + 1.0
        law = oracle.posterior(1, 3, shares, alone, np.ones(most + 1), sums)
        mean, found = np.zeros(3), 0.0
        for weight, x in law:
            mean += weight * np.array(x[0])
            found += weight * changed(of, np.array(x), "nothing")
        np.testing.assert_allclose(found, mean, rtol=1e-9)


def recorded(system, asked, draws, sweep_size=1000, chains=4, seed=1):
    """Return chains, functions of the questions and of a state, and what records their terms."""
    of, functions = people_model(system), question_functions(asked, system)
    rngs = np.random.default_rng(seed).spawn(chains)
    chains = [PeopleChain.begin(of, rng, sweep_size) for rng in rngs]
    counts = functions.cells[:, of.unknown_cell].tocsr()
    return chains, functions, counts, ExpectedCounts(system, asked, functions, chains, draws)


def observer_of(more):
    def observer():
        more.reset()
        return lambda chain, x: more.record(chain)

    return observer


def apart(asked, prior):
    return [t for q in asked for t in q.tables(prior.schema)]


def all_shares(release, prior, seed, draws):
    """Return every share of a tract by one more person, each with its exact value."""
    common, schema = {"level": "tract", "place": "1", "prior": prior}, prior.schema
    system = make_system(release, **common)
    first, last = schema.names[0], schema.names[-1]
    among = [{last: [c]} for c in range(schema.attribute(last).size)] if last != first else [{}]
    asked = [
        RecordQuestion({first: [code]}, among=group, place=p)
        for p in system.places.tolist()
        for group in among
        for code in range(schema.attribute(first).size)
    ]
    system = make_system(release, **common, conditions=apart(asked, system.prior))
    exact = microdata_posterior(release, asked, **common, engine="exact").answers["posterior"]
    chains, functions, counts, more = recorded(system, asked, draws, seed=seed)
    drawn = draw(chains, counts, draws, thin=1, doublings=0, observer=observer_of(more))
    plain = estimate_answers(asked, functions, drawn)
    return more.answer_undecided(plain.assign(status="undecided"), drawn), exact.to_numpy()


def test_answers_of_one_more_person_are_within_their_errors():
    z = []
    for seed in range(2):
        found, exact = all_shares(*three_levels(seed, 2), seed, 300)
        assert found["status"].eq("sampled").all()
        z += ((found["posterior"] - exact) / found["error"]).tolist()
    z = np.array(z)
    assert z.size == 16
    assert np.abs(z).max() < 4.5


def test_counts_that_are_almost_exact_are_left_to_plain_draws():
    """Rare draws would weigh too much: here 600 draws are off by more than four errors."""
    release, prior, _, _ = place(23, "noisy", 2)
    found, _ = all_shares(release, prior, 23, 150)
    assert found["status"].eq("undecided").all()


def rare(scale=2, released=(8, 0), weights=((1, 0, 0), (0, 1, 1)), size=None):
    """Return a block of about eight people, of whom two kinds are seldom there, and where it is."""
    law = NoiseSpec("discrete-gaussian", scale)
    release, prior = one_block(law, list(released), np.array(weights), 20)
    shares = np.array([0.995, 0.004, 0.001])
    prior = RecordPrior(prior.schema, shares, None, prior.size if size is None else size)
    return release, {"level": "block", "place": "1", "prior": prior}


def uneven():
    """Return such a block with uneven terms: its number of people is published seven times."""
    return rare("27/5", [8] * 7 + [0], [[1, 1, 1]] * 7 + [[0, 1, 0]])


def exact_means(release, asked, common):
    found = microdata_posterior(release, asked, **common, engine="exact")
    return found.answers["posterior"].tolist()


def test_a_group_that_is_mostly_empty_is_answered():
    release, common = rare()
    asked = [RecordQuestion({"kind": [0]}, among={"kind": [0, 1]}), *ASKED]
    run = microdata_posterior(
        release, asked, **common, engine="people", rng=1, draws=400, doublings=0
    )
    looks = (run.samples.counts[:, :, 3] > 0).sum()
    assert looks < 200  # draws in which somebody can be the target
    assert run.answers["status"].tolist() == ["sampled", "sampled"]
    assert "1 answers" in run.reason
    exact = exact_means(release, asked, common)
    for value, answer in zip(exact, run.answers.itertuples(), strict=True):
        assert answer.lower - 1e-12 <= value <= answer.upper + 1e-12
    # No table tells the two kinds apart: every draw says the same.
    assert run.answers["posterior"][1] == pytest.approx(0.8, rel=1e-9)


def test_what_is_short_of_draws_is_looked_at_more_often():
    """Between two draws only the people of its places change: the same means, of steadier terms."""
    release, common = rare("7/5", weights=[[1, 1, 1], [0, 1, 0]])
    exact = exact_means(release, [RecordQuestion({"kind": k}) for k in ([1], [1, 2])], common)
    system = make_system(release, **common, conditions=apart(ASKED, common["prior"]))
    chains, functions, counts, more = recorded(system, ASKED, 90)
    spread = []
    for _ in range(2):  # 360 draws answer nothing, so the question is short of them
        drawn = draw(chains, counts, 90, thin=4, doublings=0, observer=observer_of(more))
        answered = more.answer_undecided(estimate_answers(ASKED, functions, drawn), drawn)
        assert answered["status"].tolist() == ["undecided"]
        for terms, value in zip(more.terms(0), exact, strict=True):
            error = terms.std(ddof=1) / np.sqrt(effective_size(terms))
            assert abs(terms.mean() - value) < 4.5 * error
        spread.append(terms.std() / terms.mean())
    assert spread[1] < 0.75 * spread[0]


def test_what_is_short_of_draws_is_answered_from_further_ones_alone(monkeypatch):
    """Without another round; answers are within their errors, also those that needed it."""
    release, common = uneven()
    (exact,) = exact_means(release, ASKED, common)
    of_further, seen = [], []

    def watched(of, frame, drawn):
        found = EXTEND(of, frame, drawn)
        seen.append((frame["status"][0], found["status"][0]))
        return found

    monkeypatch.setattr(ExpectedCounts, "extend_chains", watched)
    for seed in range(1, 4):
        run = microdata_posterior(
            release, ASKED, **common, engine="people", rng=seed, draws=250, doublings=0
        )
        answer = run.answers.iloc[0]
        assert seen.pop() == ("undecided", "sampled")
        of_further.append((answer["posterior"] - exact) / answer["error"])
        assert answer["ess"] <= 4 * 125  # as many as there are further draws
        assert "1 answers" in run.reason
    assert np.abs(of_further).max() < 4.5


def test_further_draws_are_made_only_where_they_can_be_enough():
    """Not where a look costs too much, nor where a whole round is needed for something else."""
    release, common = uneven()
    asked = [*ASKED, RecordQuestion({"kind": [0]})]  # of the other one more person says nothing
    system = make_system(release, **common, conditions=apart(asked, common["prior"]))
    chains, functions, counts, more = recorded(system, asked, 400)
    drawn = draw(chains, counts, 400, thin=1, doublings=0, observer=observer_of(more))
    plain = estimate_answers(asked, functions, drawn)
    assert plain["status"].tolist() == ["undecided", "sampled"]
    cases = (
        (1000, np.inf, "sampled", "sampled"),
        (1000, 100.0, "sampled", "sampled"),
        (1000, 99.0, "sampled", "undecided"),
        (20, np.inf, "sampled", "undecided"),
        (1000, np.inf, "undecided", "undecided"),
    )
    for sweep, worth, other, found in cases:
        more._recorded[:] = False  # as if nothing had been recorded
        frame = more.answer_undecided(plain.assign(status=["undecided", other]), drawn)
        assert frame["status"].tolist() == ["undecided", other]
        more._sweep_size, more._worth[0] = sweep, worth
        before = [chain.state.occupant.copy() for chain in chains]
        assert more.extend_chains(frame, drawn)["status"].tolist() == [found, other]
        same = [(b == chain.state.occupant).all() for b, chain in zip(before, chains, strict=True)]
        assert all(same) == (found == "undecided")  # the chains did not go on


def test_a_group_stays_undecided_where_the_equation_does_not_hold():
    """A list with one person less may be impossible: the size has a gap, or is published."""
    release, common = rare(size=np.repeat([0.0, 1.0 / 16.0], [5, 16]))
    run = microdata_posterior(
        release, ASKED, **common, engine="people", rng=1, draws=400, doublings=0
    )
    assert run.answers["status"].tolist() == ["undecided"]
    assert "answers" not in run.reason
    release, prior, _ = town(0, 1, together=False)
    system = make_system(release, level="block", place="1000", prior=prior)
    more = recorded(system, [RecordQuestion({"sex": [1]}, among={"age": [3]})], 10)[-1]
    assert not more.possible.any()


def test_later_rounds_ask_only_what_is_undecided():
    """Where all groups together are too wide for a sweep, the first round asks nothing."""
    release, common = rare()
    asked = [RecordQuestion({"kind": [0]}, among={}), *ASKED]
    system = make_system(release, **common, conditions=apart(asked, common["prior"]))
    chains, functions, counts, more = recorded(system, asked, 300, sweep_size=1, chains=2)
    more._sweep_size = more._room = 1
    for chain in chains:
        chain.sweep_size = 1000
    seen = []

    def enough(drawn):
        frame = more.answer_undecided(estimate_answers(asked, functions, drawn), drawn)
        seen.append(frame["status"].tolist())
        return seen[-1] == ["sampled"] * 2

    draw(chains, counts, 300, thin=2, doublings=3, enough=enough, observer=observer_of(more))
    assert seen == [["sampled", "undecided"], ["sampled", "sampled"]]
