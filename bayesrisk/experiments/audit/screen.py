"""The top of an audit report: a sentence, two lines, and a table row for each protection."""

from __future__ import annotations

import functools
import itertools
import math
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bayesrisk.experiments.audit.populations import population_names, population_rows
from bayesrisk.experiments.audit.words import (
    answers_text,
    capital,
    error_text,
    interval_text,
    people_interval,
    people_text,
)
from bayesrisk.experiments.pages import PageTable, Part, Quotes, listed, what_to_do
from bayesrisk.mechanisms.registry import NOTHING, shown_name
from bayesrisk.risk.audit import METHODS
from bayesrisk.risk.audit.comparisons import AS_MUCH, CONVERSE, HIGHER, LESS, LOWER, NO_MORE
from bayesrisk.risk.audit.measures import BEST_READINGS, unexplained

Row = Mapping[Any, Any]
EVERYBODY = "everybody"
#: Ways to read a release, an adversary's best model of the protection before all others.
_READINGS = (*BEST_READINGS, "as-true", *METHODS)
_BRIEF = 5  # lines
_NAMED = 2  # protections beside the best and none at all that the sentence has room for
_ALMOST = 0.75  # of the people without protection
_VERBS = {
    "doubled": ("doubles the chance of being guessed right for", "doubles it for"),
    "proved": ("lets a true statement be proved of", "lets it be proved of"),
}
_TOLD = {
    "less": "less is learned", "more": "more is learned",
    "no more": "can tell no more, by construction",
    "no less": "can tell no less, by construction",
    "as much": "tells as much, by construction",
}  # fmt: skip


class Screen(NamedTuple):
    """Rows of the top section of a report, one for each protection, cheapest first.

    They are about everybody, and the adversary to whom people's own records tell most. ``verdicts``
    has the comparison of every two protections, in both directions. ``words`` has the meaning of
    each verdict. ``unexplained`` are protections whose tables the adversary's model does not
    explain.
    """

    rows: dict[str, Row]
    verdicts: dict[tuple[str, str], Row]
    words: dict[str, str]
    unexplained: list[str]

    @property
    def plain(self) -> str | None:
        """Name of the protection that publishes every count unchanged, or None."""
        rows = self.rows.items()
        return next((n for n, row in rows if row["error"] == row["withheld"] == 0.0), None)

    @property
    def few(self) -> bool:
        """Whether too few people have a posterior, and most are left out."""
        left = max(row["left_out"] for row in self.rows.values())
        return any(row["targets"] < min(left, _ENOUGH) for row in self.rows.values())

    def fewer(self, one: str, other: str, measure: str, *, exactly: bool = False) -> bool:
        """Return whether ``one`` surely has fewer people doubled or proved than ``other``.

        False if it would contradict an order by construction.  With ``exactly``, a difference
        without chance counts too: it is sure in this population, if not in others.
        """
        row = self.verdicts.get((one, other))
        if row is None or row["verdict"] in HIGHER:
            return False
        exact = exactly and row["scope"] != "this population" and row["targets"] == row["people"]
        return bool(row[f"{measure}_upper"] < 0.0 or (exact and row[measure] <= -0.5))

    def contradicts(self, name: str, measure: str) -> bool:
        """Return whether a protection has fewer people than a post-processing of it has."""
        pairs = [(n, self.verdicts[n, name]) for n in self.rows if (n, name) in self.verdicts]
        coarser = [n for n, row in pairs if row["verdict"] in (NO_MORE, AS_MUCH)]
        return any(self.rows[n][measure] - self.rows[name][measure] >= 0.5 for n in coarser)

    def lower(self, one: str, other: str) -> bool:
        """Return whether ``one`` reveals less than ``other``, or no more by construction."""
        row = self.verdicts.get((one, other))
        return row is not None and row["verdict"] in LOWER


