"""``bayesrisk measurements``: what a noisy measurement file says of every cell, or every count."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bayesrisk._files.parse import shown
from bayesrisk.cli.data import measurement_folder
from bayesrisk.cli.options import RunOptions, number
from bayesrisk.cli.output import print_json, print_shards, print_table
from bayesrisk.exceptions import ArgumentError

if TYPE_CHECKING:
    from bayesrisk.experiments import MeasurementCountsSummary, MeasurementsSummary

_POSTERIORS = ("risk", "counts")
_CURVE = "curve"  # of the summary: for the figure, too long to print


@dataclass(frozen=True)
class WhichOptions:
    """Which counts are read, and what is asked of them."""

    posterior: Annotated[
        str, typer.Option(help="risk: of one person in every cell; counts: of every count.")
    ] = "risk"
    level: Annotated[str, typer.Option(help="Level of the spine.")] = "Block"
    query: Annotated[
        str | None, typer.Option(help="One query alone [risk: all together; counts: total].")
    ] = None
    budget: Annotated[str | None, typer.Option(help="Exact noise scales: pl94-us or pl94-pr.")] = (
        None
    )


@dataclass(frozen=True)
class RiskOptions:
    """What the adversary knew: for the risk of every cell."""

    prior: Annotated[
        str | None, typer.Option(help="Risk: prior of the truth in every cell, 0.2 or 1/864.")
    ] = None
    known_count: Annotated[
        int | None, typer.Option(help="Risk: others known to be in the cell [0].")
    ] = None
    exceeds: Annotated[
        list[str], typer.Option(help="Risk: count cells above this ratio; may be repeated [1.5].")
    ] = field(default_factory=list)


def measurements(
    folder: Annotated[Path, typer.Argument(help="Noisy measurement folder, or sample:NAME.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Output folder.")],
    which: WhichOptions,
    risk: RiskOptions,
    how: RunOptions,
    top: Annotated[
        str | None, typer.Option(help="Counts: coarsest level, whose units are one tree [State].")
    ] = None,
) -> None:
    """Risk of every unit and cell of a noisy measurement file, or posterior of its counts."""
    from bayesrisk import _validation as check

    check.choice(which.posterior, "posterior", _POSTERIORS)
    if output.suffix == ".parquet":
        raise ArgumentError(f"output must be a folder, got {shown(str(output))}")
    with measurement_folder(folder) as place:
        if which.posterior == "counts":
            _counts(place, output, which, risk, how, top)
        else:
            _risk(place, output, which, risk, how, top)


def _risk(
    place: Path,
    output: Path,
    which: WhichOptions,
    risk: RiskOptions,
    how: RunOptions,
    top: str | None,
) -> None:
    from bayesrisk.experiments import MeasurementsStudy

    if risk.prior is None:
        raise ArgumentError("--prior must be given for the risk of every cell")
    if top is not None:
        raise ArgumentError("--top belongs to --posterior counts")
    study = MeasurementsStudy(
        place,
        prior=number(risk.prior, "prior"),
        known_count=0 if risk.known_count is None else risk.known_count,
        level=which.level,
        query=which.query,
        exceeds=[number(text, "exceeds") for text in risk.exceeds] or [1.5],
        budget=which.budget,
    )
    summary = how.run(study, output, "noisy measurements")
    figures = _figures(summary, output) if summary.complete else []
    if how.as_json:
        told = dataclasses.asdict(summary)
        told["figures"] = [str(file) for file in figures]
        print_json({name: value for name, value in told.items() if name != _CURVE})
        return
    _print_risk(summary, output)
    if figures:
        typer.echo(f"figure: {figures[0]}")
    print_shards(summary)


def _counts(
    place: Path,
    output: Path,
    which: WhichOptions,
    risk: RiskOptions,
    how: RunOptions,
    top: str | None,
) -> None:
    from bayesrisk.experiments import MeasurementCountsStudy

    given = {"prior": risk.prior, "known-count": risk.known_count, "exceeds": risk.exceeds or None}
    for name, value in given.items():
        if value is not None:
            raise ArgumentError(f"--{name} belongs to --posterior risk")
    study = MeasurementCountsStudy(
        place,
        query="total" if which.query is None else which.query,
        level=which.level,
        top="State" if top is None else top,
        budget=which.budget,
    )
    summary = how.run(study, output, "counts")
    if how.as_json:
        print_json(dataclasses.asdict(summary))
        return
    _print_counts(summary, output)
    print_shards(summary)


def _figures(result: "MeasurementsSummary", output: Path) -> Sequence[Path]:
    """Draw how many cells are above a ratio, beside the cells."""
    import pandas as pd

    from bayesrisk.plotting import plot_noisy_measurements, save_figure

    thresholds = [row["risk_ratio"] for row in result.exceedance]
    drawn = plot_noisy_measurements(pd.DataFrame(result.curve), thresholds)
    return save_figure(drawn, output / "risk")


def _print_risk(result: "MeasurementsSummary", output: Path) -> None:
    """Print the summary for people."""
    without = "" if not result.unmeasured else f"; {result.unmeasured} more have no noisy answer"
    typer.echo(
        f"{result.cells} cells of {result.units} units ({result.level}, {result.query}) in "
        f"{output}{without}"
    )
    kinds = ", ".join(f"{cells} by {name}" for name, cells in result.settled.items())
    typer.echo(f"cells whose count constraints fix: {kinds or 'none'}")
    if result.ignored:
        typer.echo(f"constraints with recodes not known, not used: {', '.join(result.ignored)}")
    if result.combine:
        typer.echo(f"cells about which several noisy values add up: {result.strengthened}")
    if result.contradicted:
        typer.echo(
            f"cells in which constraints say that more than {result.known_count + 1} are: "
            f"{result.contradicted}"
        )
    typer.echo(
        f"Cells above a risk ratio, prior {result.prior:g}, beside what the noise alone gives if "
        f"every true count is {result.known_count}, or {result.known_count + 1} "
        "(+- standard deviation), those of them proved empty, and cells above with constraints:"
    )
    all_of = (f"all {result.known_count}", f"all {result.known_count + 1}")
    names = ("risk ratio", "cells", *all_of, "proved empty", "with constraints")
    widths = (12, 14, 26, 26, 14, 18)
    lines: list[tuple[str, ...]] = [names]
    for row in result.exceedance:
        expected = [
            f"{row[f'expected_{name}']:.6g} +- {row[f'error_{name}']:.3g}"
            for name in ("known", "one_more")
        ]
        counts = (str(row["proved_empty"]), str(row["cells_with_constraints"]))
        lines.append((f"{row['risk_ratio']:.6g}", str(row["cells"]), *expected, *counts))
    for line in lines:
        typer.echo("  ".join(f"{text:>{width}}" for text, width in zip(line, widths, strict=True)))


def _print_counts(result: "MeasurementCountsSummary", output: Path) -> None:
    """Print the summary for people."""
    rows = [
        {
            "level": level,
            "counts": number_of,
            "known_exactly": result.exact[level],
            "sd": result.sd[level],
            "sd_of_own_noise": "-" if result.noise_sd[level] is None else result.noise_sd[level],
        }
        for level, number_of in result.counts.items()
    ]
    if rows:
        print_table(rows, f"Counts of {result.query}, {result.top} to {result.level}, in {output}:")
    typer.echo(f"cut off: at most {result.truncation_bound:.3g} of each posterior")
