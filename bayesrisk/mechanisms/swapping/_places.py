"""Where swapped units are: the places of microdata, how far apart, and who moved."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrisk._files.parse import shown
from bayesrisk._types import IntArray
from bayesrisk.exceptions import ArgumentError
from bayesrisk.mechanisms.swapping._units import Units
from bayesrisk.tables import Geography, Microdata


def geography_of(data: Microdata) -> Geography:
    """Return the geography of microdata, which must have places to swap between."""
    records = data.households if data.households is not None else data.persons
    if records is None:
        raise ArgumentError("microdata must hold persons or households")
    geography = records.schema.geography
    if not geography.widths[-1]:
        raise ArgumentError(
            f"geography of schema {records.schema.name!r} must have more than one place, between "
            "which records are swapped, got none; rounding, suppression and noise need no places"
        )
    return geography


def points(places: NDArray[np.str_], data: Microdata) -> NDArray[np.float64]:
    """Return the coordinates of places; without any, their positions in sorted order."""
    if data.blocks is None or "x" not in data.blocks:
        return np.arange(len(places), dtype=float)[:, None]
    known = data.blocks.sort_values("block")
    codes = known["block"].to_numpy(dtype=str)
    at = np.minimum(np.searchsorted(codes, places), len(codes) - 1)
    absent = np.flatnonzero(codes[at] != places)
    if absent.size:
        raise ArgumentError(
            f"blocks must hold the coordinates of every place, "
            f"got none for {shown(places[absent[0]])}"
        )
    return known[["x", "y"]].to_numpy(dtype=float)[at]


def moved(data: Microdata, units: Units, partner: IntArray, unit: str) -> Microdata:
    """Return the microdata with every swapped unit at its partner's place."""
    source = np.where(partner >= 0, partner, np.arange(len(partner)))
    place = units.place[source]
    persons, households = data.persons, data.households
    if unit == "person" and persons is not None:
        changed: dict[str, Any] = {persons.schema.geography.finest: units.places[place]}
        if "household" in persons.columns:
            changed["household"] = persons.table.column("household").take(source)
        return replace(data, persons=persons.replace(**changed))
    if households is not None:
        finest = households.schema.geography.finest
        households = households.replace(**{finest: units.places[place]})
    if persons is not None and units.member is not None:
        finest = persons.schema.geography.finest
        own = persons.geoids
        moves = units.member >= 0
        moves[moves] = partner[units.member[moves]] >= 0
        own[moves] = units.places[place[units.member[moves]]]
        persons = persons.replace(**{finest: own})
    return replace(data, persons=persons, households=households)
