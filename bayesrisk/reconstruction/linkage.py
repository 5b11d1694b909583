"""Guesses from a block's composition alone: the baselines of re-identification.

The modal guesser gives everyone the most frequent race and ethnicity of the block. The proportional
guesser draws from the block's frequencies (Abowd et al. 2023, "Statistical baseline details").
Neither links anybody to a record, so their success is inference about a group.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from bayesrisk._base import validation as check
from bayesrisk._base.randomness import Seed, generator
from bayesrisk._base.validation import IntArray
from bayesrisk.exceptions import ShapeError
from bayesrisk.reconstruction.persons import CELLS, RECORDS, Persons, person_frame, race_ethnicity

_BLOCK_GROUP = 12  # digits of the geoid that name the block group


def _modes(group: IntArray, cells: IntArray, n_groups: int) -> IntArray:
    """Return the most frequent cell of every group, or -1 on a tie or for a single person."""
    pairs, counts = np.unique(group * CELLS + cells, return_counts=True)
    group_number, cell = np.divmod(pairs, CELLS)
    highest = np.zeros(n_groups, np.int64)
    np.maximum.at(highest, group_number, counts)
    top = counts == highest[group_number]
    n_top = np.bincount(group_number[top], minlength=n_groups)
    modes = np.full(n_groups, -1, np.int64)
    modes[group_number[top]] = cell[top]
    modes[(n_top > 1) | (highest <= 1)] = -1
    return modes


def modal_cells(records: pd.DataFrame | Persons) -> IntArray:
    """Return, for each record, the modal race and ethnicity of its block.

    On a tie, or if the mode has one person, it is the block group's mode. On a tie there too, it is
    the mode of all records (the first in the order of the codes if several are equal).

    ``records`` need ``block``, ``race`` and ``hisp``.
    """
    return cells_of_modes(
        person_frame(records, columns=("block", "race", "hisp"), source="records")
    )


def cell_counts(frame: pd.DataFrame) -> IntArray:
    """Return the number of records of a checked frame with each race and ethnicity."""
    return np.bincount(race_ethnicity(frame), minlength=CELLS).astype(np.int64)


def cells_of_modes(frame: pd.DataFrame, everywhere: IntArray | None = None) -> IntArray:
    """Return each person's modal cell, for checked persons.

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


def _with_cells(frame: pd.DataFrame, cells: IntArray) -> pd.DataFrame:
    return frame.assign(race=cells // 2 + 1, hisp=cells % 2)


def modal_guess(records: pd.DataFrame | Persons) -> pd.DataFrame:
    """Return the records with each race and ethnicity replaced by the modal one (MDG).

    ``records`` are those of the adversary: ``block, sex, age, race, hisp``.
    """
    frame = person_frame(records, columns=RECORDS, source="records")
    return _with_cells(frame, cells_of_modes(frame))


def proportional_guess(records: pd.DataFrame | Persons, *, rng: Seed) -> pd.DataFrame:
    """Return the records with race and ethnicity drawn from the block's frequencies (PRG).

    Everyone gets the race and ethnicity of a uniformly chosen record of the block. ``records`` are
    those of the adversary: ``block, sex, age, race, hisp``.
    """
    frame = person_frame(records, columns=RECORDS, source="records")
    block = pd.factorize(frame["block"])[0]
    order = np.argsort(block, kind="stable")
    size = np.bincount(block) if block.size else np.zeros(0, np.int64)
    first = np.cumsum(size) - size
    uniform = generator(rng).random(block.size)
    chosen = order[first[block] + (uniform * size[block]).astype(np.int64)]
    return _with_cells(frame, race_ethnicity(frame)[chosen])


@dataclass(frozen=True, eq=False)
class Guesses:
    """Both guessers' answers for one source of records, drawn once for all tables.

    ``modal`` and ``proportional`` have the same blocks, sexes and ages, with the race and ethnicity
    from each guesser (:func:`modal_guess`, :func:`proportional_guess`).
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
        everywhere: IntArray | None = None,
    ) -> Guesses:
        """Return both guessers' answers for the same records.

        ``records`` are those of the adversary (``block, sex, age, race, hisp``); ``source`` is
        their name in tables. If they are only some block groups of many, ``everywhere`` has 126
        counts. They are the numbers of all records of each race and ethnicity, cell
        ``2 (race - 1) + hisp``. The modal guesser falls back on their mode if block and block group
        have none.
        """
        name = check.text(source, "source")
        frame = person_frame(records, columns=RECORDS, source=name)
        persons = Persons(frame, name)
        if everywhere is not None:
            everywhere = check.count_array(everywhere, "everywhere", lower=0)
            if everywhere.shape != (CELLS,):
                raise ShapeError(f"everywhere must be {CELLS} counts, got {everywhere.shape}")
        modal = _with_cells(persons.frame, cells_of_modes(persons.frame, everywhere))
        return cls(
            name,
            persons,
            Persons(modal, "modal guesses"),
            Persons(proportional_guess(persons, rng=rng), "proportional guesses"),
        )
