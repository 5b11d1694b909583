"""HUD's tables: bounds of counts against enumeration, codes of what is missing, Excel."""

import numpy as np
import openpyxl
import pandas as pd
import pytest
from files.agency_forms import write_hud
from hypothesis import given, settings
from hypothesis import strategies as st

from bayesrisk import ArgumentError, DataError
from bayesrisk.readers import iter_hud, read_hud
from bayesrisk.readers.hud import share_bounds

TEXT = """\
Quarter,States,SumLevel,Name,Code,Total_Units,Pct_Occupied,Number_Reported,Pct_Female_Head,Rent_Per_Month,Latitude
2020,AL,8,"Tract 1, Baldwin",1003010100,40,95,38,79,310.5,-30.5
2020,AL,8,Tract 2,01003010200,12,-1,-4,-4,-5,
"""


def rounds_to(count, n, p):
    """Return whether 100 count / n is within a half of p, in whole numbers."""
    return abs(200 * count - 2 * p * n) <= n


@given(n=st.integers(1, 400), p=st.integers(0, 100))
def test_bounds_against_enumeration(n, p):
    low, high = share_bounds(np.array([n]), np.array([p]))
    counts = [c for c in range(n + 1) if rounds_to(c, n, p)]
    assert list(range(int(low[0]), int(high[0]) + 1)) == counts


@given(n=st.integers(1, 10_000), share=st.floats(0, 1))
def test_bounds_hold_the_count_that_was_rounded(n, share):
    count = round(n * share)
    for p in (int(100 * count / n + 0.5), round(100 * count / n)):  # a half up, or to even
        low, high = share_bounds(np.array([n]), np.array([p]))
        assert low[0] <= count <= high[0]


def test_a_file_by_hand(tmp_path):
    (tmp_path / "TRACT_2020.csv").write_text(TEXT)
    frame = read_hud(tmp_path / "TRACT_2020.csv", level="tract")
    assert frame["code"].tolist() == ["01003010100", "01003010200"]
    assert frame["sumlevel"].tolist() == ["08", "08"]
    assert frame["name"].tolist() == ["Tract 1, Baldwin", "Tract 2"]
    assert frame["rent_per_month"].tolist() == [310.5, pd.NA]
    assert frame["rent_per_month_reason"].tolist() == [pd.NA, "reporting too low"]
    assert frame["number_reported_reason"].tolist() == [pd.NA, "suppressed, fewer than 11"]
    assert frame["pct_occupied_reason"].tolist() == [pd.NA, "not available"]
    assert frame["latitude"].tolist() == [-30.5, pd.NA]
    # 79 % of 38 is 30; of what the occupied ones are a share is not known.
    assert frame[["pct_female_head_low", "pct_female_head_high"]].loc[0].tolist() == [30, 30]
    assert "pct_occupied_low" not in frame
    assert frame["pct_female_head_low"].isna().tolist() == [False, True]
    assert "rent_per_month_low" not in frame


def test_a_share_that_no_count_has(tmp_path):
    (tmp_path / "a.csv").write_text("code,number_reported,pct_bed1\n1,3,50\n")
    frame = read_hud(tmp_path / "a.csv", level="county")
    assert frame["code"].tolist() == ["00001"]
    assert frame["pct_bed1"].tolist() == [50]
    assert frame["pct_bed1_reason"].tolist() == ["no whole count"]
    assert frame["pct_bed1_low"].isna().all()


CODES = st.sampled_from([-1.0, -4.0, -5.0])


