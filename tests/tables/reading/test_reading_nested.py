"""Labels within one label of another variable are a tree: nobody in Fife lives in Edinburgh."""

import numpy as np
import pandas as pd
import pytest

from bayesrisk.reconstruction import count_bounds
from bayesrisk.tables import PublishedTables
from bayesrisk.tables.reading.reading import TableReading

INDENTED = """Area,All people,Male,Female
Scotland,30,14,16
  Lothian,12,5,7
    Edinburgh,8,3,5
    Falkirk,4,2,2
  Fife,18,9,9
"""
PARTS = {
    "Lothian": ["Edinburgh", "Falkirk"],
    "Fife": ["Leven", "Cupar", "Dollar"],
    "Tay": ["Perth"],
}
AREAS = [*PARTS, "Borders", "Moray"]


def indented(tmp_path, text):
    file = tmp_path / "t.csv"
    file.write_text(text, encoding="utf-8")
    return TableReading.read(file)


def bounds_of(reading):
    reading = reading.accepted()
    bounds = count_bounds(PublishedTables(*reading.parts))
    assert not bounds.conflict
    found = bounds.counts.rename(columns={"geoid": "place"})
    return reading.cells.merge(found, on=["place", "table", "cell"]).fillna({"high": 2**40})


def labels_of(reading, name):
    return {*reading.accepted().parts[0].schema.attribute(name).labels}


def test_an_uneven_tree_by_indentation_is_one_variable(tmp_path):
    reading = indented(tmp_path, INDENTED)
    assert "area 2" not in reading.cells
    assert not reading.separate
    assert labels_of(reading, "area 1") == {"Lothian: Edinburgh", "Lothian: Falkirk", "Fife"}
    assert {*reading.cells["area 1"]} == labels_of(reading, "area 1") | {"Lothian", "all"}


def test_an_uneven_tree_in_two_columns_is_one_variable():
    rows = [("All", "All"), ("Lothian", "All"), ("Lothian", "Edinburgh"), ("Lothian", "Falkirk"),
            ("Fife", "All")]  # fmt: skip
    counts = [(14, 16, 30), (5, 7, 12), (3, 5, 8), (2, 2, 4), (9, 9, 18)]
    frame = pd.DataFrame(
        [
            (*r, s, n)
            for r, c in zip(rows, counts, strict=True)
            for s, n in zip("MFT", c, strict=True)
        ],
        columns=["council", "district", "sex", "n"],
    )
    reading = TableReading.from_frame(frame.astype(str))
    assert labels_of(reading, "council") == {"Lothian: Edinburgh", "Lothian: Falkirk", "Fife"}
    again = TableReading.from_frame(frame.astype(str), reading=reading)
    assert again.cells.equals(reading.cells)


REGIONS = {"North": {"Lothian": ["Edinburgh", "Falkirk"], "Fife": ["Leven", "Cupar"]},
           "South": {"Kent": ["Dover", "Deal"], "Surrey": ["Epsom", "Egham"]}}  # fmt: skip


def three_levels():
    """Return a table of districts in councils in regions, by sex, and labels of its tree."""
    rng, rows = np.random.default_rng(5), list[tuple[str, ...]]()
    leaves, total = set[str](), np.zeros((0, 2), int)
    for region, councils in REGIONS.items():
        sums = total
        for council, districts in councils.items():
            counts = rng.integers(9, 60, (len(districts), 2))
            sums = np.concatenate([sums, counts])
            for district, pair in zip(districts, counts, strict=True):
                rows += [(region, council, district, s, n) for s, n in zip("MF", pair, strict=True)]
                leaves.add(f"{region}: {council}: {district}")
            pair = counts.sum(axis=0)
            rows += [(region, council, "All", s, n) for s, n in zip("MF", pair, strict=True)]
        pair = sums.sum(axis=0)
        rows += [(region, "All", "All", s, n) for s, n in zip("MF", pair, strict=True)]
    frame = pd.DataFrame(rows, columns=["region", "council", "district", "sex", "n"])
    every = frame[frame["district"] != "All"].groupby("sex", as_index=False)["n"].sum()
    every[["region", "council", "district"]] = "All"
    return pd.concat([frame, every]), leaves


@pytest.mark.parametrize(
    ("name", "label", "text"),
    [("region", "North", "Alba"), ("council", "Fife", "Fyfe"), ("district", "Leven", "Levin"),
     ("sex", "M", "Men")],
)  # fmt: skip
def test_another_spelling_of_a_label_leaves_the_tree(name, label, text):
    frame, leaves = three_levels()
    reading = TableReading.from_frame(frame.astype(str), **{f"labels.{name}.{label}": text})
    assert labels_of(reading, "region") == {leaf.replace(label, text) for leaf in leaves}
    assert "sex" not in reading.separate


