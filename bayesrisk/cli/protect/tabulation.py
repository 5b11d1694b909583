"""``bayesrisk release --protection none``: records in, exact tables out."""

import functools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import bayesrisk as br
from bayesrisk._base import disk
from bayesrisk.cli.options import RunOptions
from bayesrisk.cli.printing import counter, listed, print_answer, progress
from bayesrisk.cli.sources import RecordSource
from bayesrisk.exceptions import ArgumentError, OutputError


def tabulate(
    source: RecordSource,
    wanted: "br.Workload",
    document: Mapping[str, Any],
    output: Path,
    runner: RunOptions,
    *,
    by: str | None,
    replace: bool,
) -> None:
    """Count records into tables, exactly; microdata by place become tables by the same places."""
    if source.is_by_place or by is not None:
        if replace:
            raise ArgumentError("--replace does not go with tables by place; use a new folder")
        source.check_by_place(by, document)
        recoded = functools.partial(_recoded, source, wanted, document, counter(None))
        with source.parts(recoded, by, output) as folder:
            _by_place(folder, wanted, output, runner)
        return
    runner.refuse("goes with --by, or with microdata by place")
    _check_output(output, replace=replace)
    with progress(quiet=runner.quiet or runner.as_json, title="release", unit="records") as advance:
        published = br.tabulate(_recoded(source, wanted, document, counter(advance)), wanted)
        (br.tables.published.marked(published) if source.mark else published).write(output)
    summary: dict[str, Any] = {
        "folder": str(output),
        "tables": len(published.counts),
        "cells": wanted.n_cells,
        "places": {level: len(places) for level, places in published.geoids.items()},
        "rows": int(sum(counts.nnz for counts in published.counts.values())),
    }
    lines = [
        f"{summary['tables']} tables of {summary['cells']} cells in {output}",
        f"places: {listed(summary['places'], ' of level ')}",
        f"{summary['rows']} counts are not zero",
    ]
    print_answer(source.mark | summary, lines, as_json=runner.as_json)


def _by_place(source: Path, wanted: "br.Workload", output: Path, runner: RunOptions) -> None:
    """Count microdata by place, a part at a time."""
    from bayesrisk.experiments.by_place import TabulationStudy

    summary = runner.run(TabulationStudy(source, wanted), output, "release")
    lines = [f"{len(wanted.tables)} tables of {wanted.n_cells} cells in {output}"]
    if summary.complete:
        lines.append(
            f"places: {summary.places} of level {wanted.levels[-1]}, in {summary.shards} parts"
        )
    runner.show(summary, lines)


def _check_output(folder: Path, *, replace: bool) -> None:
    """Refuse a folder that is in use before anything is computed."""
    with disk.explained(folder):
        names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    if any(not disk.is_leftover(name) for name in names):
        if "_release.json" in names:
            raise OutputError(
                f"{folder}: holds a release; choose a new folder; nothing was changed"
            )
        if "_manifest.json" not in names:
            raise OutputError(f"{folder}: must be empty or hold tables; nothing was changed")
        if not replace:
            raise OutputError(
                f"{folder}: holds tables; add --replace to make them again, or choose another "
                "folder; nothing was changed"
            )


def _recoded(
    source: RecordSource,
    wanted: "br.Workload",
    document: Mapping[str, Any],
    advance: Callable[[int], None],
) -> "br.tables.Microdata | Iterator[br.Records]":
    """Return microdata of a folder, or the pieces of a file in the schema that is counted."""
    read = source.pieces(wanted.schema, document.get("schema"), document.get("dialect"))
    if isinstance(read, br.tables.Microdata):
        advance(len(read.for_schema(wanted.schema)))  # not those of the other kind
        return read
    return _counted(read, wanted.schema, advance)


def _counted(
    pieces: "Iterator[br.Records]", schema: "br.Schema", advance: Callable[[int], None]
) -> "Iterator[br.Records]":
    """Yield pieces in a schema, and tell how many records they hold."""
    from bayesrisk.tables.microdata import as_microdata

    for piece in pieces:
        yield as_microdata(piece).for_schema(schema)
        advance(len(piece))
