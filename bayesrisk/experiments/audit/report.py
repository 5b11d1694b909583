"""The files of a complete audit: summaries, figures, and one self-contained HTML page."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator, Mapping, Sequence
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
    AuditConfig,
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

# -----------------------------------------------------------------------------
# What the report of an audit says in words: of every protection, and who is right how often.


EVERYBODY, UNLIKE = "everybody", "unlike their place"
READ = {
    "likelihood": "weighing all possible records",
    "as-true": "taking the tables as true",
    "swap-aware": "reckoning with how many records changed places",
    "working-error": "reckoning with how large the errors are",
    "reconstruction": "taking reconstructed records at their word",
    "majority": "saying what most people of the place are",
    "claims": "believing only what the tables, taken as true, prove",
}


def answers(summary: pd.DataFrame, size: pd.Series, config: AuditConfig) -> list[dict[str, Any]]:
    """Return for each protection who asks, and a line for each way to conclude, in words."""
    known = {one["name"]: one["known"] for one in config.adversaries}
    found = []
    for protection in size.index.tolist():
        rows = summary[summary["protection"] == protection]
        asked = []
        for name, mine in rows.groupby("adversary", sort=False):
            whole = mine[mine["group"] == EVERYBODY].to_dict(orient="records")
            unlike = mine[mine["group"] == UNLIKE].set_index("attack").to_dict(orient="index")
            before = {f"{row['right_prior']:.1%}" for row in whole}
            once = len(before) == 1
            who = _who(str(name), known[name])
            who += f" ({before.pop()} right before any release)" if once else ""
            told: dict[tuple[str, str], list[str]] = {}
            for row in whole:
                # Two readings of a release that come to the same are one line.
                method = row["attack"] if row["attack"] in METHODS else ""
                text = _right(row, before=not once) + _unlike(unlike.get(row["attack"]))
                told.setdefault((method, text), []).append(READ[row["attack"]])
            lines = [{"how": " or ".join(how), "right": right} for (_, right), how in told.items()]
            asked.append({"who": who, "lines": lines})
        found.append({"name": protection, "error": float(size[protection]), "asked": asked})
    return found


def choice_told(choice: pd.DataFrame, config: AuditConfig) -> dict[str, Any]:
    """Return what was looked for, what was found of each protection, and which costs least."""
    best = choice.loc[choice["cheapest"], "setting"].tolist()
    return {
        "goal": f"for {100.0 * (config.quantile or 0.0):.4g} % of people, the ratio of posterior "
        f"and belief without their own record shall be at most {config.target_ratio}, "
        f"for {config.against or 'the worst of all adversaries'}",
        "best": " and ".join(best),
        "told": choice["answer"].tolist(),
    }


def introduced(adversary: Mapping[str, Any]) -> dict[str, str]:
    """Return who an adversary is, in words."""
    share = float(adversary["neighbours"])
    knows = "what was published and where the person lives"
    if adversary["known"]:
        knows += f", and the person's {listed(adversary['known'])}"
    if share == 1.0:
        knows += ", and the whole records of everybody else in the place"
    elif share:
        knows += f", and the whole records of {share:.0%} of the others in the place"
    return {"name": str(adversary["name"]), "knows": knows}


def listed(names: Sequence[str]) -> str:
    """Return "a, b and c"."""
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


def _who(name: str, known: Sequence[str]) -> str:
    if name == "knows-all-but-one":
        return "One who knows everybody else's record" + (
            f" and the {listed(known)} of the person" if known else ""
        )
    article = "An" if name[:1].lower() in "aeiou" else "A"
    return f"{article} {name}" + (f" who knows {listed(known)}" if known else "")


def _right(row: Mapping[Any, Any], *, before: bool) -> str:
    """Return how many people are guessed right; how many were before too, where nobody said it."""
    prior = f" ({row['right_prior']:.1%} before any release)" if before else ""
    return (
        f"{row['right_posterior']:.1%} right, {row['right_without']:.1%} without their own "
        f"records{prior}: {_points(row)}"
    )


def _unlike(row: Mapping[Any, Any] | None) -> str:
    if row is None:
        return ""
    return (
        f"; of the {row['targets']} unlike their place {row['right_posterior']:.1%} and "
        f"{row['right_without']:.1%}"
    )


def _points(row: Mapping[Any, Any]) -> str:
    """Return a difference in points and its interval."""
    own, low, high = (100.0 * row[name] for name in ("own", "own_lower", "own_upper"))
    if row["places"] < 2:
        return f"{own:+.1f} points (of one place alone, so without an interval)"
    if own == low == high:
        return f"{own:+.1f} points (the same in every place)"
    return f"{own:+.1f} points ({low:+.1f} to {high:+.1f})"


def counted(number: int, thing: str) -> str:
    """Return "1 thing" or "7 things"."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


