"""What nothing in a table shows to count records is asked, and no acceptance answers it."""

import numpy as np
import pandas as pd
import pytest

import bayesrisk as br
from bayesrisk.tables.reading.testimony import says_records

TOWNS = ["Aberd", "Brech", "Crail", "Dunoo", "Elgin", "Forfa"]


def reading_of(frame, **settings):
    return br.tables.TableReading.from_frame(frame, **settings)


def town_table(seed, heads, *, total):
    """Return random whole numbers by town, with a last row of their sums or of other numbers."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(20, 900, (len(TOWNS), len(heads)))
    last = counts.sum(axis=0) if total else counts.sum(axis=0) + rng.integers(5, 90, len(heads))
    rows = [[name, *map(str, row)] for name, row in zip(TOWNS, counts, strict=True)]
    return pd.DataFrame([*rows, ["Total", *map(str, last)]], columns=["town", *heads])


@pytest.mark.parametrize("seed", range(12))
def test_sums_that_hold_show_counts_whatever_they_are_called(seed):
    reading = reading_of(town_table(seed, ["Bzzk", "Qrrt"], total=True))
    assert not reading.open
    assert len(reading.accepted().confirmed()) > 0
    # The same numbers with other totals say nothing about what they are.
    reading = reading_of(town_table(seed, ["Bzzk", "Qrrt"], total=False))
    assert reading.open == {"counts"}
    assert "Bzzk" in reading.questions["counts"][1]
    with pytest.raises(br.exceptions.ArgumentError, match="counts=exact"):
        reading.accepted().confirmed()


@pytest.mark.parametrize("seed", range(12))
def test_each_column_needs_a_sum_or_a_word_of_its_own(seed):
    both = town_table(seed, ["Bzzk"], total=True)
    both["Qrrt"] = town_table(seed + 100, ["Qrrt"], total=False)["Qrrt"]
    text = reading_of(both).questions["counts"][1]
    assert "Qrrt" in text
    assert "Bzzk" not in text
    assert reading_of(both.rename(columns={"Qrrt": "Patients"})).open == frozenset()
    assert reading_of(both, **{"columns.Qrrt": "count", "columns.Bzzk": "count"}).open == frozenset()


def test_a_setting_answers_what_no_number_shows():
    frame = town_table(5, ["Bzzk"], total=False)[:-1]
    assert reading_of(frame).open == {"counts"}
    for answer in ("exact", "random-3", "perturbed-2"):
        reading = reading_of(frame, counts=answer)
        assert not reading.open
        assert reading.accepted().confirmed()


@pytest.mark.parametrize(
    ("head", "title", "is_open"),
    [
        ("Value", "Deaths by town", False),
        ("Value", "Rainfall by town", True),
        ("Deaths", "", False),
        ("Décès", "", False),
        ("Anzahl", "", False),
        ("Bzzk", "Deaths by town", True),  # a heading that says something else
        ("Mean age of patients", "Patients", True),
    ],
)
def test_words_show_counts_where_they_name_records(tmp_path, head, title, is_open):
    rows = [f"{town},{n}" for town, n in zip(TOWNS, [31, 84, 27, 55, 62, 49], strict=True)]
    file = tmp_path / "towns.csv"
    file.write_text("\n".join([f"{title},"] * bool(title) + [f"town,{head}", *rows]) + "\n")
    try:
        reading = br.tables.TableReading.read(file)
    except br.exceptions.DataError:
        assert head.startswith("Mean")  # refused before it could be asked
        return
    assert bool(reading.open) == is_open


def test_a_note_against_exact_counts_leaves_them_open(tmp_path):
    frame = town_table(3, ["Patients"], total=True)
    file = tmp_path / "towns.csv"
    note = "Note: figures are weighted estimates from a sample of households.\n"
    for text, is_open in (("", False), (note, True)):
        file.write_text(frame.to_csv(index=False) + text)
        assert bool(br.tables.TableReading.read(file).open) == is_open


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Number of pupils", True),
        ("Todesfälle", True),
        ("Average pupils per teacher", False),
        ("Ward code", False),
        ("Rainfall", False),
        ("Patient id", False),
    ],
)
def test_words_for_records(text, names):
    assert says_records(text) == names
