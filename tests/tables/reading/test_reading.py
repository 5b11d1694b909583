"""Tables as agencies publish them: what is read, what is asked, what is refused."""

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from bayesrisk import PublishedTables, TableReading, attack
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.inference import RecordPrior, RecordQuestion, microdata_posterior
from bayesrisk.reconstruction import count_bounds, find_claims, reconstruct
from bayesrisk.tables.reading.reading import check_marks, read as read_layouts
from bayesrisk.tables.sheets.sheet import file_sheet, frame_sheets

LAYOUTS = Path(__file__).parents[2] / "files" / "layouts"
MOST = 2**52


def ends(tables):
    """Return the smallest and largest count of each published cell, by the set of its labels."""
    found = {}
    for level, name in tables.workload.tables:
        low, high = tables.support(level, name)
        hidden = tables.hidden(level, name)
        cells = tables.workload.tables[level, name].cells
        places = tables.workload.schema.geography.named(tables.geoids[level])
        for row, column in np.ndindex(low.shape):
            labels = {*places[row].split(", "), *cells[column].split(", ")} - {"", "all"}
            labels = frozenset(labels - {"total"} or {"total"})
            if labels not in found or not hidden[row, column]:
                found[labels] = (int(low[row, column]), int(high[row, column]))
    return found


def labels_of(said):
    """Return the number of labels of each variable of a reading, totals left out."""
    schema = said.parts[0].schema
    apart = {n: {place[i] for place in said.places.values()} for i, n in enumerate(said.separate)}
    together = {a.name: len(a.labels) for a in schema.attributes}
    return together | {n: len(labels) for n, labels in apart.items()}


