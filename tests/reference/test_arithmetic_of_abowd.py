"""What the arithmetic of Abowd et al. shows: totals, rates, and rows in each other's place.

Nothing here needs the package: printed numbers are compared with printed numbers, as far as their
rounding allows.  Abowd et al. round counts to four significant digits, in thousands.
"""

from fractions import Fraction
from math import prod

import pytest
from printed import Range, cells, number, rounded, rows

ABOWD = "Abowd et al."
CLASSES = ("1-9", "10-49", "50-99", "100-249", "250-499", "500-999", "1000+")
LINKS = ("S6", "S9", "S11", "S12", "S13")
COUNTS = ("COMRCL putative", "COMRCL confirmed", "CEF putative", "CEF confirmed")


def table(name):
    """Cells of a table of Abowd et al., as the ranges of what they may stand for."""
    found = cells(ABOWD, f"Table {name}")
    return {
        key: rounded(text, significant=None if key[1] == "population" and name == "S10" else 4)
        for key, text in found.items()
        if text != "?"
    }


def wrong_sums(name, columns):
    """Columns in which the seven classes do not add up to the row "All"."""
    found = table(name)
    sources = dict.fromkeys(row.rpartition(" ")[0] for row, _ in found)
    wrong = set()
    for source in sources:
        for column in columns:
            parts = [found.get((f"{source} {size}", column)) for size in CLASSES]
            if None not in parts:
                total = sum(parts[1:], parts[0])
                if not total.meets(found[f"{source} All", column]):
                    wrong.add((source, column))
    return wrong


KNOWN = {
    "S10": {(s, c) for s in ("rHDF_b,t", "rHDF_b") for c in ("exact", "binned")},
    "S11": {("MDF", "CEF confirmed")},
}


@pytest.mark.parametrize("name", [*LINKS, "S10"])
def test_classes_add_up(name):
    columns = ("population", "exact", "binned") if name == "S10" else COUNTS
    assert wrong_sums(name, columns) == KNOWN.get(name, set())


@pytest.mark.parametrize("name", [*LINKS, "S8"])
def test_precision_is_confirmed_by_putative(name):
    found = table(name)
    rates = {f"{a} precision": (f"{a} confirmed", f"{a} putative") for a in ("COMRCL", "CEF")}
    assert sum(column in rates for _, column in found) >= 32
    assert quotients(rates, of=found) == OFF.get(name, set())


#: Three rates that their counts do not give, by one in the last digit: table, row and column.
OFF = {
    "S6": {("PRG 500-999", "COMRCL precision")},
    "S7": {("B MDG", "precision")},
    "S10": {("rMDF_b,t All", "exact share")},
}


def test_rates_off_in_their_last_digit():
    counts = {"S6": ("3,748", "15,090"), "S7": ("76,270", "91,080"), "S10": ("58,520", "308,746")}
    for name, places in OFF.items():
        for row, column in places:
            (off,) = rows(ABOWD, f"Table {name}", row=row, column=column)
            part, whole = counts[name]
            assert {part, whole} <= {r["value"] for r in rows(ABOWD, f"Table {name}", row=row)}
            assert off["ours"] == f"{100 * float(number(part) / number(whole)):.1f}"
            assert abs(number(off["ours"]) - number(off["value"])) == Fraction("0.1")


@pytest.mark.parametrize(("whole", "part"), [("S6", "S12"), ("S9", "S13")])
def test_tables_that_are_said_to_agree(whole, part):
    one, other = cells(ABOWD, f"Table {whole}"), cells(ABOWD, f"Table {part}")
    both = one.keys() & other.keys()
    assert len(both) == 3 * 8 * 6
    assert all(one[key] == other[key] for key in both)


def test_overlap_of_s1():
    found = table("S1")
    inside, outside = found["in COMRCL", "in CEF"], found["in COMRCL", "not in CEF"]
    assert (inside + outside).meets(found["in COMRCL", "total"])
    assert (inside + found["not in COMRCL", "in CEF"]).meets(found["total", "in CEF"])


def quotients(wanted, *, of):
    """Rates of a table that are not its counts' quotients."""
    wrong = set()
    for (row, column), printed in of.items():
        part, whole = (of.get((row, name)) for name in wanted.get(column, ("", "")))
        if part and whole and not part.percent_of(whole).meets(printed):
            wrong.add((row, column))
    return wrong


def test_rates_of_s7():
    rates = {
        "putative share": ("putative", "population"),
        "confirmed share": ("confirmed", "population"),
        "precision": ("confirmed", "putative"),
    }
    assert quotients(rates, of=table("S7")) == OFF["S7"]
    # Every row of panel A is a row "All" of Table S12 or S6, but for MDF and its reconstruction.
    s7, s6, s12 = (cells(ABOWD, f"Table {name}") for name in ("S7", "S6", "S12"))
    differing = {
        source
        for source in ("CEF", "HDF", "rHDF_b,t", "rHDF_b", "MDG", "PRG", "MDF", "rMDF_b,t")
        for kind in ("putative", "confirmed", "precision")
        if s7[f"A {source}", kind] != (s6 | s12)[f"{source} All", f"COMRCL {kind}"]
    }
    assert differing == {"MDF", "rMDF_b,t"}


