"""Sums between labels: those of one label alone cost nothing, and change nothing."""

import pytest

from bayesrisk.tables.reading.sums import CodedLabels, LabelSums


@pytest.mark.parametrize("alone", [0, 50, 400])
def test_groups_of_one_label_take_no_room_and_say_nothing(alone):
    """Two groups add up; each of many labels more stands in a group of its own."""
    rows = [
        ({"age": age, "place": place}, count)
        for place, counts in {"A": (30, 10, 20), "B": (70, 45, 25)}.items()
        for age, count in zip(("all", "young", "old"), counts, strict=True)
    ]
    rows += [({"age": f"code {i}", "place": f"P{i}"}, i) for i in range(alone)]
    coded = CodedLabels([labels for labels, _ in rows], [(n, n) for _, n in rows])
    sums = LabelSums("age", coded, {})
    assert sums.low.shape == (2, 3 + alone)
    groups = sums.adding_up(["young", "old"])("all")
    assert (groups.telling, groups.good, groups.above, groups.exact) == (2, 2, 0, 2)
    assert sums.adding_up(["all", "old"])("young").good == 0
    assert sums.exceeded() == {"young", "old"}
