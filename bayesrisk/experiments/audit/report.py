"""The files of a complete audit: summaries, figures, and one self-contained HTML page."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from bayesrisk import plotting
from bayesrisk.experiments.audit.config import AuditConfig
from bayesrisk.experiments.runs import html
from bayesrisk.risk.audit import (
    METHODS,
    audit_calibration,
    audit_certain,
    audit_summary,
    audit_targets,
)

__all__ = ["audit_files"]

CONFIDENCE = 0.95
_EVERYBODY, _UNLIKE = "everybody", "unlike their place"
_SHARES = ("right_prior", "right_without", "right_posterior", "own", "own_lower", "own_upper")
_FALSE = tuple(
    f"false_{name}{end}" for end in ("", "_without") for name in ("share", "lower", "upper")
)
_READ = {
    "likelihood": "weighing all possible records",
    "as-true": "taking the tables as true",
    "swap-aware": "reckoning with how many records changed places",
    "working-error": "reckoning with how large the errors are",
    "reconstruction": "taking reconstructed records at their word",
    "majority": "saying what most people of the place are",
    "claims": "believing only what the tables, taken as true, prove",
}
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
    choice, settings : pandas.DataFrame, optional
        Chosen settings of protections, and all that were tried.
    """
    targets = audit_targets(statements)
    summary = audit_summary(targets, confidence=CONFIDENCE)
    calibration = audit_calibration(statements, confidence=CONFIDENCE)
    certain = audit_certain(statements, confidence=CONFIDENCE)
    files = {
        "targets.csv": _csv(targets),
        "summary.csv": _csv(summary),
        "calibration.csv": _csv(calibration),
        "certain.csv": _csv(certain),
        "errors.csv": _csv(errors),
    }
    if choice is not None and settings is not None:
        files |= {"choice.csv": _csv(choice), "settings.csv": _csv(settings)}
    size = errors.groupby("protection", sort=False)["mean_absolute_error"].mean()
    with TemporaryDirectory() as folder:
        figures = _figures(summary, size, config, Path(folder))
        for file in sorted(Path(folder).iterdir()):
            files[f"figures/{file.name}"] = file.read_bytes()
    lost = _lost(statements)
    page = html.render(
        "audit.html",
        title="Audit of protections: what is learned about people, and what from their own records",
        answers=_answers(summary, size, config),
        choice=None if choice is None else _choice(choice, config),
        adversaries=[_introduced(one) for one in config.adversaries],
        asked=_listed(config.stated),
        confidence=f"{CONFIDENCE:.0%}",
        figures=figures[:1],
        more_figures=figures[1:],
        tables=[
            html.table(_readable(summary), "Every adversary, every group of people"),
            html.table(
                _percent(calibration, ("posterior", "correct", "correct_lower", "correct_upper")),
                "Are statements true as often as their probability says?",
            ),
            html.table(
                _percent(certain, _FALSE),
                "What is said with certainty, and how much of it is false",
            ),
            html.table(errors, "Error of the published tables"),
            *([] if settings is None else [html.table(settings, "Every setting that was tried")]),
        ],
        lost=lost,
        downloads=[
            {
                "name": name,
                "data": base64.b64encode(files[name]).decode("ascii"),
                "about": about,
            }
            for name, about in (
                ("summary.csv", "the summary"),
                ("calibration.csv", "the calibration"),
                ("certain.csv", "what is said with certainty"),
                ("errors.csv", "the errors of the tables"),
            )
        ],
        source=f"Made by bayesrisk {config.version} from records whose digest is "
        f"{config.population[:16]}…, seed {config.seed}.",
        settings_title="Settings of the audit",
        settings=json.dumps(config.to_dict(), indent=2, sort_keys=True),
    )
    files["report.html"] = page.encode()
    return files