@pytest.mark.parametrize("name", ["region", "council", "district", "sex"])
def test_a_tree_of_a_file_leaves_those_that_numbers_show(name, tmp_path):
    frame, leaves = three_levels()
    file = tmp_path / "t.hrc"
    lines = [f"@{c}\n@@{d}\n" for r in REGIONS.values() for c, ds in r.items() for d in ds]
    file.write_text("Isle\n" + "".join(lines), encoding="utf-8")
    reading = TableReading.from_frame(frame.astype(str), **{f"labels.{name}": str(file)})
    assert labels_of(reading, "region") == leaves


def test_parts_that_may_overlap_are_in_no_other_label(tmp_path):
    hidden = INDENTED.replace("Edinburgh,8,3,5", "Edinburgh,*,3,*").replace("4,2,2", "4,*,2")
    reading = indented(tmp_path, hidden)
    assert reading.rules["totals.area 2"] == "separate"
    found = bounds_of(reading)
    outside = found[(found["area 1"] == "Fife") & (found["area 2"] != "all")].set_index("area 2")
    assert outside["high"].to_dict() == {"Lothian: Edinburgh": 0, "Lothian: Falkirk": 0}
    said = TableReading.read(tmp_path / "t.csv", **{**reading.rules, "totals.area 2": "complete"})
    assert labels_of(said, "area 1") == {"Lothian: Edinburgh", "Lothian: Falkirk", "Fife"}


def test_a_part_is_no_more_than_what_it_is_of(tmp_path):
    rows = "Cancer,12,<5,15\n  of which: lung,<5,<5,5\nHeart,7,6,13\nAll diagnoses,19,9,28\n"
    found = bounds_of(indented(tmp_path, f"Diagnosis,Male,Female,Total\n{rows}"))
    lung = found[found["diagnosis 1"].str.contains("lung")].set_index("sex")
    # Cancer of women is 15 - 12 = 3, so lung of women is 5 - 4 to 3.
    assert lung.loc["Female", ["low", "high"]].tolist() == [1, 3]
    assert lung.loc["Male", ["low", "high"]].tolist() == [2, 4]


def random_tree(seed):
    """Return a table of nested labels, by paths or columns, and its true counts.

    Parts are areas, or illnesses of which a person may have several or none.
    """
    rng = np.random.default_rng(seed)
    overlap, scale = rng.random() < 0.5, rng.choice([2.0, 10.0, 40.0])
    parts = {a: PARTS.get(a, [])[: int(rng.integers(0, 4))] for a in AREAS[: rng.integers(2, 6)]}
    truth = dict.fromkeys([("all", "all", s) for s in "MF"], 0)
    for area, some in parts.items():
        for sex in "MF":
            size = int(rng.poisson(scale))
            truth["all", "all", sex] += size
            truth[area, "all", sex] = size
            has = rng.random((size, len(some))) < 0.4
            if not overlap and some:
                has = np.eye(len(some), dtype=bool)[rng.integers(0, len(some), size)]
            truth |= {(area, p, sex): int(n) for p, n in zip(some, has.sum(axis=0), strict=True)}
    truth |= {(a, p, "T"): truth[a, p, "M"] + truth[a, p, "F"] for a, p, _ in [*truth]}
    hide = rng.random() * 0.8
    rows = [
        (a.replace("all", "All"), p.replace("all", "All"), s,
         "*" if 0 < n < 5 and rng.random() < hide else str(n))
        for (a, p, s), n in truth.items()
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=["council", "district", "sex", "n"]), truth


def false_statements(seed):
    frame, truth = random_tree(seed)
    reading = TableReading.from_frame(frame, counts="exact")
    false = []
    for row in bounds_of(reading).to_dict("records"):
        area, part = row.get("council", "all"), row.get("district", "all")
        area = area if part == "all" else part if ": " in part else area
        area, _, inner = area.replace("All", "all").partition(": ")
        if row["row"] == 0 and row["stated"] == "0":
            assert row["high"] == 0
            continue
        sex = {"all": "T", "Male": "M", "Female": "F"}.get(row.get("sex", "all"), row.get("sex"))
        count = truth[area, inner or part if ": " not in part else inner or "all", sex]
        if not row["low"] <= count <= row["high"]:
            false.append(row)
    return false


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_nothing_false_is_stated_of_random_trees(first):
    assert [s for s in range(first, first + 50) if false_statements(s)] == []


FLAT = """Cause,Male,Female,Total
Cancer,40,32,72
of which: lung,8,<5,12
of which: breast,*,9,*
Heart,17,16,33
of which: stroke,4,<5,*
All causes,57,48,105
"""


def test_parts_of_the_row_above_are_no_more_than_it(tmp_path):
    reading = indented(tmp_path, FLAT)
    assert reading.rules["parts"] == "above"
    found = bounds_of(reading)
    breast = found[(found["cause 2"].str.contains("breast")) & (found["file"] != "")]
    assert breast.set_index("sex")["high"].to_dict() == {"Male": 40, "Female": 9, "all": 49}
    outside = found[(found["cause 1"] == "Heart") & (found["cause 2"] != "all")]
    assert outside["high"].tolist() == [0, 0]
    apart = TableReading.read(tmp_path / "t.csv", parts="separate")
    assert apart.separate == ("cause",)


