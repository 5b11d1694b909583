"""Protections in words: what a setting does, and nothing where that is not known."""

import pytest

from bayesrisk.accounting import census_2020_budget
from bayesrisk.mechanisms import available_mechanisms, make_mechanism
from bayesrisk.mechanisms.registry import meaning, shown_name, usual_parameters
from bayesrisk.tables import Workload

TABLES = Workload.named("sf1-block")


def said(recipe, error="2.5", **parameters):
    """Return the words for a recipe with its usual parameters, as an audit has them."""
    settings = usual_parameters(recipe, TABLES, **parameters)
    spec = make_mechanism(recipe.partition(":")[0], **settings).spec
    return meaning(spec.mechanism, {**spec.parameters, **settings}, error)


@pytest.mark.parametrize(
    ("recipe", "words"),
    [
        ("identity", "no protection"),
        ("swapping:rate=0.05", "swapping 5 % of people"),
        ("swapping:rate=1/8", "swapping 12.5 % of people"),
        ("rounding:base=3,method=nearest", "rounding to the nearest multiples of 3"),
        ("rounding:base=9", "rounding at random to multiples of 9"),
        ("nearest-5", "rounding to the nearest multiples of 5"),
        ("ranges:edges=[0,1,6]", "publishing ranges 0, 1 to 5, 6 or more"),
        ("threshold:least=5", "hiding counts of 1 to 4"),
        ("threshold:least=5,zeros=within", "hiding counts of 0 to 4"),
        ("cms-11", "hiding counts of 1 to 10"),
        ("suppression:threshold=3", "hiding counts of 1 to 2 and what gives them away"),
        ("suppression:threshold=3,complementary=false", "hiding counts of 1 to 2"),
        ("discrete-laplace:epsilon=1", "noise of 2.5 a count"),
    ],
)
def test_a_setting_is_said_by_what_it_does(recipe, words):
    assert said(recipe) == words


def test_noise_of_the_census_is_that_of_its_budget():
    """Within a hundredth of the budget of a detailed table of a block; other noise by its size."""
    budget = census_2020_budget("pl94", total_rho="2.56")
    rho = budget.query("level == 'Block' and query == 'detailed'")["rho_float"].item()
    for share, census in ((0.98, False), (0.995, True), (1.005, True), (1.02, False)):
        words = said(f"discrete-gaussian:rho={rho * share:.6f}")
        assert ("2020 census" in words) == census
        assert ("2.5 a count" in words) != census


def test_what_is_not_known_has_no_words():
    for name in available_mechanisms():
        assert isinstance(meaning(name, {}, "1"), str)
    assert meaning("a-plug-in", {"rate": 1}, "1") == ""
    assert meaning("swapping", {"rate": "a tenth", "unit": "person"}, "1") == ""


def test_identity_is_shown_as_no_protection():
    assert [shown_name(name) for name in ("identity", "none")] == ["no protection"] * 2
