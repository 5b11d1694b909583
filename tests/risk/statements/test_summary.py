"""The summary of statements against plain loops; what must be refused."""

import math
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, DataError
from bayesrisk.plotting import plot_statements
from bayesrisk.risk import STATEMENT_COLUMNS, statement_summary

STATUS = ("proved", "estimated", "unverified", "believed", "unstated")


def row(attack, protection, target, people, prior, posterior, status):
    known = status != "unverified"
    ratio = math.nan
    if known:
        ratio = posterior / prior if prior else (math.inf if posterior else math.nan)
    posterior = posterior if known else math.nan
    values = (attack, protection, target, "s", people, prior, posterior, posterior, posterior)
    return dict(zip(STATEMENT_COLUMNS, (*values, ratio, status), strict=True))


ROWS = st.lists(
    st.builds(
        row,
        st.sampled_from(["claims", "occupancy"]),
        st.sampled_from(["identity", "swapping"]),
        st.sampled_from(["1", "2", "3"]),
        st.integers(0, 5),
        st.sampled_from([0.0, 0.01, 0.25, 1.0]),
        st.sampled_from([0.0, 0.5, 1.0]),
        st.sampled_from(STATUS),
    ),
    min_size=1,
    max_size=20,
)


@given(rows=ROWS, cut=st.integers(0, 20))
def test_numbers_are_those_of_a_loop(rows, cut):
    frames = [pd.DataFrame(part, columns=STATEMENT_COLUMNS) for part in (rows[:cut], rows[cut:])]
    found = statement_summary(frames, thresholds=(1.0, 3.0))
    groups = {}
    for r in rows:
        groups.setdefault((r["attack"], r["protection"]), []).append(r)
    assert list(zip(found["attack"], found["protection"], strict=True)) == list(groups)
    asked = {}
    for (attack, _), part in groups.items():
        asked.setdefault(attack, []).append(Counter(r["target"] for r in part))
    for line, part in zip(found.to_dict(orient="records"), groups.values(), strict=True):
        same = all(others == asked[line["attack"]][0] for others in asked[line["attack"]])
        assert line["comparable"] == same
        assert line["statements"] == len(part)
        assert line["targets"] == len({r["target"] for r in part})
        assert line["people"] == sum(r["people"] for r in part)
        for status in STATUS:
            assert line[status] == sum(r["status"] == status for r in part)
        known = [r for r in part if r["status"] != "unverified"]
        judged = known if same else [r for r in known if r["status"] == "proved"]
        ratios = sorted(r["ratio"] for r in judged if not math.isnan(r["ratio"]))
        if known:
            mean = math.fsum(r["posterior"] for r in known) / len(known)
            assert line["posterior"] == pytest.approx(mean, rel=1e-14)
        else:
            assert math.isnan(line["posterior"])
        if ratios:
            for share in (0.5, 0.9):  # the smallest that so large a share does not exceed
                at = next(x for x in ratios if sum(r <= x for r in ratios) >= share * len(ratios))
                assert line[f"ratio_{round(100 * share)}"] == at
            assert line["ratio_max"] == ratios[-1]
            assert line["at_least_3"] == sum(r >= 3 for r in ratios) / len(ratios)
        else:
            assert math.isnan(line["ratio_50"])
            assert math.isnan(line["at_least_1"])


def test_no_statements_are_no_rows():
    found = statement_summary(pd.DataFrame(columns=STATEMENT_COLUMNS))
    assert len(found) == 0
    assert "at_least_10" in found


def test_refusals():
    good = pd.DataFrame([row("claims", "identity", "1", 1, 0.5, 1.0, "proved")] * 2)
    for change, text in (
        ({"prior": [0.5, 1.5]}, r"row 2, column prior: must be in \[0, 1\], got .*1.5"),
        ({"posterior": [math.nan, 1.0]}, "row 1, column posterior"),
        ({"ratio": [2.0, -1.0]}, "row 2, column ratio: must be >= 0"),
        ({"status": ["proved", "sure"]}, "row 2, column status: must be one of proved"),
    ):
        with pytest.raises(DataError, match=text):
            statement_summary(good.assign(**change))
    with pytest.raises(DataError, match="it lacks \\['ratio'\\]"):
        statement_summary(good.drop(columns="ratio"))
    with pytest.raises(ArgumentTypeError, match="must be a DataFrame, got int"):
        statement_summary([good, 3])
    with pytest.raises(ArgumentError, match="at least one frame"):
        statement_summary([])
    with pytest.raises(ArgumentError, match="thresholds must be > 0"):
        statement_summary(good, thresholds=(0.0,))
    with pytest.raises(ArgumentError, match="thresholds must differ"):
        statement_summary(good, thresholds=(2, 2.0))


def test_figure():
    rows = [row("claims", "identity", "1", 1, p, 1.0, "proved") for p in (0.5, 0.1, 0.0)]
    rows += [row("occupancy", "swapping", "1", 1, 0.25, 1.0, "estimated")]
    left, right = plot_statements(pd.DataFrame(rows))
    x, y = left.lines[0].get_data()
    assert np.allclose(y, [1.0, 1.0, 2 / 3, 1 / 3, 1 / 3])
    assert x[1:3].tolist() == [2.0, 10.0]
    assert [axes.get_title() for axes in (left, right)] == ["claims", "occupancy"]
    unknown = pd.DataFrame([row("claims", "identity", "1", 1, 0.5, 1.0, "unverified")])
    with pytest.raises(ArgumentError, match="at least one row"):
        plot_statements(unknown)


def two_protections():
    """Swapping hides the target about whom little was learned: what is left looks worse."""
    rows = [row("linking", "identity", "1", 1, 0.9, 1.0, "proved")]
    rows += [row("linking", "identity", "2", 1, 0.1, 1.0, "proved")]
    return [*rows, row("linking", "swapping", "2", 1, 0.1, 0.8, "estimated")]


def test_ratios_over_other_statements_are_not_given():
    found = statement_summary(pd.DataFrame(two_protections())).set_index("protection")
    assert found["posterior"].to_dict() == {"identity": 1.0, "swapping": 0.8}
    assert not found["comparable"].any()
    assert found.loc["identity", "ratio_90"] == 10.0  # proved ones are what they are
    assert found.loc["swapping", ["ratio_50", "ratio_90", "ratio_max", "at_least_2"]].isna().all()
    same = [*two_protections(), row("linking", "swapping", "1", 1, 0.9, 0.9, "unstated")]
    found = statement_summary(pd.DataFrame(same)).set_index("protection")
    assert found["comparable"].all()
    assert found["ratio_90"].to_dict() == {"identity": 10.0, "swapping": 8.0}
    alone = statement_summary(pd.DataFrame(same).query("protection == 'swapping'")).iloc[0]
    assert alone["comparable"]
    assert alone["ratio_90"] == 8.0


def test_the_figure_says_what_it_does_not_draw():
    figure = plot_statements(pd.DataFrame(two_protections()))[0].figure
    assert [line.get_label() for line in figure.axes[0].lines[:-1]] == ["identity"]
    assert "linking under swapping" in figure.get_suptitle()
    same = [*two_protections(), row("linking", "swapping", "1", 1, 0.9, 0.9, "unstated")]
    figure = plot_statements(pd.DataFrame(same))[0].figure
    assert [line.get_label() for line in figure.axes[0].lines[:-1]] == ["identity", "swapping"]
    assert figure.get_suptitle() == ""