def test_parts_of_headings_before_them_are_no_more_than_these():
    heads = ["area", "Patients", "of whom: 85+", "of whom: smokers"]
    rows = [["North", "40", "8", "*"], ["South", "11", "*", "9"], ["Total", "51", "11", "*"]]
    found = bounds_of(TableReading.from_frame(pd.DataFrame(rows, columns=heads)))
    highs = found[found["stated"] == "*"].set_index(["area", "category 1"])["high"].to_dict()
    assert highs["North", "of whom: smokers"] == 40
    assert highs["South", "of whom: 85+"] == 11


def test_a_part_of_all_is_no_more_than_all():
    rows = [("Cancer", "12"), ("of which: lung", "3"), ("of which: skin", "*"),
            ("All causes", "30"), ("of which: children", "*")]  # fmt: skip
    found = bounds_of(TableReading.from_frame(pd.DataFrame(rows, columns=["cause", "n"])))
    highs = found[found["stated"] == "*"].set_index("cause 2")["high"].to_dict()
    assert highs == {"Cancer: of which: skin": 12, "of which: children": 30}


def test_parts_that_exclude_each_other_are_together_no_more_than_their_whole(tmp_path):
    rows = "North,20\nof whom: under 18,*\nof whom: 65-84,9\nof whom: 85+,8\nSouth,9\nTotal,29\n"
    reading = indented(tmp_path, f"Area,Patients\n{rows}")
    found = bounds_of(reading)
    assert found.loc[found["stated"] == "*", ["low", "high"]].values.tolist() == [[0, 3]]


def test_numbers_and_the_alphabet_say_that_a_row_is_no_part_of_that_above():
    rows = [("Cancer", "2"), ("of which: lung", "3"), ("of which: skin", "1")]
    larger = TableReading.from_frame(pd.DataFrame(rows, columns=["cause", "n"]))
    assert "parts" not in larger.rules
    rows = [("Cancer", "9"), ("Heart", "9"), ("of which: lung", "3"), ("of which: skin", "1")]
    ordered = TableReading.from_frame(pd.DataFrame(rows, columns=["cause", "n"]))
    assert "parts" not in ordered.rules


HIGHEST = 9


def fitting(ends):
    """Return counts of men, women and all that lie within ends, a column for each world."""
    men, women = (x.ravel() for x in np.meshgrid(*[np.arange(HIGHEST + 1)] * 2))
    worlds = np.stack([men, women, men + women])
    low, high = np.array(ends).T[:, :, None]
    return worlds[:, ((worlds >= low) & (worlds <= high)).all(axis=0)]


def ends_of_part(whole, part):
    """Return the least and the most of a part in each group, in all worlds that fit."""
    wholes = fitting(whole)
    fits = [w for w in fitting(part).T if (wholes >= w[:, None]).all(axis=0).any()]
    return np.min(fits, axis=0).tolist(), np.max(fits, axis=0).tolist()


@pytest.mark.parametrize("seed", range(30))
def test_ends_of_parts_are_those_of_all_worlds(seed):
    rng = np.random.default_rng(seed)
    whole = rng.integers(2, HIGHEST + 1, 2)
    counts = [[*c.tolist(), int(c.sum())] for c in (whole, *rng.binomial(whole, [[0.4], [0.6]]))]
    hidden = rng.random((3, 3)) < [[0.0], [0.6], [0.6]]
    names = ["Cancer", "of which: lung", "of which: skin", "Heart", "All"]
    texts = [["*" if h else str(n) for n, h in zip(*pair, strict=True)]
             for pair in zip(counts, hidden, strict=True)]  # fmt: skip
    texts += [["3", "4", "7"], [str(a + b) for a, b in zip(counts[0], (3, 4, 7), strict=True)]]
    frame = pd.DataFrame([[n, *t] for n, t in zip(names, texts, strict=True)],
                         columns=["cause", "Male", "Female", "Total"])  # fmt: skip
    found = bounds_of(TableReading.from_frame(frame, counts="exact"))
    found = found[found["file"] != ""].set_index(["cause 2", "sex"])
    ends = [[(0, 2 * HIGHEST) if h else (n, n) for n, h in zip(*pair, strict=True)]
            for pair in zip(counts, hidden, strict=True)]  # fmt: skip
    for name, part in zip(names[1:3], ends[1:], strict=True):
        mine = found.loc[[(f"Cancer: {name}", s) for s in ("Male", "Female", "all")]]
        assert (mine["low"].tolist(), mine["high"].tolist()) == ends_of_part(ends[0], part)


