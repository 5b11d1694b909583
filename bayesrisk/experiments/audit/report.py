"""The files of a complete audit: summaries, figures, and one self-contained HTML page."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from bayesrisk import plotting
from bayesrisk._files.delimited import csv_bytes
from bayesrisk.experiments.audit.config import AuditConfig
from bayesrisk.experiments.audit.populations import (
    POPULATION,
    by_population,
    of_population,
    population_names,
)
from bayesrisk.experiments.audit.report_checks import checks_said, checks_told
from bayesrisk.experiments.audit.report_words import (
    EVERYBODY,
    READ,
    UNLIKE,
    answers,
    choice_told,
    introduced,
    listed,
)
from bayesrisk.experiments.runs import html
from bayesrisk.risk.audit import (
    METHODS,
    audit_calibration,
    audit_certain,
    audit_summary,
    audit_targets,
)

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
