"""Readers against pandas doing the same: fixed width with read_fwf, commas with read_csv."""

import sys
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from agency_forms import write_ipums_1940
from targets import as_long, faster

from bayesrisk.census import (
    iter_ipums_1940,
    iter_ppmf,
    iter_record_form,
    write_ppmf,
    write_record_form,
)

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
from oracles import readers as oracle

ROWS, FEW = 200_000, 20_000
HOUSE = {"serial": (7, 15), "state": (53, 55), "county": (55, 59), "gq": (93, 94),
         "gqtype": (94, 95), "enumdist": (124, 128), "supdist": (128, 131)}  # fmt: skip
PERSON = {"serial": (7, 15), "age": (73, 76), "race": (84, 85), "hispan": (88, 89)}


def cells(pieces):
    return np.concatenate([piece.cells() for piece in pieces])


def naive_1940(file):
    """Return the cells of the persons of a file of 1940, with read_fwf, lines H joined to P."""
    places = {"kind": (0, 1), **{f"h_{k}": v for k, v in HOUSE.items()},
              **{f"p_{k}": v for k, v in PERSON.items()}}  # fmt: skip
    lines = pd.read_fwf(file, colspecs=list(places.values()), names=list(places), dtype=str)
    houses = lines[lines["kind"] == "H"].set_index("h_serial")
    houses = houses[["h_gq", "h_gqtype"]].rename(columns=lambda name: f"{name}_of")
    persons = lines[lines["kind"] == "P"].join(houses, on="p_serial")
    kinds = {"0": 0, "2": 1, "3": 2, "4": 3, "6": 4, "7": 5, "8": 6, "9": 7}
    quarters = persons["h_gqtype_of"].map(kinds)
    quarters = quarters.mask(
        (persons["h_gqtype_of"] == "9") & persons["h_gq_of"].isin(["1", "2", "5"]), 0
    )
    adult = (persons["p_age"].astype(int) >= 18).astype(int)
    origin = persons["p_hispan"].astype(int).clip(upper=5)
    race = persons["p_race"].astype(int) - 1
    return (((quarters * 2 + adult) * 6 + origin) * 9 + race).to_numpy()


def naive_ppmf(file):
    frame = pd.read_csv(file, dtype=str)
    names = ("TABBLKST", "TABBLKCOU", "TABTRACTCE", "TABBLK")
    frame["block"] = frame[names[0]] + frame[names[1]] + frame[names[2]] + frame[names[3]]
    codes = [frame[n].astype(int) for n in ("GQTYPE_PL", "VOTING_AGE", "CENHISP", "CENRACE")]
    return (((codes[0] * 2 + codes[1] - 1) * 2 + codes[2] - 1) * 63 + codes[3] - 1).to_numpy()


def naive_records(file):
    frame = pd.read_csv(file, dtype={"geoid_block": str})
    race = sum(frame[name] * 2**place for place, name in enumerate(oracle.RACES))
    cell = ((frame["sex"] * 111 + frame["age"]) * 63 + race - 1) * 2 + frame["hisp"]
    return cell.to_numpy()


def files(folder, form, rows):
    rng = np.random.default_rng(1)
    file = folder / f"{form}-{rows}.{'dat' if form == 'ipums' else 'csv'}"
    if form == "ipums":
        people = oracle.records_1940(rng, rows // 3)
        write_ipums_1940(people, file)
    elif form == "ppmf":
        people = oracle.pl94_records(rng, rows)
        write_ppmf(people, file, vintage="2010-demonstration")
    else:
        people = oracle.person_records(rng, rows)
        write_record_form(people, file, dialect="schema")
    return file, len(people)


@pytest.mark.parametrize(
    ("form", "named", "read", "naive", "aim"),
    [
        ("ipums", "the census of 1940", iter_ipums_1940, naive_1940, faster(10)),
        ("ppmf", "privacy-protected microdata", iter_ppmf, naive_ppmf, faster(1)),
        (
            "records",
            "records of the archive",
            partial(iter_record_form, dialect="schema"),
            naive_records,
            as_long(1),
        ),
    ],
    ids=["ipums", "ppmf", "records"],
)
def test_readers(form, named, read, naive, aim, compare, tmp_path):
    big, rows = files(tmp_path, form, ROWS)
    small, few = files(tmp_path, form, FEW)
    assert np.array_equal(cells(read(small)), naive(small))
    compare(
        lambda: cells(read(big)),
        lambda: naive(small),
        aims={f"reading {named}, beside pandas": aim},
        ours_units=rows,
        twin_units=few,
        rounds=3,
    )
