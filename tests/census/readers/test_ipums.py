"""The 1940 Census: each form there and back, lines by hand, and what must not pass."""

import numpy as np
import pytest
from agency_forms import write_ipums_1940
from hypothesis import given, settings, strategies as st
from oracles import readers as oracle

from bayesrisk import ArgumentError, DataError
from bayesrisk.census import iter_ipums_1940, read_ipums_1940

DDI = """<?xml version="1.0" encoding="UTF-8"?>
<codeBook xmlns="ddi:codebook:2_5"><fileDscr><fileTxt><fileStrc type="{kind}"/></fileTxt></fileDscr>
<dataDscr>{variables}</dataDscr></codeBook>
"""
BACKWARDS = '<var name="AGE"><location StartPos="5" EndPos="3"/></var>'


@settings(max_examples=6)
@given(seed=st.integers(0, 2**32), n=st.integers(1, 12), chunk=st.integers(1, 30))
def test_there_and_back(seed, n, chunk, tmp_path_factory):
    folder = tmp_path_factory.mktemp("ipums")
    people = oracle.records_1940(np.random.default_rng(seed), n)
    write_ipums_1940(people, folder / "EXT1940USCB.dat")
    write_ipums_1940(people, folder / "usa.csv")
    write_ipums_1940(people, folder / "usa.dat", ddi=folder / "usa.xml")
    for file, ddi in (("EXT1940USCB.dat", None), ("usa.csv", None), ("usa.dat", "usa.xml")):
        book = None if ddi is None else folder / ddi
        assert oracle.same(read_ipums_1940(folder / file, ddi=book), people)
        pieces = list(iter_ipums_1940(folder / file, ddi=book, chunk=chunk))
        assert sum(len(piece) for piece in pieces) == len(people)


def household(serial, persons, *, gq=1, gqtype=0):
    """Return a line H by the positions of its documentation, from 0."""
    line = [" "] * 140
    for start, text in (
        (0, "H"), (7, f"{serial:08d}"), (15, f"{persons:02d}"), (53, "37"), (55, "0550"),
        (93, str(gq)), (94, str(gqtype)), (124, "0021"), (128, "028"),
    ):  # fmt: skip
        line[start : start + len(text)] = list(text)
    return "".join(line)


def person(serial, number, *, sex=1, age="030", race=1, hispan=0):
    line = [" "] * 140
    for start, text in (
        (0, "P"), (7, f"{serial:08d}"), (15, f"{number:04d}"), (72, str(sex)), (73, age),
        (84, str(race)), (88, str(hispan)),
    ):  # fmt: skip
        line[start : start + len(text)] = list(text)
    return "".join(line)


def write(file, *lines):
    file.write_text("".join(line + "\n" for line in lines))
    return file


def test_lines_by_hand(tmp_path):
    file = write(
        tmp_path / "a.dat", household(7, 2), person(7, 1, race=2, hispan=9),
        person(7, 2, sex=2, age=" 17"), household(8, 0), household(9, 1, gq=3, gqtype=9),
        person(9, 1), household(10, 1, gq=2, gqtype=9), person(10, 1),
    )  # fmt: skip
    first, second, third, fourth = read_ipums_1940(file).table.to_pylist()
    assert first == {
        "enumdist": "3705500280021", "hhgq": 0, "votingage": 1, "hispanic": 5, "cenrace": 1,
        "household": 7, "person": 1, "sex": 0, "age": 30,
    }  # fmt: skip
    assert (second["votingage"], second["age"], second["sex"]) == (0, 17, 1)
    # A quarter of type "other and unknown" is a household where GQ says so.
    assert (third["hhgq"], fourth["hhgq"]) == (7, 0)


