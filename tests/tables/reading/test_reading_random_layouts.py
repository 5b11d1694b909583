"""Random tables in random layouts: with all guesses confirmed nothing false is stated of any."""

import csv

import pytest
from random_layouts import random_layout
from true_statements import Statements

from bayesrisk.exceptions import DataError
from bayesrisk.tables.reading.reading import read
from bayesrisk.tables.sheets.sheet import file_sheet


def only_marks(layout):
    """Return whether all counts of a file are withheld, so that no text says which they are."""
    for name, text in layout.files.items():
        text = text.partition("Ward")[0]  # of another table
        rows = list(csv.reader(text.replace(";", ",").replace("\t", ",").splitlines()))
        texts = [x for row in rows for x in row if x in layout.marks]
        if name.endswith(".csv") and len(texts) >= len(rows) - 6 and texts:
            return True
    return False


def reading_of(layout, folder):
    """Return the reading of a layout, with its law where that is asked; None if it is refused."""
    for name, text in layout.files.items():
        (folder / name).write_text(text, encoding="utf-8")
    options = {n: str(folder / t) if t.endswith(".hrc") else t for n, t in layout.settings.items()}
    sheets = [file_sheet(folder / name) for name in layout.files if name.endswith(".csv")]
    try:
        reading = read(sheets, options)
    except DataError:
        assert only_marks(layout)
        return None
    if any(line.startswith("not read: ") for line in reading.lines):  # another table of the file
        assert only_marks(layout)
        return None
    # Numbers alone do not tell each law: it is asked, or said to be a guess that no sum shows.
    assert all(name.startswith("counts") for name in reading.open)
    guessed = any("a guess, " in text for n, (_, text) in reading.questions.items()
                  if n.startswith("counts"))  # fmt: skip
    # So are columns that no word says count records: the law that is stated reads these, too.
    left_out = any(guess == "ignored" and name.startswith("columns.")
                   for name, (guess, _) in reading.questions.items())  # fmt: skip
    if reading.open or left_out or (guessed and layout.law.startswith("perturbed")):
        reading = read(sheets, options | {"counts": layout.law})
    return reading


def check(layout, folder):
    """Check all that is stated of a layout."""
    reading = reading_of(layout, folder)
    if reading is None:
        return
    Statements(layout, reading).check_all()


@pytest.mark.parametrize("seed", [*range(40), 60351, 60419, 70179, 70567, 80265, 80482, 81823])
def test_nothing_false_is_stated_of_a_random_layout(seed, tmp_path):
    check(random_layout(seed), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(40, 2000, 70))
def test_nothing_false_is_stated_of_many_random_layouts(first, tmp_path):
    for seed in range(first, min(first + 70, 2000)):
        folder = tmp_path / str(seed)
        folder.mkdir()
        check(random_layout(seed), folder)
