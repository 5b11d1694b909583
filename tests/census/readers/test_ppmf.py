"""Privacy-protected microdata: every vintage there and back, and what must not pass."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from oracles import readers as oracle

from bayesrisk import ArgumentError, DataError
from bayesrisk.census import (
    iter_ppmf,
    iter_ppmf_units,
    read_ppmf,
    read_ppmf_units,
    write_ppmf,
    write_ppmf_units,
)
from bayesrisk.exceptions import OutputError

GOLDEN = """\
VINTAGE,TABBLKST,TABBLKCOU,TABTRACT,TABBLKGRP,TABBLK,RTYPE,GQTYPE_PL,VOTING_AGE,CENHISP,CENRACE
2021-06-08,01,001,020100,1,1000,3,0,2,1,01
2021-06-08,01,001,020100,1,1000,5,5,1,2,07
2021-06-08,72,153,750602,2,2011,3,0,1,2,63
"""
PERSONS = {
    "2010-demonstration": oracle.pl94_records,
    "2020-05-27": oracle.pl94_records,
    "2020-05-27-ages": lambda rng, n: oracle.person_records(rng, n, gq=rng.integers(0, 8, n)),
    "mdf-pl94": oracle.pl94_records,
    "mdf-dhc": lambda rng, n: oracle.person_records(rng, n, gq=rng.integers(0, 8, n)),
    "2020": lambda rng, n: oracle.person_records(rng, n, gq=rng.integers(0, 8, n)),
}
UNITS = {
    "2010-demonstration": oracle.unit_records,
    "mdf-pl94": oracle.unit_records,
    "mdf-dhc": oracle.household_records,
    "2020": oracle.household_records,
}


@pytest.mark.parametrize("vintage", PERSONS)
@settings(max_examples=6)
@given(seed=st.integers(0, 2**32), n=st.integers(0, 40), chunk=st.integers(1, 50))
def test_persons_there_and_back(vintage, seed, n, chunk, tmp_path_factory):
    folder = tmp_path_factory.mktemp("ppmf")
    people = PERSONS[vintage](np.random.default_rng(seed), n)
    write_ppmf(people, folder / "p.csv", vintage=vintage)
    assert oracle.same(read_ppmf(folder / "p.csv"), people)
    pieces = list(iter_ppmf(folder / "p.csv", chunk=chunk))
    assert all(len(piece) <= chunk for piece in pieces)
    assert sum(len(piece) for piece in pieces) == n
    if vintage in ("2010-demonstration", "mdf-pl94"):
        rows = oracle.rows_of(folder / "p.csv", "|" if vintage == "mdf-pl94" else ",")
        names = ["block", "hhgq", "votingage", "hispanic", "cenrace"]
        fast = read_ppmf(folder / "p.csv").table.select(names).to_pylist()
        assert [tuple(row.values()) for row in fast] == [oracle.ppmf_person(r) for r in rows]


@pytest.mark.parametrize("vintage", UNITS)
@settings(max_examples=6)
@given(seed=st.integers(0, 2**32), n=st.integers(0, 40), chunk=st.integers(1, 50))
def test_units_there_and_back(vintage, seed, n, chunk, tmp_path_factory):
    folder = tmp_path_factory.mktemp("units")
    units = UNITS[vintage](np.random.default_rng(seed), n)
    write_ppmf_units(units, folder / "u.csv", vintage=vintage)
    assert oracle.same(read_ppmf_units(folder / "u.csv"), units)
    assert sum(len(piece) for piece in iter_ppmf_units(folder / "u.csv", chunk=chunk)) == n


def test_a_file_by_hand(tmp_path):
    file = tmp_path / "p.csv"
    file.write_text(GOLDEN)
    assert read_ppmf(file).table.to_pylist() == [
        {"block": "010010201001000", "hhgq": 0, "votingage": 1, "hispanic": 0, "cenrace": 0},
        {"block": "010010201001000", "hhgq": 5, "votingage": 0, "hispanic": 1, "cenrace": 6},
        {"block": "721537506022011", "hhgq": 0, "votingage": 0, "hispanic": 1, "cenrace": 62},
    ]


def test_columns_of_the_published_files(tmp_path):
    rng = np.random.default_rng(1)
    for vintage, columns in (("2010-demonstration", 11), ("mdf-pl94", 13), ("mdf-dhc", 16)):
        write_ppmf(PERSONS[vintage](rng, 2), tmp_path / f"{vintage}.csv", vintage=vintage)
        header = (tmp_path / f"{vintage}.csv").read_text().splitlines()
        delimiter = "," if vintage[0] == "2" else "|"
        assert len(header[0 if delimiter == "," else 1].split(delimiter)) == columns
    write_ppmf(PERSONS["2020"](rng, 2), tmp_path / "2020.csv", vintage="2020")
    header = (tmp_path / "2020.csv").read_text().splitlines()[0].split(",")
    assert (len(header), header[0], header[-1]) == (78, "EPNUM", "ZCTA5CE")
    for vintage, columns in (("2010-demonstration", 8), ("mdf-pl94", 9), ("mdf-dhc", 27)):
        write_ppmf_units(UNITS[vintage](rng, 2), tmp_path / f"u{vintage}.csv", vintage=vintage)
        lines = (tmp_path / f"u{vintage}.csv").read_text().splitlines()
        line = lines[0 if vintage[0] == "2" else 1]
        assert len(line.replace("|", ",").split(",")) == columns


def test_codes_of_race_are_those_of_the_specification(tmp_path):
    people = oracle.person_records(np.random.default_rng(5), 300, gq=0)
    write_ppmf(people, tmp_path / "p.csv", vintage="2020")
    for row, race in zip(
        oracle.rows_of(tmp_path / "p.csv"), people.codes("race").tolist(), strict=True
    ):
        assert oracle.MASKS[int(row["CENRACE"]) - 1] == race
        assert int(row["NUMRACE"]) == bin(race).count("1")


def test_ages_over_110_are_110(tmp_path):
    people = oracle.person_records(np.random.default_rng(5), 3, gq=0).replace(age=[110, 110, 4])
    write_ppmf(people, tmp_path / "p.csv", vintage="2020")
    text = (tmp_path / "p.csv").read_text().replace(",110,", ",115,", 1)
    (tmp_path / "old.csv").write_text(text)
    assert read_ppmf(tmp_path / "old.csv").codes("age").tolist() == [110, 110, 4]


def test_group_quarters_are_no_housing_units(tmp_path):
    write_ppmf_units(
        oracle.unit_records(np.random.default_rng(1), 2).replace(h1=[1, 0]),
        tmp_path / "u.csv",
        vintage="2010-demonstration",
    )
    lines = (tmp_path / "u.csv").read_text().splitlines()
    lines.insert(2, lines[1][:-3] + "4,0")
    (tmp_path / "gq.csv").write_text("\n".join(lines) + "\n")
    assert read_ppmf_units(tmp_path / "gq.csv").codes("h1").tolist() == [1, 0]


BAD = [
    (("3,0,2,1,01", "3,0,2,1,64"), "row 1, column 'CENRACE': .*63.*64"),
    (("3,0,2,1,01", "3,0,2,1,-1"), "row 1, column 'CENRACE': .*-1"),
    (("3,0,2,1,01", "3,0,2,1"), "row 1: must have 11 columns, got 10"),
    (("3,0,2,1,01", "4,0,2,1,01"), "row 1, column 'RTYPE': .*3, 5"),
    (("3,0,2,1,01", "5,0,2,1,01"), "row 1, column 'GQTYPE_PL': .*RTYPE"),
    (("1,1000,5", "2,1000,5"), "row 2, column 'TABBLKGRP': .*first digit"),
    (("72,153", "03,153"), "row 3, column 'TABBLKST': .*state"),
    (("750602", "7506a2"), "row 3, column 'TABTRACT': .*6 digits"),
    (("CENRACE", "RACE"), "known vintage.*2010-demonstration.*mdf-pl94.*2020"),
    (("CENHISP,CENRACE", "CENRACE,CENRACE"), "'CENRACE': must stand in the header once"),
    ((",63\n", ",63"), "last line must end in a newline"),
]


@pytest.mark.parametrize(("change", "message"), BAD)
def test_bad_files_are_refused(change, message, tmp_path):
    file = tmp_path / "bad.csv"
    assert change[0] in GOLDEN
    file.write_text(GOLDEN.replace(*change, 1))
    with pytest.raises(DataError, match=message) as caught:
        list(iter_ppmf(file, chunk=1))
    assert str(file) in str(caught.value)


def test_a_block_in_the_wrong_state(tmp_path):
    file = tmp_path / "2020_ppmf_person_VT.csv"
    people = oracle.person_records(np.random.default_rng(1), 3, gq=0)
    people = people.replace(block=["500010001001000", "500010001001001", "010010001001000"])
    write_ppmf(people, file, vintage="2020")
    with pytest.raises(DataError, match="row 3, column 'TABBLKST': must be in state 50, got '01'"):
        read_ppmf(file)
    assert len(read_ppmf(file.rename(tmp_path / "p.csv"))) == 3
    with pytest.raises(DataError, match="state 01"):
        read_ppmf(tmp_path / "p.csv", state="al")
    with pytest.raises(ArgumentError, match=r"state must be .* got '99'"):
        read_ppmf(tmp_path / "p.csv", state="99")


def test_occupied_units_without_household(tmp_path):
    units = oracle.household_records(np.random.default_rng(2), 30)
    write_ppmf_units(units, tmp_path / "u.csv", vintage="2020")
    row = int(np.flatnonzero(units.codes("vacancy") == 0)[0])
    lines = (tmp_path / "u.csv").read_text().splitlines()
    fields = lines[row + 1].split(",")
    fields[lines[0].split(",").index("THHRACE")] = "0"
    lines[row + 1] = ",".join(fields)
    (tmp_path / "bad.csv").write_text("\n".join(lines) + "\n")
    with pytest.raises(DataError, match=f"row {row + 1}, column 'THHRACE'"):
        read_ppmf_units(tmp_path / "bad.csv")


def test_wrong_writing(tmp_path):
    people = oracle.person_records(np.random.default_rng(1), 3)
    with pytest.raises(DataError, match="column 'gq'"):
        write_ppmf(people, tmp_path / "p.csv", vintage="2020")
    with pytest.raises(ArgumentError, match="schema 'pl94', got 'sf1-person'"):
        write_ppmf(people, tmp_path / "p.csv", vintage="2010-demonstration")
    with pytest.raises(ArgumentError, match="records must be a Records, got 3"):
        write_ppmf([3], tmp_path / "p.csv", vintage="2020")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "p.csv").write_text("mine")
    with pytest.raises(OutputError, match="exists already"):
        write_ppmf(people, tmp_path / "p.csv", vintage="2020")
    assert (tmp_path / "p.csv").read_text() == "mine"
    with pytest.raises(ArgumentError, match="chunk must be"):
        list(iter_ppmf(tmp_path / "p.csv", chunk=0))


EARLY = """\
TABBLKST,TABBLKCOU,TABTRACTCE,TABBLKGRPCE,TABBLK,RTYPE,GQTYPE_PL,VOTING_AGE,CENHISP,CENRACE
01,001,020100,1,1000,3.0,0.0,2.0,1.0,1.0
01,001,020100,1,1000,5,5.0,1.0,2.0,7.0
72,153,750602,2,2011,3.0,0.0,1.0,2,63.00
"""


def test_files_of_may_2020(tmp_path):
    """Without VINTAGE, and codes written as 3.0: the persons of the file of 2021."""
    (tmp_path / "early.csv").write_text(EARLY)
    (tmp_path / "later.csv").write_text(GOLDEN)
    assert read_ppmf(tmp_path / "early.csv").table.equals(read_ppmf(tmp_path / "later.csv").table)
    pieces = list(iter_ppmf(tmp_path / "early.csv", chunk=1))
    assert [len(piece) for piece in pieces] == [1, 1, 1]
    with_number = EARLY.replace("TABBLK,RTYPE", "TABBLK,EPNUM,RTYPE").replace("000,", "000,1,")
    (tmp_path / "number.csv").write_text(with_number.replace("2011,", "2011,2,"))
    assert read_ppmf(tmp_path / "number.csv").table.equals(read_ppmf(tmp_path / "early.csv").table)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("3.0,0.0", "3.5,0.0", "row 1, column 'RTYPE': must be a whole number in .3, 5., got '3.5"),
        ("63.00", "64.0", "row 3, column 'CENRACE': must be a whole number in .1, 63., got '64'"),
    ],
)
def test_bad_files_of_may_2020(old, new, message, tmp_path):
    assert old in EARLY
    (tmp_path / "p.csv").write_text(EARLY.replace(old, new, 1))
    with pytest.raises(DataError, match=message):
        read_ppmf(tmp_path / "p.csv")


@pytest.mark.parametrize("vintage", PERSONS)
def test_other_delimiters_and_ends_of_lines(vintage, tmp_path):
    """Between commas or bars, with a delimiter at the end, and empty lines after the last."""
    file = tmp_path / "p.csv"
    write_ppmf(PERSONS[vintage](np.random.default_rng(1), 9), file, vintage=vintage)
    text, straight = file.read_text(), read_ppmf(file)
    own, other = ("|", ",") if vintage.startswith("mdf") else (",", "|")
    lines = text.splitlines()
    trailing = "".join(f"{x}\n" if x.startswith("#") else f"{x}{own}\n" for x in lines)
    for changed in (text.replace(own, other), trailing, text + "\n\n"):
        file.write_text(changed)
        assert read_ppmf(file).table == straight.table
    file.write_text(trailing.replace(f"{own}\n", f"{own}7\n").replace(f"{own}7\n", f"{own}\n", 1))
    with pytest.raises(DataError, match=r"row 1, column 'column \d+, without a name': must be emp"):
        read_ppmf(file)
