"""The report of a release: its first sentence names tables, protection, cost and budget."""

import math

import numpy as np
import pytest

from bayesrisk import make_mechanism
from bayesrisk.distributions import DiscreteGaussian, DiscreteLaplace
from bayesrisk.experiments.release_report import cost, mean_error, release_lead, release_quotes
from bayesrisk.mechanisms.registry import meaning
from bayesrisk.release import NoiseSpec, RoundingSpec


@pytest.mark.parametrize("scale", [0.01, 0.3, 1.0, 35.2823, 9e3, 1.1e4, 1e8])
def test_the_mean_error_of_noise_is_that_of_its_law(scale):
    """Against probabilities of the laws, and against the normal law where it is wide."""
    gauss = mean_error(NoiseSpec("discrete-gaussian", scale))
    k = np.arange(1, 20_000)
    if scale < 1e4:
        wanted = 2.0 * float(k @ np.asarray(DiscreteGaussian(scale).pmf(k)))
        assert gauss == pytest.approx(wanted, rel=1e-9)
    else:
        assert gauss == pytest.approx(math.sqrt(2.0 * scale / math.pi), rel=1e-9)
    if 0.3 <= scale < 500:
        laplace = mean_error(NoiseSpec("discrete-laplace", scale))
        wanted = 2.0 * float(k @ np.asarray(DiscreteLaplace(scale).pmf(k)))
        assert laplace == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("base", [2, 3, 5, 10])
def test_rounding_is_off_by_no_more_than_is_said(base):
    """Every count to 40 is rounded either way."""
    for method in ("random", "nearest"):
        said = cost(RoundingSpec(base, method), 0)
        low = [n - n // base * base for n in range(40)]
        off = [max(r, base - r) if r else 0 for r in low]
        if method == "nearest":
            off = [min(r, base - r) for r in low]
        assert said["off_by"] == max(off)
        assert str(base) in said["how"]


def table(level="block", name="P1", **changes):
    usual = {
        "level": level, "table": name, "cells": 32, "withheld": 0, "exact": False,
        "how": "with noise", "off_by": 4.74, "off": "on average", "is": "noise",
    }  # fmt: skip
    return usual | changes


def release(tables, **changes):
    usual = {
        "places": {"block": 16}, "tables": tables, "rho": None, "epsilon": None,
        "neighbour": None,
    }  # fmt: skip
    return usual | changes


def test_one_protection_of_all_tables():
    text = release_lead(release([table(), table(name="P2")], rho=0.0992))
    assert text == (
        "2 tables of 16 places (block) are published with noise (a count is off by 4.7 on "
        "average). The budget of all noise is rho 0.0992."
    )
    one = release_lead(release([table(off_by=0.0)], places={"tract": 1, "block": 3}))
    assert one.startswith("1 table of 1 place (tract) and 3 places (block) is published with noise")


def test_several_protections_and_sizes():
    exact = table(name="P3", how="as they are", off_by=None, exact=True)
    text = release_lead(release([table(off_by=1.0), table(off_by=20.4, name="P2"), exact]))
    assert (
        "are published: 2 with noise (a count is off by 1 to 20 on average), 1 as they are" in text
    )
    assert "nan" not in text


@pytest.mark.parametrize(
    ("neighbour", "moves"), [("add-remove", "comes or goes"), (None, "changes")]
)
def test_epsilon_says_whose_it_is(neighbour, moves):
    text = release_lead(release([table()], rho=1.0, epsilon=9.5, neighbour=neighbour))
    assert f"For one record that {moves}, all noisy counts together have epsilon 9.5" in text
    assert "(rho 1)" in text


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("withheld", [0, 4])
def test_true_counts_are_only_called_so_where_they_are(exact, withheld):
    quotes = release_quotes(release([table(exact=exact, withheld=withheld)]), "Exact: places.")
    assert (len(quotes.may), len(quotes.may_not)) == (3, 3)
    whole = exact and not withheld
    assert ("These are the true counts." in quotes.may_not) == (not whole)
    assert ("These tables are protected." in quotes.may_not) == whole


def test_an_exact_law_costs_nothing():
    said = cost(make_mechanism("identity").spec.likelihood("block", "P1"), 0)
    assert said == {"how": "as they are", "off_by": None, "off": "at most"}


def test_a_law_without_closed_form_is_said_by_its_mechanism():
    """Swapping says how many; a mechanism without words says that running it tells."""
    spec = make_mechanism("swapping", rate="0.05", swap_key=["sex"], unit="person").spec
    law = spec.likelihood("block", "P1")
    words = meaning(spec.mechanism, spec.parameters, "")
    assert cost(law, 0, words)["how"] == "changed by swapping 5 % of people"
    assert cost(law, 0)["how"] == "changed (by how much, running the mechanism tells)"
    exact = make_mechanism("none").spec.likelihood("block", "P1")
    assert cost(exact, 0, words)["how"] == "as they are"


def test_noise_without_a_size_has_none_and_many_levels_are_one_number():
    tables = [{"level": name, "table": "P1", "how": "as they are", "off_by": None, "off": ""}
              for name in ("nation", "state", "block")]  # fmt: skip
    release = {"tables": tables, "places": {"nation": 1, "state": 2, "block": 40}, "rho": None,
               "epsilon": None, "neighbour": None}  # fmt: skip
    assert "40 places (block)" in release_lead(release)
    assert "nation" not in release_lead(release)
    for name in ("topdown", "discrete-laplace"):
        assert meaning(name, {}, "2.5").removesuffix(" of 2.5 a count") == meaning(name, {}, "")
