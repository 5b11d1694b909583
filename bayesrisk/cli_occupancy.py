"""``bayesrisk occupancy``: which blocks must hold a household above the occupancy limit."""

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bayesrisk.accounting import exact_number
from bayesrisk.cli_progress import progress
from bayesrisk.exceptions import ArgumentError

if TYPE_CHECKING:
    from bayesrisk.experiments import OccupancyStudy

__all__ = ["occupancy"]


def occupancy(
    output: Annotated[Path, typer.Option("--output", "-o", help="Output folder.")],
    blocks: Annotated[
        Path | None,
        typer.Argument(
            help="Households (.parquet) to protect and attack, or a folder of published tables to "
            "attack; synthetic households without."
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(help="Synthetic populations.")] = 6,
    n_blocks: Annotated[int, typer.Option("--blocks", help="Blocks of each population.")] = 300,
    seed: Annotated[int, typer.Option(help="First seed.")] = 1,
    protection: Annotated[
        list[str] | None,
        typer.Option(help="none, swapping, das, uniform, das-hud, uniform-hud; repeat [all]."),
    ] = None,
    sample: Annotated[
        Path | None, typer.Option(help="Public sample of households (.parquet) [synthetic].")
    ] = None,
    solutions: Annotated[int, typer.Option(help="Reconstructions of a block.")] = 100,
    noisy_solutions: Annotated[int, typer.Option(help="The same for noisy tables.")] = 10,
    swap_rate: Annotated[str, typer.Option(help="Share of households swapped.")] = "1/10",
    rho: Annotated[str, typer.Option(help="Budget of uniform noise.")] = "0.1",
    hud: Annotated[
        str, typer.Option(help="Read HUD's tables as counts or percentages.")
    ] = "counts",
    level: Annotated[str, typer.Option(help="Level of published tables.")] = "block",
    closed: Annotated[
        bool, typer.Option("--closed", help="Households of 7 people or more count as 7.")
    ] = False,
    time_limit: Annotated[str | None, typer.Option(help="Seconds for a block [none].")] = None,
    workers: Annotated[int, typer.Option(help="Worker processes.")] = 1,
    figures: Annotated[bool, typer.Option(help="Draw the figures.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress.")] = False,
) -> None:
    """Find blocks with subsidised households above the occupancy limit, and judge protections."""
    limit = None if time_limit is None else float(exact_number(time_limit, "time_limit"))
    if blocks is not None and blocks.is_dir():
        _attack(blocks, output, level=level, hud=hud, closed=closed, limit=limit, as_json=as_json)
        return
    from bayesrisk.experiments import OccupancyConfig, run_occupancy
    from bayesrisk.experiments.occupancy_report import (
        read_households,
        read_sample,
        write_occupancy_figures,
    )

    if seeds < 1:
        raise ArgumentError(f"seeds must be >= 1, got {seeds}")
    settings: dict[str, Any] = {} if not protection else {"protections": tuple(protection)}
    config = OccupancyConfig(
        seeds=tuple(range(seed, seed + (seeds if blocks is None else 1))),
        blocks=n_blocks,
        solutions=solutions,
        noisy_solutions=noisy_solutions,
        swap_rate=swap_rate,
        rho=rho,
        hud=hud,
        open_end=not closed,
        time_limit=limit,
        **settings,
    )
    try:
        with progress(quiet=quiet or as_json, title="occupancy", unit="parts") as advance:
            study = run_occupancy(
                config,
                households=None if blocks is None else read_households(blocks),
                sample=None if sample is None else read_sample(sample),
                workers=workers,
                progress=advance,
            )
    except KeyboardInterrupt:
        typer.echo("bayesrisk: interrupted; nothing was written", err=True)
        raise typer.Exit(130) from None
    study.write(output)
    if figures:
        write_occupancy_figures(study, output / "figures")
    _print(study, output, as_json=as_json)


def _attack(
    tables: Path,
    output: Path,
    *,
    level: str,
    hud: str,
    closed: bool,
    limit: float | None,
    as_json: bool,
) -> None:
    """Attack published tables."""
    from bayesrisk.experiments.occupancy_report import detect_in_tables

    found = detect_in_tables(
        tables, output, level=level, hud=hud, open_end=not closed, time_limit=limit
    )
    counts = Counter(found.status)
    conflicts = [
        (str(geoid), cause)
        for geoid, status, cause in zip(found.geoids, found.status, found.cause, strict=True)
        if status == "infeasible"
    ]
    if as_json:
        document = {"blocks": len(found.status), "statuses": dict(counts), "conflicts": conflicts}
        typer.echo(json.dumps({"folder": str(output), **document}, indent=2))
        return
    told = ", ".join(f"{counts[name]} {name}" for name in sorted(counts))
    typer.echo(f"{len(found.status)} blocks: {told}; in {output / 'blocks.parquet'}")
    for geoid, cause in conflicts[:5]:
        typer.echo(f"  no households fit block {geoid}: {cause}")


def _print(study: "OccupancyStudy", output: Path, *, as_json: bool) -> None:
    """Print the table of blocks."""
    table = study.table
    if as_json:
        rows = json.loads(table.to_json(orient="records"))
        typer.echo(json.dumps({"folder": str(output), "table": rows}, indent=2))
        return
    typer.echo(
        "Blocks said to hold a household above the limit (intervals in brackets; blind guess "
        "after a bar):"
    )
    for row in table[table["infeasible_as"] == "apart"].to_dict(orient="records"):
        parts = [
            f"{m} {row[m]:.2f} [{row[f'{m}_lower']:.2f}, {row[f'{m}_upper']:.2f}] | "
            f"{row[f'{m}_baseline']:.2f}"
            for m in ("precision", "recall")
        ]
        typer.echo(
            f"  {row['protection']:12s} {row['putative']} of {row['blocks']} blocks, "
            f"{row['infeasible']} infeasible; {'; '.join(parts)}"
        )
    typer.echo(f"results: {output}")
