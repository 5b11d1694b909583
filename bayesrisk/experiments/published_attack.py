"""What published tables give away: proofs, bounds, records that fit and likely ones, in a report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bayesrisk import _files
from bayesrisk import _validation as check
from bayesrisk._files.delimited import csv_bytes
from bayesrisk._show import displayed
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
from bayesrisk.reconstruction.records.bounds import CountBounds
from bayesrisk.tables import PublishedTables, Schema, Workload
from bayesrisk.tables.layouts import Layouts

#: Combinations of all variables up to which each is bounded, and records up to which they are found.
_MOST_CELLS, _MOST_RECORDS = 2**11, 20_000
_DRAWN, _SAID, _LIKELY = 30, 10, 200


@displayed
class PublishedAttack:
    """The report of an attack on published tables, and what it says: ``report``, ``sentences``."""

    def __init__(self, report: Path, sentences: list[str], facts: dict[str, Any]) -> None:
        self.report, self.sentences, self.facts = report, sentences, facts

    def _answer(self) -> list[str]:
        return [*self.sentences, f"report: {self.report}"]

    def to_dict(self) -> dict[str, Any]:
        """Return sentences and numbers for JSON."""
        return {"report": str(self.report), "sentences": self.sentences, **self.facts}


def write_attack(
    layouts: Layouts,
    folder: str | Path,
    *,
    seed: int = 0,
    time_limit: float | None = 60.0,
    progress: Callable[[int, int], None] | None = None,
) -> PublishedAttack:
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
        Seconds for each step that may take long; what it leaves open says so.
    progress : callable, optional
        Called with the steps done, and all of them.
    """
    tables = PublishedTables(*layouts.confirmed())
    target = check.path(folder, "folder")
    schema, steps = tables.workload.schema, 5

    def step(done: int) -> None:
        if progress is not None:
            progress(done, steps)

    frames: dict[str, pd.DataFrame] = {}
    notes: list[str] = []
    step(0)
    stated = count_bounds(tables, time_limit=time_limit)
    said = list(stated._answer())
    sure: list[str] = []
    frames["bounds"] = _labelled_bounds(stated, layouts.cells)
    facts: dict[str, Any] = dict(stated.facts)
    facts["fits"] = not stated.conflict
    step(1)
    if stated.conflict:
        reason = next(iter(stated.conflict.values()))
        said = [f"No records fit these tables as they were read: {reason}."]
        notes.append("A reading below is wrong, or the tables contradict each other.")
    elif stated.counts["published"].max() > _MOST_RECORDS:
        notes.append(f"More than {_MOST_RECORDS:,} records: these were bounded, and not found.")
    else:
        if schema.size <= _MOST_CELLS and schema.names:
            frames["bounds"] = _with_combinations(frames["bounds"], tables, time_limit)
        step(2)
        frames["claims"], sure, text = _claims(tables, time_limit)
        said.insert(0, text)
        step(3)
        frames["records"], text = _records(tables, time_limit)
        said.append(text)
        step(4)
        frames["likely"], text = _likely(tables, seed)
        said.append(text)
    facts |= {name: len(frame) for name, frame in frames.items()}
    with _files.whole_folder(target, _files.new_folder) as made:
        for name, frame in frames.items():
            _files.write_bytes(made / f"{name}.csv", csv_bytes(frame))
        _files.write_bytes(made / "reading.toml", layouts.assumptions.to_toml().encode())
        tables.write(made / "tables")
        page = html.render(
            "attack.html",
            title="What these tables give away",
            sentences=said,
            sure=sure,
            notes=notes,
            reading=layouts.lines,
            figures=_figures(frames["bounds"], made),
            tables=[html.table(f.head(500), _CAPTIONS[n]) for n, f in frames.items() if len(f)],
            source=f"Made by bayesrisk {__version__}, seed {seed}.",
            settings_title="The reading, as a file for --assume",
            settings=layouts.assumptions.to_toml(),
        )
        _files.write_bytes(made / "report.html", page.encode())
    step(steps)
    return PublishedAttack(target / "report.html", [*said, *sure, *notes], facts)


_CAPTIONS = {
    "bounds": "Bounds of every published count, and of every combination of all variables",
    "claims": "What must be true and no table states by itself",
    "records": "Records that fit; other records may fit, too",
    "likely": "The most likely records, if all lists of records were equally probable before",
}


def _labelled_bounds(bounds: CountBounds, cells: pd.DataFrame) -> pd.DataFrame:
    """Return bounds with the labels of every count, and its text."""
    numbers = ["low_stated", "high_stated", "low", "high", "status"]
    frame = cells.merge(bounds.counts[["table", "cell", *numbers]], on=["table", "cell"])
    return frame.drop(columns=["table", "cell"])