#: Files, how they are read, number of cells, labels of variables, and some of the supports.
READ = {
    "census-wide.csv": (
        {"counts": "exact"},
        18,
        {"geographic area": 2, "sex": 2, "age": 3},
        {"Block 1002": (1004, 1004), "Block 1001, Female, Under 5 years": (0, 0)},
    ),
    "ons-long.csv": (
        {"counts": "exact"},
        12,
        {"lower tier local authorities": 2, "sex": 2, "general health": 3},
        {"Hartlepool, Female, Bad": (1, 1)},
    ),
    "statcan-random-5.csv": (
        {"counts": "random-5", "totals": "complete", "columns": {"sex": "gender"}},
        12,
        {"age group": 3, "gender": 2},
        {"total": (41, 49), "65 years and over, Men+": (1, 9)},
    ),
    "statsnz-base-3.csv": (
        {"counts": "random-3", "totals": "complete", "marks": {"..C": "1-5"}},
        9,
        {"ethnic group": 2, "sex": 2},
        {"Group B, Male": (1, 5), "Group A, Female": (7, 11), "total": (25, 29)},
    ),
    "wonder.txt": (
        {"counts": "exact", "totals": "complete", "marks.Suppressed": "1-9"}
        | {"columns.Population": "ignored"},
        7,
        {"age group": 2, "gender": 2},
        {"< 1 year, Female": (1, 9), "1-4 years, Female": (0, 0), "total": (19, 19)},
    ),
    "cms-below-11.csv": (
        {"counts": "exact", "totals": "complete", "marks": {"<11": "1-10"}},
        6,
        {"state": 2, "sex": 2},
        {"Alaska, F": (1, 10), "Alaska": (25, 25)},
    ),
    "nhs-star.csv": (
        {"counts": "nearest-5", "totals": "complete", "marks": {"*": "1-7"}},
        8,
        {"org": 2, "age band": 3},
        {"Trust A, 0-17": (1, 7), "Trust A, 65+": (13, 17), "Trust B": (28, 32)},
    ),
    "eurostat.csv": (
        {"counts": "exact", "totals": "complete"}
        | {"marks": {"c": "1-9", ":": "withheld", "e": "note"}},
        9,
        {"age": 3, "sex": 2},
        {"Y_LT15, M": (1, 9), "Y15-64, F": (30, 30), "Y_GE65, M": (0, MOST), "Y_LT15": (10, 10)},
    ),
    "ranges.csv": (
        {"counts": "exact", "totals": "complete"},
        9,
        {"school": 3, "sex": 2},
        {"Hill, Boys": (1, 4), "Lake, Girls": (10, MOST), "Town": (3, 3)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_layouts_of_agencies_are_read(name):
    options, cells, labels, some = READ[name]
    said = read_layouts([file_sheet(LAYOUTS / name)], options)
    tables = PublishedTables.read(LAYOUTS / name, **options)
    found = ends(tables)
    assert len(said.cells) == cells
    assert labels_of(said) == labels
    assert {text: found[frozenset(text.split(", "))] for text in some} == some


@pytest.mark.parametrize("name", READ)
def test_guesses_are_asked_and_kept(name, tmp_path):
    said = read_layouts([file_sheet(LAYOUTS / name)], {})
    assert "counts" in said.questions
    with pytest.raises(ArgumentError, match="counts="):
        PublishedTables.read(LAYOUTS / name)
    file = tmp_path / "reading.toml"
    file.write_text(said.to_toml(), encoding="utf-8")
    tables = PublishedTables.read(LAYOUTS / name, assume=file)
    assert ends(tables) == ends(PublishedTables(*said.parts))
    assert read_layouts([file_sheet(LAYOUTS / name)], {"assume": file}).questions == {}


def test_files_share_variables():
    files = [LAYOUTS / "clinic-age.csv", LAYOUTS / "clinic-diagnosis.csv"]
    names = {"columns": {"AGE_GROUP": "age", "category 1": "diagnosis"}}
    tables = PublishedTables.read(files, counts="exact", totals="complete", **names)
    assert tables.workload.schema.names == ("region", "age", "diagnosis")
    assert tables.workload.schema.attribute("age").labels == ("0-17", "18-64", "65+")
    adults = tables.workload.tables["all", "age * diagnosis"].factors["age"]
    assert {tuple(row) for row in adults.tolist()} == {(1, 0, 0), (0, 1, 1)}
    found = count_bounds(tables).counts.set_index(["table", "cell"])
    # Two of the children have a diagnosis, one an injury: the other has asthma.
    asthma = found.loc[("age * diagnosis (0-2)", "0-17, Asthma")]
    assert (asthma["high_stated"], asthma["low"], asthma["high"]) == (2, 1, 1)
    asked = read_layouts([file_sheet(file) for file in files], {}).questions
    assert asked["columns.age group"][0] == "age"


REFUSED = {
    "a,b,count\nx,y,1\nx,z,approx 5\nw,y,2\n": r"row 3, column 'count'.*approx 5",
    "a,b,count\nx,y,1\nonly,,\nw,y,2\n": r"row 3.*only",
    "a,b\nx,y\nz,w\n": "column of counts",
    "a,A,count\nx,y,1\nx,z,1\nw,y,2\n": "different variables.*'a'",
    "a,b,count\nx,y,1\nx,z,99999999999999999999\nw,y,2\n": "row 3, column 'count'",
    "": "headings",
    "a,b,count\nx,y,1\nx,z,2\nw,z,1,234\n": r"row 4: must have 3 columns, got 4.*'1', '234'",
    "a,b,count\nx,y,1\nx,z,2\nw,z,3\nw,y,1,234,567\n": "row 5: must have 3 columns, got 5",
    "a,b,count\nx,y,1\nx,z,1,234\nw,z,3\n": "row 3: must have 3 columns, got 4",
    "a,b,count,d,e\nx,y,1\nx,z,2\nw,z,3\n": "row 1: must have 3 columns, got 5",
    "a,b,count\nx,y,1\nx,z,2\n,,3\n": "row 4: .*first column",
    "a,b,count\nx,y,1\nx,z,2\n3\n": "row 4: .*first column",
    "a,b,count\nx,y,1\nx,z,2\nw;y;3\n": "row 4: .*first column",
    'a,b,count\nx,y,1\nx,z,2\nw,"z,3\nw,y,4\n': "row 4: a quote must be closed on its line",
    'a,b,count\nx,y,1\n"x,z,2\nw",z,3\nw,y,4\n': "row 3: a quote must be closed on its line",
    'a,b,count\nx,y,1\nx,z,2\n"Source: here\nw,z,3\nw,y,4\n': "row 4: a quote must be closed",
    'a,b,count\nx,y,1\nx,z,2\nw,z,3\nw,y,"4': "row 5: a quote must be closed on its line",
    "a,n,n\nx,1,2\ny,3,4\n": r"columns 2 and 3.*\['n', 'n'\]",
    "a,People,x,People:\nv,1,r,2\nw,3,s,4\n": "columns 2 and 4 must count different records",
    "a,n!!m,n!!f,n!!M\nx,1,2,1\ny,3,4,3\n": "columns 2 and 4 must count different records",
    "a,Estimate,Estimate!!Total\nx,1,2\ny,3,4\n": "columns 2 and 3 must count different",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_not_understood_is_refused_by_its_place(text, tmp_path):
    file = tmp_path / "table.csv"
    file.write_text(text, encoding="utf-8")
    options = {"counts": "exact", "totals": "complete", "columns": {"count": "count"}}
    with pytest.raises(DataError, match=REFUSED[text]) as caught:
        PublishedTables.read(file, **options if "count" in text else {"counts": "exact"})
    assert str(caught.value).startswith(str(file))


@given(
    titles=st.lists(st.sampled_from(["Persons", '"Deaths, by ward"', "Table 3,,"]), max_size=2),
    notes=st.lists(st.sampled_from(["Source: office", '"a, b and c"', "(1) Revised.,,"])),
)
def test_what_stands_around_a_table_is_left_out_and_told(titles, notes, tmp_path_factory):
    """Each row of the file is a count, the headings, or named with its number."""
    rows = ["a,b,count", "x,y,1", "x,z,2", "w,z,3"]
    file = tmp_path_factory.mktemp("notes") / "t.csv"
    file.write_text("\n".join([*titles, *rows, *notes]) + "\n,,\n\n", encoding="utf-8")
    said = read_layouts([file_sheet(file)], {"counts": "exact"})
    first = len(titles) + 1
    assert said.cells["row"].tolist() == [first + 1, first + 2, first + 3]
    places = [*range(1, first), *range(first + 4, first + 4 + len(notes))]
    told = [line for line in said.lines if "left out:" in line]
    assert len(told) == bool(places)
    text = "".join(told)
    named = [f"row {place} '" in text for place in places]
    assert sum(named) == min(len(places), 8)


@pytest.mark.slow
def test_more_than_a_hundred_thousand_counts_are_read():
    rows = [(f"x{i}", s, i % 9) for i in range(70_000) for s in "MF"]
    said = TableReading.from_frame(pd.DataFrame(rows, columns=["place", "sex", "n"]))
    assert len(said.cells) == 140_000


def test_what_is_too_long_is_refused_before_it_is_read(tmp_path, monkeypatch):
    file = tmp_path / "t.csv"
    file.write_text("a,count\n" + "".join(f"x{i},1\n" for i in range(1_100_000)), encoding="utf-8")
    with monkeypatch.context() as patch:
        patch.setattr("bayesrisk.tables.sheets.grids.csv.reader", None)
        with pytest.raises(DataError, match="1100001 lines"):
            file_sheet(file)
    wide = pd.DataFrame(np.ones((1000, 132), dtype=int), columns=[f"c{i}" for i in range(132)])
    sheets = frame_sheets(wide.assign(a=[f"x{i}" for i in range(1000)]))
    with monkeypatch.context() as patch:
        patch.setattr("bayesrisk.tables.reading.cells.Cell", None)
        patch.setattr("bayesrisk.tables.reading.rows.MOST", 2**17)
        with pytest.raises(DataError, match="got 132000"):
            read_layouts(sheets, {})
    file.write_text("a,count\nx,1\ny,2\n" + ",\n" * 200_000, encoding="utf-8")
    assert len(file_sheet(file).rows) == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"counts": "rounded"}, "counts must be exact"),
        ({"marks": {"*": "few"}}, r"marks\.\* must be a range"),
        ({"totals": "yes"}, "totals must be complete or partial"),
        ({"roundings": "exact"}, "assumptions must be counts"),
        ({"columns": {"a": 3}}, "a text"),
        ({"counts": "exact", "columns": {"b": "c"}}, "columns.b must be about"),
        ({"counts": "exact", "labels": {"b": {"x": "all"}}}, "labels.b.x must be about"),
    ],
)
def test_assumptions_are_checked(options, words):
    with pytest.raises(ArgumentError, match=words):
        PublishedTables.from_frame(pd.DataFrame({"a": ["x"], "count": [1]}), **options)


