"""Families that are known again: the same releases, most of them without solving anew."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from oracles import topdown as oracle

from bayesrisk.mechanisms import Rounding, TopDown
from bayesrisk.mechanisms.topdown import estimation
from bayesrisk.tables import Microdata

SEEDS = st.integers(0, 2**32 - 1)


def without(microdata, row):
    keep = np.arange(len(microdata.persons)) != row
    return Microdata(microdata.persons.take(keep), microdata.households, microdata.blocks)


def world(seed):
    microdata, tables = oracle.world(np.random.default_rng(seed), levels=3)
    return (microdata if isinstance(microdata, Microdata) else Microdata(microdata)), tables


@settings(max_examples=5)  # 12 releases each
@given(seed=SEEDS, rho=st.sampled_from(["1/100", "1", "20"]))
def test_releases_without_a_record_are_those_of_a_new_mechanism(seed, rho):
    microdata, tables = world(seed)
    people = len(microdata.persons)
    alike = TopDown(rho=rho).for_neighbours()
    truths = [microdata, *(without(microdata, r) for r in range(min(people - 1, 2)))]
    for noise in (seed, seed + 1):  # other noise asks for other families
        for truth in truths:
            known = alike.release(truth, workload=tables, rng=noise)
            anew = TopDown(rho=rho).release(truth, workload=tables, rng=noise)
            assert known.tables == anew.tables
            assert known.spec == anew.spec


@pytest.fixture
def solved(monkeypatch):
    """Return the families that were solved so far."""
    found, plain = [], estimation.solve_family

    def keep(family):
        found.append(family)
        return plain(family)

    monkeypatch.setattr(estimation, "solve_family", keep)
    return found


def test_a_release_is_solved_once(solved):
    microdata, tables = world(1)
    alike = TopDown(rho=1).for_neighbours()
    alike.release(microdata, workload=tables, rng=1)
    first = len(solved)
    assert first > 1
    alike.release(microdata, workload=tables, rng=1)
    assert len(solved) == first
    alike.release(microdata, workload=tables, rng=2)
    assert len(solved) > first


def test_without_room_every_family_is_solved_again(solved):
    microdata, tables = world(1)
    alike, plain = TopDown(rho=1).for_neighbours(), TopDown(rho=1)
    alike._solve = estimation.SolvedFamilies(room=0)
    expected = plain.release(microdata, workload=tables, rng=1).tables
    assert alike.release(microdata, workload=tables, rng=1).tables == expected
    first = len(solved)
    assert alike.release(microdata, workload=tables, rng=1).tables == expected
    assert len(solved) == 2 * first
    assert alike._solve._stored == 0


def test_a_mechanism_keeps_nothing_unless_it_is_asked_to():
    mechanism = TopDown(rho=1)
    assert isinstance(mechanism.for_neighbours()._solve, estimation.SolvedFamilies)
    assert not isinstance(mechanism._solve, estimation.SolvedFamilies)
    rounding = Rounding(base=3, method="random")
    assert rounding.for_neighbours() is rounding
