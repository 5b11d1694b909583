"""Bodies of tables: rows with counts, and notes below them."""

import pytest

from bayesrisk.tables.reading.reading import TableReading


@pytest.mark.parametrize(
    "notes",
    [
        'Notes,c,"1 to 4, not shown"\n,..,not available\n,1,Includes visitors at sea\n',
        ',1,Includes visitors at sea\n,c,"1 to 4, not shown"\n',
        ',"c: 1 to 4, not shown"\n,Source: the office\n',
    ],
)
def test_notes_below_a_table_may_begin_in_a_column_of_counts(notes, tmp_path):
    rows = "area,Male,Female,Total\nAsh,14,15,29\nBay,16,c,18\nElm,17,18,35\nFir,c,12,14\n"
    (tmp_path / "t.csv").write_text(f"{rows}\n{notes}", encoding="utf-8")
    said = TableReading.read(tmp_path / "t.csv")
    assert {*said.cells["area"]} == {"Ash", "Bay", "Elm", "Fir"}
    assert said.questions["marks.c"][0] == "1-4"


@pytest.mark.parametrize("row", ["Note,1,2,3", ",1,2,3"])
def test_a_row_of_numbers_is_no_note_whatever_it_is_called(row, tmp_path):
    (tmp_path / "t.csv").write_text(f"area,Male,Female,Total\nAsh,14,15,29\nBay,16,2,18\n{row}\n")
    assert len(TableReading.read(tmp_path / "t.csv").cells) == 9