def test_a_wrong_setting_of_a_file_names_the_file(tmp_path):
    (file := tmp_path / "reading.toml").write_text('counts = "round-5x"\nmarks."*" = "few"\n')
    frame = pd.DataFrame({"a": ["x"], "count": [1]})
    with pytest.raises(ArgumentError, match=r"reading.toml: counts must be exact.*'round-5x'"):
        PublishedTables.from_frame(frame, assume=file)
    with pytest.raises(ArgumentError, match=r"reading.toml: marks\.\* must be a range.*'few'"):
        PublishedTables.from_frame(frame, assume=file, counts="exact")
    with pytest.raises(ArgumentError, match=r"^counts must be exact"):
        PublishedTables.from_frame(frame, assume=file, counts="rounded")


def test_files_of_other_years_are_not_put_together():
    frames = [
        pd.DataFrame({"year": year, "area": "Gander", "sex": ["F", "M"], "count": [4, 5]})
        for year in ("1990", "1991")
    ]
    said = read_layouts(frame_sheets(frames), {"counts": "exact"})
    assert said.separate == ("year",)
    assert set(said.places.values()) == {("1990",), ("1991",)}
    tables = PublishedTables.from_frame(frames, counts="exact")
    assert len(ends(tables)) == 4


def test_a_file_about_one_region_says_nothing_of_others():
    every = pd.DataFrame({"region": ["North", "South", "Total"], "count": [4, 6, 10]})
    north = pd.DataFrame({"region": "North", "sex": ["F", "M"], "count": [1, 3]})
    tables = PublishedTables.from_frame([every, north], counts="exact", totals="complete")
    counts = count_bounds(tables).counts.set_index("cell")
    assert counts.loc["North, F", ["low", "high"]].tolist() == [1, 1]
    assert counts.loc["total", "high"] == 10


