"""Tables in the forms of agencies, from the shared folder: what their notes call right is read."""

from pathlib import Path

import pandas as pd
import pytest

from bayesrisk import PublishedTables
from bayesrisk.exceptions import DataError
from bayesrisk.reconstruction import count_bounds
from bayesrisk.tables.reading.reading import read
from bayesrisk.tables.sheets.sheet import file_sheet

FIELD = Path(__file__).parents[3] / "shared" / "field"

pytestmark = pytest.mark.skipif(
    not FIELD.is_dir(), reason=f"needs the shared folder, {FIELD} is absent"
)


def ends(name, **choices):
    """Return bounds of published counts by labels, with all guesses confirmed."""
    reading = read([file_sheet(FIELD / name)], choices).accepted()
    bounds = count_bounds(PublishedTables(*reading.parts))
    assert not bounds.conflict
    columns = [*reading.cells.columns[: reading.cells.columns.get_loc("stated")]]
    keys = ["place", "table", "cell"]
    rows = reading.cells.merge(bounds.counts.rename(columns={"geoid": "place"}), on=keys)
    labels = [c for c in columns if c not in keys]
    return {
        frozenset(row[c] for c in labels) - {"all"}: (
            int(row["low"]), None if pd.isna(row["high"]) else int(row["high"]),
        )
        for row in rows.to_dict("records")
    }  # fmt: skip


RIGHT = {
    "01-codes-beside-labels/table.csv": [({"North"}, 19, 23)],
    "02-identifier-column/table.csv": [({"Alpha County"}, 2, 2)],
    "03-total-in-another-language/table.csv": [({"Süd", "Männlich"}, 4, 4), (set(), 32, 32)],
    "05-only-a-total-label/table.csv": [({"South", "Female"}, 1, 4)],
    "06-words-for-suppressed/table.csv": [({"South", "Female"}, 3, 3)],
    "07-workbook/table.xlsx": [({"B", "M"}, 1, 1)],
    "15-notes-on-counts/table.csv": [({"A", "M"}, 5, 5), ({"A", "F"}, 3, 3), ({"B", "M"}, 1, 1)],
    "15-notes-on-counts/np.csv": [({"NSW", "Males"}, 3, 3)],
    "16-midpoint-six/table.csv": [
        ({"South", "F"}, 1, 5), ({"South", "M"}, 7, 11), ({"South"}, 8, 12),
        ({"North", "F"}, 7, 12), ({"North", "M"}, 13, 18), ({"North"}, 25, 30),
    ],
}  # fmt: skip
CHOICES = {
    "02-identifier-column/table.csv": {"labels.county.US": "all", "totals": "complete"},
    "01-codes-beside-labels/table.csv": {"counts": "random-3"},
    "05-only-a-total-label/table.csv": {"counts": "exact", "marks.*": "1-4"},
    "06-words-for-suppressed/table.csv": {"marks.Data suppressed": "1-4"},
}


@pytest.mark.parametrize("name", RIGHT)
def test_published_forms_are_read(name):
    found = ends(name, **CHOICES.get(name, {}))
    for labels, low, high in RIGHT[name]:
        if name.startswith("05"):  # without a total a place stands alone, with its year if it has
            assert [e for said, e in found.items() if labels <= said] == [(low, high)]
        else:
            assert found[frozenset(labels)] == (low, high)


def test_perturbed_counts_stand_for_a_range():
    found = ends("08-tablebuilder/table.csv", blank="above", counts="perturbed-2")
    ages = [said for said in found if any("0-4" in label for label in said)]
    assert len(found) == 9
    total = next(said for said in ages if len(said) == 1)
    male = next(said for said in ages if "Male" in said)
    # 92 to 96 as stated; of at most 101 people at least 7 are from 5 to 9 years old.
    assert found[total] == (92, 94)
    assert 45 <= found[male][0] <= found[male][1] <= 49


def test_headings_of_two_rows_are_one_tree():
    name = "09-data-census-gov/DECENNIALDHC2020.P12-Data.csv"
    found = ends(name, counts="exact")
    counts = {(low, high) for said, (low, high) in found.items() if any("1000" in x for x in said)}
    assert {(31, 31), (14, 14), (17, 17), (2, 2)} <= counts
    assert not any("P12" in label for said in found for label in said)


def test_labels_by_indentation_are_one_tree():
    found = ends("10-label-grouping/table.csv", counts="exact")
    boys = next(
        e for said, e in found.items()
        if {"Male", "Under 18 years"} <= said and any("1000" in label for label in said)
    )  # fmt: skip
    assert boys == (114, 114)


def test_groups_of_ages_of_a_bulk_file_are_read():
    found = ends("11-nomis-bulk/census2021.csv")
    reading = read([file_sheet(FIELD / "11-nomis-bulk/census2021.csv")], {})
    assert "date" not in reading.cells.columns
    stated = dict(zip(map(frozenset, reading.cells[["stated"]].to_numpy()), range(8), strict=False))
    assert frozenset({"2021"}) not in stated
    assert len(found) == 8


def test_dimensions_of_one_column_are_split():
    found = ends("14-eurostat-tsv/estat.tsv", counts="exact")
    assert [e for said, e in found.items() if {"XX1", "F", "2023"} <= said] == [(125, 125)]


def test_overlapping_labels_prove_nothing_of_others():
    reading = read([file_sheet(FIELD / "04-alone-or-in-any-combination/table.csv")], {})
    assert reading.separate == ("pop group",)


def test_estimates_are_refused():
    with pytest.raises(DataError, match="margins of error"):
        read([file_sheet(FIELD / "17-estimates-with-margins/acs.csv")], {})
