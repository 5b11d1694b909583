"""Numbers of places, bounds and flags are no counts; several columns tell rows apart together."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from bayesrisk import attack
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.tables.reading.reading import TableReading

#: Places whose names repeat, so that no column of numbers spells one.
PLACES = [f"m. {n}" if k % 3 else "gm. Wola" for k, n in enumerate("ABCDEFGHIJKLMNOPQRSTUVWX")]


def read_text(tmp_path, text, **settings):
    file = tmp_path / "t.csv"
    file.write_text(text, encoding="utf-8")
    return TableReading.read(file, **settings)


def stated(reading, column="stated"):
    return {*reading.cells[column]}


@pytest.mark.parametrize(
    ("head", "numbers"),
    [
        ("TERYT Gminy", [20101 + k + 90 * (k // 8) for k in range(24)]),
        ("Numer", [20101 + k + 90 * (k // 8) for k in range(24)]),  # one after another, most
        ("ORGIDMDE", [60917083000 + 7919 * (k * k % 97) for k in range(24)]),  # more than people
        ("Nr.", [101 + 7 * k for k in range(24)]),
    ],
)
def test_numbers_of_places_are_no_counts(head, numbers, tmp_path):
    counts = [(k * k * 7 % 50 + 3, k * 5 % 31 + 2) for k in range(24)]
    names = PLACES if head != "Nr." else [f"Ward {n}" for n in "ABCDEFGHIJKLMNOPQRSTUVWX"]
    rows = [f"{p},{n},{p[0]}{k % 5},{a},{b}" for k, (p, n, (a, b)) in
            enumerate(zip(names, numbers, counts, strict=True))]  # fmt: skip
    text = f"gmina,{head},powiat,komisje,karty\n" + "\n".join(rows) + "\n"
    reading = read_text(tmp_path, text)
    assert stated(reading) == {str(n) for pair in counts for n in pair}


def test_counts_that_rise_are_counts(tmp_path):
    rows = [f"day {k},{100 + 3 * k},{7 * k % 20}" for k in range(24)]
    reading = read_text(tmp_path, "when,ill,dead\n" + "\n".join(rows) + "\n")
    assert {"100", "103", "169"} <= stated(reading)


def test_codes_with_a_mark_are_codes_where_all_have_as_many_digits(tmp_path):
    text = "school,LEA_ZIP,men,women\nA,10451,5,6\nB,NA,7,8\nC,10451,3,9\nD,11203,2,4\n"
    assert "10451" not in stated(read_text(tmp_path, text))


def test_bounds_and_expected_numbers_are_no_counts(tmp_path):
    text = "week,age,deaths,Expected,lowerB,upperB\n1,0-64,193,195,159,231\n1,65+,99,95,90,120\n"
    assert stated(read_text(tmp_path, text)) == {"193", "99"}
    rest = text.replace(",deaths", "").replace(",193", "").replace(",99", "")
    with pytest.raises(DataError, match=r"lowerB: no counts.*columns.HEADING=count"):
        read_text(tmp_path, rest)


def test_estimates_with_some_decimals_are_no_counts(tmp_path):
    numbers = ["149", "166", "185", "177", "163", "185.9", "195.1", "155.1", "127.3", "191.7"] * 2
    rows = [f"{k},{n},{2 * k + 3}" for k, n in enumerate(numbers, 1)]
    reading = read_text(tmp_path, "place,nowcast,deaths\n" + "\n".join(rows) + "\n")
    assert stated(reading) == {str(2 * k + 3) for k in range(1, 21)}


def test_numbers_beside_a_named_count_tell_rows_apart_together(tmp_path):
    every = product(["Raval", "Gracia"], [1001, 1002, 1003], [1, 2, 3, 4], [1, 2])
    rows = [f"{q},{s},{k * k % 90 + 1},{e},{x}" for k, (q, s, e, x) in enumerate(every)]
    text = "barri,seccio,Valor,educa,sexe\n" + "\n".join(rows) + "\n"
    reading = read_text(tmp_path, text.replace(",1,1,", ",..,1,"), counts="exact")
    assert {"barri", "seccio", "educa", "sexe"} <= {*reading.cells.columns}
    assert len(reading.cells) == 48


def test_school_years_are_no_ages(tmp_path):
    rows = [f"{s},{y},{n}" for (s, y), n in zip(
        product(["Ash", "Elm"], ["2014-2015", "2015-2016", "2016/2017"]), range(41, 47),
        strict=True)]  # fmt: skip
    reading = read_text(tmp_path, "school,periode,antall\n" + "\n".join(rows) + "\n")
    assert {*reading.separate} == {"school", "periode"}


BUSINESS = """ap,ap_nf,emp,emp_nf,est,fipstate,year
205,G,60,G,7,1,2011
59,G,12,G,3,2,2011
0,D,0,D,2,4,2011
148,-,44,G,6,1,2010
88,G,26,H,9,2,2010
0,D,0,D,5,4,2010
"""


def test_flags_called_after_their_counts_are_of_these(tmp_path):
    reading = read_text(tmp_path, BUSINESS)
    assert {n for n in reading.cells.columns if n.endswith("nf")} == set()
    assert reading.questions["marks.D"][0] == "withheld"
    assert reading.questions["marks.G"][0] == "note"
    cells = reading.cells
    assert {"0 D", "59 G", "148", "7"} <= stated(reading)
    assert {*cells.loc[cells["category 1"] == "est", "stated"]} == set("732695")


def test_texts_that_say_why_there_is_no_count_are_marks(tmp_path):
    text = "poll,KHAN,YADAV\n1,9,14\n2,Merged with No. 502,Merged with No. 502\n"
    text += "3,6,Suppressed: between 1 and 4\n4,8,2\n"
    questions = read_text(tmp_path, text).questions
    assert questions["marks.Merged with No. 502"][0] == "withheld"
    assert questions["marks.Suppressed: between 1 and 4"][0] == "1-4"
    with pytest.raises(DataError, match=r"row 4, column 'YADAV'.*approx 5"):
        read_text(tmp_path, text.replace("Suppressed: between 1 and 4", "approx 5"))


def test_headings_stand_below_an_empty_row(tmp_path):
    text = "Filters:\nOptions,Individuals\n\nReligion,All,Pagan\nData zone,,\nS1,9,4\nS2,7,5\n"
    reading = read_text(tmp_path, text)
    assert stated(reading) == {"9", "4", "7", "5"}
    assert stated(reading, "data zone") == {"S1", "S2"}


def test_counts_of_a_frame_are_those_of_its_file(tmp_path):
    frame = pd.DataFrame([line.split(",") for line in BUSINESS.splitlines()[1:]],
                         columns=BUSINESS.splitlines()[0].split(","))  # fmt: skip
    one, other = TableReading.from_frame(frame), read_text(tmp_path, BUSINESS)
    assert one.cells["stated"].tolist() == other.cells["stated"].tolist()


def test_days_before_the_first_count_are_rows(tmp_path):
    days = "".join(f"2020-03-0{d},,\n" for d in range(4, 8))
    text = f"date,care.home,other\n{days}2020-03-08,1,\n2020-03-09,2,5\n2020-03-10,4,6\n"
    reading = read_text(tmp_path, text, counts="exact")
    assert stated(reading, "date") == {"2020-03-08", "2020-03-09", "2020-03-10"}
    assert stated(reading, "category 1") == {"care.home", "other"}


def test_the_name_of_labels_stands_above_them_in_a_row_of_its_own(tmp_path):
    text = "Counting: Homes\n\nKind,,House,Flat\n,Data zone,,\n,S1,91,40\n,S2,70,52\n,S3,66,5\n"
    reading = read_text(tmp_path, text)
    assert stated(reading) == {"91", "40", "70", "52", "66", "5"}
    assert stated(reading, "data zone") == {"S1", "S2", "S3"}


def test_numbers_of_rows_alone_are_no_counts(tmp_path):
    rows = [f"{k},P{k * k},{k}.5{k},{k * 7 % 50}.25" for k in range(9)]
    with pytest.raises(DataError, match=r"columns.HEADING=count"):
        read_text(tmp_path, ",country,latitude,longitude\n" + "\n".join(rows) + "\n")


def test_labels_that_are_too_many_to_be_crossed_are_each_by_itself():
    places, months = range(1700), range(12)
    rows = [(f"{100_000 + p} Town", *("1" if (p + m) % 7 else "2" for m in months)) for p in places]
    rows = [(name, *texts, str(sum(map(int, texts)))) for name, *texts in rows]
    sums = [str(sum(int(row[k]) for row in rows)) for k in range(1, 14)]
    heads = ["town", *(f"2008/{m + 1:02d}" for m in months), "Total"]
    frame = pd.DataFrame([*rows, ("Total", *sums)], columns=heads)
    reading = TableReading.from_frame(frame, counts="exact")
    assert reading.questions["totals.town"][0] == "separate"
    assert "town" in reading.separate


NOTED = """"Causes of death"
,"Age","All ages",,
,"Sex","Both sexes",,
"Causes","Characteristics","2019","2020","2021"
"Total, all causes",,"Number",,
,"Rank of causes","..","..",".."
,"Number of deaths","28","30","33"
"Falls","Rank of causes","4","41","40"
,"Number of deaths","9","..","8"
"Others","Rank of causes","46","45","44"
,"Number of deaths","19","21","25"