def test_rows_of_s7_are_exchanged():
    """Against Tables S11 to S13, in both panels."""
    s7, s12 = cells(ABOWD, "Table S7"), cells(ABOWD, "Table S12")
    for here, there in (("MDF", "rMDF_b,t"), ("rMDF_b,t", "MDF")):
        for kind in ("confirmed", "precision"):
            assert s7[f"A {here}", kind] == s12[f"{there} All", f"COMRCL {kind}"]
        assert s7[f"A {here}", "confirmed"] == s7[f"B {here}", "confirmed"]
    # Tables S11 to S13 agree: classes add up, and so do the modal and the nonmodal people.  Which
    # of the two namings is right, theirs or that of S7, arithmetic cannot say.
    assert not {s for s, _ in wrong_sums("S12", COUNTS)} & {"MDF", "rMDF_b,t"}
    for source in ("MDF", "rMDF_b,t"):
        whole, modal, other = (
            table(name)[f"{source} All", "COMRCL confirmed"] for name in ("S12", "S13", "S11")
        )
        assert (modal + other).meets(whole)
        assert not (modal + other).meets(table("S7")[f"A {source}", "confirmed"])


@pytest.mark.parametrize("source", ["CEF", "HDF", "rHDF_b,t", "rMDF_b,t", "MDF"])
@pytest.mark.parametrize("size", ["All", *CLASSES])
def test_modal_and_nonmodal_add_up(source, size):
    for kind in ("CEF putative", "CEF confirmed", "COMRCL confirmed"):
        if (source, size, kind) != ("MDF", "All", "CEF confirmed"):
            whole, modal, other = (
                table(name)[f"{source} {size}", kind] for name in ("S12", "S13", "S11")
            )
            assert (modal + other).meets(whole), kind


def test_shares_of_s10():
    rates = {"exact share": ("exact", "population"), "binned share": ("binned", "population")}
    assert quotients(rates, of=table("S10")) == OFF["S10"]
    people = {row["row"]: row["value"] for row in rows(ABOWD, "Table S5", column="population")}
    for (row, column), text in cells(ABOWD, "Table S10").items():
        if column == "population" and not row.endswith("All"):
            assert text == people[row.rpartition(" ")[2]]


def test_rows_of_s10_are_exchanged():
    found = table("S10")
    totals = {("rHDF_b,t", "exact"): 143_800, ("rHDF_b,t", "binned"): 283_600}
    totals |= {("rHDF_b", "exact"): 132_200, ("rHDF_b", "binned"): 276_900}
    other = {"rHDF_b,t": "rHDF_b", "rHDF_b": "rHDF_b,t"}

    def add_up(changed):
        return all(
            sum(
                (found[f"{other[s] if size in changed else s} {size}", column] for size in CLASSES),
                Range(Fraction(0), Fraction(0)),
            ).meets(found[f"{s} All", column])
            for s, column in totals
        )

    for (source, column), value in totals.items():
        assert number(cells(ABOWD, "Table S10")[f"{source} All", column]) == value
    # Of the 128 ways to exchange the two rows within classes, two give all four totals; they
    # differ in blocks of 1-9, where the rows differ by less than the totals' rounding.
    ways = [{c for i, c in enumerate(CLASSES) if way >> i & 1} for way in range(128)]
    both = {"50-99", "500-999"}
    assert [way for way in ways if add_up(way)] == [both, both | {"1-9"}]


def test_a_total_of_s11_is_repeated():
    texts, found = cells(ABOWD, "Table S11"), table("S11")
    for kind in ("confirmed", "precision"):
        assert texts["MDF All", f"CEF {kind}"] == texts["rMDF_b,t All", f"CEF {kind}"]
    right = sum(number(texts[f"MDF {size}", "CEF confirmed"]) for size in CLASSES)
    assert right == 7108
    # By the other tables it is 7,110, to the four digits of 81,670 less 74,560.
    whole, modal = (table(name)["MDF All", "CEF confirmed"] for name in ("S12", "S13"))
    assert (whole - modal).meets(Range(right, right))
    assert not (whole - modal).meets(found["MDF All", "CEF confirmed"])
    assert round(100 * float(right / number(texts["MDF All", "CEF putative"])), 1) == 20.1


def s4():
    found = cells(ABOWD, "Table S4")
    return [
        {column: number(found[str(q), column]) for _, column in found if (str(q), column) in found}
        for q in range(5, 101, 5)
    ]


