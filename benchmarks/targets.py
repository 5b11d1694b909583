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
    """A bound of one number, and its unit: at most so much, or at least."""

    bound: float
    unit: str
    at_most: bool = True

    def __str__(self) -> str:
        return f"at {'most' if self.at_most else 'least'} {number(self.bound)} {self.unit}".strip()

    def met(self, value: float) -> bool:
        return value <= self.bound if self.at_most else value >= self.bound


def faster(times: float) -> Aim:
    """So many times faster than the other way in the same run, per unit of work."""
    return Aim(times, "times faster", at_most=False)


def of_twin(share: float) -> Aim:
    """At most so much of the time of the other way in the same run."""
    return Aim(share, "of the other's time")


def nanoseconds(most: float, each: str) -> Aim:
    """So many nanoseconds for each unit."""
    return Aim(most, f"ns a {each}")


def a_second(least: float, units: str) -> Aim:
    """So many units a second."""
    return Aim(least, f"{units} a second", at_most=False)


def value_of(aim: Aim, ratio: float, seconds: float) -> float:
    """Return the number that an aim of a comparison is about: its ratio, or seconds a unit."""
    if aim.unit == "times faster":
        return 1.0 / ratio
    if aim.unit == "of the other's time":
        return ratio
    return seconds * 1e9 if aim.at_most else 1.0 / seconds


def number(value: float) -> str:
    """Return a number in three digits, as one writes it."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


class Measured:
    """What was measured in a run, target by target."""

    def __init__(self) -> None:
        self.rows: dict[str, tuple[str, str, str]] = {}

    def add(self, what: str, aim: Aim, value: float) -> str:
        """Take a number, and return its row in a line."""
        met = "yes" if aim.met(value) else "no"
        self.rows[f"{what}, {aim.unit}"] = (str(aim), number(value), met)
        return f"{what}: {number(value)} {aim.unit} (target: {aim}; met: {met})"

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
