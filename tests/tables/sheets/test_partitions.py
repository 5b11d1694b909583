"""Sections that each make up the first row are variables of one total; crossed ones are, too."""

import csv

import numpy as np
import pytest

from bayesrisk.reconstruction import count_bounds
from bayesrisk.tables import PublishedTables
from bayesrisk.tables.reading.reading import TableReading

AGES, SEXES = ("0-14", "15-64", "65+"), ("Females", "Males")
BOARDS, SITES = [f"{x}ey" for x in "ABCDEFGHI"], ("Hospital", "Home", "Care home", "Elsewhere")


def table(rng, boards_=BOARDS):
    """Return rows of a sheet of three weeks: sexes above, ages by sex, boards, places of death."""
    people = rng.integers(5, 60, (len(AGES), 2, len(boards_), len(SITES), 3))
    by_sex, by_age = people.sum(axis=(0, 2, 3)), people.sum(axis=(1, 2, 3))
    crossed, boards, sites = (people.sum(axis=x) for x in ((2, 3), (0, 1, 3), (0, 1, 2)))
    rows = [["All deaths", "", *by_sex.sum(axis=0)]]
    rows += [[f"All deaths {sex.lower()}", "", *n] for sex, n in zip(SEXES, by_sex, strict=True)]
    rows += [["", "", "", "", ""], ["", "Deaths by age", "", "", ""]]
    rows += [["", age, *n] for age, n in zip(AGES, by_age, strict=True)]
    for k, sex in enumerate(SEXES):
        rows += [[sex if i == 0 else "", age, *crossed[i, k]] for i, age in enumerate(AGES)]
    rows += [["", "", "", "", ""], ["", "Deaths by board", "", "", ""]]
    rows += [["", board, *n] for board, n in zip(boards_, boards, strict=True)]
    rows += [["", "", "", "", ""], ["", "Deaths by site", "", "", ""]]
    rows += [["", site, *n] for site, n in zip(SITES, sites, strict=True)]
    return rows, people


def read(rows, tmp_path, *, stub="Week beginning"):
    file = tmp_path / "t.csv"
    heads = [[stub, "", "2019-12-30", "2020-01-06", "2020-01-13"]]
    with file.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([*heads, ["", "", "", "", ""], *rows])
    return TableReading.read(file)


@pytest.mark.parametrize("seed", range(3))
def test_sections_and_their_groups_are_variables_of_one_total(seed, tmp_path):
    rows, people = table(np.random.default_rng(seed))
    reading = read(rows, tmp_path)
    labels = ["deaths by age", "deaths by board", "deaths by site", "sex"]
    assert {*labels} <= {*reading.cells}
    assert not {*labels} & {*reading.separate}
    week = reading.cells[reading.cells["category 1"] == "2020-01-06"]
    stated = week.set_index(labels)["stated"].astype(int)
    assert len(stated) == 3 + 3 + 6 + 9 + 4
    assert stated["all", "all", "all", "all"] == people[..., 1].sum()
    assert stated["all", "all", "all", "Males"] == people[:, 1, ..., 1].sum()
    for i, age in enumerate(AGES):
        assert stated[age, "all", "all", "all"] == people[i, ..., 1].sum()
        for k, sex in enumerate(SEXES):
            assert stated[age, "all", "all", sex] == people[i, k, ..., 1].sum()
    assert stated["all", "Cey", "all", "all"] == people[:, :, 2, ..., 1].sum()
    assert stated["all", "all", "Home", "all"] == people[..., 1, 1].sum()


@pytest.mark.parametrize("case", ["section", "group", "part", "repeated"])
def test_sections_of_other_sums_are_no_variables(case, tmp_path):
    """One count of a section, of a group or of a part of all is larger by one."""
    rows, _ = table(np.random.default_rng(5))
    texts = [row[1] or row[0] for row in rows]
    changed = {"section": texts.index("Bey"), "group": 8, "part": 1, "repeated": 10}[case]
    if case == "repeated":  # one label twice in a group
        rows[changed][1] = AGES[0]
    else:
        rows[changed][2] += 1
    reading = read(rows, tmp_path)
    assert (
        not {"deaths by age", "deaths by board"} <= {*reading.cells} or "sex" not in reading.cells
    )


def test_means_above_sections_are_left_out_and_take_no_rows_with_them(tmp_path):
    rows, people = table(np.random.default_rng(1))
    mean = ["All deaths: average of five years", "", 1204.6, 1310.2, 1190]
    reading = read([*rows[:3], mean, *rows[3:]], tmp_path)
    assert {"deaths by age", "sex"} <= {*reading.cells}
    assert len(reading.cells) == 3 * 25
    assert "1310.2" not in {*reading.cells["stated"]}
    total = reading.cells.query("sex == 'all' and `deaths by age` == 'all'")["stated"]
    assert str(people[..., 2].sum()) in {*total}


@pytest.mark.parametrize("size", [9, 90])
def test_what_is_withheld_in_a_section_follows_from_the_first_row(size, tmp_path):
    """Of many labels each section is by itself, with the total of all, and not crossed."""
    boards = [f"Board {k}" for k in range(size)]
    rows, people = table(np.random.default_rng(2), boards)
    place = [row[1] for row in rows].index("Board 4")
    rows[place][3] = "*"
    reading = read(rows, tmp_path)
    assert ("section" in reading.cells) == (size == 90)
    assert "sex" in reading.cells
    reading = reading.accepted()
    bounds = count_bounds(PublishedTables(*reading.parts))
    assert not bounds.conflict
    ends = bounds.counts.rename(columns={"geoid": "place"})
    one = reading.cells.merge(ends, on=["place", "table", "cell"]).query("stated == '*'")
    assert one[["low", "high"]].to_numpy().tolist() == [[people[:, :, 4, :, 1].sum()] * 2]


@pytest.mark.parametrize("size", [9, 90])
def test_a_total_that_is_withheld_is_one_count(size, tmp_path):
    """Where sections are not crossed, its row would stand once in each of them."""
    rows, _ = table(np.random.default_rng(3), [f"Board {k}" for k in range(size)])
    rows[0][3] = "*"
    reading = read(rows, tmp_path)
    assert ("sex" in reading.cells) == (size == 9)
    assert (reading.cells["stated"] == "*").sum() == 1


@pytest.mark.parametrize("size", [9, 90])
def test_means_that_are_left_out_are_named(size, tmp_path):
    rows, _ = table(np.random.default_rng(1), [f"Board {k}" for k in range(size)])
    mean = ["All deaths: average of five years", "", 1204.6, 1310.2, 1190]
    reading = read([*rows[:3], mean, *rows[3:]], tmp_path)
    assert ("section" in reading.cells) == (size == 90)
    (left,) = (line for line in reading.lines if "left out" in line)
    assert "row 6 " in left
    assert "average" in left
