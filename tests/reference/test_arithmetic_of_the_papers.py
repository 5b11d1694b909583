"""What the arithmetic of the smaller papers shows: totals, rates, and counts that disagree.

Nothing here needs the package: printed numbers are compared with printed numbers, as far as their
rounding allows.
"""

from fractions import Fraction
from math import prod

import pytest
from printed import Range, cells, number, rounded, rows

STEED, LIU = "Steed et al.", "Liu et al."


def test_exclusions_of_steed():
    """Section 2 and Appendix D give the same numbers for different things."""
    short = {row["what"]: row["value"] for row in rows(STEED, "Section 2")}
    long = {row["what"]: row["value"] for row in rows(STEED, "Appendix D")}
    unplaced = short["properties without a valid address"]
    assert unplaced == long["blocks with several properties"] == "1,713"
    assert long["properties that could not be placed"] == "3,494"
    both = short["blocks where more households or persons are subsidised than live there"]
    households = long["blocks left out: more households subsidised than live there"]
    people = long["blocks left out: more people subsidised than live there"]
    assert both == households
    assert number(households) + number(people) == 6_877


def test_table_1_of_steed():
    blocks = 10_224
    for release in ("none", "swapping", "das"):
        found = {r["column"]: r["value"] for r in rows(STEED, "Table 1", row=release)}
        assert found["blocks"] == "4,590"
        assert rounded(found["blocks share"]).meets(Range(*[Fraction(459_000, blocks)] * 2))
        accused = number(found["putative"])
        assert rounded(found["putative share"]).meets(Range(*[100 * accused / blocks] * 2))
        if release != "das":  # true accusations over blocks with a violation
            right = {"none": accused, "swapping": accused - 28}[release]
            assert round(100 * right / accused) == number(found["precision"])
            assert round(100 * right / 4590) == number(found["recall"])


def test_recall_of_table_1_of_steed():
    """56 % of 6,703 blocks is 81 to 82.5 % of 4,590, whatever was rounded; 84 is printed."""
    found = {row["column"]: row["value"] for row in rows(STEED, "Table 1", row="das")}
    precision, accused = rounded(found["precision"]), number(found["putative"])
    low, high = (bound * accused / 4590 for bound in precision)
    assert (round(float(low), 1), round(float(high), 1)) == (81.0, 82.5)
    assert not Range(low, high).meets(rounded(found["recall"]))
    # A recall of 84 % would need a precision of 57 or 58 %.
    needed = Range(*(bound * 4590 / accused for bound in rounded(found["recall"])))
    assert round(float(needed.low), 1) == 57.2
    assert not needed.meets(precision)


def test_text_of_steed():
    text = {row["what"]: number(row["value"]) for row in rows(STEED, "Section 3.2")}
    share = 100 * text["blocks with a proved violation"] / text["blocks studied"]
    assert round(float(share), 1) == float(text["the same, share"])
    rate = {row["what"]: number(row["value"]) for row in rows(STEED, "Section 4.2")}
    assert (
        round(
            100 * float(rate["of them in violation"] / rate["synthetic subsidised households"]), 1
        )
        == 3.4
    )
    unique = text["households of them unique in their block"]
    assert (
        unique
        > text["households unique and subsidised"]
        > text["households unique and in violation"]
    )
    assert text["subsidised households in them"] < text["households in them"]


def test_tiers_of_swapping():
    tier = {
        (r["row"], r["column"]): number(r["value"]) for r in rows(STEED, "Section 4.2") if r["row"]
    }
    shares = [tier[str(i), "share"] for i in range(4)]
    assert sum(shares) == 100
    chosen = sum(tier[str(i), "share"] * tier[str(i), "probability"] for i in range(4)) / 100
    assert chosen == Fraction("26.2")
    stated = rows(STEED, "Section 4.2", what="households swapped")[0]
    assert number(stated["value"]) == 10
    assert number(stated["ours"]) == chosen


def test_cells_of_a_size_query():
    cell = {r["column"]: number(r["value"]) for r in rows(STEED, "Appendix F") if r["column"]}
    assert prod(cell[name] for name in ("couple", "generations", "children")) == cell["inner"] == 40
    assert prod(cell[n] for n in ("inner", "sex", "hisp", "tenure", "race")) == cell["all"] == 3360
    text = {r["what"]: number(r["value"]) for r in rows(STEED, "Appendix F")}
    share = text["share of the strategy query"] / cell["all"]
    assert share == text["share of rho for a household size"]


@pytest.mark.parametrize("name", ["Table 2", "Table 3"])
def test_tables_of_liu(name):
    found = cells(LIU, name)
    for (row, column), text in found.items():
        if row == "mean":
            assert number(found["total", column]) / 50 == number(text)
    share = {k: float(number(found["total", k]) / number(found["total", "n"])) for k in ("5", "8")}
    if name == "Table 2":  # "a third", and "over 10 %"
        assert round(share["5"], 2) == 0.34
        assert share["8"] > 0.10
    else:  # "almost 90 %"
        assert round(share["5"], 3) == 0.887


def test_no_singleton_claim_is_likelier_than_one_half():
    """Of n households one agrees with probability n p (1 - p)**(n - 1), highest at p = 1 / n."""
    (printed,) = rows(LIU, "Section 5", row="largest")
    for n in range(2, 60):
        top = n * Fraction(1, n) * (1 - Fraction(1, n)) ** (n - 1)
        assert top <= number(printed["value"]) / 100
        shares = (Fraction(i, 7 * n) for i in range(7 * n + 1))
        assert max(n * p * (1 - p) ** (n - 1) for p in shares) == top


def test_cells_of_1940():
    kinds = {
        r["column"]: number(r["value"]) for r in rows("Kazan and Reiter", "Section 4.1", row="1940")
    }
    assert prod(v for name, v in kinds.items() if name != "cells") == kinds["cells"] == 864


def test_levels_of_similar_rho():
    rho = {r["row"]: number(r["value"]) for r in rows("Kazan and Reiter", "Table 2", column="rho")}
    upper = [rho[level] for level in ("US", "State", "County", "Tract")]
    assert max(upper) - min(upper) <= Fraction("0.001")
    assert min(rho["Block"], rho["Block_Group"]) > Fraction("1.9") * max(upper)


def test_example_of_francis():
    people = {r["column"]: number(r["value"]) for r in rows("Francis", "Section 3") if r["column"]}
    assert people["majority"] + people["second"] == people["block"]
