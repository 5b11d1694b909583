"""Attacks on a folder of tables or a release: bounds, records and claims, each in a study."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from bayesrisk._base.disk.delimited import read_own_csv
from bayesrisk.experiments.reconstruction import (
    BoundsStudy,
    ClaimsStudy,
    ReconstructionStudy,
    TableStudy,
    open_tables,
)
from bayesrisk.experiments.runs.engine import run
from bayesrisk.release import Release
from bayesrisk.tables import PublishedTables

#: Steps, in the order in which they are taken.
STEPS = ("bounds", "records", "claims")
_FACTS = (
    *("coarsened", "recovered", "empty", "at_least_one"),  # of bounds
    *("decided", "records", "claims", "singletons", "people"),
)


def step_sentences(step: str, summary: Any, path: str = "") -> list[str]:
    """Return the findings of a step in words, naming the file ``path`` that holds them."""
    if step == "bounds":
        return list(summary.sentences)
    blocks = ", ".join(f"{count} {name}" for name, count in summary.statuses.items())
    if step == "records":
        read = "; published counts are read as ranges" * summary.coarsened
        return [f"{summary.records} records{path}; blocks: {blocks}{read}"]
    return [
        f"{summary.claims} claims are proved that no table states, {summary.singletons} of them "
        f"about one record{path and ','}{path}; blocks: {blocks}"
    ]


def attack_folder(
    source: PublishedTables | Release | Path,
    folder: Path | None,
    *,
    time_limit: float | None,
    say: Callable[[str], None] | None,
    progress: Callable[[int, int], None] | None,
) -> tuple[list[str], dict[str, pd.DataFrame], dict[str, int]]:
    """Return sentences, frames and facts of all steps, each run in a folder of its own.

    Tables that are held, and results that nobody asked to keep, are on disk for the time of it.
    """
    with tempfile.TemporaryDirectory(prefix="bayesrisk-") as scratch:
        tables, target = Path(scratch, "tables"), folder or Path(scratch, "attack")
        if isinstance(source, Path):
            tables = source
        else:
            source.write(tables)
        return _attacked(tables, target, time_limit, say, progress)


def _attacked(
    tables: Path,
    folder: Path,
    time_limit: float | None,
    say: Callable[[str], None] | None,
    progress: Callable[[int, int], None] | None,
) -> tuple[list[str], dict[str, pd.DataFrame], dict[str, int]]:
    sentences: list[str] = []
    frames: dict[str, pd.DataFrame] = {}
    facts: dict[str, int] = {}
    workload = open_tables(tables).workload
    finest, named = workload.levels[-1], bool(workload.schema.geography.names)
    studies: dict[str, TableStudy] = {
        "bounds": BoundsStudy(tables, time_limit=time_limit),
        "records": ReconstructionStudy(tables, scope=finest, time_limit=time_limit),
        "claims": ClaimsStudy(tables, time_limit=time_limit),
    }
    for number, step in enumerate(STEPS, 1):
        summary = run(studies[step], folder / step)
        lines = step_sentences(step, summary)
        lines += [f"no records fit: {text}" for text in summary.conflicts if step != "bounds"]
        for line in lines if say else ():
            say(line)  # type: ignore[misc]
        sentences += lines
        values = summary.to_dict()
        facts = {name: values[name] for name in _FACTS if name in values} | facts
        if step == "bounds":
            texts = ("level", "geoid", *(["name"] * named), "table", "cell")
            frame = read_own_csv(folder / step / "bounds.csv", texts)
            empty = frame[list(texts)].isna()  # the code of a nation is empty
            frame[list(texts)] = frame[list(texts)].astype(object).mask(empty, "")
            frames[step] = frame
        else:
            frame = pd.read_parquet(folder / step / f"{step}.parquet")
            frames[step] = workload.schema.labelled(frame) if named else frame
        if progress:
            progress(number, len(STEPS))
    return sentences, frames, facts
