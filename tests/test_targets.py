"""The table of what the benchmarks aim at."""

import csv

import pytest
from targets import HEADS, Aim, Measured, a_second, faster, nanoseconds, of_twin, value_of


@pytest.mark.parametrize(
    ("aim", "value", "met"),
    [
        (faster(10), 10.0, True),
        (faster(10), 9.9, False),
        (of_twin(2), 2.0, True),
        (of_twin(2), 2.1, False),
        (nanoseconds(100, "cell"), 99.0, True),
        (a_second(1e6, "steps"), 9e5, False),
        (Aim(1.5, "s"), 1.6, False),
    ],
)
def test_a_target_is_met_or_not(aim, value, met):
    assert aim.met(value) == met


def test_the_number_that_a_target_is_about():
    about = {"ratio": 0.25, "seconds": 2e-9}
    assert value_of(faster(10), **about) == 4.0
    assert value_of(of_twin(1), **about) == 0.25
    assert value_of(nanoseconds(5, "row"), **about) == pytest.approx(2.0)
    assert value_of(a_second(1, "rows"), **about) == pytest.approx(5e8)


def test_rows_of_an_earlier_run_are_kept_until_they_are_measured_again(tmp_path):
    file = tmp_path / "targets.csv"
    first, second = Measured(), Measured()
    first.add("start", Aim(0.3, "s"), 0.4)
    first.add("walk", faster(3), 5.0)
    first.update(file)
    assert "met: yes" in second.add("start", Aim(0.3, "s"), 0.2)
    second.update(file)
    with file.open(encoding="utf-8", newline="") as stream:
        assert list(csv.reader(stream)) == [
            list(HEADS),
            ["start, s", "at most 0.3 s", "0.2", "yes"],
            ["walk, times faster", "at least 3 times faster", "5", "yes"],
        ]
