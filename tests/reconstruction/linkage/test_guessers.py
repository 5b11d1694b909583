"""The guessers against loops over dictionaries, and the checked frame of persons."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from oracles import linkage as oracle

from bayesrisk.exceptions import ArgumentTypeError, DataError, ShapeError
from bayesrisk.reconstruction.linkage import (
    Guesses,
    cell_counts,
    modal_cells,
    modal_guess,
    proportional_guess,
)
from bayesrisk.reconstruction.persons import person_frame, race_ethnicity

BLOCKS = [f"01001020100{number}" for number in ("1000", "1001", "2000")]
PERSON = st.fixed_dictionaries(
    {
        "block": st.sampled_from(BLOCKS),
        "sex": st.integers(0, 1),
        "age": st.integers(0, 110),
        "race": st.sampled_from([1, 2, 3]),
        "hisp": st.integers(0, 1),
    }
)
PEOPLE = st.lists(PERSON, min_size=1, max_size=15)
COLUMNS = ("block", "sex", "age", "race", "hisp")


@given(PEOPLE)
def test_modes_and_their_fallbacks(people):
    records = pd.DataFrame(people)
    cells = [oracle.modal_cell(people, p["block"]) for p in people]
    assert modal_cells(records).tolist() == [2 * (race - 1) + hisp for race, hisp in cells]
    guess = modal_guess(records)
    assert list(zip(guess["race"], guess["hisp"], strict=True)) == cells
    assert guess["age"].tolist() == [p["age"] for p in people]


@given(PEOPLE)
def test_block_groups_one_by_one_say_what_all_together_say(people):
    """Where block and block group have no mode, that of all records counts, not of the piece."""
    records = pd.DataFrame(people)
    everywhere = cell_counts(records)
    whole = pd.Series(modal_cells(records), index=records.index)
    for _, piece in records.groupby(records["block"].str[:12]):
        said = Guesses.draw(piece, source="piece", rng=1, everywhere=everywhere).modal.frame
        assert race_ethnicity(said).tolist() == whole[piece.index].tolist()


def test_counts_of_another_length_are_refused():
    records = pd.DataFrame([{"block": BLOCKS[0], "sex": 0, "age": 1, "race": 1, "hisp": 0}])
    with pytest.raises(ShapeError, match="everywhere must be 126 counts"):
        Guesses.draw(records, source="a", rng=1, everywhere=np.zeros(3, np.int64))


@given(PEOPLE, st.integers(0, 2**32))
def test_proportional_guesses_come_from_the_block(people, seed):
    guess = proportional_guess(pd.DataFrame(people), rng=seed)
    for person, cell in zip(people, race_ethnicity(guess), strict=True):
        present = {2 * (p["race"] - 1) + p["hisp"] for p in people if p["block"] == person["block"]}
        assert cell in present


def test_proportional_guesses_have_the_frequencies_of_the_block():
    n = 20_000
    people = {"block": BLOCKS[0], "sex": 0, "age": 1, "race": [1, 1, 1, 2] * (n // 4), "hisp": 0}
    share = (proportional_guess(pd.DataFrame(people), rng=4)["race"] == 2).mean()
    assert abs(share - 0.25) < 4 * np.sqrt(0.25 * 0.75 / n)


def test_frames_take_numbers_or_text_as_blocks():
    numbers = pd.DataFrame({"block": [10010201001000], "age": [24]})
    text = pd.DataFrame({"block": ["010010201001000"], "age": [24]})
    for frame in (numbers, text):
        found = person_frame(frame, columns=("block", "age"), source="x")
        assert found["block"].tolist() == ["010010201001000"]
        assert found["agebin"].tolist() == [22]


def test_empty_frames_pass():
    empty = pd.DataFrame({name: [] for name in COLUMNS}).astype(
        {"block": "str", **dict.fromkeys(COLUMNS[1:], "int64")}
    )
    assert len(modal_guess(empty)) == 0
    assert len(proportional_guess(empty, rng=0)) == 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"race": [1, 0]}, "row 2, column 'race': must be from 1 to 63, got 0"),
        ({"age": [1, 111]}, "row 2, column 'age': must be from 0 to 110, got 111"),
        ({"hisp": [0, 2]}, "row 2, column 'hisp'"),
        ({"sex": [0.5, 1]}, "column 'sex' must hold whole numbers"),
        ({"block": [BLOCKS[0], "12"]}, "row 2, column 'block': must be 15 digits, got '12'"),
        ({"block": [BLOCKS[0], None]}, "row 2, column 'block': is missing"),
    ],
)
def test_bad_records_are_named_by_row_and_column(change, words):
    good = {"block": BLOCKS[:2], "sex": [0, 1], "age": [1, 2], "race": [1, 2], "hisp": [0, 1]}
    with pytest.raises(DataError, match=words):
        modal_guess(pd.DataFrame({**good, **change}))


def test_missing_columns_and_other_types_are_refused():
    with pytest.raises(DataError, match="lacks \\['hisp'\\]"):
        modal_cells(pd.DataFrame({"block": BLOCKS, "race": 1}))
    with pytest.raises(ArgumentTypeError, match="records must be a DataFrame of pandas"):
        modal_cells({"block": BLOCKS})
