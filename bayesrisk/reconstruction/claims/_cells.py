"""Cells of a schema that a record can lie in."""

import numpy as np

from bayesrisk._types import IntArray
from bayesrisk.exceptions import ArgumentError
from bayesrisk.tables.household import household_cells
from bayesrisk.tables.schema import Schema

#: Most possible cells that are listed.
MAX_CELLS = 2_000_000
HOUSEHOLD = "household-dhc"
TENURES = ("merged", "cash", "four-way")
_NO_RENT = 4


def possible_cells(schema: Schema, *, structural_rules: bool, tenure: str) -> IntArray:
    """Return the cells that a record can lie in.

    Parameters
    ----------
    schema : Schema
        What the records have.
    structural_rules : bool
        For household schemas, whether only combinations that can exist count; else every
        combination of an occupied unit's codes, and the vacant units.
    tenure : str
        ``"cash"`` leaves out households that pay no rent.

    Returns
    -------
    ndarray of int64
        Schema cells, sorted.

    Raises
    ------
    ArgumentError
        If there are more than two million.
    """
    if schema.name != HOUSEHOLD:
        if schema.size > MAX_CELLS:
            raise ArgumentError(
                f"schema {schema.name!r} must have at most {MAX_CELLS} cells, got {schema.size}; "
                "give the possible ones as cells"
            )
        return np.arange(schema.size, dtype=np.int64)
    cells = household_cells() if structural_rules else _any_household(schema)
    if tenure == "cash":
        cells = cells[schema.indices(cells)["tenure"] != _NO_RENT]
    return cells


def _any_household(schema: Schema) -> IntArray:
    """Return every combination of the codes of occupied units, and the vacant units."""
    homes = np.zeros(1, np.int64)
    for name in schema.names:
        attribute = schema.attribute(name)
        code = np.arange(1, attribute.size) if name != "vacancy" else np.zeros(1, np.int64)
        homes = (homes[:, None] * attribute.size + code).ravel()
    vacant = np.arange(1, schema.attribute("vacancy").size)
    empty = schema.cell_index({**dict.fromkeys(schema.names, 0), "vacancy": vacant})
    return np.sort(np.concatenate([homes, empty]))
