"""The files of a complete audit: summaries, figures, and one self-contained HTML page."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from bayesrisk import plotting
from bayesrisk.experiments.audit.config import AuditConfig
from bayesrisk.experiments.runs import html
from bayesrisk.risk.audit import audit_calibration, audit_certain, audit_summary, audit_targets

__all__ = ["audit_files"]

CONFIDENCE = 0.95
_EVERYBODY, _UNLIKE = "everybody", "unlike their place"
_SHARES = ("right_prior", "right_without", "right_posterior", "own", "own_lower", "own_upper")
_FALSE = tuple(
    f"false_{name}{end}" for end in ("", "_without") for name in ("share", "lower", "upper")
)
_READ = {
    "likelihood": "",
    "as-true": ", who takes the tables as true",
    "swap-aware": ", who knows how many records changed places",
    "working-error": ", who knows how large the errors are",
    "reconstruction": ", who takes reconstructed records at their word",
    "majority": ", who says what most people of the place are",
    "claims": ", who believes only what the tables, taken as true, prove",
}
_HEADS = {
    "attack": "read",
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
    statements: pd.DataFrame, errors: pd.DataFrame, config: AuditConfig
) -> dict[str, bytes]:
    """Return the further files of a complete audit, by name.

    Parameters
    ----------
    statements, errors : pandas.DataFrame
        All rows of all shards.
    config : AuditConfig
        What the audit was told.
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
    size = errors.groupby("protection", sort=False)["mean_absolute_error"].mean()
    with TemporaryDirectory() as folder:
        figures = _figures(summary, size, Path(folder))
        for file in sorted(Path(folder).iterdir()):
            files[f"figures/{file.name}"] = file.read_bytes()
    lost = _lost(statements)
    page = html.render(
        "audit.html",
        title="Audit of protections: what is learned about people, and what from their own records",
        answers=_answers(summary, size, config),
        figures=figures,
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


def _figures(summary: pd.DataFrame, size: pd.Series, folder: Path) -> list[html.Figure]:
    everybody = summary[summary["group"] == _EVERYBODY]
    if everybody.empty:
        return []
    drawn = [
        html.figure(
            plotting.plot_audit(everybody, size),
            folder / "own-against-error",
            "What is learned from people's own records (with 95 % intervals), against the mean "
            "absolute error of a published count: low and left is best",
        ),
        html.figure(
            plotting.plot_beliefs(everybody),
            folder / "beliefs",
            "How many people are guessed right: before any release, from a release without their "
            "own record, and after the release",
        ),
    ]
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


def _answers(summary: pd.DataFrame, size: pd.Series, config: AuditConfig) -> list[dict[str, Any]]:
    """Return for each protection a sentence for each adversary and reading, in words."""
    known = {one["name"]: one["known"] for one in config.adversaries}
    found = []
    for protection in size.index.tolist():
        rows = summary[summary["protection"] == protection]
        sentences = []
        whole = rows[rows["group"] == _EVERYBODY]
        for row in whole.to_dict(orient="records"):
            same = (rows["adversary"] == row["adversary"]) & (rows["attack"] == row["attack"])
            unlike = rows[same & (rows["group"] == _UNLIKE)].to_dict(orient="records")
            sentences.append(
                _who(row, known) + _right(row, config) + (_unlike(unlike[0]) if unlike else "")
            )
        found.append({"name": protection, "error": float(size[protection]), "told": sentences})
    return found


def _who(row: Mapping[Any, Any], known: Mapping[str, Any]) -> str:
    what = " and ".join(known[row["adversary"]])
    knows = f" who knows {what}" if what else ""
    name = str(row["adversary"])
    article = "an" if name[:1] in "aeiou" else "a"
    if name == "knows-all-but-one":
        article, name = "one", "who knows everybody else's record"
        knows = f" and the target's {what}" if what else ""
    return f"{article} {name}{knows}{_READ.get(str(row['attack']), '')}"


def _right(row: Mapping[Any, Any], config: AuditConfig) -> str:
    own = 100.0 * row["own"]
    low, high = 100.0 * row["own_lower"], 100.0 * row["own_upper"]
    asked = " and ".join(config.stated)
    return (
        f" is right about {asked} for {row['right_posterior']:.1%} of people, "
        f"{row['right_without']:.1%} without their own records, {row['right_prior']:.1%} before "
        f"any release: {own:+.1f} points are due to people's own records "
        f"({low:+.1f} to {high:+.1f})"
    )


def _unlike(row: Mapping[Any, Any]) -> str:
    return (
        f"; for people unlike their place {row['right_posterior']:.1%} against "
        f"{row['right_without']:.1%}"
    )


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
    reach = (
        found["own_lower"].map("{:+.1f}".format) + " to " + found["own_upper"].map("{:+.1f}".format)
    )
    found["own interval"] = reach
    kept = [
        "protection", "attack", "adversary", "group", "targets", "right_prior", "right_without",
        "right_posterior", "own", "own interval", "learned_50", "learned_99", "own_50", "own_99",
    ]  # fmt: skip
    return found[kept].rename(columns=_HEADS)


def _csv(frame: pd.DataFrame) -> bytes:
    text: str = frame.to_csv(index=False, lineterminator="\n")
    return text.encode()
