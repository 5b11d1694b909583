"""The law of the records of a place, against complete enumeration."""

import math

import numpy as np
import pytest
from oracles import record_law as oracle
from random_places import KINDS, place, questions

from bayesrisk.inference import microdata_posterior


def answers(law, schema, asked):
    """Return the answers of the oracle's law."""
    cells = np.indices(schema.shape).reshape(len(schema.shape), -1)

    def fulfil(condition):
        kept = np.ones(cells.shape[1], bool)
        for name, codes in condition.items():
            kept &= np.isin(cells[schema.names.index(name)], list(codes))
        return kept

    found = []
    for question in asked:
        at = (
            slice(None)
            if question.place is None
            else slice(int(question.place[1:]), int(question.place[1:]) + 1)
        )
        where, among = fulfil(question.where), fulfil(question.among or {})
        parts = [(w, sum(np.array(h)[where & among].sum() for h in x[at])) for w, x in law]
        wholes = [(w, sum(np.array(h)[among].sum() for h in x[at])) for w, x in law]
        mean = math.fsum(w * k for w, k in parts)
        if question.at_least is not None:
            found.append(math.fsum(w for w, k in parts if k >= question.at_least))
        elif question.among is not None:
            whole = math.fsum(w * k for w, k in wholes)
            found.append(mean / whole if whole else math.nan)
        else:
            found.append(mean)
    return found


def check(seed, kind, n_places):
    release, prior, terms, _ = place(seed, kind, n_places)
    law = oracle.posterior(*terms)
    asked = questions(prior.schema, n_places)
    expected = answers(law, prior.schema, asked)
    asked = [q for q, value in zip(asked, expected, strict=True) if not math.isnan(value)]
    expected = [value for value in expected if not math.isnan(value)]
    level = "block" if n_places == 1 else "tract"
    where = release.tables.geoids[level][0]
    found = microdata_posterior(
        release, asked, level=level, place=where, prior=prior, engine="exact"
    )
    np.testing.assert_allclose(found.answers["posterior"], expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(8))
def test_the_exact_engine_agrees_with_enumeration(seed, kind):
    check(seed, kind, 1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_several_places_and_levels_agree_with_enumeration(seed, kind):
    check(seed, kind, 2)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_five_hundred_places_agree_with_enumeration(kind):
    for seed in range(100, 180):
        check(seed, kind, 1)
    for seed in range(100, 120):
        check(seed, kind, 2)
