"""What anybody infers from a block's composition: the baselines of every re-identification.

The modal guesser says for everyone the most frequent race and ethnicity of the block, the
proportional guesser draws from the block's frequencies (Abowd et al. 2023, "Statistical baseline
details").  Neither links anybody to a record, so whatever they achieve is inference about a group.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayesrisk import _validation as check
from bayesrisk._random import Seed, generator
from bayesrisk.exceptions import ShapeError
from bayesrisk.reconstruction.linkage.persons import CELLS, Persons, person_frame, race_ethnicity

_COLUMNS = ("block", "sex", "age", "race", "hisp")
_BLOCK_GROUP = 12  # digits of the geoid that name the block group


def _modes(group: NDArray[np.int64], cells: NDArray[np.int64], n_groups: int) -> NDArray[np.int64]:
    """Return the most frequent cell of every group, -1 on a tie or a mode of one person."""
    pairs, counts = np.unique(group * CELLS + cells, return_counts=True)
    of_group, cell = np.divmod(pairs, CELLS)
    highest = np.zeros(n_groups, np.int64)
    np.maximum.at(highest, of_group, counts)
    top = counts == highest[of_group]
    n_top = np.bincount(of_group[top], minlength=n_groups)
    modes = np.full(n_groups, -1, np.int64)
    modes[of_group[top]] = cell[top]
    modes[(n_top > 1) | (highest <= 1)] = -1
    return modes


def modal_cells(records: pd.DataFrame | Persons) -> NDArray[np.int64]:
    """Return for each record the modal race and ethnicity of its block.

    On a tie, or when the mode has one person, the block group's mode; on a tie there too, that of
    all records (of equal ones the first in the order of the codes).

    Parameters
    ----------
    records : pandas.DataFrame or Persons
        With ``block``, ``race`` and ``hisp``.

    Returns
    -------
    ndarray of int64
        Cells ``2 (race - 1) + hisp``, one for each record.

    Raises
    ------
    DataError
        If a column is missing or a value is out of range.

    Examples
    --------
    >>> records = pd.DataFrame(
    ...     {"block": ["010010201001000"] * 3, "race": [1, 1, 2], "hisp": [0, 0, 1]}
    ... )
    >>> modal_cells(records)
    array([0, 0, 0])
    """
    return cells_of_modes(
        person_frame(records, columns=("block", "race", "hisp"), source="records")
    )


def cell_counts(frame: pd.DataFrame) -> NDArray[np.int64]:
    """Return how many records of a checked frame have each race and ethnicity."""
    return np.bincount(race_ethnicity(frame), minlength=CELLS).astype(np.int64)


def cells_of_modes(
    frame: pd.DataFrame, everywhere: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """Return the modal cells of persons that are checked already.

    ``everywhere`` are the :func:`cell_counts` of all records where the frame has some of them: all
    of every block group that it has any of.
    """
    cells = race_ethnicity(frame)
    if not cells.size:
        return cells
    block, blocks = pd.factorize(frame["block"])
    group_of_block, groups = pd.factorize(pd.Series(blocks).str[:_BLOCK_GROUP])
    everyone = int(np.argmax(cell_counts(frame) if everywhere is None else everywhere))
    in_group = _modes(group_of_block[block], cells, len(groups))
    in_group = np.where(in_group < 0, everyone, in_group)
    in_block = _modes(block.astype(np.int64), cells, len(blocks))
    return np.where(in_block < 0, in_group[group_of_block], in_block)[block]


def _with_cells(frame: pd.DataFrame, cells: NDArray[np.int64]) -> pd.DataFrame:
    return frame.assign(race=cells // 2 + 1, hisp=cells % 2)


def modal_guess(records: pd.DataFrame | Persons) -> pd.DataFrame:
    """Return the records with everyone's race and ethnicity replaced by the modal one (MDG).

    Parameters
    ----------
    records : pandas.DataFrame or Persons
        What the adversary holds: ``block, sex, age, race, hisp``.

    Returns
    -------
    pandas.DataFrame
        The same blocks, sexes and ages.

    Raises
    ------
    DataError
        If a column is missing or a value is out of range.

    Examples
    --------
    >>> records = pd.DataFrame(
    ...     {"block": ["010010201001000"] * 3, "sex": 0, "age": 30, "race": [1, 1, 2], "hisp": 0}
    ... )
    >>> modal_guess(records)["race"].tolist()
    [1, 1, 1]
    """
    frame = person_frame(records, columns=_COLUMNS, source="records")
    return _with_cells(frame, cells_of_modes(frame))


def proportional_guess(records: pd.DataFrame | Persons, *, rng: Seed) -> pd.DataFrame:
    """Return the records with race and ethnicity drawn from the block's frequencies (PRG).

    Everyone gets the race and ethnicity of a record of the block chosen uniformly.

    Parameters
    ----------
    records : pandas.DataFrame or Persons
        What the adversary holds: ``block, sex, age, race, hisp``.
    rng : Generator or int
        Source of the draws.

    Returns
    -------
    pandas.DataFrame
        The same blocks, sexes and ages.

    Raises
    ------
    DataError
        If a column is missing or a value is out of range.

    Examples
    --------
    >>> records = pd.DataFrame(
    ...     {"block": ["010010201001000"] * 3, "sex": 0, "age": 30, "race": [1, 1, 2], "hisp": 0}
    ... )
    >>> set(proportional_guess(records, rng=1)["race"]) <= {1, 2}
    True
    """
    frame = person_frame(records, columns=_COLUMNS, source="records")
    block = pd.factorize(frame["block"])[0]
    order = np.argsort(block, kind="stable")
    size = np.bincount(block) if block.size else np.zeros(0, np.int64)
    first = np.cumsum(size) - size
    uniform = generator(rng).random(block.size)
    chosen = order[first[block] + (uniform * size[block]).astype(np.int64)]
    return _with_cells(frame, race_ethnicity(frame)[chosen])


@dataclass(frozen=True, eq=False)
class Guesses:
    """What both guessers say who start from one source of records: drawn once, used by all tables.

    Attributes
    ----------
    source : str
        Name of the records that the guessers started from.
    records : Persons
        These records.
    modal, proportional : Persons
        The same blocks, sexes and ages with the race and ethnicity that each guesser says
        (:func:`modal_guess`, :func:`proportional_guess`).
    """

    source: str
    records: Persons
    modal: Persons
    proportional: Persons

    @classmethod
    def draw(
        cls,
        records: pd.DataFrame | Persons,
        *,
        source: str,
        rng: Seed,
        everywhere: NDArray[np.int64] | None = None,
    ) -> "Guesses":
        """Let both guessers speak.

        Parameters
        ----------
        records : pandas.DataFrame or Persons
            What the adversary holds: ``block, sex, age, race, hisp``.
        source : str
            How tables call these records.
        rng : Generator or int
            Source of the proportional guesses.
        everywhere : ndarray of int64, optional
            Where the records are those of some block groups of many: how many of all records have
            each race and ethnicity, cell ``2 (race - 1) + hisp``, 126 counts.  What is most
            frequent there is what the modal guesser says where block and block group have no mode.

        Returns
        -------
        Guesses
            To be handed to every table of one report, so that all have one baseline.

        Raises
        ------
        DataError
            If a column is missing or a value is out of range.

        Examples
        --------
        >>> records = pd.DataFrame(
        ...     {"block": ["010010201001000"] * 3, "sex": 0, "age": 3, "race": [1, 1, 2], "hisp": 0}
        ... )
        >>> Guesses.draw(records, source="mine", rng=1).modal.frame["race"].tolist()
        [1, 1, 1]
        """
        name = check.text(source, "source")
        frame = person_frame(records, columns=_COLUMNS, source=name)
        held = Persons(frame, name)
        if everywhere is not None:
            everywhere = check.count_array(everywhere, "everywhere", lower=0)
            if everywhere.shape != (CELLS,):
                raise ShapeError(f"everywhere must be {CELLS} counts, got {everywhere.shape}")
        modal = _with_cells(held.frame, cells_of_modes(held.frame, everywhere))
        return cls(
            name,
            held,
            Persons(modal, "modal guesses"),
            Persons(proportional_guess(held, rng=rng), "proportional guesses"),
        )
