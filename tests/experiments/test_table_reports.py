"""First sentences of reconstructions and claims on made-up numbers: ties, nobody, one person."""

import numpy as np
import pandas as pd
import pytest

from bayesrisk.experiments import table_reports as words


def numbers(text):
    return [int(word.replace(",", "")) for word in text.split() if word.replace(",", "").isdigit()]


@pytest.mark.parametrize(("every", "proved", "usual"), [(87, 70, 6), (1, 1, 1), (2000, 2000, 0)])
def test_proved_records_stand_beside_a_guess(every, proved, usual):
    text = words.reconstruction_lead(every, proved, usual)
    assert numbers(text) == [every, proved, usual]
    assert "no others fit" in text


def test_nothing_is_proved_where_nothing_is():
    assert "No records were reconstructed" in words.reconstruction_lead(0, 0, 0)
    assert words.reconstruction_lead(5, 0, 0).startswith(
        "None of 5 reconstructed records is proved"
    )


@pytest.mark.parametrize(("every", "proved"), [(87, 70), (3, 3), (3, 0), (0, 0)])
def test_what_may_not_be_quoted_is_false_of_these_records(every, proved):
    quotes = words._reconstruction_quotes(every, proved, "lead.", ["place."])
    assert (len(quotes.may), len(quotes.may_not)) == (3, 3)
    # That all are true is no false sentence where all are proved.
    assert any(f"All {every} records" in text for text in quotes.may_not) == (proved < every)


def test_the_commonest_record_of_each_proved_place_is_counted():
    """By hand: 3 of 5 alike in a, 1 of 2 in b; c is not proved, and d is empty."""
    records = pd.DataFrame(
        {"block": list("aaaaabbcc"), "sex": [0, 0, 0, 1, 1, 0, 1, 0, 0], "age": [5] * 9}
    )
    blocks = pd.DataFrame(
        {"block": list("abcd"), "status": ["unique", "unique", "feasible", "unique"]}
    )
    assert words._usual(records, blocks) == 3 + 1
    assert words._usual(records.iloc[:0], blocks) == 0
    # Against a loop, on drawn records.
    rng = np.random.default_rng(1)
    drawn = pd.DataFrame(rng.integers(0, 3, (200, 2)), columns=["sex", "age"])
    drawn.insert(0, "block", rng.choice(list("abcd"), 200))
    wanted = 0
    for place in "abd":
        mine = [tuple(row) for row in drawn[drawn["block"] == place].to_numpy()]
        wanted += max(mine.count(row) for row in mine)
    assert words._usual(drawn, blocks) == wanted


def facts(claims, singletons, people=87, **statuses):
    return {
        "claims": claims, "singletons": singletons, "people": people, "coarsened": False,
        "statuses": statuses or {"decided": 3},
    }  # fmt: skip


def test_claims_in_numbers():
    assert numbers(words.claims_lead(facts(92, 45), None)) == [92, 87, 45]
    assert "none is about one record" in words.claims_lead(facts(92, 0), None)
    assert "1 of them is about one record" in words.claims_lead(facts(92, 1), None)
    assert "One statement" in words.claims_lead(facts(1, 1), None)
    assert "it is about several" in words.claims_lead(facts(1, 0), None)


def test_a_number_of_records_is_said_only_where_counts_tell_it():
    for claims in (0, 1, 92):
        told = facts(claims, 0)
        assert 87 in numbers(words.claims_lead(told, None))
        assert 87 not in numbers(words.claims_lead(told | {"coarsened": True}, None))


def test_no_claim_is_only_said_of_what_was_looked_for():
    assert words.claims_lead(facts(0, 0), None).startswith("No statement must be true of these 87")
    assert "of at most 2 columns must" in words.claims_lead(facts(0, 0), 2)
    open_ = facts(0, 0, decided=2, undecided=1)
    assert "that was decided must" in words.claims_lead(open_, None)


@pytest.mark.parametrize("claims", [0, 1, 9])
def test_claims_have_three_quotations_and_three_faults(claims):
    quotes = words._claims_quotes(facts(claims, claims), "lead.", ["place."])
    assert (len(quotes.may), len(quotes.may_not)) == (3, 3)
    assert ("The tables give nothing away." in quotes.may_not) == (claims == 0)


def test_a_label_of_two_files_names_the_file(monkeypatch, tmp_path):
    """And the row, of one file; a label that stands once stays as it is."""
    labels = []
    monkeypatch.setattr(words, "plot_bounds", lambda frame: labels.extend(frame["label"]))
    monkeypatch.setattr(words.pages, "figure", lambda draw, *_: draw())
    frame = pd.DataFrame({
        "age": ["0-17", "0-17", "all", "all", "65+"], "stated": "*",
        "file": ["a.csv", "b.csv", "a.csv", "a.csv", pd.NA],
        "row": pd.array([1, 2, 3, 4, pd.NA], dtype="Int64"),
        "low_stated": 1, "high_stated": 4, "low": 2, "high": 3,
    })  # fmt: skip
    words.bounds_figures(frame, tmp_path)
    files = [[name for name in ("a.csv", "b.csv") if name in label] for label in labels]
    assert files == [["a.csv"], ["b.csv"], ["a.csv"], ["a.csv"], []]
    assert len({*labels}) == 5
    assert labels[-1] == "65+"