@pytest.mark.parametrize("order", ["groups last", "groups apart"])
def test_a_total_that_is_two_sums_makes_nothing_false(order):
    """People are men and women, and young and old ones of each; some orders hide the tree."""
    rng = np.random.default_rng(7)
    rows = []
    for place in ("Ars", "Bey", "Coe", "Dun"):
        a, b, c, d = map(int, rng.integers(20, 400, 4))
        counts = {"People": a + b + c + d, "Men": a + b, "Women": c + d}
        groups = {"Boys": a, "Adult men": b, "Girls": c, "Adult women": d}
        if order == "groups apart":
            groups = {"Boys": a, "Girls": c, "Adult men": b, "Adult women": d}
        counts |= groups
        rows += [(place, label, n) for label, n in counts.items()]
    frame = pd.DataFrame(rows, columns=["place", "group", "n"])
    truth = frame["n"].tolist()
    hidden = frame["group"].eq("Girls") & frame["place"].eq("Dun")
    frame["n"] = frame["n"].astype(str).where(~hidden, "*")
    reading = TableReading.from_frame(frame, counts="exact").accepted()
    bounds = count_bounds(PublishedTables(*reading.parts))
    assert not bounds.conflict
    ends = reading.cells.merge(
        bounds.counts.rename(columns={"geoid": "place"}), on=["place", "table", "cell"]
    )
    one = ends[ends["stated"] == "*"].iloc[0]
    true = truth[int(np.flatnonzero(hidden)[0])]
    assert one["low"] <= true
    assert pd.isna(one["high"]) or true <= one["high"]
    if order == "groups last":
        assert (one["low"], one["high"]) == (true, true)


@pytest.mark.parametrize("off", [0, 1])
def test_totals_of_a_spreadsheet_sum_up_its_rows(off, tmp_path):
    """A count that is withheld below *North Total* follows from it, as a guess that is listed."""
    text = (
        f"Region,District,Cases\nNorth,Alpha,21\nNorth,Beta,11\nNorth,North Total,{32 + off}\n"
        f"South,Gamma,14\nSouth,Delta,*\nSouth,South Total,19\nGrand Total,,{51 + off}\n"
    )
    reading = indented(tmp_path, text)
    assert (reading.rules["totals.district"] == "complete") != bool(off)
    if not off:
        assert "totals.district" in reading.questions
        found = bounds_of(reading).query("stated == '*'")
        assert found[["low", "high"]].to_numpy().tolist() == [[5, 5]]


@pytest.mark.parametrize("total", [("Total", "Total"), ("Total", ""), ("All Alba", "All Alba")])
def test_places_within_regions_without_totals_make_up_the_total(total, tmp_path):
    """A hidden count follows from that of all places; no sum of regions is needed."""
    rng, rows = np.random.default_rng(5), []
    truth = {(r, p): rng.integers(20, 900, 4) for r, below in PARTS.items() for p in below}
    for (region, place), counts in truth.items():
        shown = [*counts[:3], "*" if place == "Cupar" else counts[3]]
        rows.append(f"{region},{place},{','.join(map(str, shown))}")
    rows.append(f"{','.join(total)},{','.join(map(str, sum(truth.values())))}")
    reading = indented(tmp_path, "Region,Place,A,B,C,D\n" + "\n".join(rows) + "\n")
    assert "region" not in reading.separate
    found = bounds_of(reading).query("stated == '*'")
    assert found[["low", "high"]].to_numpy().tolist() == [[truth["Fife", "Cupar"][3]] * 2]


@pytest.mark.parametrize(
    ("word", "again", "is_sum"),
    [
        ("Total of the county", False, True),
        ("Total of the county", True, True),
        ("Kreis", False, True),
        ("Kreis", False, False),
    ],
)
def test_a_row_of_each_county_that_its_towns_add_up_to_counts_all_of_it(word, again, is_sum):
    """Withheld counts leave the sums of men and women together; one withheld town is worked out."""
    rng, rows = np.random.default_rng(6), []
    for county in range(4):
        towns = rng.integers(20, 90, (4 + county % 2, 2))
        whole = towns.sum(axis=0) if is_sum else rng.integers(100, 300, 2)
        names = [f"Town {k}" if again else f"Town {county}-{k}" for k in range(len(towns))]
        for name, (men, women) in zip([word, *names], [whole, *towns], strict=True):
            hidden = name == names[1]
            texts = ["*", "*"] if hidden else [str(men), str(women)]
            rows.append((f"County {county}", name, *texts, str(men + women)))
    frame = pd.DataFrame(rows, columns=["county", "town", "men", "women", "persons"])
    bounds = bounds_of(TableReading.from_frame(frame, counts="exact"))
    marked = bounds[bounds["stated"] == "*"]
    assert len(marked) == 8
    assert (marked["low"] == marked["high"]).all() == is_sum


