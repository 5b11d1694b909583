"""The files of a complete audit: summaries, figures, and one self-contained HTML page."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from bayesrisk import plotting
from bayesrisk._files.delimited import csv_bytes
from bayesrisk.experiments.audit.populations import (
    POPULATION,
    by_population,
    of_population,
    population_names,
)
from bayesrisk.experiments.runs import page as html
from bayesrisk.risk.audit import (
    METHODS,
    audit_calibration,
    audit_certain,
    audit_summary,
    audit_targets,
)

Row = Mapping[Any, Any]
EVERYBODY, UNLIKE = "everybody", "unlike their place"
#: How an adversary concludes, by attack.
READINGS = {
    "likelihood": "weighing all possible records",
    "as-true": "taking the tables as true",
    "swap-aware": "reckoning with how many records changed places",
    "working-error": "reckoning with how large the errors are",
    "reconstruction": "taking reconstructed records at their word",
    "majority": "saying what most people of the place are",
    "claims": "believing only what the tables, taken as true, prove",
}

# Sentences about every protection: who is right how often.


def answers(summary: pd.DataFrame, size: pd.Series, config: Row) -> list[dict[str, Any]]:
    """Return for each protection who asks, and a line for each way to conclude."""
    known = {one["name"]: one["known"] for one in config["adversaries"]}
    sections = []
    for protection in size.index.tolist():
        rows = summary[summary["protection"] == protection]
        asked = []
        for name, mine in rows.groupby("adversary", sort=False):
            everybody = mine[mine["group"] == EVERYBODY].to_dict(orient="records")
            unlike = mine[mine["group"] == UNLIKE].set_index("attack").to_dict(orient="index")
            before = {f"{row['right_prior']:.1%}" for row in everybody}
            once = len(before) == 1
            who = _adversary(str(name), known[name])
            who += f" ({before.pop()} right before any release)" if once else ""
            # Two readings of a release with the same numbers are one line.
            lines: dict[tuple[str, str], list[str]] = {}
            for row in everybody:
                method = row["attack"] if row["attack"] in METHODS else ""
                text = _right(row, before=not once) + _unlike(unlike.get(row["attack"]))
                lines.setdefault((method, text), []).append(READINGS[row["attack"]])
            texts = [{"how": " or ".join(how), "right": r} for (_, r), how in lines.items()]
            asked.append({"who": who, "lines": texts})
        sections.append({"name": protection, "error": float(size[protection]), "asked": asked})
    return sections


def _adversary(name: str, known: Sequence[str]) -> str:
    if name == "knows-all-but-one":
        text = "One who knows everybody else's record"
        return text + (f" and the {listed(known)} of the person" if known else "")
    article = "An" if name[:1].lower() in "aeiou" else "A"
    return f"{article} {name}" + (f" who knows {listed(known)}" if known else "")


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


def listed(names: Sequence[str]) -> str:
    """Return "a, b and c"."""
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


def _right(row: Row, *, before: bool) -> str:
    prior = f" ({row['right_prior']:.1%} before any release)" if before else ""
    return (
        f"{row['right_posterior']:.1%} right, {row['right_without']:.1%} without their own "
        f"records{prior}: {_points(row)}"
    )


def _unlike(row: Row | None) -> str:
    if row is None:
        return ""
    right = f"{row['right_posterior']:.1%} and {row['right_without']:.1%}"
    return f"; of the {row['targets']} unlike their place {right}"


def _points(row: Row) -> str:
    """Return a difference in points and its interval."""
    own, low, high = (100.0 * row[name] for name in ("own", "own_lower", "own_upper"))
    if row["places"] < 2:
        return f"{own:+.1f} points (of one place alone, so without an interval)"
    if own == low == high:
        return f"{own:+.1f} points (the same in every place)"
    return f"{own:+.1f} points ({low:+.1f} to {high:+.1f})"


# Sentences about the checks of each kind.

_MOST = 6  # lines of one check; the others are in the table


def check_sentences(checks: pd.DataFrame) -> dict[str, Any]:
    """Return a sentence and lines about the checks of each kind, of one population."""
    kinds = {name: rows.to_dict(orient="records") for name, rows in checks.groupby("check")}
    sentences: dict[str, Any] = {}
    for name, describe in _DESCRIPTIONS.items():
        words, lines = describe(kinds.get(name, []))
        if len(lines) > _MOST:
            lines = [*lines[:_MOST], f"and {len(lines) - _MOST} more in the table"]
        sentences[name] = {"words": words, "lines": lines}
    return sentences


def check_totals(checks: pd.DataFrame) -> str:
    """Return the numbers of checks that hold, calibration apart from the others.

    Some calibration is lost in every audit, and much by attacks that take reconstructed records or
    tables at their word.
    """
    done = checks[checks["verdict"] != "no bound"]
    curves = done["check"] == "calibration"
    parts = []
    for text, rows in (
        ("calibration curves within their bands", done[curves]),
        ("other checks as they should be", done[~curves]),
    ):
        number, kept = len(rows), int((rows["failed"] == 0).sum())
        if number:
            parts.append(f"{'all' if kept == number else f'{kept:,} of'} {number:,} {text}")
    return ", ".join(parts) or "nothing to check"


def _counted(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def _calibration(rows: Sequence[Row]) -> tuple[str, list[str]]:
    if not rows:
        return "Nobody has a posterior, so that there is nothing to hold against the truth.", []
    outside = [row for row in rows if row["failed"]]
    words = (
        f"Of {_counted(len(rows), 'curve')} (one for each protection, adversary and way to "
        f"conclude), {len(rows) - len(outside)} within their bands."
    )
    worst = [_curve(row) for row in sorted(outside or rows, key=lambda row: -row["lost"])]
    return words, worst if outside else [f"most is lost by {worst[0]}"]


def _curve(row: Row) -> str:
    more = "more" if row["value"] > 0 else "less"
    where = "outside" if row["failed"] else "within"
    return (
        f"{_pair(row)}, {READINGS[row['attack']]}: {where} the band; probability and truth are "
        f"{100 * row['lost']:.1f} points apart on average ({100 * row['lost_before']:.1f} before "
        f"any release), and {100 * abs(row['value']):.1f} points {more} is promised than is true"
    )


def _ordering(rows: Sequence[Row]) -> tuple[str, list[str]]:
    if not rows:
        return "No protection here can be made from another one: there is no order to keep.", []
    wrong = [row for row in rows if row["failed"]]
    words = (
        f"Of {_counted(len(rows), 'difference')} between two protections, about the same people, "
        f"{len(wrong) or 'none'} below 0 by more than chance."
    )
    lines = []
    for row in wrong or rows:
        ends = (row[name] for name in ("value", "lower", "upper"))
        value, low, high = (f"{end:+.3f}" if math.isfinite(end) else "no bound" for end in ends)
        pair = f"{row['protection']} less {row['against']}, {row['adversary']}"
        lines.append(f"{pair}: {value} ({low} to {high})")
    return words, lines


def _theory(rows: Sequence[Row]) -> tuple[str, list[str]]:
    bound = [row for row in rows if row["verdict"] != "no bound"]
    if not bound:
        return "No protection here has a bound for single statements.", []
    lines = []
    for row in bound:
        kept = f"{row['failed']} beyond it" if row["failed"] else "kept by all"
        lines.append(
            f"{_pair(row)}: at most exp({row['value']:.2f}), where exp({row['bound']:.4g}) is the "
            f"bound: {kept}"
        )
    number, beyond = (sum(int(row[name]) for row in bound) for name in ("compared", "failed"))
    return f"Of {_counted(number, 'statement')}, {beyond or 'none'} beyond the bound.", lines


def _agreement(rows: Sequence[Row]) -> tuple[str, list[str]]:
    lines = []
    for against, text in _PROVERS.items():
        mine = [row for row in rows if row["against"] == against]
        compared, failed = (sum(int(row[n]) for row in mine) for n in ("compared", "failed"))
        if compared:
            lines.append(text.format(f"{compared:,}", f"{failed:,}" if failed else "none"))
    if not lines:
        return "No posterior here is certain by calculation: there is nothing to compare.", []
    if not any(row["against"] == "claims" for row in rows):
        lines.append(
            "under true counts, --method posterior,claims holds them against the provers as well"
        )
    return "", lines


_PROVERS = {
    "truth": "of {} statements that are certain, {} contradicting what is true of the person",
    "claims": "of {} posteriors, {} contradicting what “claims” proves or leaves open",
    "reconstruction": "of {} posteriors, {} differing from the only records that fit the tables",
}
_DESCRIPTIONS = {
    "calibration": _calibration,
    "ordering": _ordering,
    "theory": _theory,
    "agreement": _agreement,
}


def _pair(row: Row) -> str:
    return f"{row['protection']}, {row['adversary']}"


# The files.

_DOWNLOADS = {
    "summary": "the summary",
    "calibration": "the calibration",
    "certain": "what is said with certainty",
    "checks": "the checks",
    "errors": "the errors of the tables",
}


def audit_files(
    statements: pd.DataFrame,
    errors: pd.DataFrame,
    config: Row,
    checks: pd.DataFrame,
    *,
    choice: pd.DataFrame | None = None,
    settings: pd.DataFrame | None = None,
) -> dict[str, bytes]:
    """Return the further files of a complete audit, by name.

    Statements, errors and ``checks`` are those of all shards, ``config`` is that of the audit;
    ``choice`` has the chosen settings of protections, ``settings`` all that were tried.
    """
    targets = by_population(statements, audit_targets)
    frames = {
        "targets": targets,
        "summary": by_population(targets, audit_summary),
        "calibration": by_population(statements, audit_calibration),
        "certain": by_population(statements, audit_certain),
        "checks": checks,
        "errors": errors,
    }
    if choice is not None and settings is not None:
        frames |= {"choice": choice, "settings": settings}
    files = {f"{name}.csv": csv_bytes(frame) for name, frame in frames.items()}
    figures, populations = [], []
    with TemporaryDirectory() as folder:
        for number, name in enumerate(population_names(errors), start=1):
            summary = of_population(frames["summary"], name)
            # Mean absolute error of a count of each protection.
            by_protection = of_population(errors, name).groupby("protection", sort=False)
            size = by_protection["mean_absolute_error"].mean()
            # A name may be no name of a file.
            end, title = (f"-{number}", f"{name}: ") if name else ("", "")
            figures.append(_figures(summary, size, _curves(config), Path(folder), end, title))
            sentences = check_sentences(of_population(checks, name))
            populations.append(
                {"name": name, "answers": answers(summary, size, config), "checks": sentences}
            )
        for file in sorted(Path(folder).iterdir()):
            files[f"figures/{file.name}"] = file.read_bytes()
    undecided = statements[statements["status"] == "undecided"]
    keys = [
        n for n in (POPULATION, "protection", "attack", "adversary", "target") if n in undecided
    ]
    page = html.render(
        "audit.html",
        title="Audit of protections: what is learned about people, and what from their own records",
        populations=populations,
        choice=None if choice is None else _choice(choice, config),
        adversaries=[{"name": a["name"], "knows": _knowledge(a)} for a in config["adversaries"]],
        asked=listed(config["stated"]),
        confidence="95%",
        figures=[drawn for some in figures for drawn in some[:1]],
        more_figures=[drawn for some in figures for drawn in some[1:]],
        tables=_tables(frames),
        checks_total=check_totals(checks),
        checked=html.table(checks.astype(object).where(checks.notna(), ""), "Every check"),
        lost=int(undecided.groupby(keys).ngroups),
        downloads=[
            {
                "name": f"{name}.csv",
                "data": base64.b64encode(files[f"{name}.csv"]).decode("ascii"),
                "about": about,
            }
            for name, about in _DOWNLOADS.items()
        ],
        source=f"Made by bayesrisk {config['version']} from {_origin(config['population'])}, "
        f"seed {config['seed']}.",
        settings_title="Settings of the audit",
        settings=json.dumps(config, indent=2, sort_keys=True),
    )
    return files | {"report.html": page.encode()}


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


# Tables and figures of the page.

_SHARES = ("right_prior", "right_without", "right_posterior", "own", "own_lower", "own_upper")
_FALSE = tuple(
    f"false_{name}{end}" for end in ("", "_without") for name in ("share", "lower", "upper")
)
#: Columns of the summary that the page has, and their heads.
_HEADS = {
    POPULATION: POPULATION,
    "protection": "protection",
    "attack": "read",
    "adversary": "adversary",
    "group": "group",
    "targets": "targets",
    "left_out": "left out",
    "right_prior": "right before (%)",
    "right_without": "right without own record (%)",
    "right_posterior": "right after (%)",
    "own": "due to own record (points)",
    "own interval": "95 % interval",
    "learned_50": "learned, half",
    "learned_99": "learned, 1 in 100",
    "own_50": "from own record, half",
    "own_99": "from own record, 1 in 100",
}


def _tables(frames: Mapping[str, pd.DataFrame]) -> list[html.PageTable]:
    summary = _percent(frames["summary"], _SHARES)
    low, high = (summary[f"own_{end}"].map("{:+.1f}".format) for end in ("lower", "upper"))
    summary["own interval"] = low.astype(str) + " to " + high.astype(str)
    heads = {name: head for name, head in _HEADS.items() if name in summary}
    curve = ("posterior", "correct", "correct_lower", "correct_upper")
    tables = {
        "Every adversary, every group of people": summary[list(heads)].rename(columns=heads),
        "Are statements true as often as their probability says?": _percent(
            frames["calibration"], curve
        ),
        "What is said with certainty, and how much of it is false": _percent(
            frames["certain"], _FALSE
        ),
        "Error of the published tables": frames["errors"],
    }
    if "settings" in frames:
        tables["Every setting that was tried"] = frames["settings"]
    return [html.table(frame, caption) for caption, frame in tables.items()]


def _percent(frame: pd.DataFrame, columns: tuple[str, ...]) -> pd.DataFrame:
    return frame.assign(**{name: (100.0 * frame[name]).round(1) for name in columns})


def _figures(
    summary: pd.DataFrame,
    size: pd.Series,
    curves: list[list[str]],
    folder: Path,
    end: str,
    title: str,
) -> list[html.Figure]:
    """Return the figure that answers, and further ones, of one population."""
    everybody = summary[summary["group"] == EVERYBODY]
    if everybody.empty:
        return []
    joined = "; a grey line joins one mechanism's settings, in order" if curves else ""
    # All readings of a release are one method; every other method has a figure of its own.
    posterior, *others = METHODS
    method = everybody["attack"].where(everybody["attack"].isin(others), posterior)
    drawn = []
    for number, (name, rows) in enumerate(everybody.groupby(method, sort=False)):
        how = f" by {READINGS[str(name)]}" if name in READINGS else ""
        caption = (
            f"{title}What is learned from people's own records{how} (with 95 % intervals), "
            f"against the mean absolute error of a published count: low and left is best{joined}"
        )
        file = folder / ("own-against-error" + (f"-{name}" if number else "") + end)
        drawn.append(html.figure(plotting.plot_audit(rows, size, curves=curves), file, caption))
    beliefs = {
        f"beliefs{end}": (
            everybody,
            "How many people are guessed right: before any release, from a release without "
            "their own record, and after the release",
        ),
        f"beliefs-unlike{end}": (
            summary[summary["group"] == UNLIKE],
            "The same for people who are not what most people of their place are",
        ),
    }
    for name, (rows, caption) in beliefs.items():
        if len(rows):
            chart = plotting.plot_beliefs(rows)
            drawn.append(html.figure(chart, folder / name, f"{title}{caption}"))
    return drawn


def _curves(config: Row) -> list[list[str]]:
    """Return the protections that differ in one number alone, in its order."""
    kinds: dict[tuple[str, str, str], dict[str, Fraction]] = {}
    for one in config["protections"]:
        for key, value in one["parameters"].items():
            others = {k: v for k, v in one["parameters"].items() if k != key}
            kind = (one["mechanism"], key, json.dumps(others, sort_keys=True, default=str))
            with suppress(TypeError, ValueError, ZeroDivisionError):  # it is no number
                kinds.setdefault(kind, {})[one["name"]] = Fraction(str(value))
    return [sorted(kind, key=lambda n: kind[n]) for kind in kinds.values() if len(kind) > 1]
