"""What may be quoted of an audit, on audits that nobody made: ties, and nobody affected."""

import pytest
from first_screen import errors_of, frames_of, numbers, releases_of, statements_of

from bayesrisk.experiments.audit.screen import NO_QUOTES, audit_quotes, first_screen, lead


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
