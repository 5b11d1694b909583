"""``bayesrisk census measurements``: risk or posterior of every cell from noisy counts."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

import bayesrisk as br
from bayesrisk._base import disk
from bayesrisk.cli.data import MEASUREMENTS, data_path
from bayesrisk.cli.options import RunOptions, parse_number
from bayesrisk.cli.printing import MADE_UP, print_answer, shard_lines, table_lines
from bayesrisk.exceptions import ArgumentError

if TYPE_CHECKING:
    from bayesrisk.experiments.runs.engine import RunSummary

_POSTERIORS = ("risk", "counts")
_NEEDS_PRIOR = "--prior must be given for the risk of every cell: write --prior 1/10, or yours"
_SHOWN = 25  # cells that are printed
_CURVE = "curve"  # of the summary: for the figure, too long to print


@dataclass(frozen=True)
class MeasurementOptions:
    """Options that select the noisy counts and the question about them."""

    unit: Annotated[
        str | None, "GEOID of one unit: its cells by labels, and with -o their figure."
    ] = None
    posterior: Annotated[str, "risk: of one person in every cell; counts: of every count."] = "risk"
    level: Annotated[str, "Level of the spine."] = "Block"
    query: Annotated[str | None, "One query alone [risk: all together; counts: total]."] = None
    budget: Annotated[str | None, "Exact noise scales: pl94-us or pl94-pr."] = None


@dataclass(frozen=True)
class RiskOptions:
    """Options of the adversary's knowledge, for the risk of every cell."""

    prior: Annotated[str | None, "Risk: prior of the truth in every cell, 0.2 or 1/864."] = None
    known_count: Annotated[int | None, "Risk: others known to be in the cell [0]."] = None
    exceeds: Annotated[list[str], "Risk: count cells above this ratio; may be repeated [1.5]."] = (
        field(default_factory=list)
    )


def measurements(
    folder: Annotated[
        Path, typer.Argument(help="Noisy measurement folder, a zip of one, or sample:NAME.")
    ],
    question: MeasurementOptions,
    risk: RiskOptions,
    runner: RunOptions,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Output folder.")] = None,
    top: Annotated[str | None, "Counts: coarsest level, whose units are one tree [State]."] = None,
) -> None:
    """Compute what noisy counts of a census reveal about every cell."""
    from bayesrisk._base import validation as check

    counts = check.choice(question.posterior, "posterior", _POSTERIORS) == "counts"
    if question.unit is not None:
        _print_unit(folder, question, risk, runner, output)
        return
    if output is None:
        raise ArgumentError("--output must be given, or --unit for one unit")
    if output.suffix == ".parquet":
        raise ArgumentError("--output", "must be a folder", got=str(output))
    risk_options = {
        "prior": risk.prior,
        "known-count": risk.known_count,
        "exceeds": risk.exceeds or None,
    }
    for name, value in risk_options.items():
        if counts and value is not None:
            raise ArgumentError(f"--{name} belongs to --posterior risk")
    if folder.is_dir():
        br.census.NoisyMeasurements.open(folder)  # what is none is refused before all else
    if not counts and risk.prior is None:
        raise ArgumentError(_NEEDS_PRIOR)
    if not counts and top is not None:
        raise ArgumentError("--top belongs to --posterior counts")
    selection: dict[str, Any] = {"level": question.level, "budget": question.budget}
    selection["made_up"] = str(folder).startswith("sample:")
    with measurement_folder(folder) as place:
        if counts:
            query, coarsest = question.query or "total", top or "State"
            study = br.census.MeasurementCountsStudy(place, query=query, top=coarsest, **selection)
            summary = runner.run(study, output, "counts")
            runner.show(summary, summary.brief)
            return
        risks = br.census.MeasurementsStudy(
            place,
            prior=parse_number(str(risk.prior), "prior"),
            known_count=risk.known_count or 0,
            query=question.query,
            exceeds=[parse_number(text, "exceeds") for text in risk.exceeds] or [1.5],
            **selection,
        )
        summary = runner.run(risks, output, "noisy measurements")
    figures = _figures(summary, output) if summary.complete else []
    document = {name: value for name, value in summary.to_dict().items() if name != _CURVE}
    document["figures"] = [str(file) for file in figures]
    lines = [*risks.sentences(summary.facts), f"files: {output}"]
    lines += [f"figure: {file}" for file in figures[:1]]
    print_answer(document, [*lines, *shard_lines(summary)], as_json=runner.as_json)


def _print_unit(
    folder: Path, question: MeasurementOptions, risk: RiskOptions, runner: RunOptions,
    output: Path | None,
) -> None:  # fmt: skip
    """Print the cells of one unit that no constraint fixes, and draw them into a folder."""
    if risk.prior is None:
        raise ArgumentError(_NEEDS_PRIOR)
    with measurement_folder(folder) as place:
        answer = br.census.unit_measurements(
            place,
            str(question.unit),
            prior=parse_number(risk.prior, "prior"),
            known_count=risk.known_count or 0,
            level=question.level,
            query=question.query,
            budget=question.budget,
        )
    cells = answer.open_cells().round({"posterior": 6, "risk_ratio": 3})
    rows: list[Any] = cells[[*cells.columns.drop("label"), "label"]].to_dict("records")
    sentences = answer._answer()
    document = {
        MADE_UP: str(folder).startswith("sample:"), "unit": answer.geocode, "query": answer.query,
        "prior": answer.prior,
        "more_than_known": answer.more_than_known, "sentences": sentences, "cells": rows,
    }  # fmt: skip
    figures = list[Path]()
    if output is not None and rows:
        disk.make_folder(output)
        figures = br.plotting.save_figure(answer.plot(), output / "unit")
    document["figures"] = [str(file) for file in figures]
    lines = table_lines(
        [row | {"posterior": round(row["posterior"], 3)} for row in rows[:_SHOWN]],
        f"Cells that say most, {min(len(rows), _SHOWN)} of {len(rows)}:",
    )
    lines += [f"figure: {file}" for file in figures[:1]]
    print_answer(document, [*sentences, *(lines if rows else [])], as_json=runner.as_json)


def _figures(result: "RunSummary", output: Path) -> Sequence[Path]:
    """Draw how many cells exceed each risk ratio; return the files."""
    import pandas as pd

    thresholds = [row["risk_ratio"] for row in result.exceedance]
    figure = br.plotting.plot_noisy_measurements(pd.DataFrame(result.curve), thresholds)
    return br.plotting.save_figure(figure, output / "risk")


@contextmanager
def measurement_folder(argument: Path) -> Iterator[Path]:
    """Provide the folder of noisy measurements that an argument names, unzipped if need be."""
    place = data_path(argument, MEASUREMENTS)
    if place.suffix != ".zip":
        yield place
        return
    from bayesrisk.census.readers.nmf.reader import unpack  # slow to load

    with TemporaryDirectory() as folder:
        yield unpack(place, folder)