@settings(max_examples=15)
@given(
    rows=st.lists(
        st.tuples(
            st.integers(0, 10**11 - 1),
            st.one_of(CODES, st.integers(0, 5000).map(float)),
            st.one_of(CODES, st.integers(0, 100).map(float)),
            st.one_of(CODES, st.integers(0, 10**7).map(lambda x: x / 8)),
        ),
        max_size=20,
    ),
    chunk=st.integers(1, 9),
)
def test_there_and_back(rows, chunk, tmp_path_factory):
    folder = tmp_path_factory.mktemp("hud")
    lines = [f"{c},{n:g},{p:g},{h:.15g}" for c, n, p, h in rows]
    header = "CODE,NUMBER_REPORTED,PCT_HISPANIC,HH_INCOME"
    (folder / "a.csv").write_text("\n".join([header, *lines]) + "\n")
    frame = read_hud(folder / "a.csv", level="tract")
    write_hud(frame, folder / "b.csv")
    pd.testing.assert_frame_equal(read_hud(folder / "b.csv", level="tract"), frame)
    pieces = list(iter_hud(folder / "a.csv", level="tract", chunk=chunk))
    assert all(len(piece) <= chunk for piece in pieces)
    pd.testing.assert_frame_equal(pd.concat(pieces, ignore_index=True), frame)


def excel(file, rows):
    book = openpyxl.Workbook()
    for row in rows:
        book.worksheets[0].append(row)
    book.save(file)
    return file


def test_excel_gives_what_csv_gives(tmp_path):
    (tmp_path / "a.csv").write_text(
        "code,number_reported,pct_bed1,hh_income\n1003010100,40,95,1.5\n"
    )
    rows = [["code", "number_reported", "pct_bed1", "hh_income"], [1003010100, 40, 95.0, 1.5]]
    file = excel(tmp_path / "a.xlsx", rows)
    frame = read_hud(tmp_path / "a.csv", level="tract")
    pd.testing.assert_frame_equal(read_hud(file, level="tract"), frame)
    more = excel(tmp_path / "b.xlsx", [*rows, *[[None, 1, 1, 1]]])
    with pytest.raises(
        DataError, match=r"row 2, column 'code': must be at most 11 digits, .* got ''"
    ):
        list(iter_hud(more, level="tract", chunk=1))
    (tmp_path / "c.xlsx").write_bytes(b"no archive")
    with pytest.raises(DataError, match=r"c.xlsx: cannot be read"):
        read_hud(tmp_path / "c.xlsx", level="tract")
    with pytest.raises(DataError, match="column 'code': must stand in the file once"):
        read_hud(excel(tmp_path / "d.xlsx", [["code", "code"], [1, 2]]), level="tract")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("code,Code\n1,2\n", "column 'Code': must stand in the file once, got it again after 'c"),
        ("code,,a\n1,2,3\n", "column '': must have a name; rename it"),
        (
            "code,pct_bed1_low\n1,2\n",
            "column 'pct_bed1_low': must have a name that this reader does not give; rename it",
        ),
        ("name\nx\n", "must have a column 'code'"),
        ("code\n123456789012\n", "row 1, column 'code': must be at most 11 digits"),
        (
            "code,hh_income\n1,5\n2,-3\n",
            "row 2, column 'hh_income': must be a number >= 0 or one of -1, -2, -4, -5, got '-3'",
        ),
        ("code,hh_income\n1,abc\n", "row 1, column 'hh_income': must be a number, got 'abc'"),
        (
            "code,number_reported,pct_bed1\n1,5,50\n2,9,101\n",
            "row 2, column 'pct_bed1': .*up to 100",
        ),
        ("code,number_reported,pct_bed1\n1,5,50.5\n", "row 1, column 'pct_bed1': must be a whole"),
    ],
)
def test_bad_files(text, message, tmp_path):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        read_hud(tmp_path / "a.csv", level="tract")
    with pytest.raises(ArgumentError, match="level must be one of tract, county, state"):
        read_hud(tmp_path / "a.csv", level="block")


def test_numbers_that_no_share_can_be_computed_of_are_refused(tmp_path):
    file = tmp_path / "TRACT_2020.csv"
    file.write_text("Code,Number_Reported,Pct_Female_Head\n01003010100,1e12,50\n")
    low, high = (read_hud(file, level="tract")[f"pct_female_head_{e}"][0] for e in ("low", "high"))
    assert (low, high) == (495 * 10**9, 505 * 10**9)
    file.write_text(
        "Code,Number_Reported,Pct_Female_Head\n01003010100,12,50\n01003010200,1e18,50\n"
    )
    message = "row 2, column 'Number_Reported': must be at most 1000000000000, got '1e18'"
    with pytest.raises(DataError, match=message):
        read_hud(file, level="tract")
