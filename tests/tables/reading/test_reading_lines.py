"""Lines around and between the rows of a table: filters, names of labels, sentences, totals."""

import pytest

from bayesrisk.tables.reading.reading import read
from bayesrisk.tables.reading.sheet import file_sheet


def reading_of(tmp_path, text, **settings):
    file = tmp_path / "t.csv"
    file.write_text(text, encoding="utf-8")
    return read([file_sheet(file)], settings)


def stated(said):
    """Return the texts of the counts with their labels, without those that count all."""
    names = [n for n in said.cells if n not in ("place", "table", "cell", "stated", "file", "row")]
    rows = said.cells[said.cells["file"] != ""]
    return {
        frozenset(x for x in labels if x != "all"): text
        for *labels, text in rows[[*names, "stated"]].itertuples(index=False, name=None)
    }


FILTERS = 'SuperWEB2(tm)\n\n"Counting: Individuals"\n\nFilters:\n"Summation","Individuals"\n{}\n'
ZONES = '"Data Zone 2011",\n"S01",969,930,39,\n"S02",758,711,47,\n"S03",542,503,39,\n'


@pytest.mark.parametrize("more", ["", '"Sex","Both"\n', '"Sex","Both","of all ages"\n'])
@pytest.mark.parametrize("name", ["Data Zone 2011", "Age", "Zone - 2"])
def test_the_name_of_the_labels_below_headings_and_filters(more, name, tmp_path):
    head = '"Ethnic Group","All People","White","Asian",\n'
    text = FILTERS.format(more) + head + ZONES.replace("Data Zone 2011", name)
    said = reading_of(tmp_path, text + '\n\n"INFO","Data has been perturbed"\n')
    assert said.sheets[0].heads == [name, "All People", "White", "Asian"]
    assert stated(said)[frozenset({"S02", "Asian"})] == "47"
    assert len(stated(said)) == 9


def test_two_rows_of_headings_below_filters(tmp_path):
    head = '"Sex","Male",,"Female",,\n"Age","0-15","16+","0-15","16+",\n'
    rows = '"Data Zone 2011",\n"S01",69,30,39,7,\n"S02",58,11,47,8,\n"S03",42,53,39,9,\n'
    said = reading_of(tmp_path, FILTERS.format("") + head + rows)
    assert stated(said)[frozenset({"S02", "Female", "0-15"})] == "47"
    assert len(stated(said)) == 12