def test_kinds_of_quarters(tmp_path):
    kinds = (0, 2, 3, 4, 6, 7, 8)
    lines = [(household(i, 1, gq=4, gqtype=kind), person(i, 1)) for i, kind in enumerate(kinds, 1)]
    file = write(tmp_path / "a.dat", *(line for pair in lines for line in pair))
    assert read_ipums_1940(file).codes("hhgq").tolist() == list(range(7))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([person(7, 1)], "line 1, column 'SERIAL': must be after the line of its household"),
        ([household(7, 1), person(8, 1)], "line 2, column 'SERIAL': must be that of its household"),
        ([household(7, 2), person(7, 1)], "household 7, column 'NUMPREC': .*2 persons, got 1"),
        ([household(7, 1), person(7, 1)[:80]], "line 2: must have at least 85 characters, got 80"),
        ([household(7, 1), "X"], "line 2, column 'RECTYPE': must be H or P, got 'X'"),
        ([household(7, 1), person(7, 1, sex=3)], r"line 2, column 'SEX': .*\[1, 2\], got '3'"),
        ([household(7, 1), person(7, 1, age="1 2")], "line 2, column 'AGE': .*got '1 2'"),
        ([household(7, 1), person(7, 1, age="   ")], "line 2, column 'AGE': .*got '   '"),
        ([household(7, 1), person(7, 1, hispan=5)], "line 2, column 'HISPAN': must be 0 to 4 or 9"),
        ([household(7, 0, gqtype=5)], "line 1, column 'GQTYPE': must be 0, 2 to 4 or 6 to 9"),
        ([household(7, 0).replace("370550", "990550")], "line 1, column 'STATEFIP': .*'99'"),
        (
            [household(7, 0).replace("370550", "37x550")],
            "line 1, column 'COUNTY': must be 4 digits",
        ),
        ([], "at least one line"),
    ],
)
def test_bad_lines(lines, message, tmp_path):
    with pytest.raises(DataError, match=message):
        list(iter_ipums_1940(write(tmp_path / "a.dat", *lines), chunk=1))


def test_line_numbers_count_from_the_top_of_the_file(tmp_path):
    lines = [line for i in range(1, 50) for line in (household(i, 1), person(i, 1))]
    file = write(tmp_path / "a.dat", *lines, household(50, 1), person(50, 1, race=0))
    with pytest.raises(DataError, match="line 100, column 'RACE'"):
        list(iter_ipums_1940(file, chunk=3))


def extract(tmp_path, **changes):
    people = oracle.records_1940(np.random.default_rng(1), 2)
    write_ipums_1940(people, tmp_path / "usa.csv")
    lines = [line.split(",") for line in (tmp_path / "usa.csv").read_text().splitlines()]
    for name, value in changes.items():
        lines[1][lines[0].index(name)] = value
    (tmp_path / "new.csv").write_text("".join(",".join(line) + "\n" for line in lines))
    return tmp_path / "new.csv"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"YEAR": "1930"}, "row 1, column 'YEAR': .*1940, 1940.*1930"),
        ({"HISPAN": "7"}, "row 1, column 'HISPAN': must be 0 to 4 or 9"),
        ({"STATEFIP": "99"}, "row 1, column 'STATEFIP': must be a state"),
        ({"AGE": ""}, "row 1, column 'AGE'"),
    ],
)
def test_bad_extracts(changes, message, tmp_path):
    with pytest.raises(DataError, match=message):
        read_ipums_1940(extract(tmp_path, **changes))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('<!DOCTYPE a [<!ENTITY b SYSTEM "file:///x">]><codeBook>&b;</codeBook>', "entity"),
        ("<codeBook>", "cannot be read"),
        ("<other/>", "must be a DDI codebook, got 'other'"),
        (DDI.format(kind="relational", variables=""), "rectangular or .*, got 'relational'"),
        (DDI.format(kind="rectangular", variables=""), "must describe variables, got none"),
        (DDI.format(kind="rectangular", variables='<var name="AGE"/>'), "'AGE': must have a name"),
        (DDI.format(kind="rectangular", variables=BACKWARDS), "'AGE': must be in a line"),
    ],
)
def test_bad_codebooks(text, message, tmp_path):
    (tmp_path / "usa.xml").write_text(text, encoding="utf-8")
    (tmp_path / "usa.dat").write_text("x\n")
    with pytest.raises(DataError, match=message):
        read_ipums_1940(tmp_path / "usa.dat", ddi=tmp_path / "usa.xml")


def test_extracts_that_are_not_whole(tmp_path):
    file = extract(tmp_path)
    with pytest.raises(ArgumentError, match="ddi must not be given"):
        list(iter_ipums_1940(file, ddi=tmp_path / "a.xml"))
    file.write_text(file.read_text().replace("SUPDIST", "OTHER"))
    with pytest.raises(DataError, match="must have a variable SUPDIST; has YEAR, SERIAL"):
        read_ipums_1940(file)
