"""The tables of a re-identification: published layouts, and every rate beside both baselines."""

import pandas as pd

from bayesrisk.experiments.linkage.counties import Results
from bayesrisk.experiments.runs.html import rounded
from bayesrisk.risk.linkage.agreement import agreement_layout, agreement_rates
from bayesrisk.risk.linkage.baselines import MODAL, PROPORTIONAL

GUESSERS = (MODAL, PROPORTIONAL)
#: Smallest majorities that are inferred.
THRESHOLDS = (1, 5, 10, 20)
_PRECISIONS = (0.5, 0.75, 0.9, 1.0)
_PERCENT = " (%)"
_ROWS = 40  # of a table in the page; the files have all


def _flat(layout: pd.DataFrame) -> pd.DataFrame:
    """Return a published layout with one line of heads, such as ``persons: precision (%)``."""
    flat = layout.reset_index()
    heads = [_head([str(part) for part in column if part]) for column in flat.columns]
    flat.columns = pd.Index(heads)
    # Places without anybody are missing from a layout, which makes its counts floats.
    counts = [c for c in heads if not c.endswith(_PERCENT) and flat[c].dtype.kind == "f"]
    return flat.astype(dict.fromkeys(counts, "Int64"))


def _head(parts: list[str]) -> str:
    """Return the parts of a head in one: of what, then the kind of number and its unit."""
    *of, kind = [part.removesuffix(" Percentage") for part in parts]
    unit = _PERCENT if any(part.endswith(" Percentage") for part in parts) else ""
    return ": ".join([*of, kind.lower()]) + unit


def shown(table: pd.DataFrame) -> pd.DataFrame:
    """Return what the page shows of a table: no empty classes, percentages to one decimal."""
    counts = [c for c in table if table[c].dtype.kind in "iu"]
    if "block_size" in table and counts:
        table = table[(table[counts] != 0).any(axis=1)]
    percentages = {
        str(c): table[c].map(lambda value: "–" if pd.isna(value) else f"{value:.1f}").astype("str")
        for c in table
        if str(c).endswith(_PERCENT)
    }
    table = table.assign(**percentages)
    if "left_out_ratio" in table:
        table = rounded(table)
    return table.head(_ROWS)


def _baselines(rates: pd.DataFrame) -> pd.DataFrame:
    """Return both baselines of every panel, blocks of all sizes."""
    rows = rates[(rates["block_size"] == "All") & ~rates["source"].isin(GUESSERS)]
    return rows[
        [
            "attacker", "panel", "blocks", "source", "putative", "precision", "precision_lower",
            "precision_upper", "left_out", "left_out_guesser", "left_out_ratio",
            "left_out_ratio_lower", "left_out_ratio_upper", "baseline_precision",
            "baseline_guesser", "precision_ratio",
        ]
    ]  # fmt: skip


def _agreed(frame: pd.DataFrame) -> pd.DataFrame:
    """Return agreement with both baselines, a row for each source and kind of age."""
    frame = frame[(frame["block_size"] == "All") & ~frame["source"].isin(GUESSERS)]
    parts = []
    for kind in ("exact", "binned"):
        own = [name for name in frame if str(name).startswith(f"{kind}_")]
        part = frame[["source", "population", *own]].rename(
            columns={name: str(name).removeprefix(f"{kind}_") for name in own}
        )
        parts.append(part.assign(age=kind))
    whole = pd.concat(parts)
    first = ["source", "age", "population"]
    return whole[[*first, *(name for name in whole if name not in first)]]


def report_tables(results: Results, rates: pd.DataFrame) -> dict[str, tuple[str, pd.DataFrame]]:
    """Return every table with its caption, by file name; layouts follow the published tables."""
    links = results.links
    agreed = agreement_rates(results.agreement, confidence=links.confidence)
    proved = links.to_panels(panels=("nonmodal", "nonmodal-unique"), zero_variability=True)
    shares = ["Putative Percentage", "Confirmed Percentage"]
    proved = proved.drop(columns=[(name, share) for name in links.attackers for share in shares])
    tables = {
        "linked-all": (
            "Putative and confirmed re-identifications by block size (layout S6, S12)",
            _flat(links.to_layout()),
        ),
        "linked-panels": (
            "All people in the attacker's file, and only those whose block, sex and age it has "
            "right (Table S7 of Abowd et al.)",
            _flat(links.to_panels(panels=("all", "in-truth"))),
        ),
        "linked-nonmodal-proved": (
            "Nonmodal people in blocks of proved zero solution variability (layout S8)",
            _flat(proved),
        ),
        "linked-modal": (
            "Modal people by block size (layout S9, S13)",
            _flat(links.to_layout(panel="modal")),
        ),
        "agreement": (
            "Agreement of the records with the truth (layout S10)",
            _flat(agreement_layout(agreed, links.sources)),
        ),
        "agreement-baselines": (
            "Agreement, all blocks, beside both baselines: guessers without the target's record "
            "(left out), and in their published form",
            _agreed(agreed),
        ),
        "baselines": (
            "Precision in every panel, beside both baselines: guessers without the target's record "
            "(left out), and in their published form",
            _baselines(rates),
        ),
        "linked-nonmodal": (
            "Nonmodal people by block size (layout S11)",
            _flat(links.to_layout(panel="nonmodal")),
        ),
        "leave-one-out": (
            "What a guesser infers of a person without that person's record: accuracy and upper "
            "bound",
            results.alone,
        ),
        "majority": (
            "Inferring the majority of the block, which links nobody to anything",
            pd.concat(
                results.majority.summary(threshold=t, precisions=_PRECISIONS) for t in THRESHOLDS
            ),
        ),
    }
    if results.quantiles is not None:
        caption = "Solution variability: quantiles weighted by population (layout S4)"
        tables["variability"] = (caption, results.quantiles)
    if results.uniques is not None:
        caption = "Uniques, and blocks of zero variability, among the records (layout S5)"
        tables["uniques"] = (caption, results.uniques)
    return tables
