"""HUD files as spreadsheets leave them: titles, marks in numbers, empty rows, other encodings."""

import openpyxl
import pandas as pd
import pytest

from bayesrisk import DataError
from bayesrisk.readers import read_hud

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
