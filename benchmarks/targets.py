"""What the benchmarks aim at, each said where it is measured; all together after a run.

Seconds are those of the machine, and a target that is missed fails nothing: what must not happen
on any machine stands in ``test_ratios.py``.
"""

import csv
from dataclasses import dataclass
from pathlib import Path

HEADS = ("what is measured", "target", "measured", "met")


@dataclass(frozen=True)
class Aim:
    """A bound of one number, and its unit: at most so much, or at least.

    Numbers of an aim in ``seconds`` are said in seconds or the part of them that fits.
    """

    bound: float
    unit: str
    at_most: bool = True
    seconds: bool = False

    def __str__(self) -> str:
        if self.bound == 1.0 and self.unit in (FASTER, AS_LONG):
            return "at most as long"
        return f"at {'most' if self.at_most else 'least'} {self.said(self.bound)}"

    def said(self, value: float) -> str:
        """Return a number with the unit, in three digits."""
        name = ""
        if self.seconds:
            scale, name = next((x for x in PARTS if value * x[0] >= 0.9995), PARTS[-1])
            value *= scale
        return " ".join(word for word in (number(value), name, self.unit) if word)

    def met(self, value: float) -> bool:
        return value <= self.bound if self.at_most else value >= self.bound


FASTER, AS_LONG = "times faster", "times as long"
#: What a second is multiplied by, and the name of what it then is.
PARTS = ((1.0, "s"), (1e3, "ms"), (1e6, "µs"), (1e9, "ns"))


def faster(times: float) -> Aim:
    """So many times faster than the other way in the same run, per unit of work."""
    return Aim(times, FASTER, at_most=False)


def as_long(times: float) -> Aim:
    """At most so many times as long as the other way in the same run, per unit of work."""
    return Aim(times, AS_LONG)


def lasting(most: float, of: str = "") -> Aim:
    """At most so many seconds, those that pass or those of the processor."""
    return Aim(most, of, seconds=True)


def seconds_each(most: float, each: str) -> Aim:
    """At most so many seconds for each unit."""
    return lasting(most, f"a {each}")


def a_second(least: float, units: str) -> Aim:
    """So many units a second."""
    return Aim(least, f"{units} a second", at_most=False)


def value_of(aim: Aim, ratio: float, each: float) -> float:
    """Return the number that an aim of a comparison is about: its ratio, or seconds a unit."""
    if aim.unit == FASTER:
        return 1.0 / ratio
    if aim.unit == AS_LONG:
        return ratio
    return each if aim.seconds else 1.0 / each


def number(value: float) -> str:
    """Return a number in three digits, as one writes it."""
    if value >= 1e6:
        return f"{value / 1e6:.3g} million"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


class Measured:
    """What was measured in a run, target by target; each has a name of its own."""

    def __init__(self) -> None:
        self.rows: dict[str, tuple[str, str, str]] = {}

    def add(self, what: str, aim: Aim, value: float) -> str:
        """Take a number, and return its row in a line."""
        assert what not in self.rows, f"two targets are named {what!r}"
        met = "yes" if aim.met(value) else "no"
        self.rows[what] = (str(aim), aim.said(value), met)
        return f"{what}: {aim.said(value)} (target: {aim}; met: {met})"

    def update(self, file: Path) -> None:
        """Write the table; rows of an earlier run that this one did not measure are kept."""
        old: dict[str, tuple[str, str, str]] = {}
        if file.exists():
            with file.open(encoding="utf-8", newline="") as stream:
                old = {row[0]: (row[1], row[2], row[3]) for row in list(csv.reader(stream))[1:]}
        rows = old | self.rows
        with file.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerows([HEADS, *((name, *rows[name]) for name in sorted(rows))])
