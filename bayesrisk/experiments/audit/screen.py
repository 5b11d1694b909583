"""The first screen of an audit: one sentence, four lines, and a row for each protection."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from bayesrisk.experiments.audit.populations import of_population, population_names
from bayesrisk.experiments.runs.page import PageTable
from bayesrisk.risk.audit import METHODS
from bayesrisk.risk.audit.measures import BEST_READINGS

Row = Mapping[Any, Any]
EVERYBODY = "everybody"
#: Ways to read a release, an adversary's best model of the protection before all others.
_READINGS = (*BEST_READINGS, "as-true", *METHODS)
_BRIEF = 5  # lines


class Screen(NamedTuple):
    """The rows of the first screen, one for each protection, the cheapest first.

    They are about everybody and the adversary who gains most.  ``told`` has the comparison of every
    two protections; ``best`` the protection that surely improves on most others and none on it, or
    all of them where no order was told; ``worse`` those that it improves on, ``apart`` the rest.
    """

    rows: dict[str, Row]
    told: dict[tuple[str, str], Row]
    best: list[str]
    worse: list[str]
    apart: list[str]

    @property
    def plain(self) -> str | None:
        """The protection that publishes all counts as they are."""
        rows = self.rows.items()
        return next((n for n, row in rows if row["error"] == row["withheld"] == 0.0), None)

    @property
    def against(self) -> str | None:
        """The protection that the best one is held against."""
        gain = {name: self.rows[name]["gain"] for name in self.worse}
        return self.plain if self.plain in gain else max(gain, key=gain.__getitem__, default=None)


def headline_rows(measures: pd.DataFrame) -> pd.DataFrame:
    """Return everybody's row of each protection and adversary, by the adversary's best model.

    The adversary whose mean gain over protections is largest comes first.
    """
    rows = measures[measures["group"] == EVERYBODY]
    rank = rows["attack"].map({name: rank for rank, name in enumerate(_READINGS)})
    best = rows.loc[rank.sort_values(kind="stable").index]
    best = best.drop_duplicates(["protection", "adversary"]).sort_index()
    gain = -best.groupby("adversary")["gain"].transform("mean")
    return best.loc[gain.sort_values(kind="stable").index]


def first_screen(measures: pd.DataFrame, comparisons: pd.DataFrame, costs: pd.DataFrame) -> Screen:
    """Return the rows of the first screen of one population, and which order was told."""
    rows = headline_rows(measures)
    rows = rows[rows["adversary"] == rows["adversary"].iloc[0]].merge(costs, on="protection")
    rows = rows.sort_values("error", kind="stable")
    named = {row["protection"]: row for row in rows.to_dict(orient="records")}
    mine = comparisons["adversary"].isin(rows["adversary"])
    mine &= comparisons["attack"].isin({*rows["attack"], METHODS[0]})
    told: dict[tuple[str, str], Row] = {}
    for row in comparisons[mine].to_dict(orient="records"):
        one, other = row["protection"], row["against"]
        turned = {"less": "more", "more": "less"}.get(row["verdict"], row["verdict"])
        told.setdefault((other, one), row | {"verdict": turned})
        told[one, other] = row
    less = {pair for pair, row in told.items() if row["verdict"] == "less"}
    wins = {n: [other for other in named if (n, other) in less] for n in named}
    never = [n for n in named if not any((other, n) in less for other in named)]
    best = max(never, key=lambda n: (len(wins[n]), -named[n]["gain"]))
    if not wins[best]:
        return Screen(named, told, list(named), [], [])
    apart = [n for n in named if n not in (best, *wins[best])]
    return Screen(named, told, [best], wins[best], apart)


# Sentences.


def listed(names: Sequence[str]) -> str:
    """Return "a, b and c"."""
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


def _called(*names: str) -> str:
    """Return names as a sentence has them: in quotes where they have a comma."""
    return listed([f"“{name}”" if "," in name else name for name in names])


def _span(values: Sequence[float], text: Callable[[float], str]) -> str:
    """Return "a", or "a to b" of several values."""
    return " to ".join(dict.fromkeys(map(text, (min(values), max(values)))))


def _points(value: float) -> str:
    return f"{100.0 * value:+.1f}"


def _people(number: float) -> str:
    """Return a mean number of people, with a decimal where it is small and not whole."""
    return f"{number:.1f}" if 0.0 < number < 9.95 and number != round(number) else f"{number:,.0f}"


def error_text(error: float) -> str:
    """Return the error of a count."""
    return "less than 0.01" if 0.0 < error < 0.005 else f"{error:.2f}" if error else "0"


def proved_text(number: float, own: float) -> str:
    """Return the number of people proved, and of whom by their own record."""
    return _people(number) + (f" ({_people(own)} by own record)" if number else "")


def interval_text(
    value: float,
    low: float,
    high: float,
    form: Callable[[float], str] = _points,
    most: float = 1.0,
) -> str:
    """Return a value with its interval: "too few" for one that is missing, or as long as can be."""
    if math.isnan(value):
        return "–"
    if value == low == high:
        return f"{form(value)} (exact)"
    known = high - low < most
    return f"{form(value)} ({f'{form(low)} to {form(high)}' if known else 'too few'})"


def people_text(value: float, low: float, high: float, people: float) -> str:
    """Return a number of people with its interval."""
    if value == 0.0 and math.isnan(low):
        return "0 (in no release)"
    return interval_text(value, low, high, _people, people)


def lead(screen: Screen) -> str:
    """Return the sentence in front: which protection lets least be learned, if that was told."""
    best, against, own = screen.best[0], screen.against, "learned from people's own records"
    gains = _span([screen.rows[name]["gain"] for name in screen.best], _points)
    if len(screen.rows) == 1:
        return f"People's own records add {gains} points under {best}"
    if against is None:
        text = f"This audit cannot tell which protection lets least be {own}: {gains} points"
        return text + _needed(screen, itertools.combinations(screen.best, 2))
    several = len(screen.worse) > 1 and not screen.apart
    than = "any other protection" if several else _called(*screen.worse)
    less = f"{_points(screen.rows[against]['gain'])} under {_called(against)}"
    text = f"{_called(best)} lets less be {own} than {than}: {gains} points, against {less}"
    if screen.apart:
        text += f"; it cannot be told apart from {_called(*screen.apart)}"
    return text + _needed(screen, [(best, other) for other in screen.apart])


def _needed(screen: Screen, pairs: Iterable[tuple[str, str]]) -> str:
    """Return the number of releases that would tell pairs of protections apart, if any would."""
    needed = [screen.told[pair]["needed"] for pair in pairs if pair in screen.told]
    known = needed and all(map(math.isfinite, needed))
    return f" ({max(needed):,.0f} releases would tell)" if known else ""


def screen_lines(screen: Screen) -> dict[str, str]:
    """Return the lines below the sentence in front, by what each answers."""
    every, best = [*screen.rows.values()], [screen.rows[name] for name in screen.best]

    def both(text: Callable[[Sequence[Row]], str]) -> str:
        if screen.against is None:
            return text(best)
        return (
            f"{text(best)}; {text([screen.rows[screen.against]])} under {_called(screen.against)}"
        )

    def affected(rows: Sequence[Row]) -> str:
        doubled, proved = (_span([r[n] for r in rows], _people) for n in ("doubled", "proved"))
        return f"{doubled} doubled, {proved} proved"

    def cost(rows: Sequence[Row]) -> str:
        text, hidden = (_span([r[n] for r in rows], f) for n, f in (
            ("error", error_text), ("withheld", "{:.0%}".format)))  # fmt: skip
        return text + (f", {hidden} of counts withheld" if hidden != "0%" else "")

    from bayesrisk.plotting.audit import one_release  # slow to import

    releases = max(int(row["releases"]) for row in every)
    asked, people = every[0]["targets"], every[0]["people"]
    reach = [(row["gain"], one_release(row)) for row in best]
    low, high = min(gain - r for gain, r in reach), max(gain + r for gain, r in reach)
    another = f"{_points(low)} to {_points(high)} points"
    if not any(r != 0.0 for _, r in reach):
        another = "the same"
    elif math.isnan(sum(r for _, r in reach)):
        another = "unknown: there was one"
    return {
        "How sure": f"95 %{' for all verdicts' if len(every) > 1 else ''}"
        + (f", over {releases:,} releases" if releases > 1 else "")
        + (f", of {asked:,} people asked" if asked < people else ""),
        "Affected most": f"of {people:,} people, {both(affected)}",
        "Another release": another,
        "Cost": f"a count is off by {both(cost)}",
    }


def screen_table(screen: Screen) -> PageTable:
    """Return the table of the first screen."""
    several, lines, above = len(screen.rows) > 1, [], ""
    plain = screen.plain if several else None
    heads = [
        "protection", "gain from own record (points)", "people doubled", "people proved",
        "a count is off by", *([f"compared with {plain}"] if plain else []),
        *(["compared with the row above"] if several else []),
    ]  # fmt: skip
    for name, row in screen.rows.items():
        cells = [
            name,
            interval_text(row["gain"], row["gain_lower"], row["gain_upper"]),
            people_text(row["doubled"], row["doubled_lower"], row["doubled_upper"], row["people"]),
            proved_text(row["proved"], row["proved_own"]),
            error_text(row["error"]),
        ]
        others = ([plain] if plain else []) + ([above] if several else [])
        lines.append(cells + [_verdict(screen.told.get((name, other))) for other in others])
        above = name
    return PageTable("", heads, lines)


def _verdict(row: Row | None) -> str:
    """Return the verdict of a comparison in a cell of a table."""
    if row is None:
        return "–"
    if row["lower"] == row["upper"] == 0.0:
        return "exactly as much"
    if row["verdict"] in ("less", "more"):
        sure = row["construction"] and row["verdict"] == "less"
        return f"{row['verdict']}{', by construction' if sure else ''}"
    needed = f" ({row['needed']:,.0f} releases would)" if math.isfinite(row["needed"]) else ""
    return f"cannot tell{needed}"


def audit_brief(
    measures: pd.DataFrame,
    comparisons: pd.DataFrame,
    costs: pd.DataFrame,
    *,
    choice: pd.DataFrame | None = None,
) -> list[str]:
    """Return at most five lines: what was chosen, the sentence in front, then the protections."""
    lines = [] if choice is None else [f"{text}." for text in choice["answer"]]
    for name in population_names(measures):
        some = [of_population(frame, name) for frame in (measures, comparisons, costs)]
        if headline_rows(some[0]).empty:
            continue
        screen = first_screen(*some)
        lines.append(f"{name + ': ' if name else ''}{lead(screen)}.")
        for cells in screen_table(screen).rows:
            doubled, proved = (cell.partition(" (")[0] for cell in cells[2:4])
            people = (
                f"{screen.rows[cells[0]]['people']:,} people {doubled} doubled, {proved} proved"
            )
            lines.append(f"{cells[0]}: {cells[1]} points; of {people}; counts off by {cells[4]}")
    more = len(lines) - _BRIEF + 1
    return lines if more < 2 else [*lines[: _BRIEF - 1], f"and {more} more in the report"]
