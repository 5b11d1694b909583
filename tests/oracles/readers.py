"""Random records of each schema, and slow readers that share nothing with the package's."""

import csv
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa

from bayesrisk.tables import Records, Schema

STATES = ["01", "50", "72"]
RACES = ["white", "black", "aian", "asian", "nhopi", "sor"]
# Bit masks in the order of the two-digit codes of race, by the rule in words.
MASKS = [sum(2**i for i in c) for n in range(1, 7) for c in combinations(range(6), n)]


def block_codes(rng, n):
    """Return codes of blocks of three states."""
    digits = rng.integers(0, 10, (n, 13))
    states = rng.choice(STATES, n)
    return [s + "".join(map(str, row)) for s, row in zip(states, digits, strict=True)]


def records(name, columns):
    rows = len(next(iter(columns.values())))
    typed = {
        key: pa.array(values, pa.string())
        if isinstance(values, list)
        else pa.array(np.broadcast_to(values, rows).astype(np.int64))
        for key, values in columns.items()
    }
    return Records(Schema.named(name), pa.table(typed))


def pl94_records(rng, n):
    return records(
        "pl94",
        {
            "block": block_codes(rng, n),
            "hhgq": rng.integers(0, 8, n),
            "votingage": rng.integers(0, 2, n),
            "hispanic": rng.integers(0, 2, n),
            "cenrace": rng.integers(0, 63, n),
        },
    )


def person_records(rng, n, **extra):
    return records(
        "sf1-person",
        {
            "block": block_codes(rng, n),
            "sex": rng.integers(0, 2, n),
            "age": rng.integers(0, 111, n),
            "race": rng.integers(1, 64, n),
            "hisp": rng.integers(0, 2, n),
            **extra,
        },
    )


def unit_records(rng, n):
    return records("pl94-units", {"block": block_codes(rng, n), "h1": rng.integers(0, 2, n)})


def household_records(rng, n):
    """Return units whose household columns are 0 exactly where they are vacant."""
    occupied = rng.random(n) < 0.8
    tops = {
        "tenure": 4, "size": 7, "type": 7, "detailed_type": 12, "under_18": 2, "over_65": 2,
        "hispanic": 2, "hhage": 9, "race": 7,
    }  # fmt: skip
    codes = {name: np.where(occupied, rng.integers(1, top + 1, n), 0) for name, top in tops.items()}
    vacancy = np.where(occupied, 0, rng.integers(1, 8, n))
    return records("household-dhc", {"block": block_codes(rng, n), "vacancy": vacancy, **codes})


def records_1940(rng, households):
    """Return persons of households, each in one place and of one kind of quarters."""
    sizes = rng.integers(1, 6, households)
    owner = np.repeat(np.arange(households), sizes)
    n = owner.size
    digits = rng.integers(0, 10, (households, 11))
    place = ["37" + "".join(map(str, row)) for row in digits]
    age = rng.integers(0, 121, n)
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    return records(
        "census-1940",
        {
            "enumdist": [place[i] for i in owner],
            "hhgq": rng.integers(0, 8, households)[owner],
            "votingage": (age >= 18).astype(int),
            "hispanic": rng.integers(0, 6, n),
            "cenrace": rng.integers(0, 9, n),
            "household": owner.astype(np.int64) + 1,
            "person": np.arange(n) - first[owner] + 1,
            "sex": rng.integers(0, 2, n),
            "age": age,
        },
    )


def same(ours, theirs):
    """Return whether two sets of records have the same columns and values, in order."""
    names = set(theirs.table.column_names)
    return names <= set(ours.table.column_names) and all(
        ours.table.column(n).to_pylist() == theirs.table.column(n).to_pylist() for n in names
    )


def rows_of(path, delimiter=","):
    """Return the rows of a text file as dictionaries, comments left out."""
    with Path(path).open(encoding="utf-8", newline="") as lines:
        kept = [line for line in lines if not line.startswith("#")]
    return list(csv.DictReader(kept, delimiter=delimiter))


def ppmf_person(row):
    """Return block, kind of quarters, voting age, origin and race of a row, code by code."""
    block = row["TABBLKST"] + row["TABBLKCOU"] + row["TABTRACTCE"] + row["TABBLK"]
    race = int(row["CENRACE"]) - 1
    return block, int(row["GQTYPE_PL"]), int(row["VOTING_AGE"]) - 1, int(row["CENHISP"]) - 1, race


def with_decimals(file, columns=("RTYPE", "VOTING_AGE")):
    """Write codes of a file as the microdata of May 2020 have them: 3.0 instead of 3."""
    rows = [line.split(",") for line in file.read_text(encoding="utf-8").splitlines()]
    for place in (rows[0].index(name) for name in columns):
        for row in rows[1:]:
            row[place] += ".0"
    file.write_text("\n".join(map(",".join, rows)) + "\n", encoding="utf-8")
