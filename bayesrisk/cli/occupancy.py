"""``bayesrisk occupancy``: which blocks must hold a household above the occupancy limit."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk.accounting import exact_number
from bayesrisk.cli._data import MICRODATA, data_path
from bayesrisk.cli._progress import progress
from bayesrisk.exceptions import ArgumentError

if TYPE_CHECKING:
    from bayesrisk.experiments import OccupancyStudy
    from bayesrisk.experiments.occupancy.attack import OccupancyAttackSummary

__all__ = ["occupancy"]

#: Most synthetic populations of a study; every one has a part on disk for each protection.
MAX_SEEDS = 10_000


def occupancy(
    output: Annotated[Path, typer.Option("--output", "-o", help="Output folder.")],
    blocks: Annotated[
        Path | None,
        typer.Argument(
            help="Households (.parquet) to protect and attack, or published statistics to attack: "
            "a folder of tables, or a row for each block (.parquet); or sample:NAME; synthetic "
            "households without."
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(help="Synthetic populations, at most 10000.")] = 6,
    n_blocks: Annotated[int, typer.Option("--blocks", help="Blocks of each population.")] = 300,
    seed: Annotated[int, typer.Option(help="First seed.")] = 1,
    protection: Annotated[
        list[str] | None,
        typer.Option(help="none, swapping, das, uniform, das-hud, uniform-hud; repeat [all]."),
    ] = None,
    alpha: Annotated[
        float, typer.Option(help="Weight of violations in synthetic households, in (0, 1].")
    ] = 1e-4,
    sample: Annotated[
        Path | None,
        typer.Option(
            help="Public sample of households (.parquet) [synthetic for studies; for published "
            "statistics without one blocks only]."
        ),
    ] = None,
    solutions: Annotated[int, typer.Option(help="Reconstructions of a block.")] = 100,
    noisy_solutions: Annotated[int, typer.Option(help="The same for noisy tables.")] = 10,
    swap_rate: Annotated[str, typer.Option(help="Share of households swapped.")] = "1/10",
    rho: Annotated[str, typer.Option(help="Budget of uniform noise.")] = "0.1",
    hud: Annotated[
        str, typer.Option(help="Read HUD's tables as counts or percentages.")
    ] = "counts",
    level: Annotated[str, typer.Option(help="Level of published tables.")] = "block",
    error: Annotated[
        str,
        typer.Option(
            help="Error that reconstructions from published statistics may have: none, absolute "
            "or squared."
        ),
    ] = "none",
    closed: Annotated[
        bool, typer.Option("--closed", help="Households of 7 people or more count as 7.")
    ] = False,
    time_limit: Annotated[str | None, typer.Option(help="Seconds for a block [none].")] = None,
    workers: Annotated[int, typer.Option(help="Worker processes.")] = 1,
    resume: Annotated[bool, typer.Option("--resume", help="Keep finished parts.")] = False,
    figures: Annotated[bool, typer.Option(help="Draw the figures.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress.")] = False,
) -> None:
    """Find blocks with subsidised households above the occupancy limit, and judge protections."""
    limit = None if time_limit is None else float(exact_number(time_limit, "time_limit"))
    bar = progress(quiet=quiet or as_json, title="occupancy", unit="parts")
    if blocks is not None:
        blocks = data_path(blocks, MICRODATA, "households.parquet")
    if sample is not None:
        sample = data_path(sample, MICRODATA, "households.parquet")
    if blocks is not None and _is_published(blocks):
        from bayesrisk.experiments import run_occupancy_attack

        with _kept_parts(), bar as advance:
            summary = run_occupancy_attack(
                blocks,
                output,
                sample=sample,
                level=level,
                hud=hud,
                open_end=not closed,
                error=error,
                solutions=solutions,
                seed=seed,
                time_limit=limit,
                workers=workers,
                resume=resume,
                progress=advance,
            )
        _print_attack(summary, as_json=as_json)
        return
    from bayesrisk.experiments import OccupancyConfig, run_occupancy
    from bayesrisk.experiments.occupancy.report import (
        read_households,
        read_sample,
        write_occupancy_figures,
    )

    check.integer(seeds, "--seeds", lower=1, upper=MAX_SEEDS)
    if error != "none":
        raise ArgumentError(
            f"error must be 'none' in a study, which knows the noise, got {shown(error)}"
        )
    settings: dict[str, Any] = {} if not protection else {"protections": tuple(protection)}
    config = OccupancyConfig(
        seeds=tuple(range(seed, seed + (seeds if blocks is None else 1))),
        blocks=n_blocks,
        alpha=alpha,
        solutions=solutions,
        noisy_solutions=noisy_solutions,
        swap_rate=swap_rate,
        rho=rho,
        hud=hud,
        open_end=not closed,
        time_limit=limit,
        **settings,
    )
    households = None if blocks is None else read_households(blocks)
    public = None if sample is None else read_sample(sample)
    with _kept_parts(), bar as advance:
        study = run_occupancy(
            config,
            households=households,
            sample=public,
            folder=output,
            resume=resume,
            workers=workers,
            progress=advance,
        )
    if figures:
        write_occupancy_figures(study, output / "figures")
    _print(study, output, as_json=as_json)


def _is_published(blocks: Path) -> bool:
    """Return whether these are published statistics rather than households."""
    from bayesrisk.experiments.occupancy.report import column_names

    return blocks.is_dir() or "hud_households" in column_names(blocks)


@contextmanager
def _kept_parts() -> Iterator[None]:
    """Leave with the usual code after an interrupt, and say what to do."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo("bayesrisk: interrupted; finished parts are kept, go on with --resume", err=True)
        raise typer.Exit(130) from None


def _print_attack(summary: "OccupancyAttackSummary", *, as_json: bool) -> None:
    """Print what was found in published statistics."""
    if as_json:
        typer.echo(json.dumps(summary._asdict(), indent=2))
        return
    told = ", ".join(f"{count} {status}" for status, count in summary.statuses.items())
    typer.echo(f"{summary.blocks} blocks: {told}; in {Path(summary.folder) / 'blocks.parquet'}")
    for geoid, cause in summary.conflicts:
        typer.echo(f"  no households fit block {geoid}: {cause}")


def _print(study: "OccupancyStudy", output: Path, *, as_json: bool) -> None:
    """Print the table of blocks."""
    table = study.table
    if as_json:
        rows = json.loads(table.to_json(orient="records"))
        typer.echo(json.dumps({"folder": str(output), "table": rows}, indent=2))
        return
    typer.echo(
        "Blocks flagged as holding an over-occupied household: [95 % interval], and after a bar "
        "guessing at random:"
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
