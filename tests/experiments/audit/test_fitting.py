"""An audit that fits a time asks enough people, or leaves the slowest protections out."""

import pytest

from bayesrisk.experiments.audit.fitting import fit


def cost(seconds):
    return [lambda people, releases: seconds * people * releases]


def ends(costs, people):
    return sum(costs)


@pytest.mark.parametrize(
    ("seconds", "names", "people", "releases"),
    [
        (10_000.0, ["a", "b", "c"], 100, 8),  # all of it: (1 + 2 + 7) x 100 x 8 = 8,000
        (4_000.0, ["a", "b", "c"], 100, 4),
        (500.0, ["a", "b", "c"], 25, 2),  # 10 x 25 x 2
        (300.0, ["a", "b"], 48, 2),  # 15 people of three protections say little
        (50.0, ["a"], 25, 2),
        (3.0, ["a"], 1, 2),  # one protection alone, of however few
        (0.5, ["a"], 0, 1),
    ],
)
def test_releases_are_cut_then_people_then_protections(seconds, names, people, releases):
    costs = {"a": cost(1.0), "b": cost(2.0), "c": cost(7.0)}
    assert fit(costs, ends, seconds, people=100, releases=8) == (names, people, releases)


def test_few_people_are_enough_where_there_are_no_more():
    assert fit({"a": cost(1.0), "b": cost(2.0)}, ends, 60.0, people=5, releases=4) == (
        ["a", "b"], 5, 4,
    )  # fmt: skip
