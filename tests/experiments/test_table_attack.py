"""Attacks on published tables from Python: the answers of the command, and other readings."""

import itertools
import re

import numpy as np
import pandas as pd
import pytest

import bayesrisk as br
from bayesrisk.exceptions import ArgumentError, OutputError
from bayesrisk.experiments import place_bounds, table_attack
from bayesrisk.reconstruction import count_bounds
from bayesrisk.tables.cells import CellSpace

pytestmark = pytest.mark.usefixtures("quick_figures")


def test_nothing_is_written_without_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame({"sex": ["F", "M", "Total"], "count": ["*", "6", "7"]})
    reading = br.tables.TableReading.from_frame(frame, counts="exact")
    with pytest.raises(ArgumentError, match="guesses must be confirmed"):
        br.attack(reading)
    found = br.attack(reading.accepted())
    assert found.facts["recovered"] == 1
    assert list(tmp_path.iterdir()) == []


def test_the_error_of_unconfirmed_guesses_names_the_argument_of_the_verb():
    frame = pd.DataFrame({"sex": ["F", "M", "Total"], "count": ["*", "6", "7"]})
    with pytest.raises(ArgumentError, match=r"marks.*accept=True"):
        br.attack(frame)
    br.attack(frame, accept=True)


def test_a_folder_takes_no_settings_of_a_reading_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame({"sex": ["F", "M"] * 10})
    made = br.release(frame, protection="none")
    for name, value in (("counts", "exact"), ("seed", 1), ("proofs", 3)):
        with pytest.raises(ArgumentError) as caught:
            br.attack(made, "out", **{name: value})
        assert caught.value.argument == name
    assert br.attack(made).facts["records"] == 20
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "notes.txt").touch()
    with pytest.raises(OutputError, match="must be new or an empty folder"):
        br.attack(made, "used")
    assert [file.name for file in (tmp_path / "used").iterdir()] == ["notes.txt"]


def test_nothing_is_said_of_records_of_labels_for_which_none_were_found():
    """Of age 12 only some of the counts are there, so that any number of others may be, too."""
    rows = [("Ash", g, n) for g, n in (("F", 11), ("M", 9), ("Total", 20))]
    rows += [("12", "F", 3), ("13", "F", 4), ("14", "M", 5)]
    frame = pd.DataFrame(rows, columns=["code", "sex", "n"])
    found = br.attack(frame, accept=True, counts="exact", totals={"code": "separate"})
    text = next(str(t) for t in found.sentences if str(t).startswith("Records were found"))
    assert "0 of 1" not in text
    assert "20 of Ash" in text
    assert "3 other labels" in text
    assert set(found.frames["records"]["code"]) == {"Ash"}
    # No record was looked for there, so that nothing is proved of these labels.
    assert "not looked for" in text
    assert text.index("proved") < text.index("3 other labels")


def test_one_label_without_records_is_one_and_labels_with_commas_are_quoted():
    rows = [("Fir", g, n) for g, n in (("F", 11), ("M", 9), ("Total", 20))]
    rows += [("Elm, B", g, n) for g, n in (("F", 5), ("M", 4), ("Total", 9))]
    rows += [("of new homes", "F", 3)]
    frame = pd.DataFrame(rows, columns=["ward", "sex", "n"])
    found = br.attack(frame, accept=True, counts="exact", totals={"ward": "separate"})
    text = next(str(t) for t in found.sentences if str(t).startswith("Records were found"))
    assert "20 of Fir, 9 of 'Elm, B'" in text
    assert "one other label ('of new homes')" in text
    assert len(found.frames["records"]) == 29


def test_many_labels_taken_by_themselves_are_no_places():
    """Three towns and 80 ages that may overlap are 240 combinations, in each of which is a row."""
    rows = [(t, str(age), age % 7 + 1) for t in "ABC" for age in range(80)]
    frame = pd.DataFrame(rows, columns=["town", "age", "n"])
    separate = {"town": "separate", "age": "separate"}
    found = br.attack(frame, accept=True, counts="exact", totals=separate)
    (text,) = [str(t) for t in found.sentences if "not looked for" in str(t)]
    assert "places" not in text
    assert "240 combinations of labels of 'town' and 'age'" in text