def test_labels_of_one_file_alone_are_asked():
    first = pd.DataFrame({"region": ["North", "South", "Total"], "count": [4, 5, 9]})
    second = pd.DataFrame({"region": ["North", "S."], "sex": ["F", "F"], "count": [1, 2]})
    second = pd.concat([second, second.assign(sex="M", count=3)])
    asked = read_layouts(frame_sheets([first, second]), {"counts": "exact"}).questions
    assert {"labels.region.South", "labels.region.S."} <= set(asked)
    tables = PublishedTables.from_frame(
        [first, second], counts="exact", totals="complete", labels={"region": {"S.": "South"}}
    )
    assert tables.workload.schema.attribute("region").labels == ("North", "South")


def test_a_count_that_is_not_rounded_is_refused():
    frame = pd.DataFrame({"sex": ["F", "M"], "count": [3, 4]})
    with pytest.raises(DataError, match=r"frame 1: row 2, column 'count'.*'4'"):
        PublishedTables.from_frame(frame, counts="random-3")


def test_a_total_may_count_others():
    frame = pd.DataFrame({"sex": ["F", "M", "Total"], "count": [4, 5, 12]})
    # No sum shows that Total is one: that it counts others rests on its name, and is asked.
    assert read_layouts(frame_sheets(frame), {"counts": "exact"}).questions["totals.sex"][0] == (
        "partial"
    )
    tables = PublishedTables.from_frame(frame, counts="exact", totals="partial")
    assert tables.workload.schema.attribute("sex").labels == ("F", "M", "others")
    frame.loc[2, "count"] = 9
    tables = PublishedTables.from_frame(frame, counts="exact")
    assert tables.workload.schema.attribute("sex").labels == ("F", "M")


