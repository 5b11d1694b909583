"""What constraints leave of cells, against a plain loop; widths of geocodes; ranges of units."""

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from measurement_files import PERSON, row, write_rows

import bayesrisk as br
from bayesrisk import DataError
from bayesrisk.census import NoisyMeasurements
from bayesrisk.census.readers.nmf.reader import (
    Atoms,
    QueryRows,
    cell_bounds,
    definitions,
    rows_between,
    state_prefixes,
    units_between,
)
from bayesrisk.census.readers.nmf.rows import Universe, cell_labels

SMALL = Universe(
    "other", {"a": 3, "b": 2}, {"a": {"pairs": ((0, 1), (2,)), "last": ((2,),)}, "b": {}}
)
ANSWERS = [("a", "*"), ("*", "b"), ("pairs", "*"), ("last", "b"), ("*", "*"), ("a", "b")]
SIGNS = ("=", "<=", ">=")


def stated(name, answers, sign, values):
    shape = tuple(len(SMALL.groups(x, a)) for x, a in zip(SMALL.axes, answers, strict=True))
    empty = np.empty(0)
    codes = np.array(["057"])
    return QueryRows(name, shape, answers, codes, np.array([values]), empty, sign)


def test_labels_of_cells():
    assert cell_labels(SMALL, ("*", "*")).tolist() == [0] * 6
    assert cell_labels(SMALL, ("pairs", "b")).tolist() == [0, 1, 0, 1, 2, 3]
    assert cell_labels(SMALL, ("last", "*")).tolist() == [-1, -1, -1, -1, 0, 0]
    assert cell_labels(SMALL, ("unheard of", "*")) is None


@settings(max_examples=60, deadline=None)
@given(
    counts=st.lists(st.integers(0, 4), min_size=6, max_size=6),
    asked=st.lists(
        st.tuples(st.sampled_from(ANSWERS), st.sampled_from(SIGNS), st.integers(0, 2)), max_size=4
    ),
    target=st.sampled_from(ANSWERS),
)
def test_bounds_hold_the_truth_and_are_those_of_each_constraint(counts, asked, target):
    """Constraints that a true histogram keeps: the truth is always within the bounds."""
    rows, least, most = {}, [0] * 9, [math.inf] * 9
    wanted = cell_labels(SMALL, target)
    mine = [{c for c in range(6) if wanted[c] == t} for t in range(wanted.max() + 1)]
    for number, (answers, sign, slack) in enumerate(asked):
        labels = cell_labels(SMALL, answers)
        totals = [
            sum(counts[c] for c in range(6) if labels[c] == g) for g in range(labels.max() + 1)
        ]
        step = {"=": 0, "<=": slack, ">=": -slack}[sign]
        values = [max(total + step, 0) for total in totals]
        rows[f"c{number}"] = stated(f"c{number}", answers, sign, values)
        for t, cells in enumerate(mine):
            inside = 0
            for g, value in enumerate(values):
                group = {c for c in range(6) if labels[c] == g}
                if sign != ">=" and cells <= group:
                    most[t] = min(most[t], value)
                if sign != "<=" and group <= cells:
                    inside += value
            least[t] = max(least[t], inside)
    atoms = Atoms(SMALL, {name: r.answers for name, r in rows.items()})
    found = cell_bounds(atoms, wanted, np.array(["057"]), [("", 3, rows)], "here")
    for t, cells in enumerate(mine):
        truth = sum(counts[c] for c in cells)
        assert found.lower[0, t] <= truth <= found.upper[0, t]
        assert found.lower[0, t] == least[t]
        assert found.upper[0, t] <= most[t]  # sums of parts may say more
        if not any(found.live[0, atoms.cell_atoms[c]] for c in cells):
            assert found.upper[0, t] == 0
    alive = found.live[0][atoms.cell_atoms]
    assert all(alive[c] for c in range(6) if counts[c] > 0)


def test_a_recode_that_is_not_known_is_ignored():
    atoms = Atoms(SMALL, {"x": ("unheard of", "*"), "y": ("a", "*")})
    assert atoms.ignored == ("x",)
    assert atoms.size == 3