def test_a_reading_is_a_setting_of_tables():
    frame = pd.DataFrame({"sex": ["F", "M", "Total"], "count": ["*", "6", "7"]})
    reading = br.tables.TableReading.from_frame(frame, counts="exact", marks={"*": "1-4"})
    tables = br.PublishedTables.from_frame(frame, reading=reading)
    assert count_bounds(tables).counts.set_index("cell").loc["F", "high"] == 1
    tables = br.PublishedTables.from_frame(
        frame, reading=reading, marks={"*": "0-9"}, totals="complete"
    )
    assert count_bounds(tables).counts.set_index("cell").loc["F", "high_stated"] == 9


PARENTS = pd.DataFrame(
    {
        "lives with": ["Both parents", "Mother only", "Father only"] * 2,
        "sex": ["M"] * 3 + ["F"] * 3,
        "count": [3, 4, 1, 9, 2, 3],
    }
)


def test_where_no_records_fit_the_smallest_change_is_named():
    """Three children of both parents are fewer than four and one, whoever else there is."""
    wrong = {"labels": {"lives with": {"both parents": "all"}}, "totals": "complete"}
    reading = br.tables.TableReading.from_frame(PARENTS, counts="exact", **wrong).accepted()
    found = br.attack(reading)
    assert found.sentences[0].startswith("No records fit")
    name, value = found.sentences[1].rstrip(".").rpartition(": ")[2].split("=")
    assert (name, value) == ("labels.lives with.Both parents", "Both parents")
    assert not count_bounds(br.PublishedTables(*reading.changed({name: value}).parts)).conflict


@pytest.mark.parametrize("late", [False, True])
def test_where_no_records_fit_some_places_that_is_said_first(tmp_path, monkeypatch, late):
    """In 2 of 30 towns the total is more than both sexes, which are said to make it up."""
    rows, wrong = [], {"Town 7", "Town 19"}
    for i in range(30):
        f, m, town = 3 + i, "*" if i % 5 == 0 else 5 + 2 * i, f"Town {i}"
        rows += [(town, "F", f), (town, "M", m), (town, "Total", 8 + 3 * i + (town in wrong))]
    frame = pd.DataFrame(rows, columns=["town", "sex", "count"]).astype(str)
    totals = {"town": "separate", "sex": "complete"}
    reading = br.tables.TableReading.from_frame(frame, counts="exact", totals=totals).accepted()
    clock, steps = table_attack.Clock(1e6), place_bounds.PlaceBounds.steps

    def late_steps(search):
        for number in steps(search):  # half of the time is over once a town contradicts
            clock._begun -= 6e5 * (search.conflict and clock.passed < 6e5)
            yield number

    if late:
        monkeypatch.setattr(place_bounds.PlaceBounds, "steps", late_steps)
    found = br.attack(reading, tmp_path / "out", time_limit=clock)
    assert found.sentences[0].startswith("No records fit these tables as they were read at ")
    assert "so a guess or a count is wrong" in found.sentences[0]
    bounds = pd.read_csv(tmp_path / "out" / "bounds.csv")
    assert not {*bounds["town"]} & wrong
    assert {*bounds["status"]} == {"proved"}
    numbers = re.search(r" at (\d+) of (\d+) places \((.*?)\)(.*), so", found.sentences[0])
    towns, seen = int(numbers[1]), int(numbers[2])
    assert len(bounds) == 3 * (seen - towns)
    assert numbers[3] == ("Town 7" if towns == 1 else "Town 7, Town 19")
    assert (numbers[4] == " looked at so far") == (seen < 30) == late
    assert found.sentences[1] == "Some records fit if it is read otherwise: totals.sex=partial."
    report = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert report.index("No records fit") < report.index("How the tables were read")
    # Without the towns that contradict nothing is said of the kind.
    rest = reading.from_frame(frame[~frame["town"].isin(wrong)], counts="exact", totals=totals)
    good = br.attack(rest.accepted())
    assert not any("No records fit" in text for text in good.sentences)
    assert len(good.frames["bounds"]) == 3 * 28


