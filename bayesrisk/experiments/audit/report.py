"""The files of a complete audit: its tables, figures, and one self-contained HTML page.

The page begins with the first screen: one sentence, four lines, and a row for each protection.
"""

from __future__ import annotations

import base64
import io
import itertools
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pandas as pd

from bayesrisk import plotting
from bayesrisk._files.delimited import csv_bytes
from bayesrisk.experiments.audit.populations import POPULATION, population_names, population_rows
from bayesrisk.experiments.runs import engine
from bayesrisk.risk.audit import METHODS
from bayesrisk.risk.audit.measures import BEST_READINGS, unexplained

Row = Mapping[Any, Any]
EVERYBODY = "everybody"
UNLIKE = "unlike their place"
_AT_RISK = 20  # people of each protection
#: Ways to read a release, an adversary's best model of the protection before all others.
_READINGS = (*BEST_READINGS, "as-true", *METHODS)
_BRIEF = 5  # lines


class Screen(NamedTuple):
    """The rows of the first screen, one for each protection, the cheapest first.

    They are about everybody and the adversary who gains most.  ``verdicts`` has the comparison of
    every two protections; ``best`` the protection that surely improves on most others and none on
    it, or all of them where no order was told; ``worse`` those that it improves on, ``undecided``
    the rest; ``unexplained`` those whose tables the adversary's model does not explain for most
    people.
    """

    rows: dict[str, Row]
    verdicts: dict[tuple[str, str], Row]
    best: list[str]
    worse: list[str]
    undecided: list[str]
    unexplained: list[str]

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

    The adversary whose mean gain over protections is largest comes first, and after all others who
    has no model of some protection that explains the tables of most people: to learn nothing from
    them is the model's failure, and does not say that the protection works.
    """
    rows = measures[measures["group"] == EVERYBODY]
    rank = rows["attack"].map({name: rank for rank, name in enumerate(_READINGS)})
    best = rows.loc[rank.sort_values(kind="stable").index]
    best = best.drop_duplicates(["protection", "adversary"]).sort_index()
    order = pd.DataFrame({
        "fails": unexplained(best).groupby(best["adversary"]).transform("any"),
        "gain": -best.groupby("adversary")["gain"].transform("mean"),
    })  # fmt: skip
    return best.loc[order.sort_values(["fails", "gain"], kind="stable").index]


def first_screen(measures: pd.DataFrame, comparisons: pd.DataFrame, costs: pd.DataFrame) -> Screen:
    """Return the rows of the first screen of one population, and which order was told."""
    rows = headline_rows(measures)
    rows = rows[rows["adversary"] == rows["adversary"].iloc[0]].merge(costs, on="protection")
    rows = rows.sort_values("error", kind="stable")
    failed = rows.loc[unexplained(rows), "protection"].tolist()
    named = {row["protection"]: row for row in rows.to_dict(orient="records")}
    mine = comparisons["adversary"].isin(rows["adversary"])
    mine &= comparisons["attack"].isin({*rows["attack"], METHODS[0]})
    verdicts: dict[tuple[str, str], Row] = {}
    for row in comparisons[mine].to_dict(orient="records"):
        one, other = row["protection"], row["against"]
        verdict = {"less": "more", "more": "less"}.get(row["verdict"], row["verdict"])
        verdicts.setdefault((other, one), row | {"verdict": verdict})
        verdicts[one, other] = row
    less = {pair for pair, row in verdicts.items() if row["verdict"] == "less"}
    wins = {n: [other for other in named if (n, other) in less] for n in named}
    never = [n for n in named if not any((other, n) in less for other in named)]
    best = max(never, key=lambda n: (len(wins[n]), -named[n]["gain"]))
    if not wins[best]:
        return Screen(named, verdicts, list(named), [], [], failed)
    undecided = [n for n in named if n not in (best, *wins[best])]
    return Screen(named, verdicts, [best], wins[best], undecided, failed)


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


def proved_text(number: float, own_record: float) -> str:
    """Return the number of people proved, and of whom by their own record."""
    return _people(number) + (f" ({_people(own_record)} by own record)" if number else "")


def interval_text(
    value: float, low: float, high: float, form: Callable[[float], str] = _points, most: float = 1.0
) -> str:
    """Return a value with its interval: "too few" for one that is missing, or as long as can be."""
    if math.isnan(value):
        return "–"
    if value == low == high:
        return f"{form(value)} (exact)"
    informative = high - low < most
    return f"{form(value)} ({f'{form(low)} to {form(high)}' if informative else 'too few'})"


def people_text(value: float, low: float, high: float, people: float) -> str:
    """Return a number of people with its interval."""
    if value == 0.0 and math.isnan(low):
        return "0 (in no release)"
    return interval_text(value, low, high, _people, people)


def lead(screen: Screen) -> str:
    """Return the sentence in front: which protection lets least be learned, if that was told."""
    text = _order(screen)
    if screen.unexplained:
        text += f"; this reader's model cannot explain the tables of {_called(*screen.unexplained)}"
    return text


def _order(screen: Screen) -> str:
    """Return which protection lets least be learned, if that was told."""
    best, against, learned = screen.best[0], screen.against, "learned from people's own records"
    names = [name for name in screen.best if name not in screen.unexplained] or screen.best
    gains = _span([screen.rows[name]["gain"] for name in names], _points)
    if len(screen.rows) == 1:
        return f"People's own records add {gains} points under {best}"
    if against is None:
        text = f"This audit cannot tell which protection lets least be {learned}: {gains} points"
        return text + _needed(screen, itertools.combinations(screen.best, 2))
    several = len(screen.worse) > 1 and not screen.undecided
    than = "any other protection" if several else _called(*screen.worse)
    less = f"{_points(screen.rows[against]['gain'])} under {_called(against)}"
    text = f"{_called(best)} lets less be {learned} than {than}: {gains} points, against {less}"
    if screen.undecided:
        text += f"; it cannot be told apart from {_called(*screen.undecided)}"
    return text + _needed(screen, [(best, other) for other in screen.undecided])


def _needed(screen: Screen, pairs: Iterable[tuple[str, str]]) -> str:
    """Return the number of releases that would tell pairs of protections apart, if any would."""
    needed = [screen.verdicts[pair]["needed"] for pair in pairs if pair in screen.verdicts]
    finite = needed and all(map(math.isfinite, needed))
    return f" ({max(needed):,.0f} releases would tell)" if finite else ""


def screen_lines(screen: Screen) -> dict[str, str]:
    """Return the lines below the sentence in front, by what each answers."""
    every, best = [*screen.rows.values()], [screen.rows[name] for name in screen.best]

    def pair_text(text: Callable[[Sequence[Row]], str]) -> str:
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
    targets, people = every[0]["targets"], every[0]["people"]
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
        + (f", of {targets:,} people asked" if targets < people else ""),
        "Affected most": f"of {people:,} people, {pair_text(affected)}",
        "Another release": another,
        "Cost": f"a count is off by {pair_text(cost)}",
    }


def screen_table(screen: Screen) -> engine.PageTable:
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
        rivals = ([plain] if plain else []) + ([above] if several else [])
        lines.append(cells + [_verdict(screen.verdicts.get((name, other))) for other in rivals])
        above = name
    return engine.PageTable("", heads, lines)


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
        frames = [population_rows(frame, name) for frame in (measures, comparisons, costs)]
        if headline_rows(frames[0]).empty:
            continue
        screen = first_screen(*frames)
        lines.append(f"{name + ': ' if name else ''}{lead(screen)}.")
        for cells in screen_table(screen).rows:
            doubled, proved = (cell.partition(" (")[0] for cell in cells[2:4])
            people = (
                f"{screen.rows[cells[0]]['people']:,} people {doubled} doubled, {proved} proved"
            )
            lines.append(f"{cells[0]}: {cells[1]} points; of {people}; counts off by {cells[4]}")
    more = len(lines) - _BRIEF + 1
    return lines if more < 2 else [*lines[: _BRIEF - 1], f"and {more} more in the report"]


# Who asked.


def adversary_words(name: str, attributes: Sequence[str]) -> str:
    """Return "a linker who knows sex and age"."""
    if name == "knows-all-but-one":
        text = "one who knows everybody else's record"
        return text + (f" and the {listed(attributes)} of the person" if attributes else "")
    article = "an" if name[:1].lower() in "aeiou" else "a"
    return f"{article} {name}" + (f" who knows {listed(attributes)}" if attributes else "")


def _knowledge(adversary: Row) -> str:
    share = float(adversary["neighbours"])
    text = "what was published and where the person lives"
    if adversary["known"]:
        text += f", and the person's {listed(adversary['known'])}"
    if share == 1.0:
        text += ", and the whole records of everybody else in the place"
    elif share:
        text += f", and the whole records of {share:.0%} of the others in the place"
    return text


# Checks.


def check_totals(checks: pd.DataFrame) -> str:
    """Return the numbers of checks that hold, calibration apart from the others.

    Some calibration is lost in every audit, and much by attacks that take reconstructed records or
    tables at their word.
    """
    decided = checks[checks["verdict"] != "no bound"]
    curves = decided["check"] == "calibration"
    parts = []
    for text, rows in (
        ("calibration curves within their bands", decided[curves]),
        ("other checks as they should be", decided[~curves]),
    ):
        number, passed = len(rows), int((rows["failed"] == 0).sum())
        if number:
            parts.append(f"{'all' if passed == number else f'{passed:,} of'} {number:,} {text}")
    return ", ".join(parts) or "nothing to check"


# Tables: of each column its head, what a cell is made of, and how; the first of it sorts.

Column = tuple[str, str, Callable[..., str]]


def _plain(value: object) -> str:
    if isinstance(value, float):
        value = f"{0.0 if abs(value) < 1e-9 else value:,.4g}".replace("nan", "–")
    return str(value)


def _percent(*values: float) -> str:
    return " / ".join("–" if math.isnan(value) else f"{100.0 * value:.1f}" for value in values)


def _three(name: str) -> str:
    return " ".join(f"{name}_{end}" for end in ("prior", "without", "posterior"))


def _score(value: float, low: float, high: float) -> str:
    return interval_text(value, low, high, "{:.2f}".format, math.inf)


def _error(value: float, low: float, high: float) -> str:
    one = error_text(value)  # of a single release
    return one if math.isnan(low) else interval_text(value, low, high, error_text, math.inf)


def _share(part: float, whole: float) -> str:
    return "–" if math.isnan(part) else f"{part:,.0f} of {whole:,.0f}"


def _widths(*values: float) -> str:
    return " / ".join("no limit" if math.isinf(value) else _plain(value) for value in values)


def _plains(*values: object) -> str:
    return " / ".join(map(_plain, values))


_WHO = (POPULATION, "protection", "attack", "adversary", "group")
_WHOSE: list[Column] = [("read" if n == "attack" else n, n, _plain) for n in _WHO]
_TABLES: dict[str, tuple[str, list[Column]]] = {
    "Belief in the truth: every adversary, every group of people": ("measures", [
        ("asked about", "targets", _plain),
        ("left out", "left_out", _plain),
        ("before / without / after (%)", _three("believed"), _percent),
        ("gain (points)", "gain gain_lower gain_upper", interval_text),
        ("in populations like it", "gain like_lower like_upper", interval_text),
    ]),
    "People affected: every adversary, every group of people": ("measures", [
        ("doubled", "doubled doubled_lower doubled_upper people", people_text),
        ("ten times", "tenfold", _plain),
        ("proved", "proved proved_own", proved_text),
        ("false and certain", "false", _plain),
        ("after over without: half / 1 in 10 / 1 in 100", "ratio_50 ratio_90 ratio_99", _plains),
    ]),
    "Every two protections compared": ("comparisons", [
        ("against", "against", _plain),
        ("difference (points)", "difference lower upper", interval_text),
        ("p", "p", _plain),
        ("verdict", "verdict", _plain),
        ("releases that would tell", "needed", _plain),
        ("by construction", "construction", _plain),
    ]),
    "Guessed right, log scores, and where the error of the gain comes from": ("measures", [
        ("right: before / without / after (%)", _three("right"), _percent),
        ("log score", "log_score log_score_lower log_score_upper", _score),
        ("places", "places", _plain),
        ("releases", "releases", _plain),
        ("error: people / releases / chains (points)",
         "error_people error_releases error_chains", _percent),
    ]),
    "Cost of each protection": ("costs", [
        ("a count is off by", "error error_lower error_upper", _error),
        ("withheld (%)", "withheld", _percent),
    ]),
    "What the counts of one release prove, whatever was believed before": ("proofs", [
        ("in places", "places", _plain),
        ("not stated exactly", "coarsened counts", _share),
        ("of these recovered", "recovered coarsened", _share),
        ("and 0", "empty", _plain),
        ("counts of 1 and 2 recovered", "small_recovered small", _share),
        ("not 0, which it does not say itself", "at_least_one", _plain),
        ("mean width by itself / together", "width_stated width", _widths),
        ("records proved", "records people", _share),
        ("ends proved and reached", "decided counts", _share),
    ]),
    "Every check": ("checks", [
        ("check", "check", _plain),
        ("against", "against", _plain),
        ("failed / compared", "failed compared", _plains),
        ("value", "value", _plain),
        ("bound", "bound", _plain),
        ("power", "power", _plain),
        ("verdict", "verdict", _plain),
    ]),
    "Who is most at risk, for the custodian's eyes": ("at-risk", [
        ("person (row)", "target", _plain),
        ("place", "place", _plain),
        ("after over without", "ratio", _plain),
        ("its standard error", "error", _plain),
        ("without / after (%)", "without posterior", _percent),
    ]),
}  # fmt: skip


_PLAIN = {
    "calibration": "Are statements true as often as their probability says?",
    "errors": "Error of each table",
    "settings": "Every setting that was tried",
}


def _tables(frames: Mapping[str, pd.DataFrame]) -> dict[str, engine.PageTable]:
    """Return tables by the frames that they show; columns that a frame has not are left out."""
    tables = {}
    for caption, (kind, columns) in _TABLES.items():
        rows, names_present = frames[kind].to_dict(orient="records"), {*frames[kind].columns}
        columns_present = [
            (h, n.split(), text)
            for h, n, text in [*_WHOSE, *columns]
            if {*n.split()} <= names_present
        ]
        cells: list[list[str]] = [
            [
                engine.PageCell(text(*(row[n] for n in names)), sort=row[names[0]])
                for _, names, text in columns_present
            ]
            for row in rows
        ]
        tables[caption] = engine.PageTable(caption, [head for head, *_ in columns_present], cells)
    for name, caption in _PLAIN.items():
        if name in frames:
            tables[caption] = engine.table(frames[name].round(3), caption)
    return tables


def proofs_text(proofs: pd.DataFrame) -> str:
    """Return in a sentence what the counts of one release prove under each protection."""
    rows = proofs.to_dict(orient="records")
    open_, sentences = [row for row in rows if row["limited"] and row["coarsened"]], []
    recovered = [
        f"{_share(row['recovered'], row['coarsened'])} under {row['protection']}"
        for row in sorted(open_, key=lambda row: -row["recovered"]) if row["recovered"]
    ]  # fmt: skip
    for names, before, after in (
        (recovered, "counts that one release does not state exactly follow from all of them: ", ""),
        ([r["protection"] for r in open_ if not r["recovered"]], "none follows under ", ""),
        ([r["protection"] for r in rows if not r["coarsened"]], "", ": all stated exactly"),
        ([r["protection"] for r in rows if not r["limited"]], "none can be proved under ", ""),
    ):
        if names:
            sentences.append(before + listed(names) + after)
    text = "; ".join(sentences)
    return text[:1].upper() + text[1:]


def people_at_risk(targets: pd.DataFrame, measures: pd.DataFrame) -> pd.DataFrame:
    """Return the people whose own records tell most under each protection, of one population.

    ``ratio`` is the mean over releases of the probability of the truth after over that without the
    person's record, by the adversary of the first screen, and ``error`` its standard error.
    """
    first = headline_rows(measures)
    first = first[first["adversary"] == first["adversary"].iloc[:1].sum()]
    mine = targets.merge(first[["protection", "attack", "adversary"]])
    mine = mine.dropna(subset=["truth_without", "truth_posterior"])
    mine["ratio"] = mine["truth_posterior"] / mine["truth_without"]
    keys = ["protection", "target", "place"]
    affected = mine.dropna(subset="ratio").groupby(keys, sort=False).agg(
        ratio=("ratio", "mean"), error=("ratio", "sem"), releases=("ratio", "size"),
        without=("truth_without", "mean"), posterior=("truth_posterior", "mean"),
    ).reset_index()  # fmt: skip
    affected = affected.sort_values("ratio", ascending=False, kind="stable")
    affected = affected.groupby("protection", sort=False).head(_AT_RISK)
    order = {name: rank for rank, name in enumerate(first["protection"])}
    return affected.sort_values("protection", key=lambda names: names.map(order), kind="stable")


# The files.

_DOWNLOADS = ("measures", "comparisons", "costs", "proofs", "calibration", "checks", "at-risk")


def audit_files(
    statements: pd.DataFrame,
    errors: pd.DataFrame,
    config: Row,
    checks: pd.DataFrame,
    *,
    measures: pd.DataFrame,
    comparisons: pd.DataFrame,
    costs: pd.DataFrame,
    calibration: pd.DataFrame,
    targets: pd.DataFrame,
    proofs: pd.DataFrame,
    choice: pd.DataFrame | None = None,
    settings: pd.DataFrame | None = None,
) -> dict[str, bytes]:
    """Return the further files of a complete audit, by name.

    Statements, errors and ``checks`` are those of all shards, ``config`` is that of the audit;
    ``choice`` has the chosen settings of protections, ``settings`` all that were tried.
    """
    frames = {
        "measures": measures, "comparisons": comparisons, "costs": costs,
        "calibration": calibration, "checks": checks, "proofs": proofs,
    }  # fmt: skip
    if choice is not None and settings is not None:
        frames |= {"choice": choice, "settings": settings}
    files = {f"{name}.csv": csv_bytes(frame) for name, frame in frames.items()}
    stream = io.BytesIO()
    targets.to_parquet(stream, index=False, compression="zstd")
    files["targets.parquet"] = stream.getvalue()
    populations, risks = [], []
    with TemporaryDirectory() as folder:
        for number, name in enumerate(population_names(errors), start=1):
            mine, pairs, cost, people, proved = (
                population_rows(f, name) for f in (measures, comparisons, costs, targets, proofs)
            )
            # A name may be no name of a file.
            end, title = (f"-{number}", f"{name}: ") if name else ("", "")
            figures = _figures(mine, pairs, cost, Path(folder), end, title)
            risks.append(people_at_risk(people, mine).assign(**{POPULATION: name} if name else {}))
            answer = _answer(mine, pairs, cost, config) | {"proved": proofs_text(proved)}
            populations.append({"name": name, **answer, **figures})
        for file in sorted(Path(folder).iterdir()):
            files[f"figures/{file.name}"] = file.read_bytes()
    frames["at-risk"] = pd.concat(risks, ignore_index=True)
    error_keys = [key for key in (POPULATION, "protection", "level", "table") if key in errors]
    frames["errors"] = (
        errors.groupby(error_keys, sort=False)[["error", "withheld"]].mean().reset_index()
    )
    undecided = statements[statements["status"] == "undecided"]
    keys = [POPULATION, "protection", "attack", "adversary", "release", "target"]
    data = {name: base64.b64encode(csv_bytes(frames[name])).decode() for name in _DOWNLOADS}
    page = engine.render(
        "audit.html",
        title="Audit of protections: what is learned from people's own records",
        made_up=bool(config.get("made_up", False)),
        populations=populations,
        choice=None if choice is None else _choice(choice, config),
        adversaries=[{"name": a["name"], "knows": _knowledge(a)} for a in config["adversaries"]],
        asked=listed(config["stated"]),
        tables=list(_tables(frames).values()),
        checks_total=check_totals(checks),
        lost=len(undecided.drop_duplicates([key for key in keys if key in undecided])),
        downloads=data,
        source=f"Made by bayesrisk {config['version']} from {_origin(config['population'])}, "
        f"seed {config['seed']}.",
        settings_title="Settings of the audit",
        settings=json.dumps(config, indent=2, sort_keys=True),
    )
    return files | {"report.html": page.encode()}


def _answer(
    measures: pd.DataFrame, comparisons: pd.DataFrame, costs: pd.DataFrame, config: Row
) -> dict[str, Any]:
    """Return the first screen of one population; None in it where nobody has a posterior."""
    if headline_rows(measures).empty:
        return {"lead": None, "lines": {}, "who": "", "screen": None}
    screen = first_screen(measures, comparisons, costs)
    name = str(next(iter(screen.rows.values()))["adversary"])
    attributes = {one["name"]: one["known"] for one in config["adversaries"]}
    return {
        "lead": lead(screen),
        "lines": screen_lines(screen),
        "who": adversary_words(name, attributes[name]),
        "screen": screen_table(screen),
    }


def _choice(choice: pd.DataFrame, config: Row) -> dict[str, Any]:
    """Return the goal, the protection that costs least, and a sentence about each."""
    return {
        "goal": f"for {100.0 * (config['quantile'] or 0.0):.4g} % of people, the ratio of "
        f"posterior and belief without their own record shall be at most "
        f"{config['target_ratio']}, for {config['against'] or 'the worst of all adversaries'}",
        "best": " and ".join(choice.loc[choice["cheapest"], "setting"].tolist()),
        "answers": choice["answer"].tolist(),
    }


def _origin(population: str | Mapping[str, str]) -> str:
    if isinstance(population, str):
        return f"records whose digest is {population[:16]}…"
    digests = [f"{name} {digest[:16]}…" for name, digest in population.items()]
    return f"populations whose digests are {', '.join(digests)}"


def _figures(
    measures: pd.DataFrame,
    comparisons: pd.DataFrame,
    costs: pd.DataFrame,
    folder: Path,
    end: str,
    title: str,
) -> dict[str, list[engine.Figure]]:
    """Return the figure that answers, a panel for each adversary, and further ones."""
    axes_by_name, panels, more = {}, [], []
    for name, mine in headline_rows(measures).groupby("adversary", sort=False):
        axes_by_name[str(name)] = plotting.plot_audit(mine.sort_index(), costs, comparisons)[0]
    ends = [end for axes in axes_by_name.values() for end in axes.get_ylim()]
    for number, (name, axes) in enumerate(axes_by_name.items()):
        axes.set_ylim(min(ends), max(ends))
        caption = f"{title}gain of {adversary_words(name, [])} against the cost of each protection"
        file = folder / f"gain-against-cost{end}{f'-adversary-{number + 1}' if number else ''}"
        panels.append(engine.figure(axes, file, caption))
    beliefs = {
        EVERYBODY: "Probability of the truth: before any release, after one without the person's "
        "record, and after the release",
        UNLIKE: "The same of people who are not what most people of their place are",
    }
    for number, (group, caption) in enumerate(beliefs.items()):
        mine = measures[measures["group"] == group]
        if len(mine):
            file = folder / f"beliefs{'-unlike' if number else ''}{end}"
            more.append(engine.figure(plotting.plot_beliefs(mine), file, f"{title}{caption}"))
    return {"figures": panels, "more_figures": more}
