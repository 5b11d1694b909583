"""Releases that contradict themselves or the prior, and mechanisms without a likelihood."""

import numpy as np
import pytest
from random_places import one_block

from bayesrisk.exceptions import ArgumentError, DataError, ShapeError
from bayesrisk.inference import RecordPrior, RecordQuestion, microdata_posterior
from bayesrisk.inference.microdata import chains, posterior, system
from bayesrisk.inference.microdata.prior import fit_concentration
from bayesrisk.release import NoiseSpec, RoundingSpec, SimulationOnly, TrueCounts

ASKED = [RecordQuestion({})]
PLACE = {"level": "block", "place": "1"}


@pytest.mark.parametrize(
    ("law", "released", "weights", "error", "match"),
    [
        (TrueCounts(), [2, 3], [[1, 1, 1], [1, 1, 1]], DataError, "T0|T1"),
        (TrueCounts(), [1, 3], [[1, 1, 1], [1, 1, 0]], DataError, "contradicts itself"),
        (TrueCounts(), [3], [[2, 2, 2]], DataError, "make number of records of 1 1.5"),
        (TrueCounts(), [9], [[1, 1, 1]], DataError, "cannot be 9"),
        (TrueCounts(), [-1], [[1, 1, 1]], DataError, "states -1 as the true count of T0"),
        (RoundingSpec(5, "nearest"), [3], [[1, 1, 1]], DataError, "no counts agree"),
        (SimulationOnly(), [3], [[1, 1, 1]], ArgumentError, "likelihood in closed form"),
    ],
)
def test_contradictions_are_named(law, released, weights, error, match):
    release, prior = one_block(law, released, np.array(weights), 6)
    with pytest.raises(error, match=match):
        microdata_posterior(release, ASKED, **PLACE, prior=prior)


def test_nothing_bounds_the_number_of_records():
    release, prior = one_block(NoiseSpec("discrete-gaussian", 1), [3], np.array([[1, 0, 0]]), 6)
    open_size = RecordPrior.uniform_data_sets(prior.schema)
    with pytest.raises(ArgumentError, match="size must be given"):
        microdata_posterior(release, ASKED, **PLACE, prior=open_size)


@pytest.mark.parametrize("released", [-20, 0, 3])
def test_a_noisy_total_bounds_the_number_of_records(released):
    law = NoiseSpec("discrete-gaussian", 4)
    release, prior = one_block(law, [released], np.array([[1, 1, 1]]), 60)
    open_size = RecordPrior.uniform_data_sets(prior.schema)
    bounded, flat = (
        microdata_posterior(release, ASKED, **PLACE, prior=p).answers["posterior"][0]
        for p in (open_size, prior)
    )
    n = np.arange(61)
    weights = np.exp(-((released - n) ** 2) / 8.0 + (released - max(released, 0)) ** 2 / 8.0)
    assert flat == pytest.approx(n @ weights / weights.sum(), rel=1e-10)
    assert bounded == pytest.approx(flat, rel=1e-10)


def test_priors_are_checked():
    _, prior = one_block(TrueCounts(), [1], np.array([[1, 1, 1]]), 6)
    schema = prior.schema
    with pytest.raises(ArgumentError, match="shares must have sum 1"):
        RecordPrior(schema, np.array([0.5, 0.2, 0.2]))
    with pytest.raises(ShapeError, match=r"shares must have shape \(3,\)"):
        RecordPrior(schema, np.array([0.5, 0.5]))
    with pytest.raises(ArgumentError, match="concentration must be > 0"):
        RecordPrior(schema, concentration=0.0)
    with pytest.raises(ArgumentError, match="size must sum to 1"):
        RecordPrior.uniform_data_sets(schema, size=[0.5, 0.4])
    with pytest.raises(ArgumentError, match="counts must not all be 0"):
        RecordPrior.composition(schema, [0, 0, 0])
    with pytest.raises(ArgumentError, match="at_least must not be given together"):
        RecordQuestion({}, among={}, at_least=1)


