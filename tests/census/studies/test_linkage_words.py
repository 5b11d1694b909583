"""Sentences about links and flags, on made-up rows: rate, baseline, and an earned verdict."""

import itertools
import math

import pytest

from bayesrisk.census.studies.linkage_words import (
    link_quotes,
    link_verdict,
    occupancy_lead,
    occupancy_quotes,
    occupancy_sentence,
)

WORDS = {"none": "no protection", "swapping": "swapping", "das": "noise of a budget"}


def link(links=100, right=80, alone=0.5, ratio=(1.6, 1.2, 2.0)):
    names = ("left_out_ratio", "left_out_ratio_lower", "left_out_ratio_upper")
    rate = right / links if links else math.nan
    return {
        "putative": links, "confirmed": right, "precision": rate, "precision_lower": rate / 2,
        "precision_upper": 1.0, "left_out": alone, **dict(zip(names, ratio, strict=True)),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("ratio", "verdict"),
    [
        ((1.6, 1.01, 2.0), "more than guessing explains"),
        ((1.6, 1.0, 2.0), "no difference from guessing is shown"),
        ((1.0, 1.0, 1.0), "no difference from guessing is shown"),
        ((0.5, 0.2, 0.99), "less often than guessing"),
    ],
)
def test_a_verdict_of_links_needs_its_interval(ratio, verdict):
    text = link_verdict(link(ratio=ratio), "them", "95%")
    assert text.endswith(f"{verdict}.")
    assert "80% (95% interval 40% to 100%)" in text
    assert "right in 50%" in text  # the baseline


@pytest.mark.parametrize("missing", [math.nan, math.inf])
def test_no_verdict_without_a_guesser_or_an_end(missing):
    for row in (link(alone=math.nan, ratio=(missing,) * 3), link(ratio=(1.6, 1.2, missing))):
        text = link_verdict(row, "them", "95%")
        assert not any(word in text for word in ("guessing", "nan", "inf"))
    assert link_verdict(link(links=0), "them", "95%") == "No record could be linked to them."
    assert "Of 1 link to them, 1 is confirmed" in link_verdict(link(1, 1), "them", "95%")


@pytest.mark.parametrize("right", [0, 80, 100])
def test_links_have_three_quotations_and_three_faults(right):
    row = link(right=right)
    quotes = link_quotes([{"name": "list", "all": row, "nonmodal": row}], "95%")
    assert (len(quotes.may), len(quotes.may_not)) == (3, 3)
    first, fault = next(iter(quotes.may_not.items()))
    if right == 100:  # all links are right here, and so it is no false sentence
        assert "All 100" not in first
    else:
        assert (first.split()[1], fault.split()[0]) == ("100", str(100 - right))


def flags(name, found, *, flagged=None, ends=(0.0, 1.0), violating=6, infeasible=0):
    flagged = found if flagged is None else flagged
    return {
        "protection": name, "blocks": 20, "violating": violating, "putative": flagged,
        "confirmed": found, "infeasible": infeasible,
        "precision": found / flagged if flagged else math.nan, "precision_lower": 0.3,
        "precision_upper": 1.0, "precision_baseline": violating / 20,
        "recall": found / violating if violating else math.nan, "recall_lower": ends[0],
        "recall_upper": ends[1], "recall_baseline": flagged / 20,
    }  # fmt: skip


def test_what_surely_differs_is_said_and_nothing_else():
    apart = [flags("none", 6, ends=(0.6, 1.0)), flags("swapping", 1, ends=(0.0, 0.5))]
    text = occupancy_lead(apart, WORDS)
    assert text.startswith("6 of 20 blocks hold a subsidised household")
    assert "finds 6 with no protection and 1 under swapping; " in text
    assert "blindly finds 0 to 2" in text
    assert text.endswith("Surely more are found with no protection than under swapping.")
    for touch in (0.5, 0.45):
        close = [flags("none", 6, ends=(touch, 1.0)), flags("swapping", 1, ends=(0.0, 0.5))]
        assert "urely" not in occupancy_lead(close, WORDS)
        assert "do not tell the protections apart" in occupancy_lead(close, WORDS)
    alone = occupancy_lead([flags("none", 6)], WORDS)
    assert "apart" not in alone
    assert "urely" not in alone


def test_nothing_is_found_where_nothing_is():
    text = occupancy_lead([flags("none", 0, violating=0)], WORDS)
    assert text.startswith("None of 20 blocks holds")
    row = occupancy_sentence(flags("swapping", 0, infeasible=3), WORDS, "95%")
    assert row.startswith("Swapping: no block is flagged. For 3 blocks no households fit")
    assert "nan" not in text + row


def test_false_sentences_about_flags_are_false_of_these_numbers():
    for found, false in itertools.product((0, 3, 6), (0, 2)):
        row = flags("none", found, flagged=found + false)
        quotes = occupancy_quotes([row], WORDS, "95%")
        assert (len(quotes.may), len(quotes.may_not)) == (3, 3)
        assert ("Every flagged block holds such a household." in quotes.may_not) == (false > 0)
        missed = "A block that is not flagged holds no such household."
        assert (missed in quotes.may_not) == (found < 6)
        if found < 6:
            assert quotes.may_not[missed].startswith(f"{6 - found} ")
