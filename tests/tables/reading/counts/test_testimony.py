"""What nothing shows to count records is asked, and no acceptance answers it; records are told."""

import itertools
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

import bayesrisk as br
from bayesrisk.exceptions import DataError
from bayesrisk.tables.reading.counts.testimony import check_records, says_records

TOWNS = ["Aberd", "Brech", "Crail", "Dunoo", "Elgin", "Forfa"]


def reading_of(frame, **settings):
    return br.tables.TableReading.from_frame(frame, **settings)


def town_table(seed, heads, *, total, name="Total patients"):
    """Return random whole numbers by town, with a last row of their sums or of other numbers."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(20, 900, (len(TOWNS), len(heads)))
    last = counts.sum(axis=0) if total else counts.sum(axis=0) + rng.integers(5, 90, len(heads))
    rows = [[name, *map(str, row)] for name, row in zip(TOWNS, counts, strict=True)]
    return pd.DataFrame([*rows, [name, *map(str, last)]], columns=["town", *heads])


@pytest.mark.parametrize("seed", range(12))
def test_sums_that_hold_show_counts_of_records_that_any_word_names(seed):
    reading = reading_of(town_table(seed, ["Bzzk", "Qrrt"], total=True))
    assert not reading.open
    assert len(reading.accepted().confirmed()) > 0
    # With other totals they say nothing about what they are; without a word they may be hectares.
    for other in ({"total": False}, {"total": True, "name": "Total"}):
        reading = reading_of(town_table(seed, ["Bzzk", "Qrrt"], **other))
        assert reading.open == {"counts"}
        assert "Bzzk" in reading.questions["counts"][1]
        with pytest.raises(br.exceptions.ArgumentError, match="counts=exact"):
            reading.accepted().confirmed()


@pytest.mark.parametrize(
    ("heads", "is_open"),
    [
        (("Area", "Inside", "Outside"), True),
        (("Patients", "Inside", "Outside"), False),
        (("Total births", "Live", "Still", "Total deaths", "Sudden", "Other"), False),
        (("Area", "Male", "Female"), False),
        (("Area", "Aged 0-64", "Aged 65+"), False),
    ],
)
def test_parts_count_what_their_total_counts(heads, is_open):
    rng = np.random.default_rng(4)
    parts = rng.integers(20, 900, (len(heads) // 3, 2, len(TOWNS)))
    columns = [column for a, b in parts for column in (a + b, a, b)]
    rows = zip(TOWNS, *columns, strict=True)
    frame = pd.DataFrame(rows, columns=["town", *heads]).astype(str)
    reading = reading_of(frame)
    assert ("counts" in reading.open) == is_open


@pytest.mark.parametrize(
    "people", [["Population", "Male", "Female"], ["Total births", "Live", "Still"]]
)
def test_sums_of_hectares_beside_people_are_left_out(people):
    rng = np.random.default_rng(4)
    (men, women), (built, open_) = rng.integers(20, 900, (2, 2, len(TOWNS)))
    heads = ["town", *people, "Area", "Built", "Open"]
    columns = [men + women, men, women, built + open_, built, open_]
    rows = zip(TOWNS, *columns, strict=True)
    frame = pd.DataFrame(rows, columns=heads).astype(str)
    reading = reading_of(frame)
    assert not reading.open
    assert {*reading.cells["stated"]}.isdisjoint({*frame["Area"]} - {*frame[people[0]]})
    assert len(reading.cells) == 3 * len(TOWNS)
    assert len(reading_of(frame, counts="exact").cells) > len(reading.cells)


@pytest.mark.parametrize("seed", range(12))
def test_each_column_needs_a_sum_or_a_word_of_its_own(seed):
    both = town_table(seed, ["Bzzk"], total=True)
    both["Qrrt"] = town_table(seed + 100, ["Qrrt"], total=False)["Qrrt"]
    text = reading_of(both).questions["counts"][1]
    assert "Qrrt" in text
    assert "Bzzk" not in text
    text = reading_of(both.rename(columns={"Qrrt": "Patients"})).questions["counts"][1]
    assert "Bzzk" in text  # perhaps hectares beside patients
    assert "Patients" not in text
    assert reading_of(both.rename(columns={"Bzzk": "Births", "Qrrt": "Deaths"})).open == frozenset()
    named = {"columns.Qrrt": "count", "columns.Bzzk": "count"}
    assert reading_of(both, **named).open == frozenset()


def test_a_setting_answers_what_no_number_shows():
    frame = town_table(5, ["Bzzk"], total=False)[:-1]
    assert reading_of(frame).open == {"counts"}
    with pytest.raises(br.exceptions.ArgumentError) as error:
        br.attack(frame, accept=True)
    assert "counts=exact" in str(error.value)
    assert "accept=True" not in str(error.value)
    for answer in ("exact", "random-1", "perturbed-2"):
        reading = reading_of(frame, counts=answer)
        assert not reading.open
        assert reading.accepted().confirmed()


@pytest.mark.parametrize(
    ("head", "title", "is_open"),
    [
        ("Value", "Deaths by town", False),
        ("Value", "Rainfall by town", True),
        ("2005-06", "Deaths by town", False),
        ("2005-06", "Rainfall by town", True),
        ("Number", "", False),
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
    note = "Note: figures are rounded to the nearest 10.\n"
    for text, is_open in (("", False), (note, True)):
        file.write_text(frame.to_csv(index=False) + text)
        assert bool(br.tables.TableReading.read(file).open) == is_open


def year_table(seed, base):
    """Return true patients by area and year, of which those of 2030 are rounded to a base."""
    rng = np.random.default_rng(seed)
    areas = [f"Area {chr(65 + i)}" for i in range(15)]
    rows = []
    for year in (2020, 2025, 2030):
        counts = rng.integers(300, 9000, len(areas))
        counts = counts // base * base if year == 2030 else counts
        rows += [(area, year, n) for area, n in zip(areas, counts, strict=True)]
        rows.append(("Total", year, counts.sum()))
    return pd.DataFrame(rows, columns=["area", "year", "patients"]).astype(str)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("base", [1, 10, 100])
def test_exact_counts_are_doubted_where_those_of_a_label_are_multiples(seed, base):
    reading = reading_of(year_table(seed, base))
    assert bool(reading.open) == (base > 1)
    if base > 1:
        text = reading.questions["counts"][1]
        assert f"multiples of {base}" in text
        assert re.search(r"(\d+) of \1 counts of 2030", text)  # all of them
        own = {"labels.year.2030.counts": f"random-{base}"}
        assert not reading_of(year_table(seed, base), counts="exact", **own).open


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Number of pupils", True),
        ("Todesfälle", True),
        ("Average pupils per teacher", False),
        ("Ward code", False),
        ("Homeless Youth Age 18-24", True),
        ("Patient age", False),
        ("Rainfall", False),
        ("populacao residente", True),
        ("総人口", True),
        ("Patient id", False),
        ("Live births by age of mother", True),
        ("Average age by number of pupils", False),
        ("Deaths within 90 days of release", True),
        ("Patient days", False),
        ("NE_DEATH_COUNT", True),
        ("newCases", True),
        ("MEAN_CASES", False),
        ("Homicidios", True),
    ],
)
def test_words_for_records(text, names):
    assert says_records(text) == names


def _table(total: str, column: str, *, hidden: bool = False) -> pd.DataFrame:
    """Return rows of all sexes and ages with totals of both."""
    ages = {"0-64": (14, 12), "65+": (6, 5)}
    rows = [(s, a, ages[a][i]) for i, s in enumerate("FM") for a in ages]
    frame = pd.DataFrame(rows, columns=["sex", "age", column])
    for name in ("sex", "age"):
        others = [n for n in ("sex", "age") if n != name]
        sums = frame.groupby(others, as_index=False)[column].sum()
        frame = pd.concat([frame, sums.assign(**{name: total})], ignore_index=True)
    if hidden:
        frame[column] = frame[column].astype(str).mask(frame[column] == 5, ".")
    return frame


@pytest.mark.parametrize("total", ["_T", "Total", "Insgesamt", "all"])
@pytest.mark.parametrize("hidden", [False, True])
def test_counts_beside_a_total_are_refused_with_the_command_for_them(total, hidden, tmp_path):
    frame = _table(total, "n", hidden=hidden)
    with pytest.raises(DataError, match="published table: counts in column 'n'") as caught:
        br.audit(frame, key="age", secret="sex", protections="none")
    assert "`bayesrisk attack FILE -o OUT`" in str(caught.value)
    file = tmp_path / "t.csv"
    frame.to_csv(file, index=False)
    with pytest.raises(DataError, match=r"bayesrisk attack .*t\.csv -o OUT"):
        br.release(file, protection="none")


def test_a_heading_of_sdmx_is_refused_whatever_its_labels():
    with pytest.raises(DataError, match="OBS_VALUE"):
        check_records(_table("whole", "OBS_VALUE").iloc[:4], "t.csv")


@settings(max_examples=100)
@given(st.data())
def test_people_are_not_taken_for_counts(data):
    size = data.draw(st.integers(20, 60))
    words = st.sampled_from(["some", "none", "all", "Total"])
    frame = pd.DataFrame(
        {
            "sex": data.draw(st.lists(st.sampled_from("FM"), min_size=size, max_size=size)),
            "friends": data.draw(st.lists(words, min_size=size, max_size=size)),
            "age": data.draw(st.lists(st.integers(0, 99), min_size=size, max_size=size)),
        }
    )
    check_records(frame, "people.csv")  # two sexes and four words cannot tell twenty people apart


def test_people_told_apart_by_their_names_are_not_taken_for_counts():
    pairs = itertools.product(["some", "none", "all"], range(10))
    frame = pd.DataFrame([(f"person {i}-{w}", w, 30 + i) for w, i in pairs])
    check_records(frame.set_axis(["name", "friends", "age"], axis=1), "people.csv")


def test_columns_of_every_kind_are_looked_at():
    frame = pd.DataFrame(
        {
            "band": pd.cut([1, 2, 3, 4] * 10, [0, 2, 5]),
            "kind": pd.Categorical(["x", "all", None, "z"] * 10),
            "day": pd.date_range("2020", periods=40),
            "flag": [True, False] * 20,
            "wage": [1.5, None] * 20,
        }
    )
    check_records(frame, "people")


@pytest.mark.parametrize("text", ["*", "0"])
def test_no_count_above_0_is_called_a_multiple(text):
    frame = pd.DataFrame({"town": ["Aberd", "Brech"], "persons": [text, text]})
    reading = reading_of(frame)
    assert "multiple" not in reading.questions["counts"][1]
    assert reading.questions["counts"][0] == "exact"
    # Rounding may have made zeros, and cannot have made withheld counts.
    assert reading.open == ({"counts"} if text == "0" else set())
    # Few numbers that are multiples still leave the law open.
    other = reading_of(frame.assign(persons=["5", "10"]))
    assert "multiples of 5" in other.questions["counts"][1]
    assert other.open == {"counts"}


def test_no_acceptance_is_advised_where_it_does_not_help():
    frame = town_table(5, ["Bzzk"], total=False)[:-1]
    reading = reading_of(frame)
    for tables in (frame, reading, reading.accepted()):
        with pytest.raises(br.exceptions.ArgumentError, match="only a setting answers") as error:
            br.attack(tables)
        assert "accept=True" not in str(error.value)
    with pytest.raises(br.exceptions.ArgumentError, match="accept=True confirms them"):
        br.attack(town_table(5, ["Bzzk"], total=True))


def rows_of(text):
    lines = [line.split(",") for line in text.split()]
    return pd.DataFrame(lines[1:], columns=[head.replace("_", " ") for head in lines[0]])


def test_a_label_that_is_0_wherever_a_sum_is_known_is_a_part_of_it():
    """True: 35 and 2 in the North, so that neither 37 men nor a table of two variables is read."""
    frame = rows_of("""region,male_persons,female_persons,other_persons,total_persons
        North,*,36,*,73 South,39,50,0,89 East,20,21,0,41 West,30,32,0,62""")
    bounds = br.attack(frame, accept=True).frames["bounds"].query("stated == '*'")
    assert len(bounds) == 2
    assert bounds["high"].tolist() == [37, 37]
    assert bounds["low"].max() == 0
    shown = rows_of("""region,male_persons,female_persons,other_persons,total_persons
        North,37,36,0,73 South,39,50,0,89 Total,76,86,0,162""")
    reading = reading_of(shown)
    assert "marks.0" not in reading.questions
    assert len(reading.cells) == 12


def test_few_sums_that_miss_both_ways_leave_the_law_open():
    changed = rows_of("""region,male,female,total
        North,46,31,76 South,40,30,69 Total,123,114,238""")
    true = rows_of("""region,male,female,total
        North,46,31,77 South,40,30,70 Total,86,61,147""")
    assert reading_of(changed).open == {"counts"}
    assert reading_of(true).open == frozenset()


def test_a_saved_reading_marks_what_is_open(tmp_path):
    frame = town_table(5, ["Bzzk"], total=False)[:-1]
    file, saved = tmp_path / "towns.csv", tmp_path / "reading.toml"
    frame.to_csv(file, index=False)
    for stated, marks in (({}, 1), ({"counts": "exact"}, 0)):
        saved.write_text(br.TableReading.read(file, **stated).to_toml())
        assert saved.read_text().count("# Only you can say") == marks
        assert br.TableReading.read(file, assume=saved).confirmed()  # once it was looked at


def test_sexes_are_no_labels_of_rows():
    with pytest.raises(DataError, match="without labels"):
        reading_of(rows_of("total,men,women,children 20,8,*,5 15,6,7,2 31,9,11,11"))


def test_each_of_three_equal_headings_has_its_number():
    frame = rows_of("town,Persons,Persons,Persons A,3,8,5 B,9,2,4 C,5,1,6")
    settings = {}
    for number in (2, 3):
        with pytest.raises(DataError, match=f"Persons#{number}=ignored"):
            reading_of(frame, **settings)
        settings[f"columns.Persons#{number}"] = "ignored"
    assert reading_of(frame, **settings).cells["stated"].tolist() == ["3", "9", "5"]


@pytest.mark.parametrize("seed", range(5))
def test_small_exact_counts_are_not_doubted(seed):
    """All of 5 or more are 5, which is no sign of rounding."""
    rng = np.random.default_rng(seed)
    numbers = rng.integers(0, 6, (60, 40)).ravel()
    rows = [(f"Area {i}", f"Cause {j}") for i in range(60) for j in range(40)]
    frame = pd.DataFrame(rows, columns=["area", "cause"]).assign(deaths=numbers.astype(str))
    assert not reading_of(frame).open


def changed_table(seed, change):
    """Return counts by region and sex with totals, and the same with some changed by 1."""
    rng = np.random.default_rng(seed)
    true = np.zeros((5, 3), np.int64)
    true[:4, :2] = rng.integers(5, 30, (4, 2))
    true[4] = true[:4].sum(axis=0)
    true[:, 2] = true[:, :2].sum(axis=1)
    counts = true + change * rng.integers(-1, 2, true.shape)
    frame = pd.DataFrame(counts.astype(str), columns=["Male", "Female", "Total"])
    frame.insert(0, "region", ["RA", "RB", "RC", "RD", "Total"])
    return frame, true


def check_bounds(reading, frame, true):
    """Check that the true counts of a table lie in the bounds of all that an attack says."""
    name, *heads = frame.columns
    bounds = br.attack(reading.accepted()).frames["bounds"].replace("all", "Total")
    for row in bounds.to_dict("records"):
        labels = (list(frame[name]), row[name]), (heads, row["sex"])
        known = all(label in every for every, label in labels)  # nobody is one of "others"
        count = true[tuple(every.index(label) for every, label in labels)] if known else 0
        assert row["low"] <= count <= row["high"]


@pytest.mark.parametrize("seed", range(40))
def test_no_rest_follows_from_counts_that_miss_their_totals_by_one(seed):
    """Every count of a good table is changed by 1 at most: what its sums contradict is asked."""
    assert not reading_of(changed_table(seed, 0)[0]).open
    frame, true = changed_table(seed, 1)
    reading = reading_of(frame)
    counts = frame[["Male", "Female", "Total"]].astype(int).to_numpy()
    if (counts == true).all():
        return
    if "counts" in reading.questions:  # by how much at most no sum shows
        assert reading.open == {"counts"}
    if reading.rules["counts"] != "exact":
        check_bounds(reading_of(frame, counts=reading.rules["counts"]), frame, true)


def test_misses_one_way_are_a_rest_where_other_sums_hold_or_they_are_many():
    few = rows_of("""region,male,female,total
        RA,7,12,20 RB,13,10,23 RC,7,8,17 RD,8,7,15 Total,37,37,75""")
    reading = reading_of(few)
    assert reading.open == {"counts"}
    assert "miss totals by little" in reading.questions["counts"][1]
    assert "totals.sex" not in reading.questions  # which the law of the counts decides
    assert reading_of(few, counts="exact").questions["totals.sex"][0] == "partial"
    assert "totals.sex" not in reading_of(few, counts="perturbed-1").questions
    shown = rows_of("""region,male,female,total
        RA,7,12,20 RB,13,10,23 RC,7,8,17 RD,8,7,15 Total,35,37,75""")
    assert reading_of(shown).open == frozenset()  # all columns add up
    rows = [("R" + chr(65 + i), 20 + i, 30 + 2 * i, 51 + 3 * i) for i in range(8)]
    many = pd.DataFrame(rows, columns=["region", "male", "female", "total"]).astype(str)
    assert not any("miss totals" in text for _, text in reading_of(many).questions.values())


def test_a_rest_without_one_sum_that_holds_is_asked():
    frame = rows_of("""town,male,female,total
        Ard,205,215,618 Ben,205,215,627 Cor,207,215,625""").rename(columns=str.capitalize)
    reading = reading_of(frame)
    assert reading.rules["totals.sex"] == "partial"
    assert "never hold exactly" in reading.questions["counts"][1]
    assert reading.open == {"counts"}


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("base", [3, 5])
def test_totals_that_are_sums_of_rounded_counts_are_no_rounded_totals(seed, base):
    rng = np.random.default_rng(seed)
    true = np.zeros((5, 3), np.int64)
    true[:4, :2] = rng.integers(20, 90, (4, 2))
    stated = true // base * base + base * (rng.random(true.shape) < true % base / base)
    for table in (true, stated):
        table[4] = table[:4].sum(axis=0)
        table[:, 2] = table[:, :2].sum(axis=1)
    frame = pd.DataFrame(stated.astype(str), columns=["Male", "Female", "Total"])
    frame.insert(0, "town", [*TOWNS[:4], "Total"])
    reading = reading_of(frame)
    assert reading.rules["labels.sex.Total.counts"] == f"perturbed-{8 * (base - 1)}"
    check_bounds(reading, frame, true)


@pytest.mark.parametrize("law", ["perturbed-2", "random-5", "nearest-5"])
def test_sexes_need_not_make_up_totals_of_which_ranges_say_nothing(law):
    """True: 2 and 3 in the North, and 2 whose sex is not known."""
    frame = rows_of("region,Male,Female,Total North,5,5,5 South,5,10,15")
    reading = reading_of(frame, counts=law)
    assert reading.rules["totals.sex"] == "partial"
    assert "totals" not in reading.rules
    shown = rows_of("region,Male,Female,Total North,85,105,190 South,95,110,205")
    assert "totals.sex" not in reading_of(shown, counts=law).rules


def test_few_totals_that_are_multiples_of_5_are_no_rounded_ones():
    """Four of them in a table of ten labels are a matter of chance; counts are changed by 1."""
    frame = rows_of("""status,cause,0-15,16-24,25+,Total
        Single,Falls,11,8,4,25 Single,Burns,7,7,12,25
        Married,Falls,10,10,6,25 Married,Burns,9,11,9,30""")
    reading = reading_of(frame)
    assert not any(name.startswith("labels.") for name in reading.rules)
    assert reading.rules["counts"].startswith("perturbed") or reading.open == {"counts"}


@pytest.mark.parametrize(("mark", "counts"), [("<3", True), ("1-4", True), ("<500", False)])
def test_a_small_count_that_is_withheld_shows_that_a_column_counts(mark, counts):
    frame = pd.DataFrame({"town": ["Aberd", "Brech", "Colm"], "Asthma": [mark, "7", "12"]})
    assert (reading_of(frame).open == set()) == counts


@pytest.mark.parametrize(("least", "asked"), [(1, False), (2, True), (5, True)])
def test_zeros_may_stand_for_counts_that_never_occur(tmp_path, least, asked):
    counts = np.random.default_rng(4).integers(least, 3 * least + 9, (80, 2))
    counts[::4] = 0
    rows = "".join(f"Ward {k},{a},{b}\n" for k, (a, b) in enumerate(counts))
    file = tmp_path / "t.csv"
    file.write_text("ward,men,women\n" + rows)
    said = br.TableReading.read(file)
    assert said.questions["counts"][0] == "exact"
    assert ("counts" in said.open) == asked


@pytest.mark.parametrize(
    ("unit", "opened"),
    [
        ("Units: Persons", False),
        ("단위：명", False),
        ("Units: Tonnes", True),
        ("Area: Persons", True),
    ],
)
def test_a_unit_above_a_table_says_what_all_its_columns_count(unit, opened, tmp_path):
    file = tmp_path / "t.csv"
    file.write_text(f"{unit}\n\nTown,Bzzk,Qrrt\nAsh,31,44\nElm,52,67\n", encoding="utf-8")
    reading = br.tables.TableReading.read(file)
    assert ("counts" in reading.open) == opened


@pytest.mark.parametrize(
    ("title", "heads", "opened"),
    [
        ("Number of deaths", "North,South,Isles", False),
        ("Deaths by town", "North,South,Isles", False),
        ('"Population, number of persons"', "North,South,Isles", False),
        ("Daily figures on deaths registered", "North,South,Isles", False),
        ("Table 1: Number of deaths", "North,South,Isles", False),
        ("Tableau 2.1 : Nombre de décès", "North,South,Isles", False),
        ("Table B. Deaths by town", "North,South,Isles", False),
        ("Table 1: Rain: number of deaths", "North,South,Isles", True),
        ("Table 1: Death rates", "North,South,Isles", True),
        ("Rain: Number of deaths", "North,South,Isles", True),
        ("Number of deaths", "Deaths,Bzzk,Qrrt", True),  # one of several that are told
        ("Death rates by town", "North,South,Isles", True),
        ("Costs of deaths", "North,South,Isles", True),
        ("Rain by deaths", "North,South,Isles", True),
        ("Statistics of deaths", "North,South,Isles", True),
        ("We asked for rain where people live.", "North,South,Isles", True),
    ],
)
def test_a_title_says_what_several_columns_count_that_say_nothing(title, heads, opened, tmp_path):
    file = tmp_path / "t.csv"
    rows = "".join(f"Town {k},{7 * k % 31},{5 * k % 19},{k * k % 23}\n" for k in range(12))
    file.write_text(f"{title}\n\nTown,{heads}\n{rows}", encoding="utf-8")
    assert ("counts" in br.tables.TableReading.read(file).open) == opened


@pytest.mark.parametrize("spread", [0, 1, 300])
def test_sums_of_columns_show_counts_whatever_the_total_of_rows_leaves_out(spread):
    rng = np.random.default_rng(3)
    counts = rng.integers(9, 300, (40, 2))
    rows = [[f"town {k}", a, b, a + b] for k, (a, b) in enumerate(counts)]
    a, b = (n + k * spread for n, k in zip(counts.sum(axis=0), (4, 5), strict=True))
    rows.append(["Total", a, b, a + b])
    frame = pd.DataFrame(rows, columns=["town", "Bzzk", "Qrrt", "Total persons"]).astype(str)
    reading = reading_of(frame)
    assert reading.open == frozenset()
    # A list of places may leave out who is elsewhere; few of all say nothing of the others.
    guess = {0: None, 1: "partial", 300: "separate"}[spread]
    assert reading.rules.get("totals.town") == guess
    few = pd.concat([frame[:4], frame[-1:]])
    assert spread == 0 or reading_of(few).rules["totals.town"] == "separate"


def test_sums_of_two_variables_together_show_what_one_of_each_does_not():
    counts = {"East": (6, 9, 15), "West": (3, 6, 9), "Total": (9, 15, 24)}
    sexes = ("Male", "Female", "Total")
    rows = [(a, s, str(n)) for a, ns in counts.items() for s, n in zip(sexes, ns, strict=True)]
    reading = reading_of(pd.DataFrame(rows, columns=["area", "sex", "Bzzk"]))
    assert reading.rules["counts"] == "random-3"
    assert reading.open == frozenset()


@pytest.mark.parametrize(("row", "head"), [("Both sexes", "year"), ("Season", "season")])
def test_a_row_below_headings_says_of_whom_all_rows_are_or_what_labels_are(row, head, tmp_path):
    file = tmp_path / "t.csv"
    years = "".join(f"{2010 + k},{9000 + 37 * k},{400 + k * k}\n" for k in range(6))
    file.write_text(f",Locals,Guests\n{row},,\n{years}", encoding="utf-8")
    reading = br.tables.TableReading.read(file)
    assert {*reading.cells[head]} == {str(2010 + k) for k in range(6)}
    assert {*reading.cells["category 1"]} == {"Locals", "Guests"}


def test_quarters_of_years_are_periods_in_other_languages():
    rows = [
        (y, q, 50 + 7 * y % 13 + q, 30 + q * q) for y in (2020, 2021, 2022) for q in range(1, 5)
    ]
    frame = pd.DataFrame(rows, columns=["År", "Kvartal", "Män", "Kvinnor"]).astype(str)
    frame.insert(
        2, "Arbetslösa", (frame["Män"].astype(int) + frame["Kvinnor"].astype(int)).astype(str)
    )
    reading = reading_of(frame)
    assert {*reading.cells["kvartal"]} == {"1", "2", "3", "4"}
    assert "arbetslösa" not in reading.cells


AREAS = ("Kent", "Essex", "Dover", "Deal", "Sandwich", "Harwich", "Clacton", "Epping", "Total")


def area_table(seed, base, *, rounded):
    """Return true counts of towns and counties by age and sex, and what is published of them."""
    rng = np.random.default_rng(seed)
    towns = rng.integers(20, 300, (6, 2, 2))
    true = np.stack([towns[:3].sum(0), towns[3:].sum(0), *towns, towns.sum(0)])
    true = np.concatenate([true, true.sum(axis=2, keepdims=True)], axis=2)
    stated = true.copy()
    for area in (AREAS.index(a) for a in rounded):
        stated[area] = np.round(true[area] / base) * base if base > 1 else (
            true[area] + rng.integers(-1, 2, (2, 3)))  # fmt: skip
    rows = [[a, age, *map(str, stated[i, j])]
            for i, a in enumerate(AREAS) for j, age in enumerate(("0-17", "18+"))]  # fmt: skip
    return true, pd.DataFrame(rows, columns=["area", "age", "Male", "Female", "Total"])


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("base", "rounded"), [(10, ["Total"]), (1, AREAS[:2]), (1, AREAS[2:5])])
def test_labels_beside_which_sums_miss_by_little_have_a_law_of_their_own(seed, base, rounded):
    """Sums of the others hold: all that is said of the rounded ones is true, and the rest exact."""
    true, frame = area_table(seed, base, rounded=rounded)
    reading = reading_of(frame)
    laws = {n.split(".")[2]: g for n, (g, _) in reading.questions.items() if n.endswith(".counts")}
    assert {*laws} <= {*rounded}
    if laws:
        assert reading.questions["counts"][0] == "exact"
        assert "sex" not in reading.separate
    for area, law in laws.items():
        number = int(law.rpartition("-")[2])
        stated = frame[frame["area"] == area].iloc[:, 2:].astype(int).to_numpy()
        most = number / 2 if law.startswith("nearest") else number
        assert np.abs(stated - true[AREAS.index(area)]).max() <= most


def test_most_such_labels_are_found_and_none_where_all_counts_are_changed():
    found = [{*reading_of(area_table(seed, 1, rounded=AREAS[:2])[1]).rules} for seed in range(30)]
    assert sum("labels.area.Kent.counts" in rules for rules in found) > 5
    for seed in range(30):
        frame = area_table(seed, 1, rounded=AREAS)[1]
        assert not any(name.startswith("labels.") for name in reading_of(frame).rules)


def test_measures_that_all_count_records_say_what_their_values_are():
    rng = np.random.default_rng(4)
    measures = ["Open referrals at the end of the period", "People in contact with services"]
    rows = [[f"trust {k}", m, rng.integers(5, 900)] for k in range(9) for m in measures]
    frame = pd.DataFrame(rows, columns=["provider", "MEASURE_NAME", "MEASURE_VALUE"])
    assert reading_of(frame.astype(str)).open == frozenset()
    frame.loc[measures[0] == frame.MEASURE_NAME, "MEASURE_NAME"] = "Days that were lost"
    assert reading_of(frame.astype(str)).open == {"counts"}
    # Nor do labels of another variable: tests may have costs.
    frame = frame.assign(MEASURE_NAME="Blood tests").rename(columns={"MEASURE_NAME": "product"})
    frame.loc[::2, "product"] = "Urine tests"
    assert reading_of(frame.astype(str)).open == {"counts"}


@pytest.mark.parametrize(("month", "open_"), [("Jan 2020", set()), ("Place 20", {"counts"})])
def test_months_below_a_variable_of_offences_count_them(month, open_):
    rng = np.random.default_rng(1)
    heads = ["area", "offence type", month, month[::-1].replace("0", "1", 1)[::-1]]
    rows = [[a, o, *map(str, rng.integers(0, 90, 2))] for a in TOWNS for o in ("Assault", "Theft")]
    assert reading_of(pd.DataFrame(rows, columns=heads)).open == open_


STAFF = "school,{}\n" + "".join(
    f"{name},{a + b},{a},{b},{c},{d}\n"
    for name, a, b, c, d in [("Ash", 61, 59, 11, 2500), ("Elm", 41, 49, 9, 3100),
                             ("Oak", 30, 27, 6, 1800), ("Yew", 29, 37, 7, 2000)]
)  # fmt: skip


@pytest.mark.parametrize(
    ("heads", "left_out"),
    [
        ("Pupils,Boys,Girls,Teachers,Blocks", ["Blocks"]),  # sums show that the others count
        ("Pupils,Boys,Girls,Classes,Blocks", ["Classes", "Blocks"]),
        ("Pupils,Boys,Girls,of which boarders,Blocks", ["Blocks"]),  # counts what stands before it
        ("Pupils,Boys,Girls,Blocks,davon Beton", ["Blocks", "davon Beton"]),
        ("Pupils,Boys,Girls,Teachers,Cooks employed", []),
    ],
)
def test_few_columns_that_may_be_no_counts_are_left_out_beside_sums(tmp_path, heads, left_out):
    file = tmp_path / "t.csv"
    file.write_text(STAFF.format(heads), encoding="utf-8")
    reading = br.TableReading.read(file)
    assert reading.rules["counts"] == "exact"
    assert not reading.open
    assert [n for n in reading.questions if n.startswith("columns.")] == [
        f"columns.{head}" for head in left_out
    ]
    stated = {*reading.cells["stated"]}
    assert ("2500" in stated) == ("Cooks" in heads)
    assert "2500" in {*br.TableReading.read(file, counts="exact").cells["stated"]}


def test_a_question_stays_where_no_sum_shows_what_counts(tmp_path):
    """No pupil is boy and girl, or more columns may be no counts than sums have."""
    text = STAFF.format("Pupils,Bases,Blocks,Grades,Points").replace("120", "121")
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    assert br.TableReading.read(tmp_path / "t.csv").open == {"counts"}


SUMS = """area,Persons,Male,Female,{}
Ash,{},*,15,1
Elm,38,30,8,0
Oak,23,7,16,0
Yew,21,9,12,0"""


@pytest.mark.parametrize("head", ["Not known", "Third"])
@pytest.mark.parametrize(("others", "total", "known"), [("1", 19, False), ("0", 18, True)])
@pytest.mark.parametrize("last", [False, True])
def test_a_label_of_nobody_where_a_sum_is_known_may_be_a_part_elsewhere(
    tmp_path, head, others, total, known, last
):
    """True: three men in Ash, and one of the others, or none; nothing says that 19 - 15 are men."""
    text = SUMS.format(head, total).replace(",15,1", f",15,{others}")
    if last:
        text = "\n".join(
            ",".join([a, *rest, every])
            for a, every, *rest in (line.split(",") for line in text.splitlines())
        )
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    reading = br.TableReading.read(tmp_path / "t.csv").changed({"counts": "exact"})
    bounds = br.reconstruction.count_bounds(br.PublishedTables(*reading.parts)).counts
    cells = reading.stated_cells.rename(columns={"place": "geoid"})
    row = cells[cells["stated"] == "*"].merge(bounds, on=["geoid", "table", "cell"]).iloc[0]
    assert row["low"] <= 3
    assert row["high"] is pd.NA or row["high"] >= 3
    assert not known or (row["low"], row["high"]) == (3, 3)