def headline_rows(measures: pd.DataFrame) -> pd.DataFrame:
    """Return the row on everybody of each protection and adversary, by the best attack.

    First comes the adversary to whom own records tell most, by the mean over protections of the log
    of their factor on remaining answers. Two kinds of adversaries come last. Some have no model of
    a protection that explains the tables of most people; some held the truth impossible. An
    adversary who learns nothing, or something false, does not show that a protection protects.
    """
    rows = measures[measures["group"] == EVERYBODY]
    rank = rows["attack"].map({name: rank for rank, name in enumerate(_READINGS)})
    best = rows.loc[rank.sort_values(kind="stable").index]
    best = best.drop_duplicates(["protection", "adversary"]).sort_index()
    with np.errstate(divide="ignore"):  # of a truth that was impossible without the record
        factor = np.log(best["own_factor"])
    order = pd.DataFrame({
        "fails": _fails(best).groupby(best["adversary"]).transform("any"),
        "own": factor.groupby(best["adversary"]).transform("mean"),
    })  # fmt: skip
    return best.loc[order.sort_values(["fails", "own"], kind="stable").index]


def _fails(rows: pd.DataFrame) -> pd.Series:
    return unexplained(rows) | rows["answers_posterior"].eq(np.inf)


def first_screen(measures: pd.DataFrame, comparisons: pd.DataFrame, costs: pd.DataFrame) -> Screen:
    """Return rows and pairwise verdicts of the top section for one population."""
    rows = headline_rows(measures)
    rows = rows[rows["adversary"] == rows["adversary"].iloc[0]].merge(costs, on="protection")
    rows = rows.sort_values("error", kind="stable")
    failed = rows.loc[_fails(rows), "protection"].tolist()
    named = {row["protection"]: row for row in rows.to_dict(orient="records")}
    mine = comparisons["adversary"].isin(rows["adversary"])
    mine &= comparisons["attack"].isin({*rows["attack"], METHODS[0]})
    verdicts: dict[tuple[str, str], Row] = {}
    for row in comparisons[mine].to_dict(orient="records"):
        verdicts[row["protection"], row["against"]] = row
        verdicts.setdefault((row["against"], row["protection"]), _converse(row))
    return Screen(named, verdicts, _words(named), failed)


def _converse(row: Row) -> Row:
    """Return a comparison with the two protections swapped."""
    converse = dict(row)
    converse["verdict"] = CONVERSE.get(row["verdict"], row["verdict"])
    for name in ("doubled", "proved"):
        converse[name] = -row[name]
        converse[f"{name}_lower"], converse[f"{name}_upper"] = (
            -row[f"{name}_upper"], -row[f"{name}_lower"],
        )  # fmt: skip
    converse["factor"], converse["lower"], converse["upper"] = (
        1.0 / row[name] for name in ("factor", "upper", "lower")
    )
    return converse


def _words(rows: Mapping[str, Row]) -> dict[str, str]:
    """Return each protection's meaning in words, with its name where two would read alike."""
    words = {n: _meaning(row) or _called(shown_name(n)) for n, row in rows.items()}
    several = [*words.values()]
    return {n: f"{w} ({n})" if several.count(w) > 1 else w for n, w in words.items()}


def _meaning(row: Row) -> str:
    text = row.get("meaning")
    return text if isinstance(text, str) else ""  # an empty text of a file is missing


def _called(name: str) -> str:
    """Return a name for use in a sentence, in quotes if it contains a comma."""
    return f"“{name}”" if "," in name else name


# The sentence in front.

#: Fewer people than these say nothing of others, where most are left out.
_ENOUGH = 10


def not_reached(names: Sequence[str]) -> str:
    """Return sentences on the protections that were not reached, and on what to write."""
    return (
        f"Not reached before this audit ended: {listed(names)}. Go on with --resume, which "
        "without --time-limit runs to the end. Fewer --targets take less time"
    )


def lead(screen: Screen, missing: Sequence[str] = ()) -> str:
    """Return the opening sentences: the significant differences, their price, what is missing."""
    text = ". ".join(filter(None, [_finding(screen), _price(screen)]))
    if screen.unexplained:
        names = listed([screen.words[name] for name in screen.unexplained])
        text += f". This reader's model cannot explain the tables of {names}"
    return f"{text}. {not_reached(missing)}" if missing else text


def _finding(screen: Screen) -> str:
    """Return sentences on significant differences, and on people without a posterior."""
    left = max(int(row["left_out"]) for row in screen.rows.values())
    targets = min(int(row["targets"]) for row in screen.rows.values())
    if screen.few:
        people = "1 person has" if targets == 1 else f"{targets:,} people have"
        return (
            f"Too few people can be judged: of {targets + left:,} only {people} a posterior under "
            "every protection. Ask again with fewer columns or wider groups (--columns, --cut)"
        )
    text = capital(_difference(screen))
    if not left:
        return text
    more = (
        "1 more person is left out, who has"
        if left == 1
        else f"{left:,} more are left out, who have"
    )
    return f"{text}. {more} no posterior under some protection"