def test_variability_of_s4():
    """Counts of records are cumulative and count a record twice; intervals hold equal blocks."""
    people, before = Fraction(0), Fraction(0)
    for row in s4():
        people += row["population"]
        assert abs(people - row["cumulative population"]) <= 10  # thousands, each rounded
        assert row["variability"] >= before
        before = row["variability"]
        share = 100 * row["variability"] / 2 / row["cumulative population"]
        assert abs(share - row["cumulative variability"]) <= Fraction("0.05")
    assert row["cumulative population"] == 308_746
    # A twentieth of the people would be 15,437 thousand; the rows of no variability hold 6,4xx,
    # the people of a twentieth of the blocks with no variability.
    blocks, zero = Fraction(6_207_027, 20), cells(ABOWD, "Table S5")
    mean = Fraction(
        sum(number(zero[c, "zero population"]) for c in CLASSES),
        sum(number(zero[c, "zero blocks"]) for c in CLASSES),
    )
    for row in s4()[:13]:
        assert abs(row["population"] / (mean * blocks) - 1) < Fraction("0.01")
    # What may differ among the people of the last seven rows, on average and in the last.
    last, rest = s4()[-1], s4()[13:]
    variable = (last["variability"] - s4()[13]["variability"]) / 2
    others = sum(row["population"] for row in rest[1:])
    assert round(100 - 100 * float(variable / others), 1) == 85.4
    worst = (last["variability"] - s4()[-2]["variability"]) / 2 / last["population"]
    assert round(100 * float(worst), 1) == 28.7


def test_quantiles_of_s4_begin_their_rows():
    """The mean share of a row lies above its quantile and below that of the next row."""
    table = s4()
    for at in range(13, 20):
        added = table[at]["variability"] - table[at - 1]["variability"]
        mean = 100 * added / 2 / table[at]["population"]
        assert mean > table[at]["quantile"]
        if at < 19:
            assert mean < table[at + 1]["quantile"]


@pytest.mark.parametrize(("name", "number_of_cells"), [("S7", 16), ("S10", 16)])
def test_the_register_holds_the_row_that_belongs_there(name, number_of_cells):
    other = {"MDF": "rMDF_b,t", "rHDF_b": "rHDF_b,t"}
    other |= {there: here for here, there in other.items()}
    found, texts = 0, cells(ABOWD, f"Table {name}")
    for row in rows(ABOWD, f"Table {name}", status="contradicts itself"):
        if "row of the other" in row["note"]:
            words = (other.get(word, word) for word in row["row"].split())
            assert row["ours"] == texts[" ".join(words), row["column"]]
            found += 1
    assert found == number_of_cells


def test_blocks_and_people_of_s5():
    found = cells(ABOWD, "Table S5")
    assert sum(number(found[size, "blocks"]) for size in CLASSES) == 6_207_027
    people = sum(number(found[size, "population"]) for size in CLASSES)
    assert abs(people - Fraction(308_745_538, 1000)) <= Fraction(7, 2)


def test_shares_of_s5():
    found = {key: rounded(text) for key, text in cells(ABOWD, "Table S5").items()}
    rates = {
        "zero blocks share": ("zero blocks", "blocks"),
        "zero population share": ("zero population", "population"),
    }
    assert quotients(rates, of=found) == set()


def test_people_without_variability():
    """Table S5 has 69.4 % of the blocks and 88.6 million people; the text says 70 % and 97."""
    found = cells(ABOWD, "Table S5")
    blocks = sum(number(found[size, "zero blocks"]) for size in CLASSES)
    people = sum(number(found[size, "zero population"]) for size in CLASSES)
    assert blocks == 4_308_382
    assert round(100 * float(blocks / 6_207_027), 1) == 69.4
    assert round(float(people) / 1000, 1) == 88.6
    # 97 million is the first row of Table S4 with variability; 69.4 % of its blocks give 88.6.
    low, high = s4()[12], s4()[13]
    assert high["variability"] > low["variability"] == 0
    assert round(float(high["cumulative population"]) / 1000) == 97
    extra = (blocks - Fraction(65, 100) * 6_207_027) / blocks * people
    assert abs(low["cumulative population"] + extra - people) < 50


def test_text_of_abowd_adds_up():
    text = {row["what"]: row["value"] for row in rows(ABOWD, "Materials")}
    factors = [number(row["value"]) for row in rows(ABOWD, "Materials", row="factor")]
    assert prod(factors) == number(text["record types of the feature space"]) == 161_109_592_812
    assert round(161_109_592_812 / 1e9) == number(text["record types, rounded"])
    share = rounded("276.0").percent_of(rounded("308.745538"))
    assert share.meets(rounded(text["data-defined people, share of all records"]))
    rest = number("100") - number(text["data-defined people, share of all records"])
    assert rest == number(text["people that are not data-defined, share"])
    matched = rounded(text["commercial records that match the edited file"], significant=4)
    known = rounded(text["records of the commercial database"], significant=4)
    assert matched.percent_of(known).meets(rounded(text["share of commercial records that match"]))
