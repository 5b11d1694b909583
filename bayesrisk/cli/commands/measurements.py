"""``bayesrisk measurements``: every unit and cell of a noisy measurement file."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bayesrisk import _files
from bayesrisk._files.parse import shown
from bayesrisk.cli.data import measurement_folder
from bayesrisk.cli.options import JsonOption, QuietOption, number
from bayesrisk.cli.output import print_json, progress
from bayesrisk.exceptions import ArgumentError, OutputError

if TYPE_CHECKING:
    import pandas as pd

    from bayesrisk.experiments import NoisyMeasurementRisk

__all__ = ["measurements"]

_BUDGETS = ("pl94-us", "pl94-pr")
_FIGURE_ENDINGS = (".png", ".svg")


def _budget(name: str | None, universe: str) -> "pd.DataFrame | None":
    """Return the production budget that the option names."""
    from bayesrisk.accounting import census_2020_budget

    if name is None:
        return None
    if name not in _BUDGETS:
        raise ArgumentError(f"--budget must be one of {', '.join(_BUDGETS)}, got {shown(name)}")
    product, region = name.split("-")
    if not universe.startswith(product):
        raise ArgumentError(
            f"--budget must be that of the folder's product, {universe}, got {name}"
        )
    return census_2020_budget(
        product, region=region.upper(), universe=universe.removeprefix(f"{product}-")
    )


def _figure_stem(output: Path, figure: Path | None) -> Path:
    """Return the path of the figures without their ending; neither of them exists."""
    stem = output.with_suffix("") if figure is None else figure
    if stem.suffix in _FIGURE_ENDINGS:
        stem = stem.with_suffix("")
    for ending in _FIGURE_ENDINGS:
        path = Path(f"{stem}{ending}")
        if path.exists():
            raise OutputError(f"{path}: exists already; choose another name with --figure")
    if not stem.parent.is_dir():
        raise OutputError(f"{stem}: the folder {str(stem.parent)!r} does not exist")
    return stem


def _save_figure(result: "NoisyMeasurementRisk", stem: Path) -> None:
    """Write the summary figure."""
    from bayesrisk.plotting import plot_noisy_measurements, save_figure

    save_figure(plot_noisy_measurements(result.curve, result.exceedance["risk_ratio"]), stem)


def _print(result: "NoisyMeasurementRisk", figures: Sequence[Path]) -> None:
    """Print the summary for people."""
    without = "" if not result.unmeasured else f"; {result.unmeasured} more have no noisy answer"
    typer.echo(
        f"{result.cells} cells of {result.units} units ({result.level}, {result.query}) in "
        f"{result.output}{without}"
    )
    typer.echo(
        f"Cells above a risk ratio, prior {result.prior:g}, beside what the noise alone gives if "
        f"every true count is {result.known_count}, or {result.known_count + 1} "
        "(+- standard deviation):"
    )
    names = ("risk ratio", "cells", f"all {result.known_count}", f"all {result.known_count + 1}")
    typer.echo("  ".join([f"{names[0]:>12}", f"{names[1]:>14}", *(f"{n:>26}" for n in names[2:])]))
    for row in result.exceedance.itertuples():
        expected = [
            f"{mean:.6g} +- {error:.3g}"
            for mean, error in (
                (row.expected_known, row.error_known),
                (row.expected_one_more, row.error_one_more),
            )
        ]
        cells = [f"{row.risk_ratio:>12.6g}", f"{row.cells:>14}", *(f"{e:>26}" for e in expected)]
        typer.echo("  ".join(cells))
    typer.echo(f"figure: {figures[0]}")


@dataclass(frozen=True)
class WhichOptions:
    """Which counts are read, and what is asked of them."""

    level: Annotated[str, typer.Option(help="Level of the spine.")] = "Block"
    query: Annotated[str, typer.Option(help="Query.")] = "detailed"
    exceeds: Annotated[
        list[str], typer.Option(help="Count cells above this ratio; may be repeated.")
    ] = field(default_factory=lambda: ["1.5"])
    budget: Annotated[str | None, typer.Option(help="Exact noise scales: pl94-us or pl94-pr.")] = (
        None
    )


def measurements(
    folder: Annotated[Path, typer.Argument(help="Noisy measurement folder, or sample:NAME.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Parquet file to make.")],
    prior: Annotated[str, typer.Option(help="Prior of the truth in every cell, 0.2 or 1/864.")],
    which: WhichOptions,
    known_count: Annotated[int, typer.Option(help="Others known to be in the cell.")] = 0,
    figure: Annotated[
        Path | None, typer.Option(help="Figure, without ending [beside the output].")
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Posterior and risk ratio for every unit and cell of a noisy measurement file."""
    from bayesrisk.experiments import noisy_measurement_risk
    from bayesrisk.readers import NoisyMeasurements

    if output.suffix.lower() != ".parquet":
        raise ArgumentError(f"--output must end in .parquet, got {shown(str(output))}")
    with _files.explained(output):
        _files.clear(output)
        stem = _figure_stem(output, figure)
    figures = [Path(f"{stem}{ending}") for ending in _FIGURE_ENDINGS]
    with measurement_folder(folder) as place:
        source = NoisyMeasurements.open(place)
        table = _budget(which.budget, source.universe.name)
        if table is not None:
            source = NoisyMeasurements.open(place, budget=table)
        with (
            _files.new_files(output, *figures) as made,
            progress(quiet=quiet or as_json, title="noisy measurements", unit="rows") as advance,
        ):
            result = noisy_measurement_risk(
                source,
                made / output.name,
                prior=number(prior, "prior"),
                known_count=known_count,
                level=which.level,
                query=which.query,
                exceeds=[number(text, "exceeds") for text in which.exceeds],
                progress=advance,
            )
            _save_figure(result, made / stem.name)
    result = dataclasses.replace(result, output=output)
    if not as_json:
        _print(result, figures)
        return
    print_json(
        {
            "output": str(result.output),
            "figures": [str(path) for path in figures],
            **{name: getattr(result, name) for name in ("level", "query", "prior", "known_count")},
            **{name: getattr(result, name) for name in ("units", "unmeasured", "cells")},
            "exceedance": result.exceedance.to_dict(orient="records"),
            "seconds": {name: round(value, 3) for name, value in result.seconds.items()},
            "version": result.version,
        }
    )
