"""Places by name and code, their totals, and totals of what is shown alone."""

import numpy as np
import pandas as pd
import pytest

from bayesrisk.tables.reading import reading as reading_module
from bayesrisk.tables.reading.reading import TableReading
from bayesrisk.tables.reading.rows import says_mean

TOWNS = [f"Town {chr(97 + k)}" for k in range(24)]


def counts(rng, *shape):
    return rng.integers(30, 900, shape)


@pytest.mark.parametrize(
    ("number", "repeats", "words", "variables"),
    [
        (24, 0, 0, {"town"}),  # one to one
        (24, 1, 0, {"town"}),  # a name that two codes share
        (24, 1, 1, {"town"}),  # and one code of letters, such as DG
        (24, -1, 0, {"town"}),  # two names for one code
        (24, 12, 0, {"town", "code"}),  # codes of something else
    ],
)
def test_codes_beside_names_are_these_where_few_repeat(number, repeats, words, variables):
    codes = [f"20{k:03}" for k in range(number)]
    codes[2 : 2 + words] = ["DG", "EF"][:words]
    towns = [*TOWNS[: number - max(repeats, 0)], *TOWNS[: max(repeats, 0)]]
    if repeats < 0:
        codes[-1] = codes[0]
    frame = pd.DataFrame({"Town": np.repeat(towns, 2), "Code": np.repeat(codes, 2)})
    frame["Sex"] = ["men", "women"] * number
    frame["Persons"] = counts(np.random.default_rng(1), 2 * number).astype(str)
    reading = TableReading.from_frame(frame, counts="exact")
    assert {"town", "code"} & {*reading.cells.columns} == variables
    if repeats == 1:
        assert {"Town a (20000)", "Town a (20023)", "Town b"} <= {*reading.cells["town"]}


@pytest.mark.parametrize("is_sum", [True, False])
def test_a_row_that_is_called_the_same_at_each_level_is_the_sum_of_all_places(is_sum):
    rng = np.random.default_rng(2)
    towns = 97 * counts(rng, 8, 2)
    whole = towns.sum(axis=0) if is_sum else counts(rng, 2) + 900_000
    every = [("Land", "Land", whole)]
    every += [(f"Region {k // 2}", TOWNS[k], row) for k, row in enumerate(towns)]
    rows = [(*place, sex, n) for *place, row in every
            for sex, n in zip(("men", "women"), row, strict=True)]  # fmt: skip
    frame = pd.DataFrame(rows, columns=["Region", "Town", "Sex", "Persons"]).astype(str)
    reading = TableReading.from_frame(frame, counts="exact")
    assert any("'Land' counts all" in line for line in reading.lines) is is_sum


@pytest.mark.parametrize("is_sum", [True, False])
def test_two_words_for_a_total_that_never_meet_count_all_of_their_groups(is_sum):
    rng, rows = np.random.default_rng(3), []
    for place in ["Land", *TOWNS[:6]]:
        young, old = counts(rng, 2)
        total = young + old + (0 if is_sum else 40)
        word = "Total of the land" if place == "Land" else "Total of the town"
        rows += [(place, word, total), (place, "0-39", young), (place, "40+", old)]
    frame = pd.DataFrame(rows, columns=["Place", "Age", "Persons"]).astype(str)
    reading = TableReading.from_frame(frame, counts="exact")
    line = next(line for line in reading.lines if line.startswith("  age"))
    both = "'Total of the land', 'Total of the town' counts all (the sums hold" in line
    assert both is is_sum


@pytest.mark.parametrize(("left_out", "counted"), [(True, True), (False, False)])
def test_totals_of_what_is_shown_do_not_make_withheld_counts_0(left_out, counted):
    """Zeros are stated, and each total with a withheld part is the sum of the others."""
    rng = np.random.default_rng(4)
    classes = counts(rng, 20, 4)
    classes[3, 1], classes[9, 2], classes[12, 0], classes[5, 3] = 4, 9, 0, 0
    texts = classes.astype(str)
    texts[3, 1] = texts[9, 2] = "*"
    hidden = texts == "*"
    totals = np.where(hidden, 0, classes).sum(axis=1) if left_out else classes.sum(axis=1)
    frame = pd.DataFrame(texts, columns=["Grade 1", "Grade 2", "Grade 3", "Grade 4"])
    frame.insert(0, "District", [f"District {k}" for k in range(20)])
    frame["Total pupils"] = totals.astype(str)
    settings = {"counts": "exact", "marks.*": "0-9"}
    reading = TableReading.from_frame(frame, **settings)
    assert any("may leave out" in line for line in reading.lines) is counted


