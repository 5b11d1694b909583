"""Rates of a guesser about a person without that person's record: exact, and upper bounds."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from bayesrisk._show import Tabular, displayed
from bayesrisk._version import __version__
from bayesrisk.exceptions import DataError
from bayesrisk.reconstruction.linkage import (
    CELLS,
    Persons,
    cells_of_modes,
    person_frame,
    race_ethnicity,
)

# -----------------------------------------------------------------------------
# Who the targets are: size of the block, modal or not, unique or not.


#: Block sizes as the published tables group them (Abowd et al. 2023, Tables S5 to S13).
SIZE_CLASSES = ("1-9", "10-49", "50-99", "100-249", "250-499", "500-999", "1000+")
_STARTS = (1, 10, 50, 100, 250, 500, 1000)
#: Groups of targets: ``in-truth`` those whose block, sex and age bin the attacker knows rightly;
#: uniques are alone in their block with their sex and age bin.
PANELS = ("all", "in-truth", "modal", "nonmodal", "nonmodal-unique")
TRUTH = ("block", "sex", "age", "race", "hisp", "person")


def size_class(population: ArrayLike) -> NDArray[np.int64]:
    """Return the class (position in ``SIZE_CLASSES``) of block populations, -1 for none."""
    return np.searchsorted(_STARTS, np.asarray(population), side="right") - 1


def describe_truth(
    truth: pd.DataFrame | Persons, everywhere: NDArray[np.int64] | None = None
) -> pd.DataFrame:
    """Return the true records with the columns that put them into panels.

    ``cell`` (race and ethnicity), ``size_class`` of the block, ``modal`` (the record has the modal
    race and ethnicity of its block) and ``unique`` on block, sex and age bin.  Of a truth that is
    held in pieces, ``everywhere`` counts the cells of all of it.
    """
    frame = person_frame(truth, columns=TRUTH, source="truth")
    source = truth.source if isinstance(truth, Persons) else "truth"
    again = frame["person"].duplicated()
    if again.any():
        row = int(np.argmax(again.to_numpy()))
        raise DataError(
            f"{source}: row {row + 1}, column 'person': must be different for each record, "
            f"got {frame['person'].iloc[row]} again"
        )
    population = frame.groupby("block", sort=False)["sex"].transform("size")
    alike = frame.groupby(["block", "sex", "agebin"], sort=False)["age"].transform("size")
    cell = race_ethnicity(frame)
    return frame.assign(
        cell=cell,
        size_class=size_class(population),
        modal=cell == cells_of_modes(frame, everywhere),
        unique=alike.to_numpy() == 1,
    )


_MEANS = ["modal", "modal_bound", "proportional", "proportional_bound"]


@displayed
@dataclass(frozen=True)
class InferenceWithoutRecord(Tabular):
    """Accuracy of guessing race and ethnicity from the rest of the block.

    With ``n`` people in a block, ``n_c`` of them in the target's cell and ``p_c = n_c / n``: the
    modal guesser without the target's record is right with probability ``1 / t`` if ``n_c - 1`` is
    the highest of the remaining counts, which ``t`` cells share, and never otherwise; the
    proportional guesser with probability ``(n_c - 1) / (n - 1)``.  Averages over a block are
    bounded by ``max p_c`` and ``sum p_c**2``, which count the target's own record.  A person alone
    in a block is never guessed.

    Attributes
    ----------
    persons : pandas.DataFrame
        For each record ``block``, ``modal`` and ``proportional`` (probabilities of a right guess).
    blocks : pandas.DataFrame
        For each block ``population``, the means ``modal`` and ``proportional`` and their bounds
        ``modal_bound`` and ``proportional_bound``.
    version : str
        Version of bayesrisk.
    """

    persons: pd.DataFrame
    blocks: pd.DataFrame
    version: str = __version__

    def to_frame(self) -> pd.DataFrame:
        """Return accuracies weighted by people, for all blocks and each class of block size."""
        return without_record_means(self.sums())

    def sums(self) -> pd.DataFrame:
        """Return people, and sums over them, of all blocks (``All``) and each class of size."""
        weighted = self.blocks[_MEANS].mul(self.blocks["population"], axis=0)
        weighted["population"] = self.blocks["population"]
        labels = np.asarray(SIZE_CLASSES)[size_class(self.blocks["population"])]
        parts = weighted.groupby(labels).sum().reindex(SIZE_CLASSES, fill_value=0)
        return pd.concat([weighted.sum().to_frame("All").T, parts])


def without_record_means(sums: pd.DataFrame) -> pd.DataFrame:
    """Return the table of :meth:`InferenceWithoutRecord.to_frame` from sums of one area or more."""
    table = sums[(sums["population"] > 0) | (sums.index == "All")].copy()
    table[_MEANS] = table[_MEANS].div(table["population"], axis=0)
    table["population"] = table["population"].astype("int64")
    return table.rename_axis("block_size").reset_index()


def inference_without_record(truth: pd.DataFrame | Persons) -> InferenceWithoutRecord:
    """Return the accuracy of guessing each person's race and ethnicity without the own record.

    Parameters
    ----------
    truth : pandas.DataFrame or Persons
        Records with ``block``, ``race`` and ``hisp``.

    Examples
    --------
    The example of the paper: nine of ten people of a block share race and ethnicity.

    >>> truth = pd.DataFrame(
    ...     {"block": "010010201001000", "race": [1] * 9 + [8], "hisp": [0] * 10}
    ... )
    >>> inference_without_record(truth).to_frame().iloc[0, 1:].astype(float).round(2).tolist()
    [0.9, 0.9, 0.8, 0.82, 10.0]
    """
    return without_record(person_frame(truth, columns=("block", "race", "hisp"), source="truth"))


def without_record(frame: pd.DataFrame) -> InferenceWithoutRecord:
    """Return the accuracies for persons that are checked already."""
    block, blocks = pd.factorize(frame["block"])
    pairs, at, counts = np.unique(
        block * CELLS + race_ethnicity(frame), return_inverse=True, return_counts=True
    )
    of_block = pairs // CELLS
    size = np.bincount(block, minlength=len(blocks))
    highest, second = _two_highest(of_block, counts, len(blocks))
    # What the target's removal leaves: its own cell has one less, the others what they had.
    left = counts - 1
    rival = np.where(counts == highest[of_block], second[of_block], highest[of_block])
    n_second = np.bincount(of_block, counts == second[of_block], len(blocks))
    shared = 1.0 / (1.0 + n_second[of_block])  # only the highest cell can come down to a tie
    right = np.where(left > rival, 1.0, np.where(left == rival, shared, 0.0))
    right[left == 0] = 0.0
    others = np.maximum(size[of_block] - 1, 1)
    cells = pd.DataFrame(
        {"block": of_block, "n": counts, "modal": right, "proportional": left / others}
    )
    share = counts / size[of_block]
    per_block = pd.DataFrame(
        {
            "block": np.asarray(blocks, dtype=object),
            "population": size,
            "modal": np.bincount(of_block, cells["modal"] * share, len(blocks)),
            "modal_bound": highest / np.maximum(size, 1),
            "proportional": np.bincount(of_block, cells["proportional"] * share, len(blocks)),
            "proportional_bound": np.bincount(of_block, share**2, len(blocks)),
        }
    )
    persons = pd.DataFrame(
        {"block": frame["block"], "modal": right[at], "proportional": (left / others)[at]}
    )
    return InferenceWithoutRecord(persons, per_block)


def _two_highest(
    of_block: NDArray[np.int64], counts: NDArray[np.int64], n_blocks: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the highest and the second highest count of each block (equal on a tie)."""
    order = np.lexsort((-counts, of_block))
    block, sorted_counts = of_block[order], counts[order]
    first = np.searchsorted(block, np.arange(n_blocks))
    padded = np.append(sorted_counts, 0)
    has_second = np.append(block, -1)[first + 1] == np.arange(n_blocks)
    return padded[first], np.where(has_second, padded[first + 1], 0)
