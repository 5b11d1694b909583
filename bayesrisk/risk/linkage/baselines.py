"""What guessers reach on the targets of an attack: as published, and without the target's record.

The published guessers read the composition of the block from records among which the target's own
is counted.  What is left out of them is the target's record and nothing else.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from bayesrisk import _validation as check
from bayesrisk._types import FloatArray
from bayesrisk.reconstruction.linkage.guessers import Guesses
from bayesrisk.reconstruction.linkage.persons import Persons, person_frame
from bayesrisk.risk.intervals import (
    block_moments,
    guess_moments,
    moment_intervals,
    moment_ratio_intervals,
)
from bayesrisk.risk.linkage.without_record import without_record

#: Sources of the guessers in their published form.
MODAL, PROPORTIONAL = "MDG", "PRG"
#: Columns of probabilities that a guesser without the target's record is right.
LEFT_OUT = ("left_out_modal", "left_out_proportional")
_MOMENTS = 10  # rows of block_moments
#: What a baseline, or a prior, counts.
COUNTED = "own record counted, as published"
WITHOUT = "own record left out"


#: Records by the name of their source.
Sources = Mapping[str, pd.DataFrame | Persons]
RECORDS = ("block", "sex", "age", "race", "hisp")


def guesses_of(baseline_from: str | Guesses, sources: Sources, rng: np.random.Generator) -> Guesses:
    """Return what the guessers say: drawn now from a source, or once for all tables before."""
    if isinstance(baseline_from, Guesses):
        return baseline_from
    name = check.choice(baseline_from, "baseline_from", tuple(sources))
    return Guesses.draw(sources[name], source=name, rng=rng)


def with_guessers(sources: Sources, guesses: Guesses) -> dict[str, pd.DataFrame]:
    """Return the checked records of every source, those of the guessers last."""
    whole = {
        name: person_frame(records, columns=RECORDS, source=name)
        for name, records in sources.items()
    }
    return {**whole, MODAL: guesses.modal.frame, PROPORTIONAL: guesses.proportional.frame}


def left_out(truth: pd.DataFrame) -> pd.DataFrame:
    """Return true records with the probabilities of ``LEFT_OUT`` that their cell is guessed."""
    alone = without_record(truth).persons
    return truth.assign(
        left_out_modal=alone["modal"].to_numpy(),
        left_out_proportional=alone["proportional"].to_numpy(),
    )


def better_published(
    table: pd.DataFrame, rate: str, places: list[str]
) -> tuple[NDArray[np.float64], NDArray[np.object_]]:
    """Return for each row the better of the two published guessers at its place, and its name."""
    rows = pd.MultiIndex.from_frame(table[places])
    rates = []
    for guesser in (MODAL, PROPORTIONAL):
        own = table[table["source"] == guesser].set_index(places)[rate]
        own.index = pd.MultiIndex.from_frame(own.index.to_frame())
        rates.append(own.reindex(rows).to_numpy(float))
    modal, proportional = rates
    best = np.fmax(modal, proportional)
    names = np.where(proportional > modal, PROPORTIONAL, MODAL).astype(object)
    return best, np.where(np.isnan(best), "", names + f", {COUNTED}")


def left_out_sums(
    hits: ArrayLike,
    expected: Sequence[ArrayLike],
    trials: ArrayLike,
    groups: ArrayLike,
    n_groups: int,
) -> FloatArray:
    """Return what rates and their intervals need, summed over the blocks of every group.

    Arguments have an entry for each block of each group; ``expected`` the hits of the guessers of
    ``LEFT_OUT``.  Rows: those of :func:`block_moments`, then those of :func:`guess_moments` for
    each guesser.  The sums of several areas add up.
    """
    label = np.asarray(groups, np.int64)
    rows = [*block_moments(hits, trials)]
    for guessed in expected:
        rows += [*guess_moments(hits, guessed)]
    return np.stack([np.bincount(label, row, n_groups) for row in rows])


def left_out_columns(
    sums: FloatArray, *, confidence: float
) -> dict[str, NDArray[np.float64] | NDArray[np.object_]]:
    """Return what a guesser without the target's record reaches, and the attack's ratio to it.

    ``sums`` are those of :func:`left_out_sums`.  The guesser that is right more often in the whole
    group counts.
    """
    moments, modal, proportional = sums[:_MOMENTS], sums[_MOMENTS : _MOMENTS + 3], sums[-3:]
    drawn = proportional[0] > modal[0]
    beside = np.where(drawn, proportional, modal)
    total, size, right = beside[0], moments[1], moments[6]
    lower, upper = moment_ratio_intervals(moments, beside, confidence=confidence)
    name = np.where(drawn, "proportional", "modal").astype(object)
    with np.errstate(divide="ignore", invalid="ignore"):
        return {
            "left_out": total / size,
            "left_out_guesser": np.where(size > 0, name + f", {WITHOUT}", ""),
            "left_out_ratio": np.where(total > 0, right / total, np.nan),
            "left_out_ratio_lower": lower,
            "left_out_ratio_upper": upper,
        }


def share_intervals(sums: FloatArray, *, confidence: float) -> tuple[FloatArray, FloatArray]:
    """Return intervals of the shares of hits, from the sums of :func:`left_out_sums`."""
    return moment_intervals(sums[:_MOMENTS], confidence=confidence)
