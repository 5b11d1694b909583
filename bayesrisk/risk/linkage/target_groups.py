"""Who the targets are: size of the block, modal or not, unique or not."""

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from bayesrisk.exceptions import DataError
from bayesrisk.reconstruction.linkage.guessers import cells_of_modes
from bayesrisk.reconstruction.linkage.persons import Persons, person_frame, race_ethnicity

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