def test_numbers_of_schools_lie_within_districts_as_their_names_do(tmp_path):
    rows = [
        ("North", 100235, 44),
        ("North", 100417, 37),
        ("South", 201118, "*"),
        ("South", 201202, 62),
    ]
    text = "".join(f"{d},{n},{c},{n % 97 + 40}\n" for d, n, c in rows)
    total = sum(n % 97 + 40 for _, n, _ in rows)
    reading = indented(tmp_path, f"District,School no.,A,B\n{text}Total,,201,{total}\n")
    labels = {"North: 100235", "North: 100417", "South: 201118", "South: 201202"}
    assert {*reading.cells["district"]} - {"all", "Total"} == labels


@pytest.mark.parametrize(("first", "others"), [(201, 0), (201, 4), (840, 0), (1101, 0)])
def test_regions_rounded_above_places_whose_numbers_are_no_ages(first, others, tmp_path):
    """Groups of each region show a rounded sum; totals with others are no such sums."""
    draw, lines, truth = np.random.default_rng(5), ["Year,Region,Code,Plans"], {}
    hidden = {(2011, 1), (2015, 2), (2015, 3)}
    for year in range(1996, 2020):
        for r, region in enumerate(("North", "South", "West")):
            counts = draw.integers(6, 90, 6).tolist()
            lines.append(f"{year},{region},,{(sum(counts) + others + 5) // 10 * 10}")
            for i, n in enumerate(counts):
                code = first + 6 * r + i
                lines.append(f"{year},{region},{code},{'c' if (year, i) in hidden else n}")
                truth[len(lines)] = n
    reading = indented(tmp_path, "\n".join(lines))
    guess = reading.questions.get("totals.code", ("separate", ""))[0]
    assert guess == ("separate" if others else "complete")
    marked = bounds_of(reading).query("stated == 'c'")
    assert len(marked) == 9
    for cell in marked.itertuples():
        assert cell.low <= truth[cell.row] <= cell.high
    width = marked["high"] - marked["low"]
    assert (width[marked["year"] == "2011"] == 9).all() == (not others)


def test_ages_lie_in_no_group_called_as_people():
    rows = [(group, str(age), 9 + age) for group, first in (("Children", 5), ("Adults", 61))
            for age in range(first, first + 4)]  # fmt: skip
    rows += [(g, "Total", sum(n for a, _, n in rows if a == g)) for g in ("Children", "Adults")]
    reading = TableReading.from_frame(pd.DataFrame(rows, columns=["Group", "Age", "count"]))
    assert {"5", "64"} <= {*reading.cells["age"]}


def test_a_total_above_its_places_is_none_of_them_alone(tmp_path):
    text = "Region,Town,A,B\nAll Alba,All Alba,61,131\nFife,Leven,21,41\nFife,Cupar,12,52\n"
    reading = indented(tmp_path, text + "Tay,Perth,17,22\nTay,Dundee,10,14\n")
    assert "region" in reading.separate
    assert "town" not in reading.cells


@pytest.mark.parametrize("case", ["levels", "levels behind", "another sum", "level by level"])
def test_a_column_of_levels_tells_what_is_within_what(case, tmp_path):
    towns = {"North": {"Ash": (44, 21), "Elm": (55, 49)}, "South": {"Fir": (58, 52), "Yew": (6, 9)}}
    sums = {p: tuple(map(sum, zip(*t.values(), strict=True))) for p, t in towns.items()}
    whole = tuple(a + b for a, b in zip(*sums.values(), strict=True))
    rows = [("Country", "Arda", *whole)]
    for province, inner in towns.items():
        rows.append(("Province", province, *sums[province]))
        rows += [("Town", town, *counts) for town, counts in inner.items()]
    if case == "another sum":  # a town of no province stands among those of one
        rows.append(("Town", "Oak", 7, 8))
    if case == "level by level":
        rows.sort(key=lambda row: row[0])
    heads = ["Level", "Place", "2011", "2021"]
    if case == "levels behind":
        rows, heads = [(p, n, a, b) for n, p, a, b in rows], ["Place", "Level", "2011", "2021"]
    text = "".join(f"{','.join(map(str, row))}\n" for row in [heads, *rows])
    reading = indented(tmp_path, text)
    if not case.startswith("levels"):
        assert "level" in reading.cells
        return
    assert "level" not in reading.cells
    assert "place label" not in reading.separate
    counts = reading.cells.set_index(["place label", "year"])["stated"].astype(int)
    assert dict(counts["Elm"]) == {"2011": 55, "2021": 49}
    assert counts["South", "2011"] == 64
    assert counts["all", "2021"] == whole[1]


PLACES = "Norland,903\nNorth,402\nAby,151\nBey,130\nCey,121\nSouth,501\nDey,212\nEey,289\n"