def _difference(screen: Screen) -> str:
    rows, words = screen.rows, screen.words
    if len(rows) == 1:
        ((name, row),) = rows.items()
        return (
            f"under {words[name]} the chance of being guessed right is doubled for "
            f"{_doubled(row)}{_population(row)}; {_remaining(row)}"
        )
    for fewest, measure, beats in _winners(screen):
        exactly = bool(beats.keywords["exactly"])
        return "in this population " * exactly + _people(screen, fewest, measure, beats)
    best, beaten, measured = _lowest(screen)
    if best is None:
        answers = [rows[name]["answers_posterior"] for name in rows]
        span = " to ".join(dict.fromkeys(map(answers_text, (min(answers), max(answers)))))
        if math.isinf(max(answers)) and math.isfinite(min(answers)):
            span = f"at least {answers_text(min(answers))}"
        names = listed([*words.values()])
        text = f"cannot tell which of {names} lets least be learned"
        if beaten:
            text = f"measures no sure difference between {names}"
        text = f"this audit {text}: the truth is as uncertain as among {span}"
        return f"{text} equally likely answers"
    verb = "lets less be learned than" if measured else "can tell no more, by construction, than"
    rest = measured or [n for n in beaten if n != screen.plain]
    against = screen.plain if screen.plain in rest else rest[0]
    text = f"{words[best]} {verb} {listed([words[n] for n in rest])}"
    return f"{text}: {_remaining(rows[best], rows[str(against)])}"


def _winners(screen: Screen) -> Iterator[tuple[str, str, functools.partial[bool]]]:
    """Yield protections that surely affect fewer people than others, the surest first."""
    for exactly, measure in itertools.product((False, True), ("doubled", "proved")):
        beats = functools.partial(screen.fewer, measure=measure, exactly=exactly)
        best = _best(screen, beats, measure)
        if best is not None and not screen.contradicts(best, measure):
            yield best, measure, beats


def _lowest(screen: Screen) -> tuple[str | None, list[str], list[str]]:
    """Return the protection that reveals least, what reveals more, and what was measured to.

    None if no order is told but that no protection at all tells most, by construction.
    """
    best = _best(screen, screen.lower, "answers_posterior")
    beaten = [n for n in screen.rows if best is not None and screen.lower(best, n)]
    measured = [n for n in beaten if screen.verdicts[str(best), n]["verdict"] == LESS]
    return best if measured or not {*beaten} <= {screen.plain} else None, beaten, measured


def _best(
    screen: Screen, beats: Callable[[str, str], bool], measure: str
) -> str | None:  # fmt: skip
    """Return the protection with most wins among those never beaten, or None."""
    names = [name for name in screen.rows if name not in screen.unexplained]
    wins = {n: sum(beats(n, other) for other in names) for n in names}
    never = [n for n in names if wins[n] and not any(beats(other, n) for other in names)]
    sign = -1.0 if measure == "answers_posterior" else 1.0
    return min(never, key=lambda n: (-wins[n], sign * screen.rows[n][measure]), default=None)


def _people(screen: Screen, best: str, measure: str, beats: Callable[[str, str], bool]) -> str:
    """Return a sentence on people affected under the best protection and under those it beats."""
    rows, words = screen.rows, screen.words
    beaten = sorted((n for n in rows if beats(best, n)), key=lambda n: -rows[n][measure])
    base = screen.plain if screen.plain in beaten else None
    verb, repeated = _VERBS[measure]
    parts, whole = (
        [f"{words[best]} {verb} {_doubled(rows[best], measure)}"],
        _population(rows[best], measure),
    )
    for name in [*[n for n in beaten if n != base][:_NAMED], base]:
        if name is None or (name == screen.plain and base is None):  # it was said already
            continue
        number = rows[name][measure]
        parts.append(f"{words[name]} {repeated} {_number(rows[name], measure)}{whole}")
        whole = ""
        if base not in (None, name) and number >= _ALMOST * rows[base][measure] >= _ALMOST * number:
            parts[-1] += f", almost as many as {words[base]} ({_number(rows[base], measure)})"
            base = None
    untold = [n for n in rows if n not in (best, *beaten, *screen.unexplained)]
    if untold:
        do = "do" if len(untold) > 1 else "does"
        parts.append(f"{listed([words[n] for n in untold])} {do} not surely differ in that")
    return "; ".join(parts)