def test_a_law_is_changed_where_labels_are_not():
    frame = pd.DataFrame({"sex": ["F", "M", "Total"], "count": ["4", "6", "11"]})
    reading = br.tables.TableReading.from_frame(frame, counts="exact", totals="complete").accepted()
    assert "read otherwise: totals.sex=partial" in br.attack(reading).sentences[1]
    frame["count"] = ["4", "6", "9"]  # no others make a total smaller
    reading = br.tables.TableReading.from_frame(frame, counts="exact", totals="complete").accepted()
    second = br.attack(reading).sentences[1]
    changed = dict([second.rstrip(".").rpartition(": ")[2].split("=")])
    assert not count_bounds(br.PublishedTables(*reading.changed(changed).parts)).conflict


def test_a_sentence_is_said_once_its_table_is_written_and_before_its_figures(tmp_path):
    frame = pd.DataFrame({"sex": ["F", "M", "Total"], "count": ["*", "6", "7"]})
    seen = []

    def say(sentence):
        seen.append({path.name for path in (tmp_path / "out").iterdir()})

    br.attack(frame, tmp_path / "out", accept=True, say=say)
    assert "bounds.csv" in seen[0]
    assert not seen[0] & {"bounds.png", "report.html"}
    assert {"bounds.png", "report.html"} <= {p.name for p in (tmp_path / "out").iterdir()}


BY_REGION = pd.DataFrame(
    {
        "region": ["N"] * 3 + ["S"] * 3 + ["All"] * 3,
        "sex": ["F", "M", "Total"] * 3,
        "count": ["5", "*", "12", "20", "18", "38", "*", "24", "49"],
    }
)


def test_records_of_labels_that_may_overlap_are_not_added_up():
    reading = br.tables.TableReading.from_frame(BY_REGION, **{"totals.region": "separate"})
    found = br.attack(reading, accept=True)
    # N and S are counted by All once more: 49 people are 99 rows, and no sentence says 99.
    assert len(found.frames["records"]) == 12 + 38 + 49
    assert not [text for text in found.sentences if "99" in text]
    (line,) = [text for text in found.sentences if text.lower().startswith("records were found")]
    assert [part in line for part in ("12 of N", "38 of S", "49 of All", "no others fit")] == [
        True
    ] * 4


def test_records_that_could_be_others_are_those_of_the_worst_label():
    regions = BY_REGION["region"].replace("All", "Ash")  # a total would be a limit of N
    frame = BY_REGION.assign(count=["*", "*", "2", "1", "1", "2", "10", "10", "20"], region=regions)
    found = br.attack(frame, accept=True, **{"totals.region": "separate"})
    (line,) = [text for text in found.sentences if text.lower().startswith("records were found")]
    # F and M of N are unknown: both of its two records could be others, none of S and All.
    assert "at most 100% of those of N could be others" in line


@pytest.mark.parametrize("kind", ["separate", "partial"])
def test_a_guess_about_totals_names_no_variable_of_another_kind(kind):
    reading = br.tables.TableReading.from_frame(
        BY_REGION.assign(count="*"), **{"totals.region": kind}
    )
    guess, text = reading.questions["totals"]
    assert guess == "complete"
    assert "each variable" not in text
    assert "the labels of sex make up" in text
    assert "region" not in text
    alone = br.tables.TableReading.from_frame(
        BY_REGION[["sex", "count"]].head(3), counts="exact", **{"marks.*": "withheld"}
    )
    assert "each variable" in alone.questions["totals"][1]