def _with_combinations(
    stated: pd.DataFrame, tables: PublishedTables, time_limit: float | None
) -> pd.DataFrame:
    """Return bounds of published counts, and of the combinations that nobody published."""
    schema = tables.workload.schema
    cross = Workload.of(schema, [schema.names])
    found = count_bounds(tables, queries=cross, time_limit=time_limit).counts
    codes = pd.DataFrame(schema.codes(np.arange(schema.size)))
    frame = pd.concat([schema.labelled(codes), found], axis=1)
    known = set(map(tuple, stated[list(schema.names)].to_numpy().tolist()))
    new = [key not in known for key in map(tuple, frame[list(schema.names)].to_numpy().tolist())]
    return pd.concat([stated, frame[new].reindex(columns=stated.columns)], ignore_index=True)


def _claims(
    tables: PublishedTables, time_limit: float | None
) -> tuple[pd.DataFrame, list[str], str]:
    """Return claims that no table states, the most telling in words, and how many there are."""
    found = find_claims(tables, time_limit=time_limit)
    frame = found.to_frame(readable="here")
    frame = frame[frame["multiplicity"] > 0].reset_index(drop=True)
    sentences = claim_sentences(found, frame)
    one = one_record(frame)
    order = np.lexsort((-frame["n_columns"].to_numpy(), several(frame), ~one))
    schema, shown = tables.workload.schema, {}
    for name in schema.names:
        labels = dict(enumerate(schema.attribute(name).labels))
        shown[name] = frame[name].map(labels, na_action="ignore").fillna("any").to_numpy(object)
    table = pd.DataFrame({**shown, "records": frame["multiplicity"], "at_least": several(frame)})
    table.insert(0, "sentence", sentences)
    text = (
        f"{len(frame):,} statements about records are proved that no count states by itself; "
        f"{int(one.sum()):,} of them are about exactly one record."
    )
    return table.iloc[order], [sentences[i] for i in order[:_SAID]], text


def _records(tables: PublishedTables, time_limit: float | None) -> tuple[pd.DataFrame, str]:
    """Return records that fit, and how many of them could be others."""
    made = reconstruct(tables, scope="all", time_limit=time_limit)
    frame = tables.workload.schema.labelled(record_form(made)).drop(columns="all")
    text = f"{len(frame):,} records were found that fit ({made.status[0]})"
    if len(frame):
        other = solution_variability(
            tables, scope="block", solution=made, time_limit=time_limit, node_limit=1000
        )
        most = float(other.upper[0])
        text += f"; at most {most:.0%} of the records could be others" if most else "; no others fit"
    return frame, f"{text}."


def _likely(tables: PublishedTables, seed: int) -> tuple[pd.DataFrame, str]:
    """Return the records that are most probably there, or why there is no such law."""
    schema = tables.workload.schema
    about = RecordPrior.uniform_data_sets(schema)
    try:
        found = microdata_posterior(
            tables, [RecordQuestion({})], level="all", place="", prior=about, rng=seed
        )
        ranked = found.ranked_records(_LIKELY)
    except ArgumentError as error:
        return pd.DataFrame(), f"Likely records were not found: {error}."
    for name in schema.names:
        ranked[name] = ranked[name].map(lambda text, own=schema.attribute(name): _words(text, own))
    ranked = ranked.drop(columns=["place", "known"])
    high = int((ranked["probability"] >= 0.9).sum())
    many = f"{high:,} or more" if high == _LIKELY else f"{high:,}"
    return ranked, f"{many} records are there with a probability of 90 % or more ({found.engine})."


def _words(text: object, about: Any) -> str:
    low, _, high = str(text).partition("-")
    return " or ".join(about.labels[int(low) : int(high or low) + 1])


def _figures(bounds: pd.DataFrame, folder: Path) -> list[html.Figure]:
    """Return the figure of the counts of which most is learned."""
    stated = bounds["high_stated"].astype("Float64") - bounds["low_stated"].astype("Float64")
    width = bounds["high"].astype("Float64") - bounds["low"].astype("Float64")
    gain = (stated.fillna(np.inf) - width).where(width.notna() & (stated.fillna(1.0) > 0.0))
    chosen = bounds[(gain > 0).fillna(False)]
    chosen = chosen.loc[width[chosen.index].sort_values(kind="stable").index].head(_DRAWN)
    if chosen.empty:
        return []
    names = [n for n in chosen.columns[: list(chosen.columns).index("stated")]]
    labels = [", ".join(v for v in row if v != "all") or "total" for row in chosen[names].to_numpy()]
    caption = (
        f"The {len(chosen)} counts of which the tables together say most: grey, what the count "
        "says by itself (to the edge where it says nothing); blue, what must be true"
    )
    return [html.figure(plot_bounds(chosen.assign(label=labels)), folder / "bounds", caption)]
