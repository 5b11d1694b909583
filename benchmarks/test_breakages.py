"""Each breakage of an audit is seen, and valid audits alarm nobody."""

from breakages import results, rows
from targets import Aim

SEEN = Aim(15 / 16, "of the audits with it", at_most=False)


def test_each_breakage_is_seen(measured):
    none, *others = rows(*results(4, 4))
    least = min(seen / number for _, number, seen, _ in others)
    measured(
        "checks of an audit: the breakage, of nineteen, that they see least often", SEEN, least
    )
    assert least == 1.0
    assert none[2] == 0