@pytest.mark.parametrize("seed", range(12))
def test_hidden_counts_are_those_that_the_file_hides(seed):
    """A place has a table for each law; what a law leaves empty there is no hidden count."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(1, 9, size=(4, 3))
    rows = []
    for region, counts in zip("ABCD", truth, strict=True):
        hidden = (counts < 5) & (rng.random(3) < 0.7)
        texts = ["*" if h else str(n) for h, n in zip(hidden, counts, strict=True)]
        rows += [(region, age, t) for age, t in zip(("0-17", "18-64", "65+"), texts, strict=True)]
        rows.append((region, "Total", str(counts.sum())))
    frame = pd.DataFrame(rows, columns=["region", "age", "count"])
    stars = frame["count"] == "*"
    found = br.attack(frame, accept=True, marks={"*": "1-4"} if stars.any() else {})
    assert found.facts["coarsened"] == stars.sum()
    assert found.facts["counts"] == len(frame)
    assert found.facts["at_least_one"] == 0  # a star is 1 to 4 by itself
    # With two stars or more of a region their sum leaves one pair, or several.
    unique = 0
    for region, counts in zip("ABCD", truth, strict=True):
        own = frame.loc[(frame["region"] == region) & (frame["age"] != "Total"), "count"] == "*"
        rest = int(counts[own.to_numpy()].sum())
        fits = [n for n in itertools.product(range(1, 5), repeat=int(own.sum())) if sum(n) == rest]
        unique += sum(len(set(column)) == 1 for column in zip(*fits, strict=True))
    assert found.facts["recovered"] == unique


def test_likely_records_name_labels_that_are_alike_and_stand_apart():
    """The ages 19-64 and 75 are in no count but all: they are alike, and no neighbours."""
    rows = [("0-4", "5"), ("5-18", "7"), ("65-74", "20"), ("76-99", "*"), ("All ages", "60")]
    frame = pd.DataFrame(rows, columns=["age", "deaths"])
    found = br.attack(frame, accept=True, counts="exact", totals={"age": "complete"})
    likely = found.frames["likely"]
    number = likely.groupby("age")["number"].max()
    assert {"0-4": 5, "5-18": 7, "65-74": 20}.items() <= number.to_dict().items()
    assert {*number.index} <= {"0-4", "5-18", "65-74", "76-99", "19-64 or 75"}
    assert "19-64 or 75" in number.index


def test_rows_of_tables_over_cells_are_made_once_for_all_steps(monkeypatch):
    """Bounds, claims, records, likely records and combinations share those of their tables."""
    made, make = [], CellSpace.incidence

    def counted(space, tables):
        made.append([t.name for t in tables])
        return make(space, tables)

    monkeypatch.setattr(CellSpace, "incidence", counted)
    rows = [(a, b) for a in ("F", "M", "Total") for b in ("no", "yes", "Total")]
    frame = pd.DataFrame(rows, columns=["sex", "ill"])
    frame["count"] = ["*", "3", "7", "6", "*", "8", "10", "5", "15"]
    reading = br.tables.TableReading.from_frame(
        frame, counts="exact", marks={"*": "1-4"}, totals={"ill": "complete"}
    )
    found = br.attack(reading.accepted())
    assert {"bounds", "claims", "records", "likely"} <= found.frames.keys()
    assert len(found.frames["likely"]) > 0
    published = sorted(t for names in made[:1] for t in names)
    assert len(published) > 3
    assert [names for names in made if sorted(names) == published] == made[:1]


def many_places(number):
    """Return counts in fives of many places, each by itself, some withheld; and parts of them."""
    rng, rows = np.random.default_rng(3), []
    for place in range(number):
        men, women = (5 * rng.integers(1, 4000, size=2)).tolist()
        counts = {"all": men + women, "men": men, "women": "x" if place % 7 == 0 else women}
        rows += [(f"p{place}", "Total", sex, count) for sex, count in counts.items()]
        rows += [(f"p{place}", "of which special", "all", 5 * (place % 9))]
    return pd.DataFrame(rows, columns=["district", "school", "sex", "count"]).astype(str)


def test_limits_of_parts_are_of_one_table_however_many_there_are():
    """Each place has a total of its own, the limit of its part: tables do not multiply."""
    read = br.tables.TableReading.from_frame
    parts = {n: read(many_places(n)).accepted().confirmed() for n in (20, 60)}
    tables = {n: len(part[0].tables) for n, part in parts.items()}
    assert tables[20] == tables[60] < 12
    for part in parts.values():
        tables_ = br.tables.PublishedTables(*part)
        limits = [k for k, law in tables_.laws.items() if law.kind == "limits"]
        assert limits
        for key in limits:
            number = tables_.counts[key].toarray()
            low, high = tables_.support(*key)
            stated = ~tables_.hidden(*key).toarray()
            assert (low[stated] == 0).all()
            assert (high[stated] == number[stated]).all()


def test_bounds_of_many_places_are_written_as_they_come_and_end_with_the_time(
    tmp_path, monkeypatch
):
    """A time that is over after the first place leaves its bounds, and says what is missing."""
    read = br.tables.TableReading.from_frame
    reading = read(many_places(60)).accepted()
    whole = br.attack(reading, time_limit=None)
    asked, ask = [], br.reconstruction.count_bounds

    def counted(problem, **options):
        asked.append(problem.geoids.size)
        return ask(problem, **options)

    monkeypatch.setattr(br.reconstruction, "count_bounds", counted)
    found = br.attack(reading, tmp_path / "out", time_limit=0.0)
    assert asked == [1]
    written = pd.read_csv(tmp_path / "out" / "bounds.csv", keep_default_na=False, dtype=str)
    place = ["district", "school 1"]
    assert len(written[place].drop_duplicates()) == 1
    first = whole.frames["bounds"].merge(written[place].drop_duplicates())
    assert first[["low", "high"]].astype(str).to_numpy().tolist() == (
        written[["low", "high"]].to_numpy().tolist()
    )
    assert {"bounds", "claims"} <= {*found.last[0].rstrip(".").replace(",", "").split()}
    assert any(text.startswith("1 of 120 places") for text in found.sentences)
    # Every place is asked about once, and bounds are said before all are there.
    asked.clear()
    monkeypatch.setattr(table_attack, "_SHOWN", 0.0)
    monkeypatch.setattr(place_bounds, "_SHORT", 1e6)
    said = list[str]()
    found = br.attack(reading, tmp_path / "again", time_limit=None, say=said.append)
    assert asked[:7] == [1, 2, 4, 8, 16, 32, 57]
    names = ["low", "high", "status"]
    pd.testing.assert_frame_equal(found.frames["bounds"][names], whole.frames["bounds"][names])
    assert said[0].startswith("1 of 120 places is bounded so far; of it alone: ")
    assert all(" alone: " in text for text in said[: said.index("All 120 places are bounded.")])
    assert not any(" places are bounded so far" in text for text in found.sentences)
    # What is true of all places follows a line that says so.
    assert said.index("All 120 places are bounded.") < said.index(found.sentences[0])


def test_all_steps_share_one_limit_of_time(tmp_path, monkeypatch):
    """What each may take is never more than what is left of the whole, whatever it is made of."""
    rng, seconds = np.random.default_rng(3), list[float]()
    counts = rng.integers(9, 40, (4, 5))
    frame = pd.DataFrame(counts.astype(str)).rename(columns="Dis {}".format)
    frame["Total"] = counts.sum(axis=1).astype(str)
    frame.iloc[:2, :2] = "*"
    frame.insert(0, "area", ["Ash", "Elm", "Fir", "Total"])
    reading = br.tables.TableReading.from_frame(frame, counts="exact").accepted()

    def watched(home, name):
        ask = getattr(home, name)

        def call(*args, time_limit=None, **options):
            left = time_limit.left if hasattr(time_limit, "left") else time_limit
            seconds.append(left)
            return ask(*args, time_limit=time_limit, **options)

        monkeypatch.setattr(home, name, call)

    names = ("count_bounds", "find_claims", "reconstruct", "solution_variability", "prove")
    for name in names:
        watched(br.reconstruction, name)
    watched(table_attack, "microdata_posterior")
    found = br.attack(reading, tmp_path / "out", time_limit=40.0)
    assert len(seconds) > len(names)
    assert max(seconds) <= 20.0
    assert found.facts["counts"] == 24


def test_parts_of_a_tree_are_called_as_the_file_calls_them():
    """*north* is n1 + n2: a reader of the table knows no variable of the parts of both."""
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(rng.integers(3, 60, (12, 5)), columns=["n1", "n2", "s1", "s2", "isles"])
    frame[2::3] = (frame[::3].to_numpy() + frame[1::3].to_numpy()).tolist()
    frame["north"], frame["south"] = frame["n1"] + frame["n2"], frame["s1"] + frame["s2"]
    towns, sexes = [f"Town {i // 3}" for i in range(12)], ["men", "women", "all"] * 4
    shown = frame.astype(str).assign(town=towns, sex=sexes)
    shown.loc[4, ["n1", "s2"]] = "*"
    shown.loc[6:7, ["n1", "n2"]] = "*"
    reading = br.TableReading.from_frame(shown, counts="exact").accepted()
    assert [*reading.trees] == ["category 1"]
    found = br.attack(reading, time_limit=None)
    truth = frame.assign(town=towns, sex=sexes).melt(["town", "sex"], var_name="category 1")
    truth = truth.set_index(["town", "category 1", "sex"])["value"]
    for name in ("claims", "bounds", "records"):
        assert {"town", "category 1", "sex"} <= {*found.frames[name].columns}
        assert not any("parts of" in str(column) for column in found.frames[name])
    bounds = found.frames["bounds"].set_index(truth.index.names)
    assert sorted(bounds.index) == sorted(truth.index)  # each once, and no others
    assert (bounds["low"] <= truth.loc[bounds.index]).all()
    assert (bounds["high"].fillna(10**6) >= truth.loc[bounds.index]).all()
    claims = found.frames["claims"].set_index(truth.index.names)["records"].to_dict()
    assert claims == {at: truth[at] for at in (("Town 1", p, "women") for p in ("n1", "s2"))}
    for (town, part, sex), number in claims.items():
        assert f"{number} records with town {town}, category 1 {part}, sex {sex}." in (
            found.sentences
        )
    sizes = found.frames["records"].groupby(truth.index.names, observed=True).size()
    known = sizes[[place != "Town 2" for place, *_ in sizes.index]]
    assert (known == truth.loc[known.index]).all()


def test_places_of_which_nothing_is_published_have_no_cells():
    keys = {"geoid": ["02", "01"], "table": ["t", "t"], "cell": ["a", "a"]}
    cells = place_bounds.StatedCells(pd.DataFrame(keys | {"number": [True, False]}))
    assert cells.part(np.array([], "U2")).empty
    assert cells.part(np.array(["02"]))["geoid"].tolist() == ["02"]
    assert cells.are_numbers(pd.DataFrame(keys).iloc[:0]).size == 0


@pytest.mark.parametrize(
    ("rows", "others"), [({"F": "*", "M": "6"}, 0), ({"F": "2", "M": "6"}, None)]
)
def test_what_is_proved_is_not_called_likely(rows, others):
    """1 to 4 women and 6 men: seven records are in all lists, which are no likely ones."""
    frame = pd.DataFrame({"sex": [*rows], "count": [*rows.values()]})
    marks = {"*": "1-4"} if others == 0 else {}
    reading = br.tables.TableReading.from_frame(frame, counts="exact", marks=marks)
    found = br.attack(reading.accepted(), seed=1)
    likely = found.frames["likely"]["probability"]
    assert (likely >= 0.9).sum() == (7 if others == 0 else 8)
    numbers = [re.search(r"not proved: ([\d,]+) ", text) for text in found.sentences]
    numbers = [int(match[1]) for match in numbers if match]
    assert numbers == ([] if others is None else [others])
