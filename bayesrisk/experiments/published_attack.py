"""Proofs, bounds, records that fit and likely ones from published tables, in one report."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bayesrisk import _files
from bayesrisk import _validation as check
from bayesrisk._files.delimited import csv_bytes
from bayesrisk._version import __version__
from bayesrisk.exceptions import ArgumentError
from bayesrisk.experiments.runs import page as html
from bayesrisk.inference import RecordPrior, RecordQuestion, microdata_posterior
from bayesrisk.plotting.attacks import plot_bounds
from bayesrisk.reconstruction import (
    claim_sentences,
    count_bounds,
    find_claims,
    reconstruct,
    record_form,
    solution_variability,
)
from bayesrisk.reconstruction.claims.result import one_record, several
from bayesrisk.tables import PublishedTables, Workload
from bayesrisk.tables.layouts import Layouts

#: Combinations of all variables that are bounded, and records that are looked for, at most.
_MOST_CELLS, _MOST_RECORDS = 2**11, 20_000
_DRAWN, _SAID, _LIKELY = 30, 10, 200
_CAPTIONS = {
    "bounds": "Bounds of every published count, and of every combination of all variables",
    "claims": "What must be true, and no count states by itself",
    "records": "Records that fit; others may fit, too",
    "likely": "Likely records, if all lists of records were equally probable before",
}


def write_attack(
    layouts: Layouts,
    folder: str | Path,
    *,
    seed: int = 0,
    time_limit: float | None = 60.0,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Write what published tables give away into a folder, which appears whole or not at all.

    Parameters
    ----------
    layouts : Layouts
        Tables as they were read, with no question left.
    folder : path-like
        New or empty: ``report.html``, ``bounds.csv``, ``claims.csv``, ``records.csv``,
        ``likely.csv``, ``reading.toml`` (what was assumed), ``tables`` (for other commands).
    seed : int
        Of the draws of likely records, where there is no exact law.
    time_limit : float, optional
        Seconds for each component, or for all claims; what it leaves open says so.
    progress : callable, optional
        Called with the steps done, and all of them.
    """
    tables, target = PublishedTables(*layouts.confirmed()), check.path(folder, "folder")
    tell = progress or (lambda done, steps: None)
    with _files.explained(target):
        _files.new_folder(target)
    frames: dict[str, pd.DataFrame] = {}
    proved: list[str] = []
    bounds = count_bounds(tables, time_limit=time_limit)
    both = ["table", "cell"]
    columns = [*both, "low_stated", "high_stated", "low", "high", "status"]
    frames["bounds"] = layouts.cells.merge(bounds.counts[columns], on=both).drop(columns=both)
    if bounds.conflict:
        reason = next(iter(bounds.conflict.values()))
        sentences = [f"No records fit these tables as they were read: {reason}."]
    elif bounds.counts["published"].fillna(0).max() > _MOST_RECORDS:
        sentences = [*bounds._answer(), f"More than {_MOST_RECORDS:,} records: only bounded."]
    else:
        tell(1, 5)
        frames["claims"], first, proved = _claims(tables, time_limit)
        tell(2, 5)
        frames["records"], fit = _records(tables, time_limit)
        tell(3, 5)
        frames["likely"], likely = _likely(tables, seed)
        tell(4, 5)
        frames["bounds"] = _with_combinations(frames["bounds"], tables, time_limit)
        sentences = [first, *bounds._answer(), fit, likely]
    with _files.whole_folder(target, _files.new_folder) as made:
        for name, frame in frames.items():
            _files.write_bytes(made / f"{name}.csv", csv_bytes(frame))
        _files.write_bytes(made / "reading.toml", layouts.to_toml().encode())
        tables.write(made / "tables")
        page = html.render(
            "attack.html",
            title="What these tables give away",
            sentences=sentences,
            proved=proved,
            reading=layouts.lines,
            figures=_figures(frames["bounds"], made),
            tables=[html.table(f.head(500), _CAPTIONS[n]) for n, f in frames.items() if len(f)],
            source=f"Made by bayesrisk {__version__}, seed {seed}.",
            settings_title="What was assumed, as a file for --assume",
            settings=layouts.to_toml(),
        )
        _files.write_bytes(made / "report.html", page.encode())
    tell(5, 5)
    found = {name: len(frame) for name, frame in frames.items()}
    sentences[1:1] = proved
    return {"report": str(target / "report.html"), "sentences": sentences, **found, **bounds.facts}


