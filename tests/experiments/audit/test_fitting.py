"""An audit that fits a time asks enough people, and the slowest protections come last."""

import pytest

from bayesrisk.experiments.audit.fitting import fit


def cost(seconds):
    return [lambda people, releases: seconds * people * releases]


def ends(costs, people):
    return sum(costs)


@pytest.mark.parametrize(
    ("seconds", "counted", "people", "releases"),
    [
        (10_000.0, 3, 100, 8),  # all of it: (1 + 2 + 7) x 100 x 8 = 8,000
        (4_000.0, 3, 100, 4),
        (500.0, 3, 25, 2),  # 10 x 25 x 2
        (200.0, 3, 10, 2),
        (150.0, 2, 25, 2),  # 7 people of three protections say little
        (50.0, 1, 25, 2),
        (3.0, 1, 1, 2),  # one protection alone, of however few
        (0.5, 1, 0, 1),
    ],
)
def test_releases_are_cut_then_people_and_then_the_slowest_do_not_count(
    seconds, counted, people, releases
):
    costs = {"b": cost(2.0), "c": cost(7.0), "a": cost(1.0)}
    found = fit(costs, ends, seconds, people=100, releases=8)
    assert found == (["a", "b", "c"], counted, people, releases)


def test_few_people_are_enough_where_there_are_no_more():
    found = fit({"a": cost(1.0), "b": cost(2.0)}, ends, 60.0, people=5, releases=4)
    assert found == (["a", "b"], 2, 5, 4)