def test_contradictions_name_unit_and_constraints():
    rows = {
        "least": stated("least", ("pairs", "*"), ">=", [5, 0]),
        "most": stated("most", ("a", "*"), "<=", [2, 2, 9]),
    }
    atoms = Atoms(SMALL, {name: r.answers for name, r in rows.items()})
    text = "here: unit 057: constraints contradict each other: least says >= 5 of total 0, of which"
    with pytest.raises(DataError, match=f"{text} most leave at most 4"):
        cell_bounds(
            atoms, cell_labels(SMALL, ("a", "b")), np.array(["057"]), [("", 3, rows)], "here"
        )


# --- widths and ranges ------------------------------------------------------------------------


def demographic(folder, county="05710009", block="12"):
    """Write the spine of another run: counties of 8 characters, blocks of 26."""
    code = county + block + "5700102030011004"
    write_rows(folder, "State", [row("057", "total", [9], PERSON)])
    write_rows(folder, "County", [row(county, "total", [8], PERSON)])
    write_rows(folder, "Block", [row(code, "total", [7], PERSON)])
    return code


def test_widths_are_those_of_the_file(tmp_path):
    code = demographic(tmp_path / "dhc")
    nmf = NoisyMeasurements.open(tmp_path / "dhc")
    assert nmf.widths == {"State": 3, "County": 8, "Block": 26}
    assert next(nmf.iter_values("County", "total")).geocodes.tolist() == ["05710009"]
    assert br.census.block_geoid([code]).tolist() == ["570010203001004"]


def test_other_rows_must_have_as_many_characters(tmp_path):
    demographic(tmp_path / "dhc")
    codes = ("05710009", "057100091")
    write_rows(tmp_path / "dhc", "County", [row(c, "total", [8], PERSON) for c in codes])
    nmf = NoisyMeasurements.open(tmp_path / "dhc")
    with pytest.raises(DataError, match="row 2, column 'geocode': a County must have 8 characters"):
        list(nmf.iter_values("County", "total"))
    with pytest.raises(DataError, match="row 2, column 'geocode': a County must have 8 characters"):
        rows_between(nmf, "County", "DPQuery", "", "")


def test_widths_grow_along_the_spine(tmp_path):
    demographic(tmp_path / "dhc", county="057")
    with pytest.raises(DataError, match="a County must have more characters than a State, 3"):
        NoisyMeasurements.open(tmp_path / "dhc")


def test_rows_of_a_range_are_those_of_the_whole(tmp_path):
    sample = br.census.write_nmf(tmp_path / "US_Person_PL_PROD", rng=4)
    nmf = NoisyMeasurements.open(sample.folder)
    assert state_prefixes(nmf, "Block") == ["057", "058", "157"]
    assert state_prefixes(nmf, "US") == [""]
    units, listed = units_between(nmf, "Block")
    assert listed
    np.testing.assert_array_equal(units, sample.geocodes["Block"])
    assert set(definitions(nmf, "Block", "DPQuery")) == set(nmf.queries("Block"))
    low, high = units[4], units[11]
    for query, rows in rows_between(nmf, "Block", "DPQuery", low, high).items():
        batches = list(nmf.iter_values("Block", query))
        codes = np.concatenate([b.geocodes for b in batches])
        inside = (codes >= low) & (codes <= high)
        np.testing.assert_array_equal(rows.geocodes, codes[inside])
        values = np.concatenate([b.values for b in batches])[inside]
        np.testing.assert_array_equal(rows.values, values)
    by_county = rows_between(nmf, "Block", "DPQuery", "058100031", "157")["total"].geocodes
    expected = [
        c
        for c in units
        if c[:9] >= "058100031" and sample.rho["Block", "total"][list(units).index(c)]
    ]
    assert by_county.tolist() == expected


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([("057", [1], "="), ("058", [1], "<=")], "total must have one sign"),
        ([("057", [-1], "=")], "column 'value': must be >= 0 in a constraint, got -1"),
        ([("057", [1], "~")], "column 'sign': must be one of =, <=, >=, got '~'"),
        ([("057", [1], "="), ("057", [1], "=")], "unit 057 must occur once"),
    ],
)
def test_bad_constraints_are_named(tmp_path, rows, text):
    write_rows(
        tmp_path / "nmf", "State", [row(c, "total", v, PERSON, sign=sign) for c, v, sign in rows]
    )
    nmf = NoisyMeasurements.open(tmp_path / "nmf")
    with pytest.raises(DataError, match=text):
        rows_between(nmf, "State", "Constraint", "", "")
