"""The summary of statements against plain loops; what must be refused."""

import math
import tempfile
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.risk import Statements

COLUMNS = (
    "attack", "adversary", "protection", "target", "statement", "people", "prior", "posterior",
    "lower", "upper", "ratio", "status",
)  # fmt: skip
STATUS = ("proved", "estimated", "unverified", "believed", "unstated")


def row(attack, protection, target, people, prior, posterior, status):
    known = status != "unverified"
    ratio = math.nan
    if known:
        ratio = posterior / prior if prior else (math.inf if posterior else math.nan)
    posterior = posterior if known else math.nan
    values = (
        attack, "outsider", protection, target, "s", people, prior, posterior, posterior, posterior,
    )  # fmt: skip
    return dict(zip(COLUMNS, (*values, ratio, status), strict=True))


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
@settings(max_examples=40)
def test_numbers_are_those_of_a_loop(rows, cut):
    parts = [Statements(pd.DataFrame(part, columns=COLUMNS)) for part in (rows[:cut], rows[cut:])]
    found = Statements.concat(parts).summary(thresholds=(1.0, 3.0))
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
    found = Statements(pd.DataFrame(columns=COLUMNS)).summary()
    assert len(found) == 0
    assert "at_least_10" in found


def test_refusals():
    good = pd.DataFrame([row("claims", "identity", "1", 1, 0.5, 1.0, "proved")] * 2)
    for change, text in (
        ({"prior": [0.5, 1.5]}, r"row 2, column prior: must be in \[0, 1\], got 1.5"),
        ({"posterior": [math.nan, 1.0]}, "row 1, column posterior"),
        ({"ratio": [2.0, 3.0]}, "row 2, column ratio: must be the posterior over the prior, got"),
        ({"lower": [1.0, 0.5], "upper": [1.0, 0.9]}, "row 2, column upper: must be at least the"),
        ({"people": [1, 0.5]}, "row 2, column people: must be whole, got 0.5"),
        ({"correct": ["yes", "no"]}, "column 'correct' must be true, false or missing"),
        ({"status": ["proved", "sure"]}, "row 2, column status: must be one of proved"),
    ):
        with pytest.raises(DataError, match=text):
            Statements(good.assign(**change))
    with pytest.raises(ArgumentError, match="thresholds must be > 0"):
        Statements(good).summary(thresholds=(0.0,))


def two_protections():
    """Swapping hides the target about whom little was learned: what is left looks worse."""
    rows = [row("linking", "identity", "1", 1, 0.9, 1.0, "proved")]
    rows += [row("linking", "identity", "2", 1, 0.1, 1.0, "proved")]
    return [*rows, row("linking", "swapping", "2", 1, 0.1, 0.8, "estimated")]


def test_ratios_over_other_statements_are_not_given():
    found = Statements(pd.DataFrame(two_protections())).summary().set_index("protection")
    assert found["posterior"].to_dict() == {"identity": 1.0, "swapping": 0.8}
    assert not found["comparable"].any()
    assert found.loc["identity", "ratio_90"] == 10.0  # proved ones are what they are
    assert found.loc["swapping", ["ratio_50", "ratio_90", "ratio_max", "at_least_2"]].isna().all()
    same = [*two_protections(), row("linking", "swapping", "1", 1, 0.9, 0.9, "unstated")]
    found = Statements(pd.DataFrame(same)).summary().set_index("protection")
    assert found["comparable"].all()
    assert found["ratio_90"].to_dict() == {"identity": 10.0, "swapping": 8.0}
    alone = Statements(pd.DataFrame(same).query("protection == 'swapping'")).summary().iloc[0]
    assert alone["comparable"]
    assert alone["ratio_90"] == 8.0


def test_the_figure_says_what_it_does_not_draw():
    figure = Statements(pd.DataFrame(two_protections())).plot()[0].figure
    assert [line.get_label() for line in figure.axes[0].lines[:-1]] == ["identity"]
    assert "linking under swapping" in figure.get_suptitle()
    same = [*two_protections(), row("linking", "swapping", "1", 1, 0.9, 0.9, "unstated")]
    figure = Statements(pd.DataFrame(same)).plot()[0].figure
    assert [line.get_label() for line in figure.axes[0].lines[:-1]] == ["identity", "swapping"]
    assert figure.get_suptitle() == ""


def test_what_is_left_out_is_filled_in():
    rows = [row("claims", "identity", "1", 2, p, 1.0, "proved") for p in (0.5, 0.0)]
    given = pd.DataFrame(rows)
    short = given.drop(columns=["lower", "upper", "ratio"]).assign(own=["a", "b"])
    found = Statements(short).frame
    pd.testing.assert_frame_equal(
        found[list(COLUMNS)], Statements(given).frame[list(COLUMNS)], check_exact=True
    )
    assert found["without"].isna().all()
    assert found["correct"].isna().all()
    assert list(found)[-1] == "own"
    changed = Statements(short).to_frame()
    changed["prior"] = 0.1
    assert Statements(short).frame["prior"].tolist() == [0.5, 0.0]


def test_two_adversaries_are_two_rows_and_two_lines():
    one = [row("claims", "identity", t, 1, 0.1, 1.0, "proved") for t in "ab"]
    other = [{**r, "adversary": "linker", "prior": 0.5, "ratio": 2.0} for r in one]
    found = Statements(pd.DataFrame(one + other))
    summary = found.summary().set_index("adversary")
    assert summary["ratio_50"].to_dict() == {"outsider": 10.0, "linker": 2.0}
    assert summary["comparable"].all()
    labels = [line.get_label() for line in found.plot()[0].lines[:-1]]
    assert labels == ["identity, outsider", "identity, linker"]
    # Those of one adversary about fewer targets are not the same statements.
    assert found.comparable == {"claims": True}
    assert Statements(pd.DataFrame(one + other[:1])).comparable == {"claims": False}


@settings(max_examples=25)
@given(rows=ROWS, correct=st.lists(st.sampled_from([True, False, None]), min_size=20))
def test_files_hold_statements(rows, correct):
    frame = pd.DataFrame(rows).assign(correct=correct[: len(rows)], own="\N{EN DASH}")
    said = Statements(frame)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "statements.parquet")
        said.write(file)
        again = Statements.read(file)
    pd.testing.assert_frame_equal(again.frame, said.frame, check_exact=True)


def test_the_short_form_is_short_and_escaped():
    rows = [row(f"<b>{i}", "identity", "1", 1, 0.05, 1.0, "proved") for i in range(9)]
    found = Statements(pd.DataFrame(rows))
    lines = repr(found).splitlines()
    assert len(lines) <= 10
    assert lines[0] == (
        "9 statements about 1 target; posterior over prior at most 20, at least 10 for 100% of them"
    )
    assert lines[-1] == "and 3 more: summary()"
    assert "&lt;b&gt;0" in found._repr_html_()
    assert "<b>" not in found._repr_html_()
    assert len(found) == 9
    assert repr(Statements(pd.DataFrame(columns=COLUMNS))) == "0 statements about 0 targets"