@pytest.mark.parametrize("case", ["after", "before", "another sum", "ways", "indented"])
def test_places_of_one_number_each_are_a_tree_by_their_order_if_one_way_is_left(case, tmp_path):
    lines = PLACES.splitlines()
    if case == "before":
        lines = lines[::-1]
    if case == "another sum":
        lines[-1] = "Eey,290"
    if case == "ways":  # Bey may be in North, or Cey and what follows it in another place
        lines = ["Norland,6", "North,3", "Aby,1", "Bey,2", "South,3", "Cey,1", "Dey,2"]
    if case == "indented":  # two of its places are not stated, where the others show the tree
        depths = [0, 1, 2, 2, 2, 1, 2, 2]
        lines = ["  " * d + line for d, line in zip(depths, lines, strict=True)]
        lines[0] = lines[0].replace("903", "946")
        lines += ["  West,43", "    Fey,*", "    Gey,*"]
    reading = indented(tmp_path, "Place,Persons\n" + "\n".join(lines) + "\n")
    whole = case in ("after", "before", "indented")
    assert bool(reading.separate) != whole
    name = next(name for name in reading.cells if name.startswith("place label"))
    if whole:
        labels = {x.rpartition(": ")[2] for x in labels_of(reading, name)}
        assert {"Aby", "Bey", "Cey", "Dey", "Eey"} <= labels
        assert not {"North", "South", "Norland"} & labels


@pytest.mark.parametrize("places", [8, 4])
def test_names_of_few_places_are_told_apart_by_their_codes(places, tmp_path):
    names = ["Ash", "Ash", *(f"Town {x}" for x in "abcdef")][:places]
    rows = [f"{k + 101},{name},{s},{7 * k + len(s) * 5 + k * k}"
            for k, name in enumerate(names) for s in ("F", "M")]  # fmt: skip
    reading = indented(tmp_path, "Code,Place,Sex,Persons\n" + "\n".join(rows) + "\n")
    if places == 8:
        assert {"Ash (101)", "Ash (102)", "Town a"} <= {*reading.cells["place label"]}
        assert not {"code", "code label"} & {*reading.cells}
    else:
        assert "Ash" in {*reading.cells["place label"]}


DEEP = {"Kent": (30, 9), "Dover": (10, 4), "Port": (6, 1), "Castle": (4, 3), "Deal": (20, 5),
        "Essex": (50, 8), "Harwich": (15, 3), "Clacton": (35, 5)}  # fmt: skip
DEPTHS = (0, 1, 2, 2, 1, 0, 1, 1)


def called(name, depth, form):
    return {"blanks": "   " * depth + name, "dashes": "-" * depth + " " * (depth > 0) + name,
            "dots": "  " * depth + "• " * (depth > 0) + name}[form]  # fmt: skip


@pytest.mark.parametrize("form", ["blanks", "dashes", "dots"])
@pytest.mark.parametrize("wrong", [False, True])
def test_parts_of_parts_hang_on_the_nearest_label(form, wrong, tmp_path):
    """Also where no sum holds; a town that had more than its county would be no part of it."""
    counts = DEEP | ({"Deal": (21, 5)} if wrong else {})
    rows = [f"{called(n, d, form)},{a},{b}"
            for (n, (a, b)), d in zip(counts.items(), DEPTHS, strict=True)]  # fmt: skip
    reading = indented(tmp_path, "Place,Men,Women\n" + "\n".join(rows) + "\n")
    labels = {*reading.cells.drop(columns=["stated", "file", "row"]).to_numpy().ravel()}
    assert {"Kent: Dover", "Dover: Port", "Essex: Harwich"} <= labels or {
        "Kent: Dover", "Kent: Dover: Port", "Essex: Harwich",
    } <= labels  # fmt: skip
    assert not any("Kent: Port" in label for label in labels)


@pytest.mark.parametrize("arrow", ["->", " → ", " » "])
def test_arrows_lead_from_a_label_to_its_part(arrow, tmp_path):
    paths = [f"Kent{arrow}{n}" for n in ("Dover", "Deal")]
    rows = ["Kent,30,9", f"{paths[0]},10,4", f"{paths[1]},20,5", "Essex,50,8"]
    reading = indented(tmp_path, "Place,Men,Women\n" + "\n".join(rows) + "\n")
    labels = {*reading.cells.drop(columns=["stated", "file", "row"]).to_numpy().ravel()}
    assert {"Kent", "Essex", "Kent: Dover", "Kent: Deal"} <= labels


@pytest.mark.parametrize("rows", ["- Kent,3,4\n- Essex,5,6\n", "Kent,3,4\n- Essex,50,60\n"])
def test_dashes_before_all_labels_or_one_are_no_indents(rows, tmp_path):
    reading = indented(tmp_path, "Place,Men,Women\n" + rows)
    assert "- Essex" in {*reading.cells["place label"]}