# -----------------------------------------------------------------------------
# What the report of an audit says of its checks, in words.


_MOST = 6  # lines of one check; the others are in the table
Row = Mapping[Any, Any]


def checks_told(checks: pd.DataFrame) -> dict[str, Any]:
    """Return a sentence and lines about the checks of each kind.

    Parameters
    ----------
    checks : pandas.DataFrame
        As :func:`~bayesrisk.risk.audit_checks` gives them, of one population.
    """
    kinds = {name: rows.to_dict(orient="records") for name, rows in checks.groupby("check")}
    told: dict[str, Any] = {}
    for name, tell in _TOLD.items():
        words, lines = tell(kinds.get(name, []))
        told[name] = {"words": words, "lines": [*lines[:_MOST], *_rest(lines)]}
    return told


def checks_said(checks: pd.DataFrame) -> str:
    """Return what checks came to, in few words.

    Calibration is apart from the others: some of it is lost in every audit, and by attacks that
    take reconstructed records or tables at their word much.
    """
    done = checks[checks["verdict"] != "no bound"]
    parts = []
    for what, rows in (
        ("calibration curves within their bands", done[done["check"] == "calibration"]),
        ("other checks as they should be", done[done["check"] != "calibration"]),
    ):
        number, kept = len(rows), int((rows["failed"] == 0).sum())
        if number:
            parts.append(f"{'all' if kept == number else f'{kept:,} of'} {number:,} {what}")
    return ", ".join(parts) or "nothing to check"


def _rest(lines: list[str]) -> Iterator[str]:
    if len(lines) > _MOST:
        yield f"and {len(lines) - _MOST} more in the table"


def _calibration(rows: Sequence[Row]) -> tuple[str, list[str]]:
    if not rows:
        return "Nobody has a posterior, so that there is nothing to hold against the truth.", []
    outside = [row for row in rows if row["failed"]]
    words = (
        f"Of {counted(len(rows), 'curve')} (one for each protection, adversary and way to "
        f"conclude), {len(rows) - len(outside)} within their bands."
    )
    worst = [_curve(row) for row in sorted(outside or rows, key=lambda row: -row["lost"])]
    return words, worst if outside else [f"most is lost by {worst[0]}"]


def _curve(row: Row) -> str:
    more = "more" if row["value"] > 0 else "less"
    where = "outside" if row["failed"] else "within"
    return (
        f"{_pair(row)}, {READ[row['attack']]}: {where} the band; probability and truth are "
        f"{100 * row['lost']:.1f} points apart on average ({100 * row['lost_before']:.1f} before "
        f"any release), and {100 * abs(row['value']):.1f} points {more} is promised than is true"
    )


def _ordering(rows: Sequence[Row]) -> tuple[str, list[str]]:
    if not rows:
        return "No protection here can be made from another one: there is no order to keep.", []
    wrong = [row for row in rows if row["failed"]]
    words = (
        f"Of {counted(len(rows), 'difference')} between two protections, about the same people, "
        f"{len(wrong) or 'none'} below 0 by more than chance."
    )
    lines = [
        f"{row['protection']} less {row['against']}, {row['adversary']}: "
        f"{_signed(row['value'])} ({_signed(row['lower'])} to {_signed(row['upper'])})"
        for row in wrong or rows
    ]
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
    number = sum(int(row["compared"]) for row in bound)
    beyond = sum(int(row["failed"]) for row in bound)
    return f"Of {counted(number, 'statement')}, {beyond or 'none'} beyond the bound.", lines


def _agreement(rows: Sequence[Row]) -> tuple[str, list[str]]:
    lines = []
    for against, said in _PROVERS.items():
        mine = [row for row in rows if row["against"] == against]
        compared, failed = (sum(int(row[n]) for row in mine) for n in ("compared", "failed"))
        if compared:
            lines.append(f"{said.format(f'{compared:,}', f'{failed:,}' if failed else 'none')}")
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
_TOLD = {
    "calibration": _calibration,
    "ordering": _ordering,
    "theory": _theory,
    "agreement": _agreement,
}


