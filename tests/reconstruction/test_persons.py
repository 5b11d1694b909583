"""Persons are checked once, and the guessers speak once."""

import numpy as np
import pandas as pd
import pytest

from bayesrisk.exceptions import ArgumentTypeError, DataError
from bayesrisk.reconstruction import Persons, persons as module
from bayesrisk.reconstruction.linkage import Guesses, modal_cells, modal_guess, proportional_guess
from bayesrisk.risk import (
    compare_with_truth,
    inference_without_record,
    race_ethnicity_counts,
    reidentify,
)
from bayesrisk.risk.linkage.variability import unique_sums, unique_table


def people(n=60):
    rng = np.random.default_rng(8)
    return pd.DataFrame(
        {
            "block": rng.choice(["010010201001000", "010010201001001"], n),
            "sex": rng.integers(0, 2, n),
            "age": rng.integers(0, 90, n),
            "race": rng.choice([1, 2, 8], n),
            "hisp": rng.integers(0, 2, n),
            "person": np.arange(n),
        }
    )


def calls(truth, attacks=True):
    """Return what every function of linkage makes of the same persons."""
    bounds = people().groupby("block").size().rename("population").reset_index()
    bounds = bounds.assign(lower=0.0, upper=0.0)
    found = [
        modal_cells(truth),
        modal_guess(truth),
        proportional_guess(truth, rng=1),
        inference_without_record(truth).to_frame(),
        race_ethnicity_counts(truth),
        unique_table(unique_sums(truth, variability=bounds)),
    ]
    if not attacks:
        return found
    return [
        *found,
        reidentify({"t": truth}, {"a": truth}, truth=truth, baseline_from="t", rng=2).to_frame(),
        compare_with_truth({"t": truth}, truth=truth, baseline_from="t", rng=2).to_frame(),
    ]


def test_persons_are_taken_wherever_frames_are_and_not_checked_again(monkeypatch):
    frame = people()
    expected, held = calls(frame), Persons(frame, "truth")

    def checked(column, name, source):
        raise AssertionError(f"{source}: {name} was checked again")

    monkeypatch.setattr(module, "_checked", checked)
    with pytest.raises(AssertionError, match="checked again"):  # the control: frames are
        modal_cells(frame)
    # The guesses that two of them draw are new persons.
    guesses = Guesses(*(["t"] + [held] * 3))
    reidentify({"t": held}, {"a": held}, truth=held, baseline_from=guesses, rng=2)
    compare_with_truth({"t": held}, truth=held, baseline_from=guesses, rng=2)
    assert all(len(found) for found in calls(held, attacks=False))
    monkeypatch.undo()
    for found, other in zip(calls(held), expected, strict=True):
        if isinstance(found, pd.DataFrame):
            pd.testing.assert_frame_equal(found, other)
        else:
            assert np.array_equal(found, other)


def test_a_column_that_is_not_there_is_named_with_the_source():
    held = Persons(people().drop(columns="race"), "my file")
    assert len(held) == 60
    with pytest.raises(DataError, match=r"my file: must have the columns .*, it lacks \['race'\]"):
        modal_cells(held)
    with pytest.raises(
        ArgumentTypeError, match=r"my file: frame must be a DataFrame of pandas.*got int"
    ):
        Persons(3, "my file")


def test_guesses_are_those_of_the_two_guessers():
    frame = people()
    found = Guesses.draw(frame, source="t", rng=5)
    columns = ["block", "sex", "age", "agebin", "race", "hisp"]
    for held, made in (
        (found.modal, modal_guess(frame)),
        (found.proportional, proportional_guess(frame, rng=5)),
    ):
        pd.testing.assert_frame_equal(held.frame[columns], made[columns])
    direct = reidentify({"t": frame}, {"a": frame}, truth=frame, baseline_from="t", rng=5)
    assert direct.baseline_from == "t"
    again = reidentify({"t": frame}, {"a": frame}, truth=frame, baseline_from=found, rng=6)
    # Who is linked among equal records differs, what the guessers say does not.
    mine, theirs = (
        f.to_frame(by_size=False).set_index("source").loc[["MDG", "PRG"], "putative"]
        for f in (direct, again)
    )
    assert mine.to_dict() == theirs.to_dict()
    assert again.baseline_from == "t"