def _figures(
    summary: pd.DataFrame, size: pd.Series, config: AuditConfig, folder: Path
) -> list[html.Figure]:
    """Return the figure that answers, and further ones."""
    everybody = summary[summary["group"] == _EVERYBODY]
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
            folder / ("own-against-error" + (f"-{name}" if number else "")),
            f"What is learned from people's own records{_by(str(name))} (with 95 % intervals), "
            f"against the mean absolute error of a published count: low and left is best{joined}",
        )
        for number, (name, rows) in enumerate(everybody.groupby(method, sort=False))
    ]
    drawn.append(
        html.figure(
            plotting.plot_beliefs(everybody),
            folder / "beliefs",
            "How many people are guessed right: before any release, from a release without their "
            "own record, and after the release",
        )
    )
    unlike = summary[summary["group"] == _UNLIKE]
    if len(unlike):
        drawn.append(
            html.figure(
                plotting.plot_beliefs(unlike),
                folder / "beliefs-unlike",
                "The same for people who are not what most people of their place are",
            )
        )
    return drawn


def _by(method: str) -> str:
    """Return how an adversary concludes, where that needs saying."""
    return f" by {_READ[method]}" if method in _READ else ""


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


def _answers(summary: pd.DataFrame, size: pd.Series, config: AuditConfig) -> list[dict[str, Any]]:
    """Return for each protection who asks, and a line for each way to conclude, in words."""
    known = {one["name"]: one["known"] for one in config.adversaries}
    found = []
    for protection in size.index.tolist():
        rows = summary[summary["protection"] == protection]
        asked = []
        for name, mine in rows.groupby("adversary", sort=False):
            whole = mine[mine["group"] == _EVERYBODY].to_dict(orient="records")
            unlike = mine[mine["group"] == _UNLIKE].set_index("attack").to_dict(orient="index")
            before = {f"{row['right_prior']:.1%}" for row in whole}
            once = len(before) == 1
            who = _who(str(name), known[name])
            who += f" ({before.pop()} right before any release)" if once else ""
            told: dict[tuple[str, str], list[str]] = {}
            for row in whole:
                # Two readings of a release that come to the same are one line.
                method = row["attack"] if row["attack"] in METHODS else ""
                text = _right(row, before=not once) + _unlike(unlike.get(row["attack"]))
                told.setdefault((method, text), []).append(_READ[row["attack"]])
            lines = [{"how": " or ".join(how), "right": right} for (_, right), how in told.items()]
            asked.append({"who": who, "lines": lines})
        found.append({"name": protection, "error": float(size[protection]), "asked": asked})
    return found


def _choice(choice: pd.DataFrame, config: AuditConfig) -> dict[str, Any]:
    """Return what was looked for, what was found of each protection, and which costs least."""
    best = choice.loc[choice["cheapest"], "setting"].tolist()
    return {
        "goal": f"for {100.0 * (config.quantile or 0.0):.4g} % of people, the ratio of posterior "
        f"and belief without their own record shall be at most {config.target_ratio}, "
        f"for {config.against or 'the worst of all adversaries'}",
        "best": " and ".join(best),
        "told": choice["answer"].tolist(),
    }


def _introduced(adversary: Mapping[str, Any]) -> dict[str, str]:
    """Return who an adversary is, in words."""
    share = float(adversary["neighbours"])
    knows = "what was published and where the person lives"
    if adversary["known"]:
        knows += f", and the person's {_listed(adversary['known'])}"
    if share == 1.0:
        knows += ", and the whole records of everybody else in the place"
    elif share:
        knows += f", and the whole records of {share:.0%} of the others in the place"
    return {"name": str(adversary["name"]), "knows": knows}


def _listed(names: Sequence[str]) -> str:
    """Return "a, b and c"."""
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


def _who(name: str, known: Sequence[str]) -> str:
    if name == "knows-all-but-one":
        return "One who knows everybody else's record" + (
            f" and the {_listed(known)} of the person" if known else ""
        )
    article = "An" if name[:1].lower() in "aeiou" else "A"
    return f"{article} {name}" + (f" who knows {_listed(known)}" if known else "")


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


def _lost(statements: pd.DataFrame) -> int:
    """Return how many targets have no posterior for some adversary and release."""
    open_ = statements[statements["status"] == "undecided"]
    return int(open_.groupby(["protection", "attack", "adversary", "target"]).ngroups)


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
    return found[kept].rename(columns=_HEADS)


def _csv(frame: pd.DataFrame) -> bytes:
    text: str = frame.to_csv(index=False, lineterminator="\n")
    return text.encode()