def _pair(row: Row) -> str:
    return f"{row['protection']}, {row['adversary']}"


def _signed(value: float) -> str:
    return f"{value:+.3f}" if math.isfinite(value) else "no bound"


# -----------------------------------------------------------------------------


CONFIDENCE = 0.95
_SHARES = ("right_prior", "right_without", "right_posterior", "own", "own_lower", "own_upper")
_FALSE = tuple(
    f"false_{name}{end}" for end in ("", "_without") for name in ("share", "lower", "upper")
)
_HEADS = {
    "attack": "read",
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


def audit_files(
    statements: pd.DataFrame,
    errors: pd.DataFrame,
    config: AuditConfig,
    checks: pd.DataFrame,
    *,
    choice: pd.DataFrame | None = None,
    settings: pd.DataFrame | None = None,
) -> dict[str, bytes]:
    """Return the further files of a complete audit, by name.

    Parameters
    ----------
    statements, errors : pandas.DataFrame
        All rows of all shards.
    config : AuditConfig
        What the audit was told.
    checks : pandas.DataFrame
        Checks of the statements (:func:`~bayesrisk.risk.audit_checks`).
    choice, settings : pandas.DataFrame, optional
        Chosen settings of protections, and all that were tried.
    """
    found = {
        "targets": by_population(statements, lambda rows, _: audit_targets(rows)),
        "summary": by_population(
            statements,
            lambda rows, _: audit_summary(audit_targets(rows), confidence=CONFIDENCE),
        ),
        "calibration": by_population(
            statements, lambda rows, _: audit_calibration(rows, confidence=CONFIDENCE)
        ),
        "certain": by_population(
            statements, lambda rows, _: audit_certain(rows, confidence=CONFIDENCE)
        ),
        "checks": checks,
        "errors": errors,
    }
    if choice is not None and settings is not None:
        found |= {"choice": choice, "settings": settings}
    files = {f"{name}.csv": csv_bytes(frame) for name, frame in found.items()}
    names = population_names(errors)
    with TemporaryDirectory() as folder:
        figures = [
            _figures(
                of_population(found["summary"], name), _size(errors, name), config, Path(folder),
                number, name,
            )
            for number, name in enumerate(names)
        ]  # fmt: skip
        for file in sorted(Path(folder).iterdir()):
            files[f"figures/{file.name}"] = file.read_bytes()
    page = html.render(
        "audit.html",
        title="Audit of protections: what is learned about people, and what from their own records",
        populations=[
            {
                "name": name,
                "answers": answers(
                    of_population(found["summary"], name), _size(errors, name), config
                ),
                "checks": checks_told(of_population(checks, name)),
            }
            for name in names
        ],
        choice=None if choice is None else choice_told(choice, config),
        adversaries=[introduced(one) for one in config.adversaries],
        asked=listed(config.stated),
        confidence=f"{CONFIDENCE:.0%}",
        figures=[drawn for some in figures for drawn in some[:1]],
        more_figures=[drawn for some in figures for drawn in some[1:]],
        tables=_tables(found, settings),
        checks_said=checks_said(checks),
        checked=html.table(checks.astype(object).where(checks.notna(), ""), "Every check"),
        lost=_lost(statements),
        downloads=[
            {
                "name": f"{name}.csv",
                "data": base64.b64encode(files[f"{name}.csv"]).decode("ascii"),
                "about": about,
            }
            for name, about in (
                ("summary", "the summary"),
                ("calibration", "the calibration"),
                ("certain", "what is said with certainty"),
                ("checks", "the checks"),
                ("errors", "the errors of the tables"),
            )
        ],
        source=f"Made by bayesrisk {config.version} from {_origin(config)}, seed {config.seed}.",
        settings_title="Settings of the audit",
        settings=json.dumps(config.to_dict(), indent=2, sort_keys=True),
    )
    files["report.html"] = page.encode()
    return files


def _tables(found: Mapping[str, pd.DataFrame], settings: pd.DataFrame | None) -> list[html.Table]:
    return [
        html.table(_readable(found["summary"]), "Every adversary, every group of people"),
        html.table(
            _percent(
                found["calibration"], ("posterior", "correct", "correct_lower", "correct_upper")
            ),
            "Are statements true as often as their probability says?",
        ),
        html.table(
            _percent(found["certain"], _FALSE),
            "What is said with certainty, and how much of it is false",
        ),
        html.table(found["errors"], "Error of the published tables"),
        *([] if settings is None else [html.table(settings, "Every setting that was tried")]),
    ]


def _size(errors: pd.DataFrame, name: str) -> pd.Series:
    """Return the mean absolute error of a count of each protection, of one population."""
    rows = of_population(errors, name)
    found: pd.Series = rows.groupby("protection", sort=False)["mean_absolute_error"].mean()
    return found


def _origin(config: AuditConfig) -> str:
    if isinstance(config.population, str):
        return f"records whose digest is {config.population[:16]}…"
    told = [f"{name} {digest[:16]}…" for name, digest in config.population.items()]
    return f"populations whose digests are {', '.join(told)}"


def _figures(
    summary: pd.DataFrame,
    size: pd.Series,
    config: AuditConfig,
    folder: Path,
    number: int,
    population: str,
) -> list[html.Figure]:
    """Return the figure that answers, and further ones, of one population."""
    # A name may be no name of a file.
    end, of = (f"-{number + 1}", f"{population}: ") if population else ("", "")
    everybody = summary[summary["group"] == EVERYBODY]
    if everybody.empty:
        return []
    curves = _curves(config)
    joined = "; a grey line joins one mechanism's settings, in order" if curves else ""
    # All readings of a release are one method; every other method has a figure of its own.
    posterior, *others = METHODS
    method = everybody["attack"].where(everybody["attack"].isin(others), posterior)
    drawn = [
        html.figure(
            plotting.plot_audit(rows, size, curves=curves),
            folder / ("own-against-error" + (f"-{name}" if which else "") + end),
            f"{of}What is learned from people's own records{_by(str(name))} (with 95 % intervals), "
            f"against the mean absolute error of a published count: low and left is best{joined}",
        )
        for which, (name, rows) in enumerate(everybody.groupby(method, sort=False))
    ]
    drawn.append(
        html.figure(
            plotting.plot_beliefs(everybody),
            folder / f"beliefs{end}",
            f"{of}How many people are guessed right: before any release, from a release without "
            "their own record, and after the release",
        )
    )
    unlike = summary[summary["group"] == UNLIKE]
    if len(unlike):
        drawn.append(
            html.figure(
                plotting.plot_beliefs(unlike),
                folder / f"beliefs-unlike{end}",
                f"{of}The same for people who are not what most people of their place are",
            )
        )
    return drawn


def _by(method: str) -> str:
    """Return how an adversary concludes, where that needs saying."""
    return f" by {READ[method]}" if method in READ else ""


def _curves(config: AuditConfig) -> list[list[str]]:
    """Return the protections that differ in one number alone, in its order."""
    kinds: dict[tuple[str, str, str], dict[str, Fraction]] = {}
    for one in config.protections:
        for key, value in one["parameters"].items():
            others = {k: v for k, v in one["parameters"].items() if k != key}
            kind = (one["mechanism"], key, json.dumps(others, sort_keys=True, default=str))
            with suppress(TypeError, ValueError, ZeroDivisionError):  # it is no number
                kinds.setdefault(kind, {})[one["name"]] = Fraction(str(value))
    return [sorted(found, key=lambda n: found[n]) for found in kinds.values() if len(found) > 1]


def _lost(statements: pd.DataFrame) -> int:
    """Return how many targets have no posterior for some adversary and release."""
    open_ = statements[statements["status"] == "undecided"]
    keys = [POPULATION] if POPULATION in open_ else []
    return int(open_.groupby([*keys, "protection", "attack", "adversary", "target"]).ngroups)


def _percent(frame: pd.DataFrame, columns: tuple[str, ...]) -> pd.DataFrame:
    found = frame.copy()
    for name in columns:
        found[name] = (100.0 * found[name]).round(1)
    return found


def _readable(summary: pd.DataFrame) -> pd.DataFrame:
    """Return the summary with shares in per cent and heads that a newcomer reads."""
    found = _percent(summary, _SHARES)
    low, high = (found[f"own_{end}"].map("{:+.1f}".format) for end in ("lower", "upper"))
    reach = low.astype(str) + " to " + high.astype(str)
    found["own interval"] = reach
    kept = [
        "protection", "attack", "adversary", "group", "targets", "left_out", "right_prior",
        "right_without", "right_posterior", "own", "own interval", "learned_50", "learned_99",
        "own_50", "own_99",
    ]  # fmt: skip
    if POPULATION in found:
        kept.insert(0, POPULATION)
    return found[kept].rename(columns=_HEADS)