def _doubled(row: Row, measure: str = "doubled") -> str:
    """Return a number of people in words; "nobody" where it is zero beyond doubt."""
    number, high = row[measure], row[f"{measure}_upper"]
    nobody = high < 0.5 or (number == 0.0 and not _sampled(row))
    return "nobody" if nobody else _number(row, measure)


def _sampled(row: Row) -> bool:
    return bool(row["targets"] < row["people"])


def _none_seen(row: Row, measure: str) -> bool:
    """Return whether nobody of a sample is affected, so that no interval is known."""
    return _sampled(row) and row[measure] == 0.0 and math.isnan(row[f"{measure}_lower"])


def _number(row: Row, measure: str) -> str:
    """Return a number of people as text, with an interval if only a sample was asked."""
    value, low, high = (row[f"{measure}{end}"] for end in ("", "_lower", "_upper"))
    if not _sampled(row):
        return people_text(value)
    if _none_seen(row, measure):
        return f"none of the {row['targets']:,} asked"
    return f"about {people_interval(value, low, high, row['people'])}"


def _population(row: Row, measure: str = "doubled") -> str:
    """Return text on the size of the population, and of its sample if there is one."""
    if _none_seen(row, measure):  # said with the number
        return f", of {row['people']:,} people"
    sample = f", of whom {row['targets']:,} were asked" if _sampled(row) else ""
    return f" of {row['people']:,} people{sample}"


def _remaining(row: Row, other: Row | None = None) -> str:
    text = f"the truth is as uncertain as among {answers_text(row['answers_posterior'])}"
    against = "" if other is None else f", against {answers_text(other['answers_posterior'])}"
    return text + " equally likely answers" + against


def _price(screen: Screen) -> str:
    """Return a sentence on the error of each protection's tables."""
    rows = [name for name in screen.rows if name != screen.plain]
    names = [*rows[:_NAMED], *rows[-1:]] if len(rows) > _NAMED + 1 else rows
    errors = {name: error_text(screen.rows[name]["error"]) for name in names}
    # The words of noise have the price in them: "noise of 2.5 a count".
    costs = [f"{errors[n]} under {screen.words[n].replace(f' of {errors[n]} a count', '')}"
             for n in names]  # fmt: skip
    if not costs:
        return ""
    return f"The price: counts off by {listed(costs)}"


# What to do.

_AGAIN = "Ask again with more `--targets` and `--releases`, or choose by the price."
_COMPARE = (
    "`bayesrisk audit RECORDS -o NEW --protection none --protection swapping:rate=0.05 "
    "--protection discrete-gaussian:rho=0.1` compares protections."
)


def audit_advice(
    screen: Screen, basis: str, missing: Sequence[str] = (), met: str | None = None
) -> Part:
    """Return the advice by the protection that separates, or else is alone.

    ``met`` is the cheapest that meets a goal, empty if none does; ``basis`` is who learns what.
    """
    rows, only = screen.rows, len(screen.rows) == 1
    if screen.few or missing:
        return what_to_do(undecided="too few people or protections were reached")
    name = next(iter(rows)) if only else next((n for n, *_ in _winners(screen)), _lowest(screen)[0])
    name = name if met is None else met if met in rows else None
    finding = _affected(screen, screen.plain)
    reason, step = "no protection surely gives less away", _COMPARE if only else _AGAIN
    if name is not None:
        nobody = _doubled(rows[name]) == _doubled(rows[name], "proved") == "nobody"
        reason = _affected(screen, name) or "unseen people may be affected"
        reason = "" if nobody else reason
    if name not in (None, screen.plain):
        step = (
            f"Where counts may be off by {error_text(rows[name]['error'])}, publish by `bayesrisk "
            f"release RECORDS -o NEW --from-audit THIS-FOLDER --protection {shlex.quote(name)}`."
        )
        step += " Noise may need `--places`, too." * bool(rows[name]["randomised"])
        step += f" Even then, {reason}." * bool(finding and reason)
    return what_to_do(finding, undecided=reason, basis=basis, step=step)