@pytest.mark.parametrize(
    ("names", "exclusive"),
    [
        (("Members", "Non-members"), True),
        (("Résidents", "Non Résidents"), True),
        (("Members", "Visitors"), False),
        (("Members", "Northern"), False),
    ],
)
def test_a_word_and_its_denial_exclude_each_other(names, exclusive):
    rng, rows = np.random.default_rng(5), []
    for town in TOWNS:
        one, other = counts(rng, 2)
        both = one + other + rng.integers(1, 4)
        rows += [(town, names[0], one), (town, names[1], other), (town, "Total", both)]
    frame = pd.DataFrame(rows, columns=["Town", "Kind", "Persons"]).astype(str)
    reading = TableReading.from_frame(frame, counts="exact")
    assert reading.questions["totals.kind"][0] == ("partial" if exclusive else "separate")


@pytest.mark.parametrize(("limit", "summed"), [(2**24, True), (2**10, False)])
def test_sums_of_too_many_places_are_left_out(limit, summed, monkeypatch):
    monkeypatch.setattr(reading_module, "MOST_WEIGHTS", limit)
    rng, rows = np.random.default_rng(6), []
    for county in range(4):
        towns = counts(rng, 6, 3)
        rows.append((f"County {county}", "", *towns.sum(axis=0)))
        rows += [(f"County {county}", f"Town {county}{k}", *row) for k, row in enumerate(towns)]
    frame = pd.DataFrame(rows, columns=["County", "Town", "men", "women", "others"]).astype(str)
    reading = TableReading.from_frame(frame, counts="exact", **{"blank": "total"})
    assert ("parts of county" in reading.cells) is summed


@pytest.mark.parametrize("label", ["Mass media and journalism", "Media design", "H.S. MEDIA & ART"])
def test_subjects_of_media_are_no_means(label):
    rng = np.random.default_rng(7)
    parts = counts(rng, 4, 2)
    names = [*TOWNS[:3], label, "Total"]
    rows = [(n, *row) for n, row in zip(names, [*parts, parts.sum(axis=0)], strict=True)]
    frame = pd.DataFrame(rows, columns=["Subject", "men", "women"]).astype(str)
    reading = TableReading.from_frame(frame, counts="exact")
    assert label in {*reading.cells["subject"]}
    assert not says_mean(label.casefold())
    assert says_mean("edad media")
    assert says_mean("media de edad")


def test_a_range_between_two_numbers_that_are_shown_is_within_them(tmp_path):
    rng = np.random.default_rng(8)
    cases = rng.integers(0, 40, 60)
    texts = ["--" if 0 < n < 5 else str(n) for n in cases]
    note = "Values between 0 and 5 are shown as --"
    rows = "".join(f"Place {k},{text}\n" for k, text in enumerate(texts))
    extra = "".join(f"Isle {k},{n}\n" for k, n in enumerate([0, 5] * 8))
    file = tmp_path / "t.csv"
    file.write_text(f'area,cases\n{rows}{extra}\n"{note}"\n', encoding="utf-8")
    assert TableReading.read(file).questions["marks.--"][0] == "1-4"
    file.write_text(
        f'area,cases\n{rows}\n"{note}"\n'.replace(",0\n", ",7\n").replace(",5\n", ",7\n")
    )
    assert TableReading.read(file).questions["marks.--"][0] == "0-5"


def test_months_of_rounded_counts_make_up_their_quarters():
    rng = np.random.default_rng(9)
    months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun"]
    rows = []
    for town in range(40):
        true = rng.integers(20, 900, 6)
        quarters = {"Q1": true[:3], "Q2": true[3:]}
        for quarter, parts in quarters.items():
            names = months[:3] if quarter == "Q1" else months[3:]
            rows += [(f"Town {town}", quarter, m, n) for m, n in zip(names, parts, strict=True)]
            rows.append((f"Town {town}", quarter, "Total", parts.sum()))
    frame = pd.DataFrame(rows, columns=["town", "quarter", "month", "cases"])
    frame["cases"] = (5 * np.rint(frame["cases"].to_numpy(float) / 5).astype(int)).astype(str)
    reading = TableReading.from_frame(frame, counts="nearest-5")
    assert reading.questions["totals.month"][0] == "complete"
