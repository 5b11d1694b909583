"""Cells of the queries of noisy measurement files, in words."""

from collections.abc import Mapping, Sequence
from itertools import combinations, product

from bayesrisk.census.readers.nmf.rows import Universe, axis_answers
from bayesrisk.exceptions import ArgumentError

_RACES = ("White", "Black", "American Indian", "Asian", "Pacific Islander", "some other race")
_QUARTERS = (
    *("a household", "a correctional facility", "a juvenile facility", "a nursing facility"),
    *("another institution", "a college", "a military quarter", "another group quarter"),
)
#: What a value of an axis says of a person or of a unit, in the order of values.
_VALUES: Mapping[str, Sequence[str]] = {
    "hhgq": [f"in {one}" for one in _QUARTERS],
    "votingage": ("under 18", "18 or more"),
    "hispanic": ("not Hispanic", "Hispanic"),
    "cenrace": [
        f"{names[0]} alone" if len(names) == 1 else " and ".join(names)
        for size in range(1, 7)
        for names in combinations(_RACES, size)
    ],
    "sex": ("male", "female"),
    "h1": ("vacant", "occupied"),
}
#: Axes in the order in which a sentence has them.
_ORDER = ("votingage", "sex", "age", "hispanic", "cenrace", "relgq", "hhgq", "h1")


def query_cells(universe: Universe, query: str) -> list[str]:
    """Return the cells of a query in words, such as "18 or more, Black alone, in a household".

    Parameters
    ----------
    universe : Universe
        The histogram of a product.
    query : str
        Name of a query, such as ``"detailed"`` or ``"votingage * cenrace"``.

    Returns
    -------
    list of str
        One text for each cell, in the order of the noisy values.

    Examples
    --------
    >>> from bayesrisk.census.readers.nmf.rows import UNIVERSES
    >>> query_cells(UNIVERSES["pl94-person"], "votingage * hispanic")[2]
    '18 or more, not Hispanic'
    """
    try:
        answers = axis_answers(universe, query)
    except KeyError as error:
        raise ArgumentError("query", "must be of known recodes", got=query) from error
    groups = {axis: universe.groups(axis, answer) for axis, answer in answers.items()}
    texts = {}
    for axis, parts in groups.items():
        words = _VALUES.get(axis)
        if parts is None:
            raise ArgumentError("query", "must be of known recodes", got=query)
        if len(parts) == 1 and len(parts[0]) == universe.axes[axis]:
            texts[axis] = [""]
        else:
            named = [[words[v] if words else f"{axis} {v}" for v in part] for part in parts]
            texts[axis] = [" or ".join(part) for part in named]
    order = sorted(texts, key=lambda axis: _ORDER.index(axis) if axis in _ORDER else 0)
    cells = (dict(zip(texts, cell, strict=True)) for cell in product(*texts.values()))
    return [", ".join(filter(None, (cell[axis] for axis in order))) or "all" for cell in cells]
