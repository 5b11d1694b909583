"""County files of each vintage, made up: every cell is read, and intervals hold the counts."""

import warnings
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import hud_files as files

from bayesrisk import ArgumentError, DataError
from bayesrisk.exceptions import DataWarning
from bayesrisk.readers import iter_hud, read_hud

CODES = {
    "-1": "not available",
    "-2": "missing, code -2",
    "-4": "suppressed, fewer than 11",
    "-5": "reporting too low",
}
VINTAGES = list(files.VINTAGES)


def quietly(file, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return read_hud(file, level="county", **options)


@pytest.mark.parametrize("vintage", VINTAGES)
def test_every_cell_of_a_vintage(vintage, tmp_path):
    """No unknown column, and each value as it stands in the file, or missing and why."""
    file = tmp_path / "county.csv"
    header, lines, _ = files.county_file(file, vintage, np.random.default_rng(1))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        frame = read_hud(file, level="county")
    assert not [w for w in caught if "no known vintage" in str(w.message)]
    assert len(frame) == len(lines)
    for place, name in enumerate(n.lower() for n in header):
        for row, line in enumerate(lines):
            cell, value = line[place], frame[name][row]
            if name == "code":
                assert value is pd.NA if "X" in cell else value == cell.zfill(5)
            elif cell in CODES:
                assert value is pd.NA
                if f"{name}_reason" in frame:
                    assert frame[f"{name}_reason"][row] == CODES[cell]
            elif isinstance(value, str):
                assert value.lstrip("0") == cell.lstrip("0")
            else:
                assert value == float(cell)


@pytest.mark.parametrize("vintage", VINTAGES)
def test_intervals_only_where_the_base_is_known(vintage, tmp_path):
    """From 2014 on, of the 28 shares of households."""
    file = tmp_path / f"COUNTY_{vintage}.csv"
    _, _, truth = files.county_file(file, vintage, np.random.default_rng(2))
    frame = quietly(file)
    bounded = {n.removesuffix("_low") for n in frame if n.endswith("_low")}
    assert bounded == (files.OF_HOUSEHOLDS if vintage >= "2014" else set())
    assert bounded == {n.removesuffix("_high") for n in frame if n.endswith("_high")}
    checked = 0
    for share in bounded:
        for row, counts in enumerate(truth):
            if share in counts:
                assert frame[f"{share}_low"][row] <= counts[share] <= frame[f"{share}_high"][row]
                checked += 1
    assert checked > 600 or vintage < "2014"


def test_the_year_of_the_name_tells_the_vintage(tmp_path):
    """A few columns that all years have say nothing of the year."""
    for name, bounded in [("COUNTY_2012.csv", False), ("COUNTY_2014.csv", True), ("c.csv", True),
                          ("TRACT_2015_2010census.csv", True)]:  # fmt: skip
        (tmp_path / name).write_text("code,number_reported,pct_bed1\n1001,30,50\n")
        frame = read_hud(tmp_path / name, level="county")
        assert ("pct_bed1_low" in frame) is bounded, name


def test_odd_values_are_kept_with_one_warning(tmp_path):
    file = tmp_path / "COUNTY_2011.csv"
    file.write_text(
        "code,pct_occupied,rent_per_month,pct_disabled_all\n"
        "1001,108,-13,40\n1003,90,-4,101\n1005,330,-0.5,7\n"
    )
    with pytest.warns(DataWarning) as caught:
        pieces = list(iter_hud(file, level="county", chunk=1))
    (warning,) = caught
    message = str(warning.message)
    for part in (
        "COUNTY_2011.csv",
        "'pct_occupied' above 100 (2 rows)",
        "'rent_per_month' below 0 (2 rows)",
        "'pct_disabled_all' above 100 (1 rows)",
    ):
        assert part in message
    frame = pd.concat(pieces, ignore_index=True)
    assert frame["pct_occupied"].tolist() == [108, 90, 330]
    assert frame["rent_per_month"].tolist() == [-13, pd.NA, -0.5]


def test_missing_coordinates_are_no_place(tmp_path):
    """Codes stand for coordinates too; places south of the equator are kept."""
    rows = [(32.5, -86.5), (-1, -1), (-4, -5), (-14.3, -170.7), ("", "")]
    lines = "".join(f"{1001 + i},{y},{x}\n" for i, (y, x) in enumerate(rows))
    (tmp_path / "a.csv").write_text("code,latitude,longitude\n" + lines)
    frame = read_hud(tmp_path / "a.csv", level="county")
    assert frame["latitude"].tolist() == [32.5, pd.NA, pd.NA, -14.3, pd.NA]
    assert frame["longitude"].tolist() == [-86.5, pd.NA, pd.NA, -170.7, pd.NA]
    why = [pd.NA, "not available", "reporting too low", pd.NA, "blank"]
    assert frame["longitude_reason"].tolist() == why


BAD = {  # a value of a column that cannot be, and why
    "total_units": [("-13", "below 0"), ("many", "no number"), ("inf", "no number")],
    "number_reported": [("-3", "below 0"), ("1e13", "too large")],
    "pct_bed1": [
        ("101", "no whole percentage up to 100"),
        ("50.5", "no whole percentage up to 100"),
        ("-7", "below 0"),
    ],
    "latitude": [("north", "no number")],
    "sumlevel": [("123", "not at most 2 digits")],
}  # fmt: skip
GOOD = {"total_units": "40", "number_reported": "20", "pct_bed1": "50", "latitude": "32.5",
        "sumlevel": "5"}  # fmt: skip


@given(data=st.data())
@settings(max_examples=20)
def test_what_cannot_be_is_missing_and_counted(data, tmp_path_factory):
    """Refused for the first such value, by row and column; or missing, each of them counted."""
    values = {name: st.sampled_from([(GOOD[name], None), *BAD[name]]) for name in BAD}
    rows = data.draw(st.lists(st.fixed_dictionaries(values), min_size=1, max_size=8))
    file = tmp_path_factory.mktemp("hud") / "COUNTY_2020.csv"
    lines = [",".join([str(1001 + i), *(row[n][0] for n in BAD)]) for i, row in enumerate(rows)]
    file.write_text("\n".join([f"code,{','.join(BAD)}", *lines]) + "\n")
    expected = Counter((n, why) for row in rows for n, (_, why) in row.items() if why)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pieces = iter_hud(file, level="county", on_error="missing", chunk=3)
        frame = pd.concat(list(pieces), ignore_index=True)
    assert [w.message.missing for w in caught] == ([dict(expected)] if expected else [])
    for name in BAD:
        assert frame[name].isna().tolist() == [row[name][1] is not None for row in rows]
    for i, row in enumerate(rows):
        for name in ("total_units", "number_reported", "latitude"):
            assert frame[f"{name}_reason"].fillna("")[i] == (row[name][1] or "")
        known = row["pct_bed1"][1] is None and row["number_reported"][1] is None
        assert frame["pct_bed1_low"].isna()[i] == (not known)
    if expected:
        with pytest.raises(DataError, match=r"row \d+, column .* on_error=\"missing\"") as refused:
            read_hud(file, level="county")
        places = [f"row {i + 1}, column {n!r}" for i, row in enumerate(rows) for n in BAD
                  if row[n][1]]  # fmt: skip
        assert any(place in str(refused.value) for place in places)


def test_a_row_without_its_place_is_refused_always(tmp_path):
    (tmp_path / "a.csv").write_text("code,total_units\nx,7\n")
    with pytest.raises(DataError, match=r"row 1, column 'code'"):
        read_hud(tmp_path / "a.csv", level="county", on_error="missing")
    with pytest.raises(ArgumentError, match="on_error must be one of refuse, missing"):
        read_hud(tmp_path / "a.csv", level="county", on_error="keep")


def test_unknown_columns_are_kept_with_one_warning(tmp_path):
    file = tmp_path / "COUNTY_2030.csv"
    file.write_text("Colour,code,Pct_New,total_units\nred,1001,-4,7\n,1003,007,8\n")
    with pytest.warns(DataWarning) as caught:
        frame = read_hud(file, level="county")
    (warning,) = caught
    assert "kept as text: Colour, Pct_New" in str(warning.message)
    names = [n for n in frame if not n.endswith("_reason")]
    assert names == ["code", "total_units", "Colour", "Pct_New"]
    assert frame["Colour"].tolist() == ["red", pd.NA]
    assert frame["Pct_New"].tolist() == ["-4", "007"]


def test_missing_places_of_every_level(tmp_path):
    for level, code in [("county", "02XXX"), ("tract", "01003XXXXXX"), ("state", "XX")]:
        (tmp_path / "a.csv").write_text(f"code,total_units\n{code},7\n1,8\n")
        frame = read_hud(tmp_path / "a.csv", level=level)
        assert frame["code"].isna().tolist() == [True, False]
        assert frame["total_units"].tolist() == [7, 8]
