"""What may be quoted of an audit, on audits that nobody made: ties, and nobody affected."""

import numpy as np
import pytest
from first_screen import errors_of, frames_of, numbers, releases_of, statements_of

from bayesrisk.experiments.audit.screen import (
    NO_QUOTES,
    audit_brief,
    audit_quotes,
    first_screen,
    lead,
    screen_table,
)
from bayesrisk.experiments.audit.words import interval_text
from bayesrisk.risk.audit import audit_measures, audit_targets


def screen_of(gains, sizes, **options):
    statements, errors = statements_of(gains, **options), errors_of(sizes)
    frames = frames_of(statements, errors)
    screen = first_screen(frames["measures"], frames["comparisons"], frames["costs"])
    return screen, releases_of(statements)


@pytest.mark.parametrize(
    "gains",
    [
        {"none": 0.45, "swap 5": 0.4, "noise": 0.05},
        {"noise, one": 0.1, "noise, two": 0.1},  # a tie
        {"noise": 0.0},
        {"none": 0.45},
    ],
)
def test_quotations_say_what_the_first_screen_does(gains):
    screen, rows = screen_of(gains, {name: 2.5 * (name != "none") for name in gains})
    quotes = audit_quotes(screen, "a linker", "race")
    assert (len(quotes.may), len(quotes.may_not)) == (3, 3)
    assert lead(screen).startswith(quotes.may[0].removesuffix("."))
    if "none" in gains and len(gains) == 1:
        assert quotes.may[1] == "Counts are published as they are."
    else:
        price = quotes.may[1].removeprefix("On average a count is ").removesuffix(".")
        assert price in lead(screen)
    # The truth before, and after each protection, beside each other.
    said = numbers(quotes.may[2].replace("swap 5", "swap"))
    assert said[0] == pytest.approx(1 / 0.3, abs=0.005)
    assert len(said) == 1 + len(gains)
    doubled = rows.groupby("protection")["doubled"].mean().max()
    identified = [text for text in quotes.may_not if text.endswith("people were identified.")]
    assert bool(identified) == (doubled >= 0.5)
    if identified:
        assert numbers(identified[0]) == [round(doubled)]


def test_an_audit_of_nobody_has_quotations_too():
    assert (len(NO_QUOTES.may), len(NO_QUOTES.may_not)) == (3, 3)


def asked_about(gains, everybody):
    """Return the measures, by the package, of 30 people of whom there are ``everybody``."""
    statements, errors = statements_of(gains, people=30), errors_of(dict.fromkeys(gains, 0.0))
    frames = frames_of(statements, errors)
    frames["measures"] = audit_measures(audit_targets(statements), people=everybody)
    return frames["measures"], frames["comparisons"], frames["costs"]


@pytest.mark.parametrize("gain", [0.0, 0.45])
def test_sentences_and_lines_carry_the_interval_of_a_sample(gain):
    frames = asked_about({"counts": gain}, 300)
    row = frames[0].set_index("group").loc["everybody"]
    seen = round(row["doubled"] / 10)
    assert 0 < row["doubled_lower"] < row["doubled"] < row["doubled_upper"] < 300
    screen = first_screen(*frames)
    quotes = audit_quotes(screen, "a linker", "race")
    three = [10 * seen, row["doubled_lower"], row["doubled_upper"]]
    for text in (lead(screen), quotes.may[0]):
        assert numbers(text)[:5] == [*three, 300, 30]
    (line,) = [one for one in audit_brief(*frames) if one.startswith("counts:")]
    of = numbers(line.partition(" after; ")[2])
    assert of[:5] == [300, 30, *three]
    assert of[5:8] == row[["proved", "proved_lower", "proved_upper"]].tolist()
    for text in (lead(screen), line, " ".join(" ".join(r) for r in screen_table(screen).rows)):
        assert "(exact)" not in text
    assert any(text.startswith("About") for text in quotes.may_not)


def test_of_everybody_asked_no_interval_is_said():
    frames = asked_about({"counts": 0.45}, 30)
    doubled = frames[0].set_index("group").loc["everybody", "doubled"]
    screen = first_screen(*frames)
    assert numbers(lead(screen))[:2] == [doubled, 30]
    assert "(exact)" in " ".join(screen_table(screen).rows[0])
    assert "asked" not in lead(screen) + " ".join(audit_brief(*frames))


def test_nobody_is_not_said_where_some_were_asked():
    frames = asked_about({"noise": 0.0}, 300)
    assert "nobody" not in lead(first_screen(*frames))
    assert "none of the 30 asked, of 300 people" in lead(first_screen(*frames))
    assert "nobody of 30 people" in lead(first_screen(*asked_about({"noise": 0.0}, 30)))


@pytest.mark.parametrize("left", [0, 1, 81])
def test_people_who_are_left_out_are_told_beside_the_answer(left):
    frames = asked_about({"counts": 0.45}, 30)
    frames[0]["left_out"] = left
    screen = first_screen(*frames)
    first, *more = lead(screen).split(". ")
    told = [sentence for sentence in more if "left out" in sentence]
    assert [numbers(sentence) for sentence in told] == ([[left]] if left else [])
    assert audit_quotes(screen, "a linker", "race").may[0].count("left out") == len(told)
    assert "left out" not in first


@pytest.mark.parametrize(("targets", "left"), [(1, 19), (9, 10), (2, 300)])
def test_few_people_who_can_be_judged_say_nothing_of_the_others(targets, left):
    frames = asked_about({"counts": 0.45, "noise": 0.0}, 30)
    frames[0]["left_out"], frames[0]["targets"] = left, targets
    first = lead(first_screen(*frames)).split(". ")[0]
    assert numbers(first) == [targets + left, targets]
    frames[0]["left_out"], frames[0]["targets"] = 9, 10
    assert numbers(lead(first_screen(*frames)).split(". ")[0]) != [19, 10]


@pytest.mark.parametrize(
    ("ends", "text"),
    [
        ((2.0, 1.5, 3.0), "2.00 (1.50 to 3.00)"),
        ((2.0, 2.0, 2.0), "2.00 (exact)"),
        ((1.16, 0.0, 4215734128247.47), "1.16 (too few)"),
        ((1.16, 1.1, 4215734128247.47), "1.16 (at least 1.10)"),
        ((2.0, 1.1, np.inf), "2.00 (at least 1.10)"),
        ((np.inf, np.inf, np.inf), "unbounded"),
    ],
)
def test_ends_that_say_nothing_are_words(ends, text):
    assert interval_text(*ends) == text