1,"The category "All ages" includes children."
"""


def test_a_table_with_ranks_units_and_quotes_in_notes_is_read(tmp_path):
    reading = read_text(tmp_path, NOTED, counts="exact")
    assert stated(reading) == {"28", "30", "33", "9", "..", "8", "19", "21", "25"}
    assert stated(reading, "causes") == {"all", "Falls", "Others"}


def test_a_quote_that_is_left_open_takes_no_row_in(tmp_path):
    text = 'a,b,n\nx,y,1\n"x,z,2\nw",z,3\nw,y,4\n'
    with pytest.raises(DataError, match="row 3: a quote must be closed"):
        read_text(tmp_path, text)


def test_a_mark_among_years_is_a_label_of_its_row(tmp_path):
    text = "Jahr,KW,A00,A30,A60\n2018,37,144,60,204\n2019,37,128,72,200\n2020,37,144,74,218\n"
    reading = read_text(tmp_path, text + "Delta,37,5,7,12\n%,,0.03,0.09,0.05\n")
    assert {"2018", "2019", "2020"} <= {*reading.cells["jahr"]}
    assert {"144", "60", "204"} <= {*reading.cells["stated"]}


def test_a_number_that_follows_a_label_counts_nobody_although_some_have_a_mark(tmp_path):
    ages = {"0": "45", "45": "20", "65": "10", "85": "+", "TOT": "."}
    rows = []
    for week in range(1, 7):
        men, women = ([week * k + 9, 30 + k, 71 - week, 88 + week * k] for k in (2, 3))
        both = [a + b for a, b in zip(men, women, strict=True)]
        for sex, counts in zip("mfb", (men, women, both), strict=True):
            rows += [f"{week},{sex},{age},{width},{n}" for (age, width), n in
                     zip(ages.items(), [*counts, sum(counts)], strict=True)]  # fmt: skip
    reading = read_text(tmp_path, "Week,Sex,Age,AgeInterval,Deaths\n" + "\n".join(rows) + "\n")
    assert "+" not in stated(reading)
    assert len(reading.cells) == 90
    assert stated(reading, "sex") == {"m", "f", "all"}


def test_codes_of_schools_and_shares_are_no_counts(tmp_path):
    text = "LEA,ESTAB,URN,SCHNAME,TPUP,PTL2\n201,6007,100003,Hill,61,66.2%\n"
    text += "201,3614,100000,Park,58,SUPPR\n202,4285,100053,Hill,75,88.8%\n"
    assert stated(read_text(tmp_path, text)) == {"61", "58", "75"}


def test_few_numbers_before_the_sums_are_codes(tmp_path):
    rows = [(3 * k % 60, 7 * k % 90) for k in range(40)]
    text = "AREA;ZONE;TOTAL;MEN;WOMEN\n" + "".join(
        f"{k:05d};{1 + k % 2};{a + b};{a};{b}\n" for k, (a, b) in enumerate(rows)
    )
    stated = {*read_text(tmp_path, text).cells["stated"]}
    assert stated == {str(n) for a, b in rows for n in (a, b, a + b)}


def test_a_column_of_units_is_no_count(tmp_path):
    text = (
        "Region,Unit,2019,2020\nNorth,no.,12,15\nNorth,%,3.1,3.4\nSouth,no.,9,7\nSouth,%,2.2,1.9\n"
    )
    assert {*read_text(tmp_path, text).cells["stated"]} == {"12", "15", "9", "7"}


@pytest.mark.parametrize("heads", ["TOT_EST,TOT_MOE", "N,N MOE", "n,Margin_of_Error"])
def test_estimates_beside_margins_of_error_are_refused(tmp_path, heads):
    text = f"GEONAME,{heads}\nAlba,4841165,20\nBern,4647660,399\n"
    with pytest.raises(DataError, match="estimates of a survey"):
        read_text(tmp_path, text)


def test_zeros_and_threes_without_ones_and_twos_may_stand_for_these(tmp_path):
    counts = [0, 3, 4, 0, 7, 3, 8, 0, 5, 3, 9, 11, 3, 0, 6, 13]
    text = "area,n\n" + "".join(f"A{k},{n}\n" for k, n in enumerate(counts))
    assert read_text(tmp_path, text).questions["counts"][0] == "perturbed-2"


# -----------------------------------------------------------------------------
# Numbers that are no counts beside counts, and counts that look like something else.

AMOUNTS = [3433042000, 2487091000, 11845490000, 1201446000, 12848331000, 824579000]


@pytest.mark.parametrize("schools", [False, True])
def test_numbers_beside_shares_are_counts_where_some_of_them_add_up(schools, tmp_path):
    """Numbers of schools add up to nothing, and are asked about as before."""
    rng, rows = np.random.default_rng(8), []
    for place in range(9):
        men, women = rng.integers(12, 90, 2)
        old = rng.integers(1, men + women - 1)
        texts = [str(n) if n > 9 else "<10" for n in (men, women, old, men + women - old)]
        cells = [f"{t},{t}%" for t in texts]
        rows.append(f"Place {place},{men + women},{','.join(cells)}" + f",{place}" * schools)
    names = ["Men", "Women", "Old", "Young"]
    heads = ",".join(f"{name} N,{name} %" for name in names)
    head = f"Place,Total cases,{heads}" + ",Number of schools" * schools
    reading = read_text(tmp_path, "\n".join([head, *rows]) + "\n", counts="exact")
    labels = {label for name in reading.cells for label in reading.cells[name].astype(str)}
    assert {"Men N", "Women N", "Old N", "Young N"} <= labels


def test_amounts_are_no_labels_and_codes_of_blocks_are_no_counts(tmp_path):
    counts = [7203, 6418, 6689, 2077, 7514, 6697]
    rows = [
        f"{10 + k // 3},D{k},{n},{amount}"
        for k, (n, amount) in enumerate(zip(counts, AMOUNTS, strict=True))
    ]
    reading = read_text(tmp_path, "Prov,District,Total,Net worth\n" + "\n".join(rows) + "\n")
    assert stated(reading) == {*map(str, counts)}
    assert stated(reading, "prov") == {"10", "11"}
    assert not stated(reading, "district") & {*map(str, AMOUNTS)}


@pytest.mark.parametrize("total", ["Total", "Visits"])
def test_letters_in_place_of_all_parts_are_withheld_beside_their_total(total, tmp_path):
    text = f"sex,{total},single,married\nMen,6,x,x\nWomen,7,x,x\n"
    reading = read_text(tmp_path, text)  # beside another count they may be crosses
    parts = ["x", "at most 6", "at most 7"] if total == "Total" else []
    assert stated(reading) == {"6", "7", *parts}


def test_rates_that_are_whole_by_chance_are_no_rows_of_rates(tmp_path):
    rows = ["All,a,6,11.2", "All,b,6,10.6", "Men,a,3,14.0", "Men,b,6,18.2", "Women,a,3,8.8",
            "Women,b,0,24.0"]  # fmt: skip
    reading = read_text(tmp_path, "\n".join(["sex,school,Cases,Rate per 1000", *rows]) + "\n")
    assert len(reading.cells) == 6


def test_codes_of_many_digits_within_others_are_labels(tmp_path):
    codes = [48, 48001, 48001950100, 48001950200, 48003, 48003960100]
    rows = [f"{code},{7 * k + 3},{k * k % 5}" for k, code in enumerate(codes)]
    reading = read_text(tmp_path, "place,men,women\n" + "\n".join(rows) + "\n")
    assert stated(reading, "place label") == {*map(str, codes)}


def test_counts_that_rise_and_repeat_after_others_are_counts(tmp_path):
    rows = [f"D{k},{k * 37 % 101 + 50},{1 + k // 3}" for k in range(12)]
    reading = read_text(tmp_path, "place,ill,dead\n" + "\n".join(rows) + "\n")
    assert {"1", "2", "3", "4"} <= stated(reading)


OFFENCES = (
    "State,Age,Total,Theft,Robbery,Curfew,Number of agencies\n"
    "Alabama,Under 18,14,9,5,0,17\n,All ages,60,40,20,0,\n"
    "Alaska,Under 18,18,10,3,5,32\n,All ages,75,50,20,5,\n"
    "Arizona,Under 18,30,10,8,12,91\n,All ages,102,60,30,12,\n"
    "Arkansas,Under 18,21,9,5,7,24\n,All ages,70,43,20,7,\n"
)


def test_a_column_that_is_blank_beside_each_total_is_no_count(tmp_path):
    reading = read_text(tmp_path, OFFENCES)
    assert not stated(reading) & {"17", "32", "91", "24"}
    assert "Curfew" in stated(reading, "category 1")  # equal in all rows of a state, and added up
    kept = read_text(tmp_path, OFFENCES.replace(",0,\n", ",0,57\n"))
    assert "17" in stated(kept) or "number of agencies" not in " ".join(kept.lines).casefold()


def test_a_number_of_something_in_no_sum_is_asked_beside_counts_that_add_up(tmp_path):
    rows = "A,3,10,12,22\nB,4,20,17,37\nC,3,11,13,24\nD,5,21,18,39\n"
    text = f"area,Number of schools,Boys,Girls,Pupils\n{rows}"
    reading = read_text(tmp_path, text)
    assert stated(reading) == {
        "10",
        "12",
        "22",
        "20",
        "17",
        "37",
        "11",
        "13",
        "24",
        "21",
        "18",
        "39",
    }
    assert reading.questions["columns.Number of schools"][0] == "ignored"
    again = read_text(tmp_path, text, **reading.rules)
    assert not again.questions
    assert again.cells.equals(reading.cells)
    named = read_text(tmp_path, text, columns={"Number of schools": "count"})
    assert stated(named) == {"3", "4", "5"}


def test_an_addend_among_subtotals_is_a_count_though_labels_repeat_it(tmp_path):
    """Total = A + B + (subtotal of C and D) + E, in an order without neighbours."""
    rows = []
    for k in range(20):
        for age in ("young", "old"):
            a, b = 13 + k * k % 17 + 40 * (age == "old"), 7 + k * 5 % 11 + 9 * (age == "old")
            c, d, e = k * 7 % 13 + (age == "old"), 3 + k % 4, 100 + 31 * k
            f = k * 11 % 23 + 5 * (age == "old")
            rows.append(f"S{k},{age},{a + b + c + d + e + f},{c + d},{a},{c},{b},{d},{f},{e}")
    head = "state,age,all kinds,kind U,kind A,kind C,kind B,kind D,kind F,kind E\n"
    reading = read_text(tmp_path, head + "\n".join(rows) + "\n")
    assert {str(100 + 31 * k) for k in range(20)} <= stated(reading)
    apart = [f"{r.rpartition(',')[0]},{100 + 31 * (k // 2)}" for k, r in enumerate(rows)]
    apart = [f"{a},{b},{int(t) + 1 + 3 * k * k}," + ",".join(rest)
             for k, (a, b, t, *rest) in enumerate(r.split(",") for r in apart)]  # fmt: skip
    other = read_text(tmp_path, head + "\n".join(apart) + "\n")  # in no sum: a fact of the state
    assert "689" not in stated(other)


def test_a_count_called_change_is_kept_where_others_add_up_with_it(tmp_path):
    rows = [
        f"P{k},{a + b + c + d},{a},{b},{c},{d}"
        for k in range(30)
        for a, b, c, d in [(3 + k * k % 19, k * 7 % 23, 1 + k * 5 % 13, k * 3 % 11)]
    ]
    head = "place,all,rent arrears,eviction,change in income,other\n"
    text = head + "\n".join(rows) + "\n"
    assert "change in income" in stated(read_text(tmp_path, text), "category 1")
    change = [f"P{k},{50 + 3 * k},{40 + k * k % 7},{10 + 3 * k - k * k % 7}" for k in range(30)]
    reading = read_text(tmp_path, "place,2021,2020,change\n" + "\n".join(change) + "\n")
    assert stated(reading, "place label") == {f"P{k}" for k in range(30)}
    assert len(reading.cells) == 60


def test_a_column_of_whole_shares_without_a_heading_is_no_count(tmp_path):
    text = "Name,Owed,,16-17,%,18+,%\nNorth,41,1,11,0.27,30,0.73\nSouth,52,1,22,0.42,30,0.58\n"
    text += "East,67,1,22,0.33,45,0.67\n"
    reading = read_text(tmp_path, text)
    assert "1" not in stated(reading)
    assert len(reading.cells) == 9
    ones = read_text(tmp_path, "place,men,women\nA,5,1\nB,7,1\nC,2,1\nD,4,1\n")
    assert "1" in stated(ones)


@pytest.mark.parametrize("head", ["Old age", "Elderly"])
def test_whole_numbers_with_marks_beside_places_are_counts_whatever_their_heading(head, tmp_path):
    text = f"place,{head},Disabled\nAdur,0,0\nArun,.,7\nBath,5,.\nCorby,13,2\nDover,0,4\n"
    reading = read_text(tmp_path, text)
    assert {"0", "5", "13", "."} <= stated(reading)
    assert head in stated(reading, "category 1")


def test_ages_that_tell_rows_apart_are_labels(tmp_path):
    rows = [f"{place},{age},{k}" for k, (place, age) in enumerate(product("AB", (5, 6, 7)), 3)]
    reading = read_text(tmp_path, "place,entry age,n\n" + "\n".join(rows) + "\n")
    assert "entry age" in reading.cells
    assert stated(reading) == {"3", "4", "5", "6", "7", "8"}


@pytest.mark.parametrize(
    "heads",
    [
        ["North!!Estimate", "North!!Percent", "South!!Estimate"],
        ["Estimated number (weighted)"],
        ["Weighted count", "Cases"],
    ],
)
def test_estimates_without_margins_are_refused(heads, tmp_path):
    rows = "".join(f"{p},{','.join([str(7 + k)] * len(heads))}\n" for k, p in enumerate("ABC"))
    text = f"group,{','.join(heads)}\n{rows}"
    with pytest.raises(DataError, match=r"estimates of a survey \(heading"):
        read_text(tmp_path, text)
    plain = text.replace("stimate", "numeration").replace("eighted", "ised")
    assert "7" in stated(read_text(tmp_path, plain.replace("Enumerationd", "Enumerated")))


def test_a_running_sum_is_no_count_beside_what_it_sums(tmp_path):
    rows, total = [], {"men": 0, "women": 0}
    for week in range(1, 9):
        for sex in total:
            n = (week * 5 + 3 * len(sex)) % 7
            total[sex] += n
            rows.append(f"2020-W{week:02},{sex},{n},{total[sex]}")
    text = "week,sex,deaths,deaths so far\n" + "\n".join(rows) + "\n"
    for order in (text, "\n".join([text.splitlines()[0], *rows[::-1]]) + "\n"):
        reading = read_text(tmp_path, order)
        assert len(reading.cells) == len(rows)
        assert stated(reading) == {row.split(",")[2] for row in rows}
    changed = text.replace(rows[-1], rows[-1].rpartition(",")[0] + ",1")
    assert len(read_text(tmp_path, changed).cells) == 2 * len(rows)


@pytest.mark.parametrize("open_cases", [True, False])
def test_a_running_sum_in_a_sum_of_columns_is_kept(open_cases, tmp_path):
    rows, (known, well, dead) = [], (40, 9, 3)
    for day in range(1, 13):
        new = [7 + day * day % 11, 2 + day * 3 % 5, 1 + day % 2]
        known, well, dead = known + new[0], well + new[1], dead + new[2]
        still = known - well - dead if open_cases else 5 + day * 7 % 13
        rows.append(f"2020-06-{day:02},{known},{still},{new[0]},{well},{new[1]},{dead},{new[2]}")
    heads = "day,cases,open cases,new cases,cured cases,newly cured cases,deaths,new deaths"
    reading = read_text(tmp_path, "\n".join([heads, *rows]) + "\n")
    assert len(reading.stated_cells) == len(rows) * (7 if open_cases else 4)


#: Sections of one text above their parts, and the unit of each row.
UNITS_OF_ROWS = """Table 7,,Spending on courts,,,
,,Unit,North,South,West
Courts,,,,,
2020-21,,,,,
,Civil,{0},782,809,773
,Criminal,{0},1059,1118,1141
2021-22,,,,,
,Civil,{1},64,31,57
,Criminal,{1},36,69,43
"""


@pytest.mark.parametrize("units", [("$m", "%"), ("per 1000 people", "€ per head")])
@pytest.mark.parametrize("removed", [(), ("Courts,,,,,\n",), ("Courts,,,,,\n", "2020-21,,,,,\n")])
def test_units_that_count_nobody_are_the_reason_of_a_refusal(units, removed, tmp_path):
    text = UNITS_OF_ROWS.format(*units)
    for line in removed:
        text = text.replace(line, "")
    with pytest.raises(DataError, match="numbers in ") as refused:
        read_text(tmp_path, text)
    assert all(unit in str(refused.value) for unit in units)
    persons = text.replace(units[0], "persons")  # some rows count people
    if removed:
        assert "782" in stated(read_text(tmp_path, persons))
        return
    with pytest.raises(DataError, match="row 3"):
        read_text(tmp_path, persons)


def test_units_of_other_columns_beside_people_refuse_nothing(tmp_path):
    text = "area,persons,income,unit\n" + "".join(f"{p},{7 + k},{90 + k * k},$m\n"
                                                  for k, p in enumerate("ABCDE"))  # fmt: skip
    assert {"7", "11"} <= stated(read_text(tmp_path, text))
    with pytest.raises(DataError, match="numbers in"):
        read_text(tmp_path, text.replace("persons", "rent"))


def test_a_count_that_is_named_keeps_labels_that_are_numbers(tmp_path):
    rows = [f"{p},{y},{k * 3},{k + 40}" for k, (p, y) in enumerate(product("AB", (2019, 2020)), 1)]
    text = "place,year,ill,dead\n" + "\n".join(rows) + "\n"
    reading = read_text(tmp_path, text, columns={"dead": "count"})
    assert stated(reading) == {"41", "42", "43", "44"}
    assert stated(reading, "year") == {"2019", "2020"}


def test_a_number_of_something_that_is_one_for_each_label_is_asked(tmp_path):
    rows = ["A,2019,3,100,12", "A,2020,3,120,14", "B,2019,5,90,9", "B,2020,5,80,11"]
    text = "District,Year,Number of hospitals,Cases,Deaths\n" + "\n".join(rows) + "\n"
    reading = read_text(tmp_path, text)
    assert stated(reading) == {"100", "12", "120", "14", "90", "9", "80", "11"}
    assert reading.questions["columns.Number of hospitals"][0] == "ignored"
    varied = read_text(tmp_path, text.replace("2020,3,", "2020,4,"))
    assert stated(varied) == {"3", "4", "5"} | stated(reading)
    assert not any(name.startswith("columns") for name in varied.questions)


@pytest.mark.parametrize("heading", ["ordre", "sıra", "№ п/п", "Rang", ""])
@pytest.mark.parametrize("last", [True, False])
def test_numbers_of_rows_are_no_counts_whatever_their_heading(tmp_path, heading, last):
    counts = [31, 4, 27, 12]
    rows = [("Ash", "31", "1"), ("Elm", "4", "2"), ("Fir", "27", "3"), ("Oak", "12", "4")]
    rows = [("place", "deaths", heading), *rows]
    text = "\n".join(",".join(row if last else row[::-1]) for row in rows) + "\n"
    assert stated(read_text(tmp_path, text)) == {*map(str, counts)}


@pytest.mark.parametrize("last", ["TOTAL,", ",Total", "All,Total"])
@pytest.mark.parametrize("numbers", [(1, 2, 3, 4, 5), (1, 2, 3, 3, 4)])
def test_numbers_of_rows_are_no_counts_whatever_totals_have_there(tmp_path, numbers, last):
    names, counts = ("Ash", "Elm", "Fir", "Oak", "Yew"), (14, 23, 31, 8, 27)
    rows = [f"{n},{p},{c}" for n, p, c in zip(numbers, names, counts, strict=True)]
    text = "\n".join([",Region,Cases", *rows, f"{last},{sum(counts)}"]) + "\n"
    reading = read_text(tmp_path, text)
    assert stated(reading) == {*map(str, counts), str(sum(counts))}
    assert not any(name.startswith("marks") for name in reading.questions)


def test_counts_that_rise_by_one_up_to_their_sum_are_counts(tmp_path):
    text = "Region,Men,Women\nAsh,1,8\nElm,2,3\nFir,3,9\nOak,4,5\nTotal,10,25\n"
    assert {"1", "4", "10", "25"} <= stated(read_text(tmp_path, text))


def test_stages_of_schools_are_counts_and_percentiles_are_not(tmp_path):
    """Ages in a column without a heading are no counts, even where nothing else is one."""
    rows = "5,519,14,3\n6,12,529,\n7,,31,531\n8,,,*\n9,,,44\n"
    reading = read_text(tmp_path, f",P1,P2,P3\n{rows}")
    assert {"519", "529", "531", "*"} <= stated(reading)
    assert stated(reading).isdisjoint({"5", "6", "7", "8"})
    with pytest.raises(DataError, match="no counts"):
        read_text(tmp_path, f",P10,P50,P90\n{rows}")


def test_labels_are_no_part_of_one_that_counts_far_fewer(tmp_path):
    """A band of ages is indented after a single age; dairy cows are cows."""
    rows = [
        "Age,1995,1996",
        "0-4,854,845",
        "4,170,171",
        " 5-9,834,851",
        "9,160,164",
        " 80+,490,505",
    ]
    cells = read_text(tmp_path, "\n".join(rows) + "\n").cells
    row = cells[cells["stated"] == "834"].iloc[0].drop("row").astype(str)
    assert "5-9" in {*row}
    assert "4" not in {*row}
    rows = ["Farm,1995,1996", "Crops,854,845", "Cows,434,451", " Dairy,160,164", "Sheep,83,71"]
    cells = read_text(tmp_path, "\n".join(rows) + "\n").cells
    assert "Cows: Dairy" in {*cells[cells["stated"] == "160"].iloc[0].astype(str)}


@pytest.mark.parametrize(("north", "text"), [(90, "Oak"), (390, "North: Oak")])
def test_parts_of_the_last_label_alone_count_no_more_than_it(north, text, tmp_path):
    """All towns stand below the last of two regions."""
    towns = [("Ash", 70, 90), ("Elm", 110, 95), ("Oak", 210, 215)]
    rows = ["region,town,boys,girls", "South,,300,310", f"North,,{north},{north}"]
    rows += [f",{town},{boys},{girls}" for town, boys, girls in towns]
    cells = read_text(tmp_path, "\n".join(rows) + "\n").cells
    labels = {*cells[cells["stated"] == "210"].iloc[0].astype(str)}
    assert text in labels
    assert ("North: Oak" in labels) == (north == 390)


@pytest.mark.parametrize("codes", [range(41001, 41013), [9, 7, 410, *range(20, 29)]])
def test_numbers_of_as_many_digits_that_rise_before_labels_are_codes(codes, tmp_path):
    rows = [f"{code},Town {k % 5}{k},{k * k % 17},{k * 7 % 11}" for k, code in enumerate(codes)]
    numbers = stated(read_text(tmp_path, "CD_X,NM_X,V1,V2\n" + "\n".join(rows) + "\n"))
    assert (str(codes[0]) in numbers) == (codes[0] == 9)


def test_a_column_whose_last_number_is_the_sum_counts_whatever_it_is_called(tmp_path):
    """AGS is a code in other tables, and a place here."""
    numbers = [(540, 60), (670, 55), (710, 41), (120, 19)]
    for last, counts in (((2040, 175), True), ((999, 175), False)):
        rows = [
            f"{a} to {a + 9},{m},{n}"
            for a, (m, n) in zip((0, 10, 20, 30, 40), [*numbers, last], strict=True)
        ]
        rows[-1] = rows[-1].replace("40 to 49", "All")
        text = "\n".join([",AGS,BGS", *rows]) + "\n"
        assert ("540" in stated(read_text(tmp_path, text))) == counts


@pytest.mark.parametrize("off", [0, 1])
def test_few_numbers_in_many_rows_count_where_a_total_is_of_all_of_them(off, tmp_path):
    """Without it those before columns that add up would be labels, as codes are."""
    rng, names = np.random.default_rng(4), [f"k{k}" for k in range(11)]
    counts = rng.integers(0, [4] * 3 + [40] * 8, (240, 11))
    counts[:, 10] = counts[:, 8] + counts[:, 9]
    rows = [f"O{k // 8},{k % 8},{sum(c) + off * (k % 7 == 2)}," + ",".join(map(str, c))
            for k, c in enumerate(counts)]  # fmt: skip
    text = "\n".join([f"office,age,whole,{','.join(names)}", *rows]) + "\n"
    labels = {*read_text(tmp_path, text).cells}
    assert ("k0" in labels) == bool(off)


def test_amounts_of_many_lengths_are_no_labels_though_some_repeat(tmp_path):
    amounts = [0, 0, 500, 500, *(7 * 10**k + 3 * k for k in range(4, 12)), 12, 12]
    rows = [f"State {k},{k * k % 31},{k * 3 % 17},{n}" for k, n in enumerate(amounts)]
    text = "state,cases,found,Lost_in_all\n" + "\n".join(rows) + "\n"
    cells = read_text(tmp_path, text).cells
    assert {"Lost_in_all", "lost in all"}.isdisjoint({*cells, *cells["category 1"]})
    worth = text.replace("Lost_in_all", "Value_of_goods").replace("0000", "")
    assert {*read_text(tmp_path, worth).cells["category 1"]} == {"cases", "found"}


@pytest.mark.parametrize("head", ["", "Pupils"])
def test_numbers_of_rows_of_a_longer_table_stand_first_without_a_heading(head, tmp_path):
    numbers = [4218, 75, 11740, 1506, 1836, 44, 7612, 301]
    rows = [f"{n},School {k % 4},{2031 + k // 4},{k * k % 13 + 2}" for k, n in enumerate(numbers)]
    text = f"{head},school,year,staff\n" + "\n".join(rows) + "\n"
    assert ("4218" in stated(read_text(tmp_path, text))) == bool(head)


@pytest.mark.parametrize("full", [True, False])
def test_codes_with_all_combinations_of_labels_are_labels(full, tmp_path):
    grid = list(product(range(1, 5), ("0", "1-9", "10+"), ("High", "Low"), ("Ash", "Elm")))
    rows = [f"{k + 1},{c},{s},{h},{t},{k * k % 89}" for k, (c, s, h, t) in enumerate(grid)]
    rows = rows if full else rows[:-1]
    text = "\n".join(["row,class,drinks,tension,town,deaths", *rows]) + "\n"
    if full:
        assert {"class", "drinks"} <= {*read_text(tmp_path, text).cells}
    else:  # no evidence that they are labels
        with pytest.raises(DataError, match="must have different labels"):
            read_text(tmp_path, text)


def test_numbers_with_letters_may_be_labels(tmp_path):
    """One number with several notes is no count with notes, nor is the first of some a count."""
    for first, second, label in (
        ("71Yes", "71No", True),
        ("1st", "2nd", True),
        ("9r", "12r", False),
    ):
        rows = [f"Town {k},{(first, second)[k % 2]},{k * k % 31 + 3}" for k in range(12)]
        cells = read_text(tmp_path, "town,grade,pupils\n" + "\n".join(rows) + "\n").cells
        assert ("grade" in cells) == label


def test_counts_that_rise_by_day_are_no_code_of_it(tmp_path):
    days = [f"2031-03-{k:02}" for k in range(1, 25)]
    rising = [1000 + 9 * k * k for k in range(24)]
    rows = [f"{day},{a},{k * k % 19}" for k, (day, a) in enumerate(zip(days, rising, strict=True))]
    text = "day,first,second\n" + "\n".join(rows) + "\n"
    assert "1009" in stated(read_text(tmp_path, text))
    places = text.replace("2031-03-", "Place ")
    assert "1009" not in stated(read_text(tmp_path, places))


def test_bounds_quality_and_change_beside_counts_are_none(tmp_path):
    numbers = [(3 * k + 40, k * 5 % 13, k * k % 23, k * 3 % 7, k * k % 5 + 1) for k in range(20)]
    rows = [f"P{k},{n},{n - 2},{n + 2},{a},{b},{c},{d}"
            for k, (n, a, b, c, d) in enumerate(numbers)]  # fmt: skip
    heads = "place,ill,ill_lb,ill_ub,ill_quality,dead,dead_delta,depth"
    text = "\n".join([heads, *rows]) + "\n"
    assert {*read_text(tmp_path, text).cells["category 1"]} == {"ill", "dead"}
    plain = text.replace("ill_quality", "air_quality").replace("ill_ub", "hub")
    assert {"air_quality", "hub"} <= {*read_text(tmp_path, plain).cells["category 1"]}


@pytest.mark.parametrize(("heads", "counted"), [("0-4,5-9,10-14", True), ("Red,Blue,Wave", False)])
def test_the_same_count_in_all_rows_is_one_where_headings_are_of_a_kind(heads, counted, tmp_path):
    rows = [f"School {k},{k * k % 17 + 3},{k * 7 % 19 + 3},3" for k in range(24)]
    cells = read_text(tmp_path, f"School,{heads}\n" + "\n".join(rows) + "\n").cells
    assert (heads.rpartition(",")[2] in {*cells.iloc[:, 1:-1].to_numpy().ravel()}) == counted


def test_codes_that_begin_anew_in_each_province_are_no_labels(tmp_path):
    names = [("Albacete", "Ash Elm Sada"), ("Alicante", "Fir Oak Yew"), ("Murcia", "Ivy Bay Sada")]
    rng = np.random.default_rng(9)
    rows = [f"{p},{k:03},{n},{rng.integers(90, 900)},{rng.integers(90, 900)}" for p, towns in names
            for k, n in enumerate(towns.split(), 1)]  # fmt: skip
    text = "\n".join(["province,cmun,town,men,women", *rows]) + "\n"
    cells = read_text(tmp_path, text).cells
    assert "cmun" not in cells
    assert {"Ash", "Sada"} <= {*cells["town"]}
    ages = text.replace("cmun,town", "age,kind").replace("Sada", "Ash").replace("Ivy", "Bay")
    assert "age" in read_text(tmp_path, ages).cells  # one kind has two codes in a province


def test_rows_whose_unit_has_decimals_are_rates(tmp_path):
    rows = [("AT", 10991, 11309, 132.29, 135.5), ("BE", 21553, 23541, 198.84, 215.04)]
    lines = [f"NR,{geo},{a},{b}\nP_HTHAB,{geo},{c},{d}" for geo, a, b, c, d in rows]
    text = "\n".join(["unit,geo,2022,2023", *lines]) + "\n"
    reading = read_text(tmp_path, text)
    assert stated(reading) == {"10991", "11309", "21553", "23541"}
    with pytest.raises(DataError, match="decimals"):  # which no column tells from counts
        read_text(tmp_path, text.replace("unit", "type").replace("21553", "215.5"))


def test_rows_of_rates_are_told_by_the_codes_of_their_characteristic(tmp_path):
    """As in a census profile, in which shares have the names of the counts above them."""
    counts = [("Population", 1200), ("0 to 14", 200), ("15 and over", 1000)]
    shares = [("Distribution (%)", 100), ("0 to 14", 16.7), ("15 and over", 83.3), ("Age", 40.5)]
    rows = [f"{place},{k},{name},{n + 10 * j * (n > 150) + 0.1 * j * (k > 4)}"
            for j, place in enumerate(("Alba", "Bela", "Cora"))
            for k, (name, n) in enumerate(counts + shares, 1)]  # fmt: skip
    text = "\n".join(["place,id,name,count", *rows]).replace(".0\n", "\n") + "\n"
    assert stated(read_text(tmp_path, text)) == {
        *("1200", "1210", "1220", "200", "210", "220", "1000", "1010", "1020")
    }


def test_a_unit_of_nearly_all_rows_is_that_of_a_rate_beside_counts(tmp_path):
    rows = [f"{year},{unit},{47.4 - year % 9},{4222 + 7 * year % 91}"
            for year in range(1960, 2020) for unit in ("per 1000",)]  # fmt: skip
    text = "\n".join(["year,unit,birth risk,births", *rows, "2020,percent,12,4100"]) + "\n"
    assert len({*read_text(tmp_path, text).cells["year"]}) == 61


def test_labels_of_rates_alone_are_no_counts(tmp_path):
    rows = [f"{sex},{year},{code},{40 + year % 7 + code}.{code}" for sex in ("H", "F")
            for year in range(1982, 1990) for code in (1, 2, 3)]  # fmt: skip
    text = "\n".join(["sex,year,diploma,employed", *rows]) + "\n"
    with pytest.raises(DataError, match="must have a column of counts"):
        read_text(tmp_path, text)
    counts = text.replace(".", "")  # the same digits as counts
    assert "403" not in stated(read_text(tmp_path, counts))
    assert "diploma" in read_text(tmp_path, counts).cells.columns


@pytest.mark.parametrize("head", ["Medida promedio", "Mittelwert", "Perc of pupils", "perc"])
def test_means_and_percentages_by_name_are_no_counts(tmp_path, head):
    rows = [f"Ash {k},{500 + 7 * k % 90},{30 + k * k % 41}" for k in range(9)]
    reading = read_text(tmp_path, "\n".join([f"school,{head},pupils", *rows]) + "\n")
    assert stated(reading) == {str(30 + k * k % 41) for k in range(9)}
    # A class that is called so counts pupils, who add up.
    rows = [f"Ash {k},{k % 5 + 11},{k % 7 + 9},{k % 5 + k % 7 + 20}" for k in range(9)]
    text = "\n".join(["école,moyenne section,grande section,élèves", *rows]) + "\n"
    assert "11" in stated(read_text(tmp_path, text))


def test_marks_alone_below_a_rate_are_no_counts(tmp_path):
    rows = [f"Ash {k},{k * 5 % 17},-,-" for k in range(9)]
    reading = read_text(tmp_path, "\n".join(["town,cases,risk cases,rate", *rows]) + "\n")
    columns = {*reading.cells["category 1"]}
    assert columns == {"cases", "risk cases"}  # the second has counts that are withheld
    assert "risk cases" not in reading.questions["counts"][1]


def test_numbers_that_are_mostly_0_are_no_codes(tmp_path):
    rng = np.random.default_rng(2)
    rare, parts = rng.poisson(0.3, 120) * 2, rng.integers(0, 40, (120, 2))
    district, flag = np.arange(120) % 5 + 1, rng.integers(0, 10, 120) // 9
    rows = [f"tract {k},{d},{f},{r},{a},{b},{a + b}" for k, (d, f, r, (a, b)) in
            enumerate(zip(district, flag, rare, parts, strict=True))]  # fmt: skip
    text = "\n".join(["tract,district,in city,families,tents,vans,all", *rows]) + "\n"
    reading = read_text(tmp_path, text)
    assert {"district", "in city"} <= {*reading.cells.columns}
    assert {*reading.cells["category 2"]} == {"families", "all"}


def test_numbers_that_rise_by_chance_are_counts(tmp_path):
    text = "place,men,women\nAsh,1,31\nElm,2,4\nFir,3,27\n"
    assert stated(read_text(tmp_path, text)) == {"1", "2", "3", "31", "4", "27"}
    text = "place,men,women,all\nAsh,1,3,4\nElm,2,4,6\nFir,3,7,10\nOak,4,12,16\n"  # parts of a sum
    assert {"1", "2"} <= stated(read_text(tmp_path, text))


@pytest.mark.parametrize("numbers", [(1, 2, 3, 4), (1, 2, 4, 7)])
@pytest.mark.parametrize("named", [True, False])
def test_numbers_of_lists_in_each_district_are_no_counts(tmp_path, numbers, named):
    """Candidates have names of their own; where none are given, the number is a label."""
    rng = np.random.default_rng(4)
    votes = rng.integers(50, 900, (5, 4))
    rows = [
        f"D{d},{n},{f'Name {d} {n},' * named}{v}"
        for d, line in enumerate(votes)
        for n, v in zip(numbers, line, strict=True)
    ]
    text = "\n".join([f"district,list no,{'candidate,' * named}votes", *rows]) + "\n"
    reading = read_text(tmp_path, text)
    assert stated(reading) == {*map(str, votes.ravel())}
    assert ("list no" in reading.cells) == (not named)


def test_counts_that_begin_with_one_by_chance_are_counts(tmp_path):
    rows = [f"D{d},{sex},{n},{n + 40}" for d in range(5)
            for sex, n in zip("FM", ((1, 3), (2, 9), (1, 4))[d % 3], strict=True)]  # fmt: skip
    reading = read_text(tmp_path, "district,sex,ill,tested\n" + "\n".join(rows) + "\n")
    assert {"9", "49"} <= stated(reading)


@pytest.mark.parametrize("rows", [7, 30, 70])
def test_sizes_near_2000_are_counts_and_years_are_not(tmp_path, rows):
    rng = np.random.default_rng(rows)
    sizes = [*rng.choice(np.arange(1920, 2080), rows, replace=False)]
    sizes[0], sizes[1] = 2044, 1987
    text = "region,respondents\n" + "".join(f"R{k},{n}\n" for k, n in enumerate(sizes))
    assert stated(read_text(tmp_path, text)) == {*map(str, sizes)}
    text = "region,when,ill\n" + "".join(f"R{k},{1950 + k},{9 * k % 31}\n" for k in range(rows))
    if rows > 60:  # one after another: years without a word
        assert stated(read_text(tmp_path, text)) == {str(9 * k % 31) for k in range(rows)}


def test_equal_headings_are_told_apart_by_their_number(tmp_path):
    counts = [[3, 4], [5, 6], [7, 9], [17, 19]]
    rows = [f"{town},{m},{w},{m + w}" for town, (m, w) in zip("ABCD", counts, strict=True)]
    file = tmp_path / "towns.csv"
    file.write_text("\n".join(["town,Men,Men,Total", *rows]) + "\n")
    with pytest.raises(DataError, match="#2=ignored"):
        TableReading.read(file)
    left = TableReading.read(file, **{"columns.Men#2": "ignored"})
    texts = [str(n) for m, w in counts for n in (m, m + w)]
    assert sorted(left.cells["stated"]) == sorted(texts)
    labels = {"Men#1": "sex=Men", "Men#2": "sex=Women", "Total": "sex=Total"}
    both = TableReading.read(file, columns=labels)
    stated = both.cells.query("sex == 'Women'")["stated"]
    assert [*stated] == [str(w) for _, w in counts]
    assert both.separate == ("town",)  # the sexes make up their total
    with pytest.raises(ArgumentError, match="Men#3"):
        TableReading.read(file, **{"columns.Men#2": "ignored", "columns.Men#3": "ignored"})


TOWNS = ["Aberd", "Brech", "Crail", "Dunoo", "Elgin"]


def read_rows(folder, heads, rows):
    file = folder / "table.csv"
    file.write_text("\n".join(",".join(map(str, row)) for row in [heads, *rows]) + "\n")
    return TableReading.read(file)


@pytest.mark.parametrize("day", ["24102018", "20181024"])
def test_days_of_eight_digits_count_nobody(tmp_path, day):
    rows = [(town, 31 + 7 * i, day) for i, town in enumerate(TOWNS)]
    assert read_rows(tmp_path, ["town", "deaths", "oppdatert"], rows).cells["stated"].nunique() == 5
    with pytest.raises(DataError, match="column of counts"):
        read_rows(tmp_path, ["town", "oppdatert"], [(town, day) for town, _, day in rows])
    # Eight digits that are no days are people.
    people = [(town, 24992018 + 1234567 * i) for i, town in enumerate(TOWNS)]
    assert len(read_rows(tmp_path, ["town", "population"], people).cells) == 5


def test_spellings_of_one_label_are_one(tmp_path):
    spelled = {2015: ("NATIONAL", "Special"), 2016: ("National", "special")}
    sizes = {2015: (13, 40), 2016: (23, 50)}
    rows = []
    for year, (level, special) in spelled.items():
        a, b = sizes[year]
        schools = {special: a, "Primary": b, "Total": a + b}
        rows += [(level, year, school, number) for school, number in schools.items()]
    reading = read_rows(tmp_path, ["level", "year", "school", "pupils"], rows)
    assert "level" not in reading.cells  # it says the same everywhere
    assert {*reading.cells["school"]} == {"Special", "Primary", "all"}
    assert "school" not in reading.separate


def test_years_beside_words_are_labels_where_no_heading_names_them(tmp_path):
    years = ["Total", "1992", "2001", "1994", "No especificado", "2009"]
    rows = [(a, b, 100 + 13 * i + 7 * j, 40 + 11 * i + 3 * j)
            for i, a in enumerate(years) for j, b in enumerate(years)]  # fmt: skip
    reading = read_rows(tmp_path, ["", "", "1985", "1986"], rows)
    assert len(reading.cells) == 2 * len(rows)
    labels = [{*reading.cells[name]} for name in reading.cells if name.startswith("row year")]
    assert [len(one) for one in labels] == [6, 6]


def test_single_years_with_their_unit_are_ages(tmp_path):
    ages = ["Menos de 1 ano", *["1 ano"], *[f"{i} anos" for i in range(2, 100)], "100 ou mais anos"]
    counts = [(17 * i) % 83 + 20 for i in range(len(ages))]
    rows = [("Portugal", sum(counts), 2 * sum(counts)),
            *((f"   {age}", n, 2 * n) for age, n in zip(ages, counts, strict=True))]  # fmt: skip
    reading = read_rows(tmp_path, ["Idade", "H", "HM"], rows)
    ages_read = next(name for name in reading.cells if reading.cells[name].nunique() > 90)
    assert ages_read not in reading.separate
    assert reading.cells[ages_read].nunique() == len(ages) + 1


@pytest.mark.parametrize("unit", ["(Mil Reais)", "(mill. kr)", "(€ 000)", "[US dollars]"])
def test_money_in_a_heading_counts_nobody(tmp_path, unit):
    rows = [(town, 31 + 7 * i % 17, 57902 + 911 * i % 3571) for i, town in enumerate(TOWNS)]
    reading = read_rows(tmp_path, ["town", "Pessoal (Pessoas)", f"Salários {unit}"], rows)
    assert [*reading.cells["stated"]] == [str(n) for _, n, _ in rows]
    kept = read_rows(tmp_path, ["town", "Pessoal (Pessoas)", "Unidades (Pessoas)"], rows)
    assert len(kept.cells) == 2 * len(rows)


@pytest.mark.parametrize("head", ["ETA_VITTIMA", "Edad", "Alter", "Idade"])
def test_ages_of_people_count_nobody(tmp_path, head):
    rows = [(f"case {i}", 19 + (7 * i) % 23, 100 + 13 * i) for i in range(12)]
    reading = read_rows(tmp_path, ["case", head, "visits"], rows)
    assert [*reading.cells["stated"]] == [str(n) for _, _, n in rows]
    assert len(read_rows(tmp_path, ["case", "admissions", "visits"], rows).cells) == 24


@pytest.mark.parametrize("head", ["School Number", "Board No.", "Número", "Escuela número"])
@pytest.mark.parametrize("rows", [6, 24])
def test_numbers_of_schools_are_no_counts_though_nothing_adds_up(head, rows, tmp_path):
    """They tell schools of one name apart, and few counts may have as many digits each."""
    places = [f"School {k // 2}" for k in range(rows)]
    numbers = [100_017 + 7919 * k % 800_000 for k in range(rows)]
    text = f"Year,{head},School,Boys,Girls\n" + "".join(
        f"2031-32,{n},{p},{k % 9 + 11},*\n" for k, (n, p) in
        enumerate(zip(numbers, places, strict=True))
    )  # fmt: skip
    called = head != "Número"  # a word for numbers of people
    assert ({*map(str, numbers)} & stated(read_text(tmp_path, text)) == set()) == called


def test_a_number_of_pupils_of_few_schools_counts_them(tmp_path):
    text = "School,Pupil number,Teacher number\nA,41,12\nB,37,15\nC,58,19\nD,62,23\n"
    assert {"41", "12", "23"} <= stated(read_text(tmp_path, text))


def test_codes_of_two_levels_are_no_counts_with_a_space(tmp_path):
    text = "Code,Place,Men,Women\n01 001,Ash,17,29\n01 002,Elm,31,22\n02 001,Oak,19,18\n"
    assert not {"01 001", "01001"} & stated(read_text(tmp_path, text))


@pytest.mark.parametrize("heads", [["Male", "Female"], ["Persons"], ["Count"], ["Patients"]])
def test_counts_that_are_all_one_range_are_counts(heads):
    frame = pd.DataFrame({"region": ["North", "South"]} | {head: ["<5"] * 2 for head in heads})
    reading = TableReading.from_frame(frame)
    assert reading.cells["stated"].tolist() == ["<5"] * 2 * len(heads)
    beside = TableReading.from_frame(frame.assign(Population=["1950", "1540"]))
    assert {*beside.cells["stated"]} == {"<5"}
    bounds = attack(reading.accepted()).frames["bounds"]
    assert bounds["low"].tolist() == [0] * len(bounds)
    assert bounds["high"].tolist() == [4] * len(bounds)


@pytest.mark.parametrize("head", ["ANNI", "Jahre", "Rok", "年次"])
def test_years_beside_shares_count_nobody(tmp_path, head):
    text = f"Schools by years;;;\n{head};North;South;All\nPrimary;;;\n"
    shares = "".join(f"{y};{y % 7 + 40},{y % 5 + 1};{y % 9 + 30},7;36,{y % 4 + 1}\n"
                     for y in range(2018, 2024))  # fmt: skip
    with pytest.raises(DataError, match="must have a column of counts") as refused:
        read_text(tmp_path, f"{text}{shares}Secondary;;;\n{shares}")
    assert "North: numbers with decimals" in str(refused.value)


@pytest.mark.parametrize("head", ["fall_per10000inv", "cases per100 000", "casi_per_1000_ab"])
def test_numbers_per_so_many_people_count_nobody(tmp_path, head):
    rows = "".join(f"Ward {k},{7 * k % 11 + 3},{k * k % 7 + 1}\n" for k in range(12))
    reading = read_text(tmp_path, f"place,cases,{head}\n{rows}")
    assert {*reading.cells["stated"]} == {str(7 * k % 11 + 3) for k in range(12)}


def test_counts_that_are_all_withheld_are_counts_beside_a_population(tmp_path):
    text = "Cause,Cases,Population\nFalls,x,8238\nBurns,x,3180\nAll,x,7203\n"
    reading = read_text(tmp_path, text)
    assert stated(reading) == {"x"}
    assert "Population (a measure of something else)" in "\n".join(reading.lines)


@pytest.mark.parametrize("mark", ["[c]", "(s)", "Data suppressed", "x"])
def test_a_column_of_marks_alone_is_withheld_counts_where_they_say_so(tmp_path, mark):
    text = f"Sex,All,Heroin,Opioids\nMen,13,{mark},5\nWomen,24,{mark},14\n"
    assert (mark in stated(read_text(tmp_path, text))) == (mark != "x")


@pytest.mark.parametrize(("head", "counts"), [("Pupil number", True), ("School number", False)])
def test_a_number_of_pupils_counts_them_in_many_rows_too(tmp_path, head, counts):
    numbers = [101 + 37 * k % 800 for k in range(24)]
    text = f"School,{head},Teachers\n" + "".join(
        f"School {k},{n},{k % 9 + 3}\n" for k, n in enumerate(numbers)
    )
    assert ({*map(str, numbers)} <= stated(read_text(tmp_path, text))) == counts


def test_rows_with_blank_labels_twice_are_told_how_blanks_are_filled(tmp_path):
    text = "region,town,men\nNorth,A,5\n,B,7\nSouth,A,2\n,B,9\n,B,11\n,B,12\n,B,13\n"
    with pytest.raises(DataError, match="blank=above fills in"):
        read_text(tmp_path, text)
    text = "region,town,men\nNorth,A,5\nNorth,B,7\nNorth,B,9\nNorth,B,11\n"
    with pytest.raises(DataError, match="must have different labels") as fault:
        read_text(tmp_path, text)
    assert "blank=above" not in str(fault.value)


def test_one_number_in_all_rows_counts_where_others_are_multiples_of_it(tmp_path):
    """All counts are 0, 3 or 9: that those of a place are all 3 is no surprise, 7 would be."""
    rows = [f"{a},{y},{3 * (y % 3)},{9 if y % 5 else 3},3" for a in "ABCDEFGH" for y in (20, 21)]
    text = "\n".join(["group,year,Ash,Elm,Oak", *rows]) + "\n"
    assert "Oak" in {*read_text(tmp_path, text).cells["category 1"]}
    sevens = read_text(tmp_path, text.replace(",3\n", ",7\n"))
    assert "Oak" not in {*sevens.cells["category 1"]}


def test_columns_of_one_mark_are_counts_and_one_alone_is_a_label(tmp_path):
    text = "cause,Ore,Steel,Shops\nFalls,n.a.,n.a.,5\nBurns,n.a.,n.a.,6\n"
    assert {*read_text(tmp_path, text).cells["category 1"]} == {"Ore", "Steel", "Shops"}
    assert stated(read_text(tmp_path, text.replace("n.a.,n.a.", "n.a.,x"))) == {"5", "6"}


@pytest.mark.parametrize("first", [0, 1, 11, 40])
@pytest.mark.parametrize("heading", ["ID", "No.", ""])
def test_rows_may_be_numbered_from_any_number_on(first, heading, tmp_path):
    """As in open data of Statistics Netherlands, whose codes are labels then."""
    labels = [(g, a) for g in ("1100", "3000", "4000") for a in (10000, 51300, 53105)]
    rows = [f"{k},{g},{a},{7 * k % 23}" for k, (g, a) in enumerate(labels, first)]
    reading = read_text(tmp_path, "\n".join([f"{heading},Geslacht,Leeftijd,Cases", *rows]) + "\n")
    assert {*reading.cells["geslacht"]} == {"1100", "3000", "4000"}
    assert {*reading.cells["leeftijd"]} == {"10000", "51300", "53105"}


@pytest.mark.parametrize("heading", ["Men", "Deaths", "2019"])
def test_numbers_called_as_counts_are_no_numbers_of_rows(heading, tmp_path):
    rows = [f"Ash {k},{11 + k},{7 * k % 23}" for k in range(12)]
    reading = read_text(tmp_path, "\n".join([f"area,{heading},2020", *rows]) + "\n")
    assert {"11", "22"} <= stated(reading)


@pytest.mark.parametrize("heading", ["Wk", "No", "Row", ""])
def test_numbers_of_rows_that_begin_late_name_rows_where_nothing_else_does(heading, tmp_path):
    rows = [f"{k},{k * k % 37},{k * k % 11}" for k in range(11, 42)]
    reading = read_text(tmp_path, "\n".join([f"{heading},cases,deaths", *rows]) + "\n")
    assert {*reading.cells["category 1"]} == {"cases", "deaths"}
    assert len(reading.cells) == 62


@pytest.mark.parametrize(
    "head",
    ["Befolkningstal", "Einwohner", "Anzahl Einwohner", "Población", "Bevolking", "Befolkning 2021",
     "Väestö", "Ludność", "Liczba ludności", "Habitants", "Počet obyvatel", "Popolazione", "人口"],
)  # fmt: skip
def test_a_population_beside_cases_is_no_count_of_them_in_any_language(head, tmp_path):
    rows = [f"Ward {k},{7 * k % 31 + 20},{5 * k % 9 + 3},{k * k * 97 + 4099}" for k in range(12)]
    text = "\n".join([f"place,tests,cases,{head}", *rows, ""])
    assert len(read_text(tmp_path, text).cells) == 24
    # Alone it is what is counted, and so are people of each sex that make it up.
    assert (
        len(
            read_rows(
                tmp_path, ["place", head], [[r.split(",")[0], r.split(",")[3]] for r in rows]
            ).cells
        )
        == 12
    )
    sexes = [f"Ward {k},{k + 40},{2 * k + 31},{3 * k + 71}" for k in range(12)]
    reading = read_text(tmp_path, "\n".join([f"place,männlich,weiblich,{head}", *sexes, ""]))
    assert len(reading.cells) == 36


@pytest.mark.parametrize(
    "head", ["Maths Avg. Score", "Average", "Avg", "Years of potential life lost"]
)
def test_means_and_years_of_life_count_nobody(head, tmp_path):
    rows = [f"School {k},{7 * k % 31 + 20},{5 * k % 9 + 380}" for k in range(12)]
    reading = read_text(tmp_path, "\n".join([f"school,pupils,{head}", *rows, ""]))
    assert {*stated(reading)} == {row.split(",")[1] for row in rows}
    alone = read_text(tmp_path, "\n".join(["school,Average Annual Count,Rank", *rows, ""]))
    assert {*stated(alone)} == {*stated(reading)}
    several = read_text(tmp_path, "\n".join(["school,pupils,Below average", *rows, ""]))
    assert len(several.cells) == 24


@pytest.mark.parametrize("head", ["New cases", "Value"])
def test_few_numbers_below_0_that_stand_again_are_codes_and_many_are_changes(head, tmp_path):
    rng = np.random.default_rng(4)
    counts = [*map(str, np.unique(rng.integers(5, 900, 90)))]
    for codes, count in (
        (["-1"] * 40 + ["-2"] * 5, True),
        ([str(-k) for k in range(1, 46)], False),
    ):
        texts = [str(t) for t in rng.permutation([*counts, *codes])]
        rows = "".join(f"County {k:03d},{t}\n" for k, t in enumerate(texts))
        if not count:
            with pytest.raises(DataError, match="must have a column of counts"):
                read_text(tmp_path, f"County,{head}\n{rows}")
            continue
        reading = read_text(tmp_path, f"County,{head}\n{rows}")
        assert {"-1", *counts} <= stated(reading)
        assert reading.rules["marks.-1"] == reading.rules["marks.-2"] == "withheld"


@pytest.mark.parametrize(("same", "variables"), [(1, {"name"}), (8, {"namn", "name"})])
def test_names_in_two_languages_are_one_label_but_for_few(same, variables):
    """Of many that are the same in one language each is a place of several."""
    names = [f"pond {'abcdefghijkl'[k // 12]}{'abcdefghijkl'[k % 12]}" for k in range(60)]
    other = [f"damm {x[5:]}" for x in names]
    other[-same:] = other[-2 * same : -same]
    rows = [[*pair, 5 + 3 * k % 17] for k, pair in enumerate(zip(other, names, strict=True))]
    frame = pd.DataFrame(rows, columns=["namn", "name", "count"])
    cells = TableReading.from_frame(frame).cells
    assert {"namn", "name"} & {*cells.columns} == variables


@pytest.mark.parametrize(
    ("head", "labels", "refused"),
    [
        ("Measure", ("Mean income per person", "Median income per household"), True),
        ("Indicador", ("Renta media por persona", "Mediana de la renta"), True),
        ("Unit", ("EUR", "EUR"), True),
        ("Measure", ("Mean income per person", "People"), False),
        ("Unit", ("Persons", "Persons"), False),
        ("Income", ("Low income", "High income"), False),
    ],
)
def test_rows_that_are_all_means_or_money_are_refused(tmp_path, head, labels, refused):
    rows = [f"Ward {k},{label},{year},{9000 + 731 * k % 997 + year}"
            for k in range(6) for label in {*labels} for year in (2019, 2020)]  # fmt: skip
    text = "\n".join([f"Ward,{head},Year,Value", *rows]) + "\n"
    if refused:
        with pytest.raises(DataError, match=head):
            read_text(tmp_path, text)
        text = text.replace("Value", "Number")
        assert stated(read_text(tmp_path, text, **{"columns.Number": "count"}))
    else:
        assert stated(read_text(tmp_path, text))


@pytest.mark.parametrize("codes", [("-4", "-5"), ("-4", "-17")])
def test_codes_below_0_of_one_kind_of_rows_leave_these_rows(tmp_path, codes):
    """What is withheld stands as -4 and -5 in all rows of a program, in several places each."""
    rows = []
    for k in range(60):
        rows += [f"Place {k},Vouchers,{100 + 37 * k % 911},{40 + 13 * k % 97}",
                 f"Place {k},Grants,{codes[k % 2] if k % 5 == 0 else 11 + k},{11 + k}"]  # fmt: skip
    reading = read_text(tmp_path, "\n".join(["place,program,people,households", *rows]) + "\n")
    assert {*reading.cells["program"]} == {"Vouchers", "Grants"}
    assert {f"marks.{code}" for code in codes} <= {*reading.rules}
    changes = [f"Place {k},Change,{k - 30},{k - 28}" for k in range(60)]  # numbers, no codes
    text = "\n".join(["place,program,people,households", *rows[::2], *changes]) + "\n"
    assert not any(name.startswith("marks.-") for name in read_text(tmp_path, text).rules)


@pytest.mark.parametrize(("last", "used"), [(8, False), (7, False), (9, True)])
def test_ranks_are_no_counts(last, used, tmp_path):
    ranks, sizes = [3, 1, 2, 7, 5, 4, 6, last], [52, 97, 60, 15, 31, 44, 20, 15]
    rows = (
        f"Place {n},{rank},{size}" for n, (rank, size) in enumerate(zip(ranks, sizes, strict=True))
    )
    file = tmp_path / "t.csv"
    file.write_text("place,order,people\n" + "\n".join(rows) + "\n", encoding="utf-8")
    reading = TableReading.read(file)
    assert ("order (ranks)" in "\n".join(reading.lines)) is not used


@pytest.mark.parametrize(("order", "used"), [((0, 1, 2, 3), False), ((0, 2, 1, 3), True)])
def test_zeros_between_labels_are_no_counts(order, used, tmp_path):
    rows = [
        ("name", "ward", "kind", "people"),
        ("Ash", "0", "rural", "31"),
        ("Ash", "0", "urban", "17"),
    ]
    rows += [("Elm", "0", "rural", "24"), ("Elm", "0", "urban", "9")]
    text = "\n".join(",".join(row[j] for j in order) for row in rows) + "\n"
    assert ("0" in stated(read_text(tmp_path, text))) is used


@pytest.mark.parametrize(
    ("head", "number", "used"),
    [
        ("variazione_totale", "17", False),
        ("Change in cases", "17", False),
        ("newly ill", "-4514", False),
        ("newly ill", "-9", True),
        ("newly ill", "17", True),
    ],
)
def test_differences_are_no_counts_and_a_number_below_0_is_a_code_if_it_looks_like_one(
    tmp_path, head, number, used
):
    rows = [f"Ward {k},{300 + 37 * k},{number if k == 3 else 20 + 7 * k}" for k in range(9)]
    reading = read_text(tmp_path, "\n".join([f"Ward,cases,{head}", *rows]) + "\n")
    texts = stated(reading)
    assert ("27" in texts) is used
    assert number in texts or not used
    assert "-4514" not in texts


def test_counts_before_columns_that_add_up_are_no_codes(tmp_path):
    """Few different numbers are codes if each stands in several rows: large counts stand in one."""
    rng, size = np.random.default_rng(6), 1500
    thefts = rng.geometric(0.08, (size, 2))
    for counts in (rng.geometric(0.09, size), rng.integers(1, 40, size)):
        rows = [f"Place {k},{n},{a + b},{a},{b}"
                for k, (n, (a, b)) in enumerate(zip(counts, thefts, strict=True))]  # fmt: skip
        text = "\n".join(["place,grievous hurt,theft,auto,other", *rows]) + "\n"
        reading = read_text(tmp_path, text, counts="exact")
        used = "grievous hurt" in {*reading.cells["category 1"]}
        assert used == (counts.max() > 40)


def test_one_row_that_stands_twice_makes_no_column_of_counts_a_label(tmp_path):
    rows = [f"State {k % 5},Town {k},{k % 11 + 3},{2 * k + 7}" for k in range(60)]
    text = "\n".join(["state,town,cases,number", *rows, "State 4,Town 59,9,400"]) + "\n"
    reading = read_text(tmp_path, text)
    assert "cases" not in reading.cells.columns
    assert any("stands in rows 61 and 62" in line for line in reading.lines)


@pytest.mark.parametrize(("note", "counted"), [("(a)", False), ("", False), ("00", True)])
def test_numbers_of_rows_may_have_a_note(note, counted, tmp_path):
    rows = [f"{k}{note * (k == 7)},day {k},{7 * k % 30 + 5}" for k in range(1, 20)]
    reading = read_text(tmp_path, "Fishing week,when,carp\n" + "\n".join(rows) + "\n")
    assert ("1" in stated(reading)) is counted


@pytest.mark.parametrize("shift", [0, 1])
def test_numbers_are_labels_where_no_other_column_is(shift, tmp_path):
    """From where fish went to where, by ponds that have numbers; some are of none."""
    size, counts = 9, np.random.default_rng(3).integers(3, 90, (10, 9))
    places = [*(str(k + 1) for k in range(size)), "Elsewhere"]
    rows = [f"{p},{','.join(map(str, row))}" for p, row in zip(places, counts, strict=True)]
    heads = [f"to pond {k + 1}" for k in range(size)]
    label, name = (",name", ",a") if shift else ("", "")
    text = "\n".join([f"from pond{label},{','.join(heads)}", *rows]).replace("\n1,", f"\n1{name},")
    if shift:  # names of ponds beside their numbers
        lines = text.splitlines()
        text = "\n".join([lines[0], *(x if x.startswith("1,a") else x.replace(",", f",n{k},", 1)
                                      for k, x in enumerate(lines[1:]))])  # fmt: skip
    reading = read_text(tmp_path, text + "\n")
    assert len(reading.stated_cells) == 90
    assert ("from pond" in reading.cells.columns) is not shift


@pytest.mark.parametrize(
    ("head", "counts"),
    [
        ("2019 % carp", False),
        ("2018-19 % carp", False),
        ("Lowest: minimum in five years", False),
        ("maximum", False),
        ("minimum security", True),
        ("the first 10 % of carp", True),
    ],
)
def test_shares_and_least_numbers_count_nobody(head, counts, tmp_path):
    rows = "".join(f"Pond {k},{k * k % 23 + 40},{k * k * 5 % 17 + 3}\n" for k in range(12))
    reading = read_text(tmp_path, f"Place,2019 carp,{head}\n{rows}")
    assert ("3" in stated(reading)) is counts


@pytest.mark.parametrize("first", [11001, 11002])
def test_a_total_in_the_place_of_a_code_is_a_label(first, tmp_path):
    """Where all codes are different ones; the others tell no rows apart."""
    numbers = [first, *range(11002, 11022)]
    counts = [7 * k % 40 + 3 for k in range(21)]
    rows = [f"{n},Pond {k},{c}" for k, (n, c) in enumerate(zip(numbers, counts, strict=True))]
    last = f"Unknown,,5\nTotal,,{sum(counts) + 5}"
    text = "\n".join(["Area,Area name,carp", *rows, last]) + "\n"
    reading = read_text(tmp_path, text)
    different = len({*numbers}) == len(numbers)
    assert ("Unknown" in {*reading.cells.get("area", [])}) is different
    assert stated(reading) == {*map(str, counts), "5", str(sum(counts) + 5)}


@pytest.mark.parametrize(
    ("heads", "used"),
    [
        (("Test Takers", "Total Tests Taken", "Number of Tests passed"), 3),
        (("Floors", "Total Tests Taken", "Number of Tests passed"), 1),
    ],
)
def test_columns_of_records_beside_a_number_of_some_are_counts_too(tmp_path, heads, used):
    """Floors are no records, so that only the column called a number is taken."""
    rng = np.random.default_rng(2)
    rows = [f"School {k},{a},{b},{c}" for k, (a, b, c) in enumerate(rng.integers(6, 900, (30, 3)))]
    reading = read_text(tmp_path, "\n".join([",".join(["School", *heads]), *rows]))
    assert len(reading.stated_cells) == 30 * used


def test_sexes_as_codes_are_labels_beside_a_number_of_persons(tmp_path):
    rows = [f"Town {k},{sex},{37 * k % 101 + 9}" for k in range(30) for sex in (0, 1)]
    reading = read_text(tmp_path, "\n".join(["Town,Female,Number of persons", *rows]))
    assert len(reading.stated_cells) == 60


@pytest.mark.parametrize(("words", "used"), [("Pond {}", True), ("Low", True), ("{}-9%", False)])
def test_words_below_the_name_of_an_index_are_labels(words, used):
    """A digit in a few words does not make them numbers; bands of percentages are no labels."""
    names = [words.format(k) if "%" in words or k == 4 else f"{words[:3]} {'abcdefg'[k]}"
             for k in range(7)]  # fmt: skip
    frame = pd.DataFrame({"index": names, "kept": [*"3518274"], "lost": [*"9152637"]})
    if not used:
        frame.insert(0, "pond", [*"abcdefg"])
    reading = TableReading.from_frame(frame)
    assert reading.cells["stated"].size == 14
    assert ("index" in reading.cells) is used


@pytest.mark.parametrize("counted", [False, True])
def test_codes_that_repeat_as_their_labels_do_are_no_counts(tmp_path, counted):
    """Ten shares of each area stand beside the area's number, and nothing counts."""
    rows = ["no,area,band,day,night"]
    for number, area in enumerate(["Ash", "Elm", "Oak", "Yew"], start=1):
        for band in range(40, 60, 5):
            count = number * band + (band % 3) * (number % 2) if counted else number
            rows.append(f"{count},{area},{band}-{band + 5} dB,{band}.5%,{number}.25%")
    file = tmp_path / "t.csv"
    file.write_text("\n".join(rows) + "\n", encoding="utf-8")
    if counted:
        assert len(TableReading.read(file).stated_cells) == 16
        return
    with pytest.raises(DataError, match="must have a column of counts"):
        TableReading.read(file)
