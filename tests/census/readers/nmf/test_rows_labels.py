"""Cells in words: each label against the codes of the schema of the same histogram."""

import numpy as np
import pytest

import bayesrisk as br
from bayesrisk.census.readers.nmf.rows import UNIVERSES
from bayesrisk.tables.records import CENRACE_OF_MASK

PERSONS = UNIVERSES["pl94-person"]
RACES = ("White", "Black", "American Indian", "Asian", "Pacific Islander", "some other race")


def test_each_cell_says_its_codes():
    schema = br.Schema.named("pl94")
    labels = br.census.query_cells(PERSONS, "detailed")
    assert len(set(labels)) == len(labels) == schema.size == 2016
    codes = schema.codes(np.arange(schema.size))
    for cell in range(0, 2016, 7):
        age, origin, race, place = labels[cell].split(", ")
        assert age == ("under 18", "18 or more")[codes["votingage"][cell]]
        assert origin == ("not Hispanic", "Hispanic")[codes["hispanic"][cell]]
        assert (place == "in a household") == (codes["hhgq"][cell] == 0)
        named = [name in race.removesuffix(" alone").split(" and ") for name in RACES]
        mask = sum(1 << bit for bit, there in enumerate(named) if there)
        assert CENRACE_OF_MASK[mask] == codes["cenrace"][cell]
        assert race.endswith(" alone") == (sum(named) == 1)


def test_other_queries_and_totals():
    assert br.census.query_cells(PERSONS, "total") == ["all"]
    assert br.census.query_cells(PERSONS, "votingage") == ["under 18", "18 or more"]
    inner = br.census.query_cells(PERSONS, "hhinstlevels")
    assert [label.count(" or ") for label in inner] == [0, 3, 2]
    assert br.census.query_cells(UNIVERSES["pl94-unit"], "detailed") == ["vacant", "occupied"]
    with pytest.raises(br.ArgumentError, match="query must be of known recodes"):
        br.census.query_cells(PERSONS, "weather")
