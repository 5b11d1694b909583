"""HUD's tables: bounds against enumeration, every vintage, spreadsheets, and what is missing."""

import warnings
from collections import Counter

import numpy as np
import openpyxl
import pandas as pd
import pytest
from agency_forms import write_hud
from hypothesis import given, settings, strategies as st
from oracles import hud_files as files

from bayesrisk import ArgumentError, DataError
from bayesrisk.census import iter_hud, read_hud
from bayesrisk.census.readers.hud import share_bounds
from bayesrisk.exceptions import DataWarning

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


PLAIN = (
    "code,name,total_units,hh_income,number_reported,pct_bed1\n35013,Doña Ana,1234,12345.5,60,45\n"
)
WORKBOOK = [
    ["Picture of Subsidized Households"],
    [],
    ["Code", "Name", "Total_Units", "HH_Income", "Number_Reported", "Pct_Bed1"],
    ["35013", "Doña Ana", 1234, "$12,345.50", 60.0, "45%"],
    [None, None, None],
    [],
]


@pytest.fixture
def plain(tmp_path):
    (tmp_path / "plain.csv").write_text(PLAIN, encoding="utf-8")
    return read_hud(tmp_path / "plain.csv", level="county")


@pytest.mark.parametrize(
    "text",
    [
        PLAIN.replace("1234,12345.5", '"1,234","$12,345.5"').replace(",45\n", ",45%\n"),
        PLAIN.replace(",1234,", ", $1234 ,"),
        PLAIN.replace("\n", ",,\n"),
        "Picture of Subsidized Households,,,,,\n,,,,,\n" + PLAIN,
        PLAIN + ",,,,,\n , ,,,,\n\n",
        PLAIN.replace("35013", "35013.0"),
        "\ufeff" + PLAIN.replace("\n", "\r\n"),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_the_same_as_the_plain_file(text, encoding, plain, tmp_path):
    if encoding == "latin-1":
        text = text.removeprefix("\ufeff")
    (tmp_path / "a.csv").write_text(text, encoding=encoding, newline="")
    pd.testing.assert_frame_equal(read_hud(tmp_path / "a.csv", level="county"), plain)


def test_a_workbook_with_a_title(plain, tmp_path):
    book = openpyxl.Workbook()
    for row in WORKBOOK:
        book.worksheets[0].append(row)
    book.worksheets[0].cell(30, 2).value = ""  # rows 7 to 29 are left out of the file
    book.save(tmp_path / "a.xlsx")
    pd.testing.assert_frame_equal(read_hud(tmp_path / "a.xlsx", level="county"), plain)


@pytest.mark.parametrize(
    ("value", "column"),
    [("1,23", "total_units"), ("$", "total_units"), ("45%", "total_units"), ("$45", "pct_bed1")],
)
def test_marks_where_none_can_be(value, column, tmp_path):
    """A comma between other digits is no thousand; an amount is no share, nor a share an amount."""
    fields = {"code": "35013", "number_reported": "60", "total_units": "1", "pct_bed1": "45"}
    cells = fields | {column: f'"{value}"'}
    text = ",".join(cells) + "\n" + ",".join(cells.values()) + "\n"
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(DataError, match=rf"row 1, column '{column}': must be a number, got '"):
        read_hud(tmp_path / "a.csv", level="county")


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        (
            "COUNTY_2009.xls",
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(99),
            r"save it as .xlsx or",
        ),
        ("COUNTY_2019.csv", b"PK\x03\x04" + bytes(99), "its name must end in .zip or .xlsx"),
        ("COUNTY_2019.csv", PLAIN.encode("utf-16"), "UTF-16: save it as CSV UTF-8"),
        ("a.csv", PLAIN.replace("45\n", "45,9\n").encode(), "row 1: must have 6 columns, got 7"),
        (
            "a.csv",
            PLAIN.replace("pct_bed1\n", "pct_bed1,\n").replace("45\n", "45,9\n").encode(),
            "row 1, column 'column 7, without a name': must be empty, got b'9'",
        ),
    ],
)
def test_what_cannot_be_read(name, data, words, tmp_path):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(DataError, match=words):
        read_hud(tmp_path / name, level="county")


REASONS = {
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
            elif cell in REASONS:
                assert value is pd.NA
                if f"{name}_reason" in frame:
                    assert frame[f"{name}_reason"][row] == REASONS[cell]
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


QUERY = """\
Summary level,Program label,Program,Sub-program,Name,Code,Subsidized  units available,\
% Occupied,# Reported,% Reported,Household income per year,% Minority
7,Summary of All HUD Programs,1,NA,XX Some County Census Tract 1,99001000100,225,88,194,98,20197,41
7,Public Housing,2,A,XX Some County Census Tract 2,99001000200,9,-4,-4,-4,-4,-4
7,Public Housing,2,NA,NY New York MISSING MISSIN,36XXXMISSIN,2,-4,-4,-4,-4,-4
"""


def test_headings_in_words(tmp_path):
    """As the query page gives them; what was not placed at all is left out and said."""
    (tmp_path / "TRACT_2013.csv").write_text(QUERY)
    for rule in ("refuse", "missing"):
        with pytest.warns(DataWarning, match=r"1 rows of no place .*left out$") as caught:
            frame = read_hud(tmp_path / "TRACT_2013.csv", level="tract", on_error=rule)
        assert len(caught) == 1
        assert frame["code"].tolist() == ["99001000100", "99001000200"]
        assert frame["total_units"].tolist() == [225, 9]
        for name, value in (("pct_occupied", 88), ("number_reported", 194), ("hh_income", 20197)):
            assert frame[name].tolist() == [value, pd.NA]
            assert frame[f"{name}_reason"].tolist() == [pd.NA, "suppressed, fewer than 11"]


@pytest.mark.parametrize("year", list(files.WORDS))
def test_headings_in_words_are_the_columns_of_the_year(year, tmp_path):
    columns = files.query_columns(year)
    values = [{"code": "36001000100", "latitude": "42.5", "longitude": "-73.5"}.get(name, str(i))
              for i, (_, name) in enumerate(columns)]  # fmt: skip
    for place in (0, 1):
        heads = ",".join(f'"{pair[place]}"' for pair in columns)
        (tmp_path / f"{place}.csv").write_text(heads + "\n" + ",".join(values) + "\n")
    frames = [read_hud(tmp_path / f"{place}.csv", level="tract") for place in (0, 1)]
    pd.testing.assert_frame_equal(*frames)
    texts = {"program_label", "program", "sub_program", "name", "code", "fedhse", "cbsa", "place",
             "state", "ha_size", "sumlevel"}  # fmt: skip
    numbers = [name for _, name in columns if name not in texts]
    assert all(f"{name}_reason" in frames[0] for name in numbers)


def test_mostly_unknown_columns_are_refused(tmp_path):
    (tmp_path / "a.csv").write_text("Code,Units,Filled,Income\n36001000100,225,88,20197\n")
    with pytest.raises(DataError, match="got 'Units, Filled, Income': download the file"):
        read_hud(tmp_path / "a.csv", level="tract")