def test_ages_that_leave_some_out_are_not_said_to_make_up_a_total():
    """Nobody above 64 has a row: no group shows it, and the guess must not deny them."""
    frame = pd.DataFrame({"age": ["0-17", "18-64", "Total"], "count": ["*", "6", "9"]})
    said = read_layouts(frame_sheets(frame), {"counts": "exact"})
    assert said.questions["totals.age"][0] == "partial"
    bounds = count_bounds(PublishedTables(*said.accepted().parts)).counts.set_index("cell")
    assert bounds.loc["0-17", ["low", "high"]].tolist() == [0, 3]
    frame.loc[1, "age"] = "18+"
    asked = read_layouts(frame_sheets(frame), {"counts": "exact"}).questions
    assert asked["totals"][0] == "complete"


def test_absent_rows_are_unknown_or_zero():
    frame = pd.DataFrame({"sex": ["F", "F", "M"], "age": ["0-9", "10+", "10+"], "count": [4, 5, 6]})
    assert len(ends(PublishedTables.from_frame(frame, counts="exact"))) == 3
    found = ends(PublishedTables.from_frame(frame, counts="exact", absent="zero"))
    assert found[frozenset(["M", "0-9"])] == (0, 0)


# Random tables against enumeration, which knows nothing of the package.

SEXES, AGES = ("F", "M"), ("0-17", "18+")
KINDS = tuple(product(SEXES, AGES))
MARGINS = [(sex, age) for sex in (*SEXES, "Total") for age in (*AGES, "All ages")]


WEIGHTS = np.array(
    [[sex in (s, "Total") and age in (a, "All ages") for s, a in KINDS] for sex, age in MARGINS]
).astype(int)
EVERY = np.array(list(product(range(9), repeat=4))) @ WEIGHTS.T  # counts of all small histograms