def test_a_composition_says_what_is_possible():
    _, prior = one_block(TrueCounts(), [1], np.array([[1, 1, 1]]), 6)
    some = RecordPrior.composition(prior.schema, [3, 1, 0], more=2.0)
    np.testing.assert_allclose(some.shares_of_cells, [11 / 18, 5 / 18, 2 / 18])
    release, _ = one_block(TrueCounts(), [0, 0, 1], np.eye(3, dtype=np.int64), 6)
    none = RecordPrior.composition(prior.schema, [3, 1, 0])
    with pytest.raises(DataError, match="contradicts itself or the prior"):
        microdata_posterior(release, ASKED, **PLACE, prior=none)


@pytest.mark.parametrize("concentration", [2.0, 30.0])
def test_a_concentration_is_found_again(concentration):
    rng = np.random.default_rng(1)
    shares = np.array([0.5, 0.3, 0.2])
    counts = np.array([rng.multinomial(40, p) for p in rng.dirichlet(concentration * shares, 800)])
    # The standard error of log A is about sqrt(2 / (places * cells)), 0.03.
    assert abs(np.log(fit_concentration(counts, shares) / concentration)) < 0.15
    with pytest.raises(ArgumentError, match="shares must be > 0"):
        fit_concentration([[1, 1]], [1.0, 0.0])


def test_memory_is_bounded_for_places_that_are_too_large(monkeypatch):
    monkeypatch.setattr(system, "_MAX_ENTRIES", 5)
    release, prior = one_block(TrueCounts(), [3, 1], np.array([[1, 1, 1], [1, 0, 0]]), 6)
    for engine in ("auto", "exact", "lattice"):
        with pytest.raises(ArgumentError, match="pairs of a published count and a kind"):
            microdata_posterior(release, ASKED, **PLACE, prior=prior, engine=engine, rng=1)
    noisy, prior = one_block(
        NoiseSpec("discrete-gaussian", 1), [3, 1], np.array([[1, 1, 1], [1, 0, 0]]), 6
    )
    found = microdata_posterior(noisy, ASKED, **PLACE, prior=prior, rng=1)
    assert found.engine == "people"


def test_a_place_that_is_for_no_engine_is_refused_by_each_in_the_same_words(monkeypatch):
    """Where chains can answer, the exact engine says so; where they cannot, it does not."""
    monkeypatch.setattr(posterior, "_MAX_PAIRS", 0)
    release, prior = one_block(
        RoundingSpec(3, "nearest"), [3, 3], np.array([[1, 1, 0], [0, 1, 1]]), 6
    )
    common = {**PLACE, "prior": prior, "rng": 1}
    with pytest.raises(ArgumentError, match="engine must be 'auto'"):
        microdata_posterior(release, ASKED, **common, engine="exact")
    assert microdata_posterior(release, ASKED, **common, draws=100).engine == "lattice"
    monkeypatch.setattr(chains, "MAX_GROUPS", 2)
    for engine in ("auto", "exact", "lattice"):
        with pytest.raises(ArgumentError, match=r"place .* at most 2 kinds .* got 3, and is too"):
            microdata_posterior(release, ASKED, **common, engine=engine)


def test_chains_end_with_the_time_and_say_nothing_without_draws(monkeypatch):
    monkeypatch.setattr(posterior, "_MAX_PAIRS", 0)
    release, prior = one_block(
        RoundingSpec(3, "nearest"), [3, 3], np.array([[1, 1, 0], [0, 1, 1]]), 6
    )
    common = {**PLACE, "prior": prior, "rng": 1, "draws": 50}
    with pytest.raises(ArgumentError, match="limit of time"):
        microdata_posterior(release, ASKED, **common, time_limit=1e-9)
    limited = microdata_posterior(release, ASKED, **common, time_limit=600.0)
    assert limited.answers.equals(microdata_posterior(release, ASKED, **common).answers)