def test_levels_of_rows_are_other_variables_than_groups_of_columns(tmp_path):
    """Both are without names: regions with their areas, and kinds of schools by sex."""
    regions = {"NORTH": ["Ash", "Elm", "Fir"], "SOUTH": ["Oak", "Yew"]}
    rng = np.random.default_rng(3)
    counts = {area: rng.integers(3, 60, 4) for areas in regions.values() for area in areas}

    def line(*labels, total):
        a, b, c, d = map(int, total)
        return ",".join(map(str, (*labels, a, b, a + b, c, d, c + d)))

    lines = [",,Primary,,,Secondary,,", ",,Boys,Girls,Total,Boys,Girls,Total"]
    lines += [line("ALL", "", total=sum(counts.values())), ""]
    for region, areas in regions.items():
        lines += [line(region, "", total=sum(counts[a] for a in areas))]
        lines += [line("", area, total=counts[area]) for area in areas]
    file = tmp_path / "t.csv"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    reading = TableReading.read(file)
    assert {*reading.cells["category 1"]} == {"Primary", "Secondary"}
    parts = {f"{region}: {area}" for region, areas in regions.items() for area in areas}
    assert {*reading.cells["row category 1"]} == {"all", *regions, *parts}
    assert {*reading.cells["sex"]} == {"Boys", "Girls", "all"}


def tree_of_levels(rng, deep=3, width=4):
    """Return rows of a tree, each with its level, code, name and two counts, parents first."""
    rows = []

    def add(code, level):
        parts = (
            [add(f"{code}{k:02d}", level + 1) for k in range(1, width + 1)] if level < deep else []
        )
        own = rng.integers(20, 9000, 2)
        counts = sum(part[1] for part in parts) if parts else own
        rows.append((code, level, counts))
        return code, counts

    add("K", 0)
    return sorted(rows, key=lambda row: row[0])


LEVELS = ("country", "region", "district", "town")
ORDERS = ("first", "last", "by level", "code off", "no code, by level")


@pytest.mark.parametrize("order", ORDERS)
def test_levels_codes_and_names_that_repeat_are_one_tree(order, tmp_path):
    """A district is called as its first town; its parts stand before or after it, or by codes."""
    rng = np.random.default_rng(ORDERS.index(order))
    rows = tree_of_levels(rng)
    if order == "last":
        rows = rows[::-1]
    if "by level" in order:
        rows.sort(key=lambda row: (row[1], row[0]))
    if order == "code off":
        place = next(k for k, row in enumerate(rows) if row[1] == 2)
        rows[place] = (*rows[place][:2], rows[place][2] + np.array([0, 1]))
    names = {code: f"P{code if level < 3 or code[-2:] != '01' else code[:-2]}"
             for code, level, _ in rows}  # fmt: skip
    names = {code: x.translate(str.maketrans("0123456789", "abcdefghij"))
             for code, x in names.items()}  # fmt: skip
    text = "Code,Level,Place,2011,2021\n"
    for code, level, (a, b) in rows:
        shown = int(rng.integers(1000, 9999)) if order.startswith("no code") else code
        text += f"X{shown},{LEVELS[level]},{names[code]},{a},{b}\n"
    reading = indented(tmp_path, text)
    name = next(n for n in reading.cells if n.startswith("place label"))
    if order in ("code off", "no code, by level"):
        assert {"level"} <= {*reading.cells}
        return
    assert not {"code", "code label", "level"} & {*reading.cells}
    assert name not in reading.separate
    stated = reading.cells.set_index([name, "year"])["stated"].astype(int)
    whole = next(row for row in rows if row[1] == 0)
    assert stated["all", "2021"] == whole[2][1]
    one = next(row for row in rows if row[1] == 2)
    assert stated[f"{names[one[0]]} (district)", "2011"] == one[2][0]
    assert len({*reading.cells[name]}) == len(rows)


@pytest.mark.parametrize("off", [0, 1])
def test_totals_of_sections_add_up_to_the_last_one(off, tmp_path):
    """Each state has its towns and their total below them; the last section is the country."""
    rng, rows, whole = np.random.default_rng(3), [], np.zeros(3, np.int64)
    for state, size in {"North": 5, "South": 3, "West": 4}.items():
        rows += [f"{state} towns,,,"]
        towns = rng.integers(100, 9000, (size, 3))
        rows += [f"{state[0]}{k},{','.join(map(str, n))}" for k, n in enumerate(towns.tolist())]
        rows += [f"{state} (Total),{','.join(map(str, towns.sum(axis=0)))}", ",,,"]
        whole += towns.sum(axis=0)
    whole[0] += off
    rows += ["Arda,,,", f"Total,{','.join(map(str, whole))}"]
    reading = indented(tmp_path, "Town,Yes,No,Unclear\n" + "\n".join(rows) + "\n")
    assert ("section" in reading.cells) == bool(off)
    if not off:
        name = next(n for n in reading.cells if "North (Total)" in {*reading.cells[n]})
        assert name not in reading.separate
        assert {"North (Total)", "S2"} <= {*reading.cells[name]}