def _affected(screen: Screen, name: str | None) -> str:
    """Return for how many people a protection surely doubles the chance, or whom it proves."""
    row = screen.rows.get(str(name), {})
    for measure, (verb, _) in _VERBS.items():
        if row.get(measure, 0.0) >= 0.5 and not row[f"{measure}_lower"] <= 0.0:
            people = f"{_number(row, measure)} of {row['people']:,} people"
            plain = name == screen.plain
            cause = "publishing without protection" if plain else screen.words[str(name)]
            return f"{cause} {verb} {people}"
    return ""


# What may be quoted.

_ANY = {"These numbers hold for any population.": "They are those of the people of this audit."}
NOTHING_SAID = "Nobody has a posterior here, so that nothing can be said."
NO_QUOTES = Quotes(
    [NOTHING_SAID, "No protection was ranked.", "The audit found no number of people affected."],
    {
        "No protection is needed.": "Nothing was found out about any.",
        "All protections are equally good.": "Nothing was found out about any.",
        **_ANY,
    },
)


def audit_quotes(screen: Screen, reader: str, secret: str) -> Quotes:
    """Return sentences about an audit that may be quoted, and sentences that may not.

    ``reader`` is the adversary of the first screen in words, and ``secret`` the guessed attributes.
    """
    rows, words = screen.rows, screen.words
    first = next(iter(rows.values()))
    before, without = first["answers_prior"], first["answers_without"]
    names = [*rows] if len(rows) <= _NAMED + 1 else [*[*rows][:_NAMED], [*rows][-1]]
    after = listed(
        [f"{answers_text(rows[n]['answers_posterior'])} under {words[n]}" for n in names]
    )
    price = _price(screen).removeprefix("The price: counts ")
    most = max(row["doubled"] for row in rows.values())
    estimate = "About " if _sampled(first) else ""
    wrong = {"The best of these protections is safe.": f"Only {secret} was asked about, and what "
             f"{reader} learns; others may know more."}  # fmt: skip
    if people_text(most) not in ("0", "fewer than 1"):
        wrong[f"{estimate}{people_text(most)} people were identified."] = (
            "The truth about them became twice as probable as without their own record; it need "
            "not be known."
        )
    elif without < before:
        wrong["All that is learned comes from people's own records."] = (
            f"A release of everybody else's records alone leaves {answers_text(without)} of "
            f"{answers_text(before)} equally likely answers."
        )
    else:
        wrong["Nobody will ever be affected."] = "Another adversary may know more."
    return Quotes(
        [
            f"{_finding(screen)}.",
            f"On average a count is {price}." if price else "Counts are published as they are.",
            f"Before any release {secret} of a person is to {reader} as uncertain as among "
            f"{answers_text(before)} equally likely answers; after it as among {after}.",
        ],
        wrong | _ANY,
    )


# What stands below it.


def screen_lines(screen: Screen) -> dict[str, str]:
    """Return the lines below the opening sentence, by topic."""
    from bayesrisk.plotting.audit import WIDE, one_release  # slow to import

    every = [*screen.rows.values()]
    releases = max(int(row["releases"]) for row in every)
    targets, people = every[0]["targets"], every[0]["people"]
    sure = f"95 %{' for all verdicts' if len(every) > 1 else ''}"
    sure += f", {releases:,} releases" if releases > 1 else ""
    sure += f", {f'{targets:,} of ' if targets < people else ''}{people:,} people"
    spans, fixed = [], True
    for name, row in screen.rows.items():
        low, high = one_release(row)
        if row["randomised"]:
            fixed = False
            if not math.isnan(low):
                span = f"{answers_text(low)} to {answers_text(high)}"
                span = span if high < WIDE * low else "unknown, of so few,"
                spans.append((row["error"], f"{span} under {screen.words[name]}"))
    spans = sorted(spans)[-1:]  # of the most expensive one; all have it in the figure
    another = "the same" if fixed else listed([text for _, text in spans] or ["unknown: of one"])
    return {"How sure": sure, "Another release": another}


