"""The folder of a release plan: rules, settings, certificates and report."""

import functools
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from numpy.typing import ArrayLike

from bayesrisk import plotting
from bayesrisk._base import disk, validation as check
from bayesrisk._base.disk.delimited import csv_bytes
from bayesrisk.experiments import pages
from bayesrisk.mechanisms.rules import Rule
from bayesrisk.release import Release
from bayesrisk.risk.planning.ladders import PROVEN
from bayesrisk.risk.planning.release_plan import ReleasePlan
from bayesrisk.risk.planning.safety import write_certificates
from bayesrisk.tables.exchange import MADE_UP

RECIPE, FRONTIER, PAGE = "plan.toml", "frontier.csv", "report.html"
_COLUMNS = ("error", "withheld", *PROVEN, "gain", "doubled", "verdict")


def write_plan(
    plan: ReleasePlan,
    folder: str | Path,
    release: Release | None = None,
    *,
    places: ArrayLike | None = None,
    tables: Mapping[str, Any] | None = None,
    made_up: bool = False,
) -> list[str]:
    """Write a plan into a folder, with certificates of a release; return findings in words.

    Parameters
    ----------
    plan : ReleasePlan
        The plan.
    folder : path
        New or empty folder, or that of the same plan.
    release : Release, optional
        Release by the chosen rules; its certificates of safety are written beside the plan.
    places : array_like of str, optional
        All places of the finest level; by default the published ones.
    tables : mapping of str to str or list of str, optional
        Keys of a release file that name the published tables; they begin the recipe.
    made_up : bool, default False
        Whether the people do not exist; the report then says so.

    Returns
    -------
    list of str
        Sentences, the answer first.
    """
    target = Path(folder)
    disk.make_folder(target, private=True)  # all but the certificates tells of the records
    lines = [plan.sentence]
    if plan.rules:
        keys = "".join(f"{name} = {json.dumps(v)}\n" for name, v in (tables or {}).items())
        disk.write_bytes(target / RECIPE, (keys + plan.recipe).encode())
    shutil.rmtree(target / "certificates", ignore_errors=True)  # of a run that goes on
    if release is not None and any(getattr(plan.limits, n) is not None for n in PROVEN):
        certificates = target / "certificates"
        number, total, missing = write_certificates(
            certificates, release.tables, plan.workload, plan.limits, places
        )
        text = f"{number:,} of {total:,} places have a certificate of safety, each for itself."
        if total == 1:
            text = f"There is {'a' if number else 'no'} certificate of safety."
        if number:
            text += (
                " Anyone can check it with check_safety.py. It is made from the published tables "
                "alone: its data sets need not contain the truth, and it tells nothing that the "
                "release does not."
            )
        lines.append(text)
        lines += [
            f"At {places:,} places the published tables alone do not show the limit of {name}."
            for name, places in missing.items() if places
        ]  # fmt: skip
    disk.write_bytes(target / FRONTIER, csv_bytes(plan.frontier))
    leak = next(iter(plan.limits.stated))
    draw = functools.partial(
        plotting.plot_plan, plan.frontier, leak=leak, most=plan.limits.stated[leak]
    )
    caption = (
        "Error of a count against what is given away, for each setting that was looked at. "
        "Settings that exceed a limit give away at least so much."
    )
    figure = pages.figure(draw, target / "frontier", caption)
    made_up = check.flag(made_up, "made_up") or (release is not None and release.tables.made_up)
    settings: dict[str, Any] = {
        "limits": plan.limits.stated | {"within": plan.limits.within}, "rules": plan.rules,
        "settings": plan.settings, MADE_UP: made_up,
    }  # fmt: skip
    quotes = pages.Quotes(
        [
            plan.sentence,
            f"{len(plan.frontier):,} settings were looked at.",
            "A setting is judged by what it gives away, and by how much a count is off.",
        ],
        {
            "No release gives away less.": "Only the rules that were allowed were looked at.",
            "A release by this plan tells nothing about anybody.": "It keeps the limits that are "
            "stated; within them something is told.",
            "The plan protects other records as well.": "It was made for these records.",
        },
    )
    page = pages.findings(
        "The least coarse release that keeps limits", lines, quotes=quotes,
        source="Computed from confidential records and the rules that may be chosen.",
        settings=settings, figures=[figure], advice=_advice(plan),
        tables=[pages.table(_settings(plan), "Settings that were looked at, the cheapest first")],
        warning="" if made_up else pages.marked(pages.CONFIDENTIAL),
    )  # fmt: skip
    disk.write_bytes(target / PAGE, page)
    return lines


def _advice(plan: ReleasePlan) -> pages.Part:
    """Return the advice with a plan: release by its rules, or allow coarser ones."""
    step = "`bayesrisk release RECORDS -o NEW --config THIS-FOLDER/plan.toml` follows them."
    none = "" if plan.rules else "none of the rules that were allowed keeps the limits"
    step = "Allow coarser ones (`--rule`) or leave a table out (`--only`)." if none else step
    return pages.what_to_do(none, basis="these rules, these limits and these records", step=step)


def _settings(plan: ReleasePlan) -> pd.DataFrame:
    """Return the examined settings, with the rules of each in one column of words."""
    frontier, levels = plan.frontier, {level for level, _ in plan.workload.tables}
    ladders = [*frontier][2 : [*frontier].index("cost")]
    cut = f"{next(iter(levels))}: " if len(levels) == 1 else ""

    def words(row: pd.Series) -> str:
        by_rule: dict[str, list[str]] = {}
        for name in ladders:
            by_rule.setdefault(row[name], []).append(name.removeprefix(cut))
        texts = {t: " or ".join(Rule(one).words for one in t.split(" | ")) for t in by_rule}
        if len(by_rule) == 1 and len(ladders) > 1:
            return f"all tables {texts[row[ladders[0]]]}"
        return "; ".join(f"{', '.join(names)} {texts[text]}" for text, names in by_rule.items())

    role = frontier["role"].where(frontier["role"] != "agency", frontier["rule"])
    frame = frontier[[name for name in frontier if name in _COLUMNS]].round({"error": 3})
    frame.insert(0, "role", role)
    return frame.assign(rules=[words(row) for _, row in frontier.iterrows()])