@pytest.mark.parametrize("case", ["towns", "towns below a heading", "years of service", "areas"])
def test_a_heading_of_labels_may_name_the_years_beside_them(case, tmp_path):
    labels = ["1 year", "2 years", "3 years"] if "service" in case else ["Ash", "Elm", "Oak"]
    rows = [f"{x},{7 * k + 31},{5 * k + 44}" for k, x in enumerate(labels)]
    title = "Towns,Dwellings,\n,,\n" * (case == "towns below a heading")
    head = "Area" if case == "areas" else "Years"
    reading = indented(tmp_path, f"{title}{head},2011,2021\n" + "\n".join(rows) + "\n")
    name = {"towns": "category", "towns below a heading": "towns", "areas": "area"}.get(
        case, "years"
    )
    assert name in reading.cells
    assert {*labels} <= {*reading.cells[name]}


def test_of_many_sums_some_are_shown_and_all_are_used(tmp_path):
    rng = np.random.default_rng(4)
    rows = tree_of_levels(rng, deep=2, width=60)
    text = "Level,Place,2011,2021\n"
    text += "".join(f"{LEVELS[level]},P{code},{a},{b}\n" for code, level, (a, b) in rows)
    reading = indented(tmp_path, text)
    name = next(n for n in reading.cells if n.startswith("place label"))
    assert name not in reading.separate
    assert len({*reading.cells[name]}) == len(rows) == 3661
    assert max(map(len, reading.lines)) < 40 * 60 * 12


@pytest.mark.parametrize("off", [0, 3])
def test_a_column_of_two_levels_leaves_one_sum_of_all_places(off, tmp_path):
    """Rows of the nation have one table's number, those of its states another."""
    rng = np.random.default_rng(11)
    counts = rng.integers(20, 400, (4, 6))
    rows = [f"T1,Land,{age},{n + off * (age == 'a3')}" for age, n in
            zip(["a1", "a2", "a3", "a4", "a5", "a6"], counts.sum(axis=0), strict=True)]  # fmt: skip
    rows += [f"T7,{place},a{k + 1},{n}" for place, line in zip("PQRS", counts, strict=True)
             for k, n in enumerate(line)]  # fmt: skip
    said = indented(tmp_path, "\n".join(["series,area,cause,pupils", *rows]) + "\n")
    names = {*said.cells.columns} & {"series", "area", "cause"}
    assert names == {"area", "cause"} | ({"series"} if off else set())
    of_all = said.cells[said.cells["area"] == "all"]["stated"].tolist()
    assert of_all == ([] if off else list(map(str, counts.sum(axis=0))))


CRIMES = """State,{},On persons,,,On property,,,Other kinds
,,Assault,Threat,Other,Robbery,Theft,Other,
Ash,{},5,4,1,7,9,2,2
Birch,44,8,7,3,9,11,2,4
Cedar,59,11,9,4,13,15,3,4
Dogwood,23,2,5,0,7,6,1,2
Elm,107,21,17,6,22,29,5,*
"""


@pytest.mark.parametrize("total", ["Total", "Total crimes"])
@pytest.mark.parametrize("first", [30, 37])
def test_parts_of_two_parents_may_be_called_alike_where_sums_show_a_tree(total, first, tmp_path):
    reading = indented(tmp_path, CRIMES.format(total, first))
    labels = {*reading.cells["category 1"]}
    if first == 30:
        assert {"On persons: Other", "On property: Other", "Other kinds"} <= labels
        found = bounds_of(reading).query("stated == '*'")
        assert found[["low", "high"]].to_numpy().tolist() == [[7, 7]]
    else:  # sums deny it
        assert "On persons: Other" not in labels


@pytest.mark.parametrize("change", [0, 1])
def test_the_label_that_stands_in_several_columns_counts_all_others(change, tmp_path):
    """Of each kind of fish, and of all, which rows of other labels call otherwise."""
    places = [("North", "Ash"), ("North", "Bay"), ("South", "Elm"), ("South", "Oak")]
    fish = {"carp": (512, 731, 204, 118), "trout": (95, 40, 377, 208), "pike": (61, 7, 90, 330)}
    rows = [("Lakeland", "Lakeland", kind, sum(counts)) for kind, counts in fish.items()]
    rows.append(("Lakeland", "Lakeland", "Total of Lakeland", sum(n for *_, n in rows) + change))
    for k, place in enumerate(places):
        rows += [(*place, kind, counts[k]) for kind, counts in fish.items()]
        rows.append((*place, "Total of a pond", sum(counts[k] for counts in fish.values())))
    text = "\n".join(",".join(map(str, row)) for row in [("county", "pond", "fish", "n"), *rows])
    (tmp_path / "t.csv").write_text(text + "\n", encoding="utf-8")
    reading = TableReading.read(tmp_path / "t.csv")
    labels = {*reading.cells["county"]}
    assert ("all" in labels) is not bool(change)
    assert any("Lakeland" in label for label in labels) is bool(change)