def screen_table(screen: Screen, missing: Sequence[str] = ()) -> PageTable:
    """Return the table of protections in the top section, with those that were not reached."""
    plain = screen.plain if len(screen.rows) > 1 else None
    heads = [
        "protection", "remaining answers before", "and after (interval)", "people doubled",
        "people proved", "error of a count", *([f"against {NOTHING}"] if plain else []),
    ]  # fmt: skip
    lines = []
    for name, row in screen.rows.items():
        after, low, high = (row[f"answers_posterior{end}"] for end in ("", "_lower", "_upper"))
        cells = [
            _titled(name, _meaning(row)),
            answers_text(row["answers_prior"]),
            interval_text(after, low, high),
            *(
                people_interval(row[m], row[f"{m}_lower"], row[f"{m}_upper"], row["people"])
                for m in ("doubled", "proved")
            ),
            error_text(row["error"]),
        ]
        verdict = [verdict_text(screen.verdicts.get((name, plain)))] if plain else []
        lines.append(cells + verdict)
    lines += [[name, "not reached", *["–"] * (len(heads) - 2)] for name in missing]
    return PageTable("", heads, lines)


def _titled(name: str, words: str) -> str:
    """Return a protection's name, followed by its meaning unless the name says it."""
    title = shown_name(name)
    plain = all(word in title for word in words.removesuffix(" of people").split())
    return title if plain else f"{title} ({words})"


def verdict_text(row: Row | None) -> str:
    """Return a verdict as the text of a table cell, with the data needed to decide it."""
    if row is None:
        return "–"
    if row["verdict"] in _TOLD:
        return _TOLD[row["verdict"]]
    more = [
        f"{row[name]:,.0f} {unit}"
        for name, unit in (("needed", "releases"), ("needed_people", "people asked"))
        if math.isfinite(row[name])
    ]
    return "cannot tell" + (f" ({' or '.join(more)} would)" if more else "")


def first_line(measures: pd.DataFrame, protection: str, adversary: str) -> str:
    """Return a line about one protection and adversary, before others are known."""
    rows = headline_rows(measures)
    rows = rows[rows["adversary"] == adversary]
    if rows.empty:
        return f"{shown_name(protection)}, {adversary}: nobody who was asked about has a posterior"
    row = rows.to_dict(orient="records")[0]
    left = f"; {row['left_out']:,} more have no posterior" if row["left_out"] else ""
    return f"{_line(protection, row)} ({adversary}){left}"


def _line(protection: str, row: Row) -> str:
    """Return in a line what is learned under a protection."""
    after, low, high = (row[f"answers_posterior{end}"] for end in ("", "_lower", "_upper"))
    doubled, proved = (_number(row, measure) for measure in ("doubled", "proved"))
    none = any(_none_seen(row, measure) for measure in ("doubled", "proved"))
    sample = f" ({row['targets']:,} asked)" if _sampled(row) and not none else ""
    return (
        f"{shown_name(protection)}: remaining answers {answers_text(row['answers_prior'])} "
        f"before, {interval_text(after, low, high)} after; of {row['people']:,} people{sample} "
        f"{doubled} doubled, {proved} proved"
    )


def audit_brief(
    measures: pd.DataFrame,
    comparisons: pd.DataFrame,
    costs: pd.DataFrame,
    *,
    choice: pd.DataFrame | None = None,
    missing: Sequence[str] = (),
) -> list[str]:
    """Return a short text report: chosen settings, the opening sentence, the protections."""
    lines = [] if choice is None else [f"{text}." for text in choice["answer"]]
    for name in population_names(measures):
        frames = [population_rows(frame, name) for frame in (measures, comparisons, costs)]
        if headline_rows(frames[0]).empty:
            continue
        screen = first_screen(*frames)
        adversary = next(row["adversary"] for row in screen.rows.values())
        text = f"{name + ': ' if name else ''}{lead(screen, missing).rstrip('.')}"
        lines.append(f"{text}. Adversary: {adversary}.")
        for key, row in screen.rows.items():
            lines.append(f"{_line(key, row)}; counts off by {error_text(row['error'])}")
    more = len(lines) - _BRIEF + 1
    return lines if more < 2 else [*lines[: _BRIEF - 1], f"and {more} more in the report"]