def _with_combinations(
    stated: pd.DataFrame, tables: PublishedTables, time_limit: float | None
) -> pd.DataFrame:
    """Return bounds of published counts, and of the combinations that nobody published."""
    schema = tables.workload.schema
    if not schema.names or schema.size > _MOST_CELLS:
        return stated
    cross = Workload.of(schema, [schema.names])
    found = count_bounds(tables, queries=cross, time_limit=time_limit).counts
    codes = pd.DataFrame(schema.codes(np.arange(schema.size)))
    frame = pd.concat([schema.labelled(codes), found], axis=1)
    new = ~pd.MultiIndex.from_frame(frame[list(schema.names)]).isin(
        pd.MultiIndex.from_frame(stated[list(schema.names)])
    )
    found = pd.concat([stated, frame[new].reindex(columns=stated.columns)], ignore_index=True)
    return found.astype({"row": "Int64"})


def _claims(
    tables: PublishedTables, time_limit: float | None
) -> tuple[pd.DataFrame, str, list[str]]:
    """Return proofs that no count states, how many there are, and the most telling in words."""
    found = find_claims(tables, time_limit=time_limit)
    frame = found.to_frame(readable="here")
    frame = frame[frame["multiplicity"] > 0]
    order = np.lexsort((-frame["n_columns"].to_numpy(), several(frame), ~one_record(frame)))
    frame = frame.iloc[order].reset_index(drop=True)
    sentences = claim_sentences(found, frame)
    one = int(one_record(frame).sum())
    text = f"{len(frame):,} statements are proved that no count makes by itself; "
    text += f"{one:,} of them are about exactly one record." if one else "none is about one record."
    text = text if len(frame) else "Nothing is proved of the records beyond what each count says."
    table = pd.DataFrame({"sentence": sentences, "records": frame["multiplicity"]})
    table["at_least"] = several(frame)
    schema = tables.workload.schema
    words = schema.labelled(frame)[list(schema.names)].fillna("any")
    return pd.concat([table, words], axis=1), text, sentences[:_SAID]


def _records(tables: PublishedTables, time_limit: float | None) -> tuple[pd.DataFrame, str]:
    """Return records that fit, and how many of them could be others."""
    made = reconstruct(tables, scope="all", time_limit=time_limit)
    frame = tables.workload.schema.labelled(record_form(made)).drop(columns="all")
    text = f"Records that fit were not found ({made.status[0]})."
    if len(frame):
        other = solution_variability(
            tables, scope="all", solution=made, time_limit=time_limit, node_limit=1000
        )
        most = float(other.upper[0])
        text = f"{len(frame):,} records were found that fit; "
        text += f"at most {most:.0%} of them could be others." if most else "no others fit: proved."
    return frame, text


def _likely(tables: PublishedTables, seed: int) -> tuple[pd.DataFrame, str]:
    """Return the records that are most probably there, or why there is no such law."""
    schema = tables.workload.schema
    prior, asked = RecordPrior.uniform_data_sets(schema), [RecordQuestion({})]
    try:
        found = microdata_posterior(tables, asked, level="all", place="", prior=prior, rng=seed)
        ranked = found.ranked_records(_LIKELY).drop(columns=["place", "known"])
    except ArgumentError as error:
        return pd.DataFrame(), f"Likely records were not found: {error}."
    for about in schema.attributes:
        ends = [str(text).partition("-") for text in ranked[about.name]]
        groups = [about.labels[int(a) : int(b or a) + 1] for a, _, b in ends]
        ranked[about.name] = [" or ".join(group) for group in groups]
    high = int((ranked["probability"] >= 0.9).sum())
    number = f"{high:,}{' or more' * (high == _LIKELY)}"
    text = (
        "records are there with a probability of 90 % or more, if all lists were equally probable"
    )
    return ranked, f"{number} {text} before ({found.engine})."


def _figures(bounds: pd.DataFrame, folder: Path) -> list[html.Figure]:
    """Return the figure of the counts of which most is learned."""
    ends = bounds[["low_stated", "high_stated", "low", "high"]].astype("Float64").fillna(np.inf)
    width, stated = ends["high"] - ends["low"], ends["high_stated"] - ends["low_stated"]
    chosen = bounds.loc[width[(width < stated)].sort_values(kind="stable").index].head(_DRAWN)
    if chosen.empty:
        return []
    names = chosen.columns[: chosen.columns.get_loc("stated")]
    rows = chosen[names].to_numpy()
    labels = [", ".join(label for label in row if label != "all") or "total" for row in rows]
    caption = (
        f"The {len(chosen)} counts of which the tables together say most. Grey: what a count says "
        "by itself, up to the edge where nobody published it; blue: what must be true"
    )
    return [html.figure(plot_bounds(chosen.assign(label=labels)), folder / "bounds", caption)]