def published(count, rule, up):
    if rule == "nearest-3":
        return str((count + 1) // 3 * 3)
    if rule == "random-3":
        return str(count // 3 * 3 + 3 * up * (count % 3 > 0))
    return "*" if 1 <= count <= 2 else f"{count:,}"


def allowed(text, rule):
    """Return the counts that a text stands for, by trying all."""
    return [n for n in range(40) if text in (published(n, rule, 0), published(n, rule, 1))]


@settings(max_examples=12, deadline=None)
@given(
    histogram=st.lists(st.integers(0, 2), min_size=4, max_size=4),
    rule=st.sampled_from(["nearest-3", "random-3", "suppressed"]),
    ups=st.lists(st.integers(0, 1), min_size=9, max_size=9),
    kept=st.sets(st.sampled_from(MARGINS), min_size=4),
)
def test_bounds_and_claims_are_those_of_enumeration(histogram, rule, ups, kept):
    true = (WEIGHTS @ histogram).tolist()
    texts = [published(n, rule, up) for n, up in zip(true, ups, strict=True)]
    rows = [
        (at, *MARGINS[at], texts[at]) for at in range(9)
        if MARGINS[at] in kept or MARGINS[at] in KINDS
    ]  # fmt: skip
    fits = EVERY[
        np.logical_and.reduce([np.isin(EVERY[:, at], allowed(t, rule)) for at, _, _, t in rows])
    ]
    assert (fits == true).all(axis=1).any()
    frame = pd.DataFrame([row[1:] for row in rows], columns=["sex", "age", "count"])
    options = (
        {"counts": "exact", "marks": {"*": "1-2"}} if rule == "suppressed" else {"counts": rule}
    )
    tables = PublishedTables.from_frame(frame, totals="complete", **options)
    bounds = count_bounds(tables).counts
    assert set(bounds["status"]) == {"proved"}
    for row in bounds.itertuples():
        labels = row.cell.split(", ")
        sex = next((s for s in SEXES if s in labels), "Total")
        age = next((a for a in AGES if a in labels), "All ages")
        numbers = fits[:, MARGINS.index((sex, age))]
        assert (row.low, row.high) == (numbers.min(), numbers.max())
    for claim in find_claims(tables).to_frame().to_dict("records"):
        sex = "Total" if pd.isna(claim["sex"]) else SEXES[claim["sex"]]
        age = "All ages" if pd.isna(claim["age"]) else AGES[claim["age"]]
        numbers = fits[:, MARGINS.index((sex, age))]
        assert numbers.min() == claim["multiplicity"]
        assert claim.get("at_least", False) == (numbers.max() > numbers.min())
    made = reconstruct(tables, scope="all")
    assert made.status[0] != "infeasible"


def test_the_posterior_takes_published_tables():
    frame = pd.DataFrame(
        {"sex": ["F", "M", "Total"], "0-17": ["*", "2", "3"], "18+": ["3", "*", "4"]}
    )
    tables = PublishedTables.from_frame(
        frame, counts="exact", totals="complete", marks={"*": "1-2"}
    )
    asked = RecordQuestion({"sex": [0], "age": [0]}, at_least=1)
    prior = RecordPrior.uniform_data_sets(tables.workload.schema)
    found = microdata_posterior(tables, [asked], level="all", place="", prior=prior)
    assert found.answers["posterior"].tolist() == [1.0]
    assert found.engine == "exact"
    # The negative control: a mark that means nothing but 2 contradicts the totals.
    wrong = PublishedTables.from_frame(frame, counts="exact", totals="complete", marks={"*": "2"})
    assert count_bounds(wrong).conflict


def test_two_rows_of_headings_and_several_variables_side_by_side(tmp_path):
    file = tmp_path / "table.csv"
    file.write_text("Sex,Male,,Female,\nAge,0-17,18+,0-17,18+\nNorth,1,2,3,4\nSouth,5,6,7,8\n")
    tables = PublishedTables.read(file, counts="exact", columns={"Sex!!Age": "region"})
    assert ends(tables)[frozenset(["South", "Female", "0-17"])] == (7, 7)
    assert tables.workload.schema.names == ("sex", "age")
    file.write_text("Area,Total,Male,Female,0-17,18+\nNorth,10,6,4,3,7\nSouth,8,5,3,4,4\n")
    # Both make up the same total, so that they are two variables; nothing need be asked.
    assert set(read_layouts([file_sheet(file)], {}).questions) == {"counts"}
    found = ends(PublishedTables.read(file, counts="exact"))
    assert found[frozenset(["South", "18+"])] == (4, 4)
    file.write_text("Area,2019,2020\nNorth,10,6\nSouth,8,5\n")
    assert read_layouts([file_sheet(file)], {}).separate == ("area", "year")


def test_labels_below_each_other_are_repeated_if_that_is_said(tmp_path):
    file = tmp_path / "table.csv"
    file.write_text("Region,Sex,n\nNorth,F,3\n,M,4\nSouth,F,5\n,M,6\n")
    found = ends(PublishedTables.read(file, counts="exact", blank="above"))
    assert found[frozenset(["South", "M"])] == (6, 6)


def test_marks_that_no_count_has_are_refused_with_those_that_are_there(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("kreis,n\nA,4\nB,.\nC,5 (e)\nall,20\n")
    said = TableReading.read(file)  # Python takes marks that only some of many files have
    for mark in ("*", "..", "c"):
        with pytest.raises(ArgumentError, match=r"about a mark of the files: '\.', 'e'"):
            check_marks(said, ["counts", f"marks.{mark}"])
    check_marks(said, ["marks..", "marks.e", "marks.4"])
    marks = {".": "1-20", "e": "note", "4": "1-4"}
    read = PublishedTables.read(file, reading=TableReading.read(file, marks=marks).accepted())
    assert ends(read)[frozenset("B")] == (1, 20)


@pytest.mark.parametrize(
    ("counts", "row"), [([2**51, 2**51, "*"], 1), ([7, 2**52, "*"], 2), ([7, 2**60, "*"], 2)]
)
def test_counts_whose_sum_has_no_end_are_refused_with_the_largest(counts, row):
    frame = pd.DataFrame({"region": ["A", "B", "Total"], "count": [str(n) for n in counts]})
    text = rf"row {row}, column 'count': .* below {MOST:,}, got '{counts[row - 1]}'"
    with pytest.raises(DataError, match=text):
        attack(frame, counts="exact", totals="complete", marks={"*": "withheld"})
    smaller = frame.assign(count=["3", str(2**51), "*"])
    settings = {"counts": "exact", "totals": "complete", "marks": {"*": "withheld"}}
    bounds = attack(smaller, **settings).frames["bounds"]
    assert bounds["high"].tolist() == [3, 2**51, 2**51 + 3]
