"""``bayesrisk occupancy``: which blocks must hold a household above the occupancy limit."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bayesrisk._files.text import shown
from bayesrisk.cli.base import (
    MICRODATA,
    TABLES,
    DialectOption,
    JsonOption,
    QuietOption,
    RunOptions,
    SeedOption,
    SolverOption,
    TakenOption,
    data_path,
    names,
    number,
    optional_number,
    print_json,
    print_shards,
    progress,
)
from bayesrisk.exceptions import ArgumentError

if TYPE_CHECKING:
    from bayesrisk.experiments.runs.engine import RunSummary

# -----------------------------------------------------------------------------
# ``bayesrisk claims``: a folder of published tables in, what must be true of its blocks out.


def claims(
    tables: Annotated[Path, typer.Argument(help="Folder of published tables, or of a release.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Output folder.")],
    how: RunOptions,
    columns: Annotated[
        list[str] | None,
        typer.Option(help="Columns of claims; repeat, or separate by commas [all]."),
    ] = None,
    max_columns: Annotated[int | None, typer.Option(help="Most columns of a claim.")] = None,
    plain: Annotated[
        bool, typer.Option("--plain", help="Any combination of codes, no structural rules.")
    ] = False,
    tenure: Annotated[
        str, typer.Option(help="Renters: merged, cash (all pay) or four-way.")
    ] = "merged",
    solver: SolverOption = "highs",
    time_limit: Annotated[str | None, typer.Option(help="Seconds for each block [none].")] = None,
    taken_as_true: TakenOption = False,
) -> None:
    """Say what must be true of the records behind published tables, and prove it."""
    from bayesrisk.experiments.reconstruction import ClaimsStudy

    study = ClaimsStudy(
        data_path(tables, TABLES),
        columns=names(columns) if columns else None,
        max_columns=max_columns,
        structural_rules=not plain,
        tenure=tenure,
        solver=solver,
        time_limit=optional_number(time_limit, "time_limit"),
        taken_as_true=taken_as_true,
    )
    summary = how.run(study, output, "claims")
    if how.as_json:
        print_json(summary.to_dict())
        return
    statuses = ", ".join(f"{count} {status}" for status, count in summary.statuses.items())
    typer.echo(
        f"{summary.claims} verified claims that no table states, {summary.singletons} about one "
        f"record, in {output}; blocks: {statuses}"
    )
    print_shards(summary)
    for example in summary.examples:
        typer.echo(f"  {example}")
    for conflict in summary.conflicts:
        typer.echo(f"  no records fit: {conflict}")


# -----------------------------------------------------------------------------
# ``bayesrisk reconstruct``: a folder of published tables in, records and what is proved out.


#: Limits of what may go on for days where nobody asked for any: a tract is one component.  That of
#: nodes is mostly reached first, and leaves the same answer on any machine.
JOINT_NODES, JOINT_SECONDS = 100, 600


def reconstruct(
    tables: Annotated[Path, typer.Argument(help="Folder of published tables, or of a release.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Output folder.")],
    scope: Annotated[
        str, typer.Option(help="block: each block alone; tract: with its tract's tables.")
    ],
    how: RunOptions,
    variability: Annotated[
        str | None,
        typer.Option(help="Also bound the solution variability: block, tract-bounds, tract-joint."),
    ] = None,
    solver: SolverOption = "highs",
    time_limit: Annotated[
        str | None,
        typer.Option(
            help="Seconds of the solver for each component, or none "
            f"[{JOINT_SECONDS} with --variability tract-joint, else none]."
        ),
    ] = None,
    node_limit: Annotated[
        str | None,
        typer.Option(
            help="Nodes of the solver for the variability of each component, or none "
            f"[{JOINT_NODES} with --variability tract-joint and highs, else none]."
        ),
    ] = None,
    nearest: Annotated[
        bool, typer.Option("--nearest", help="Least deviation where no records fit.")
    ] = False,
    taken_as_true: TakenOption = False,
) -> None:
    """Reconstruct the records behind published tables, and say what is proved about them."""
    from bayesrisk.experiments.reconstruction import ReconstructionStudy

    joint = variability == "tract-joint"
    study = ReconstructionStudy(
        data_path(tables, TABLES),
        scope=scope,
        variability=variability,
        solver=solver,
        time_limit=_seconds(time_limit, joint=joint),
        node_limit=_nodes(node_limit, joint=joint and solver == "highs"),
        nearest=nearest,
        taken_as_true=taken_as_true,
    )
    summary = how.run(study, output, "reconstruct")
    if how.as_json:
        print_json(summary.to_dict())
        return
    statuses = ", ".join(f"{count} {status}" for status, count in summary.statuses.items())
    typer.echo(f"{summary.records} records in {output}; blocks: {statuses}")
    print_shards(summary)
    for conflict in summary.conflicts:
        typer.echo(f"  no records fit: {conflict}")


def _seconds(text: str | None, *, joint: bool) -> float | None:
    """Return the limit that was asked for, or that of what takes long; None without one."""
    if text is None:
        return JOINT_SECONDS if joint else None
    return None if text == "none" else number(text, "time_limit")


def _nodes(text: str | None, *, joint: bool) -> int | None:
    """Return the limit of nodes that was asked for, or that of what takes long."""
    if text is None:
        return JOINT_NODES if joint else None
    if text == "none":
        return None
    if not text.isdecimal():
        raise ArgumentError(f"node_limit must be a whole number or none, got {shown(text)}")
    return int(text)


# -----------------------------------------------------------------------------
# ``bayesrisk reidentify``: reconstructed records against files of known persons.


def reidentify(
    folder: Annotated[Path, typer.Argument(help="Folder of a finished reconstruction.")],
    attacker: Annotated[
        list[Path],
        typer.Option(
            help="Known persons: block, sex, age, person; a file, a folder of microdata by place, "
            "or sample:NAME. May be repeated."
        ),
    ],
    truth: Annotated[
        Path,
        typer.Option(
            help="Confidential records: block, sex, age, race, hisp, person; a file, a folder of "
            "microdata by place, or sample:NAME."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="New or empty folder.")],
    dialect: DialectOption = None,
    truth_dialect: Annotated[
        str | None, typer.Option(help="That of --truth, if it has another.")
    ] = None,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Link records to known persons, confirm the links, and compare with guessing."""
    from bayesrisk.experiments.reidentification import write_reidentification

    known = [data_path(file, MICRODATA, "persons.parquet") for file in attacker]
    # A sample is called by its name: the file is persons.parquet in each.
    names = [
        str(file).removeprefix("sample:") if file != at else file.stem
        for file, at in zip(attacker, known, strict=True)
    ]
    files = dict(zip(names, known, strict=True))
    truth = data_path(truth, MICRODATA, "persons.parquet")
    if len(files) < len(attacker):
        raise ArgumentError(f"attacker files must have different names, got {sorted(files)}")
    with progress(quiet=quiet or as_json, title="reidentify", unit="steps") as advance:
        done = write_reidentification(
            folder,
            output,
            attackers=files,
            truth=truth,
            dialect=dialect,
            truth_dialect=truth_dialect,
            seed=seed,
            progress=advance,
        )
    if as_json:
        print_json(done.to_dict())
        return
    for row in done.rates.to_dict(orient="records"):
        typer.echo(_line(row))
    typer.echo(f"report: {done.report}")


def _line(row: Mapping[Any, Any]) -> str:
    precision, ratio, published = (
        row[name] for name in ("precision", "left_out_ratio", "precision_ratio")
    )
    rate = f"precision {precision:.1%}" if math.isfinite(precision) else "no precision"
    beside = (
        f", {ratio:.2f} times a guesser's without their own records" if math.isfinite(ratio) else ""
    )
    beside += f", {published:.2f} times the published guesser's" if math.isfinite(published) else ""
    return (
        f"{row['attacker']}, {row['source']}: {row['confirmed']} confirmed of {row['putative']} "
        f"putative of {row['attacker_records']} persons: {rate}{beside}"
    )


# -----------------------------------------------------------------------------


#: Most synthetic populations of a study; every one has a part on disk for each protection.
MAX_SEEDS = 10_000
SEEDS = 6

SampleOption = Annotated[
    Path | None,
    typer.Option(
        help="Public sample of households (.parquet) [synthetic for studies; for published "
        "statistics without one blocks only]."
    ),
]
HudOption = Annotated[str, typer.Option(help="Read HUD's tables as counts or percentages.")]
ClosedOption = Annotated[
    bool, typer.Option("--closed", help="Households of 7 people or more count as 7.")
]
LimitOption = Annotated[str | None, typer.Option(help="Seconds for a block [none].")]
SolutionsOption = Annotated[int, typer.Option(help="Reconstructions of a block.")]


@dataclass(frozen=True)
class StudyOptions:
    """Options of a study: the protections, and the attack."""

    seeds: Annotated[
        int | None,
        typer.Option(
            help="Synthetic populations, at most 10000: of this seed and those after [6]."
        ),
    ] = None
    n_blocks: Annotated[
        int | None, typer.Option("--blocks", help="Blocks of each synthetic population [300].")
    ] = None
    seed: SeedOption = 1
    protection: Annotated[
        list[str] | None,
        typer.Option(help="none, swapping, das, uniform, das-hud, uniform-hud; repeat [all]."),
    ] = None
    alpha: Annotated[
        float | None,
        typer.Option(help="Weight of violations in synthetic households, in (0, 1] [1e-4]."),
    ] = None
    solutions: SolutionsOption = 100
    noisy_solutions: Annotated[int, typer.Option(help="The same for noisy tables.")] = 10
    swap_rate: Annotated[str, typer.Option(help="Share of households swapped.")] = "1/10"
    rho: Annotated[str, typer.Option(help="Budget of uniform noise.")] = "0.1"
    hud: HudOption = "counts"
    closed: ClosedOption = False
    time_limit: LimitOption = None

    def synthetic(self) -> dict[str, Any]:
        """Return what is said of synthetic households."""
        given = {"seeds": self.seeds, "blocks": self.n_blocks, "alpha": self.alpha}
        return {name: value for name, value in given.items() if value is not None}


def study(
    output: Annotated[Path, typer.Option("--output", "-o", help="Output folder.")],
    what: StudyOptions,
    how: RunOptions,
    households: Annotated[
        Path | None,
        typer.Argument(
            help="Households to protect and attack: a file (.parquet), a folder of microdata, by "
            "place too, or sample:NAME; synthetic ones without."
        ),
    ] = None,
    sample: SampleOption = None,
    figures: Annotated[bool, typer.Option(help="Draw the figures, and write report.html.")] = True,
) -> None:
    """Protect households in several ways, attack each, and judge what the attack finds."""
    from bayesrisk import _validation as check
    from bayesrisk.experiments import OccupancyStudy
    from bayesrisk.experiments.occupancy_attack import read_households, read_sample
    from bayesrisk.experiments.occupancy_report import write_occupancy_report
    from bayesrisk.experiments.occupancy_study import OccupancyConfig
    from bayesrisk.tables.exchange import Partitions

    settings = what.synthetic()
    if households is not None and settings:
        raise ArgumentError(f"--{next(iter(settings))} goes with synthetic households")
    seeds = check.integer(settings.pop("seeds", SEEDS), "--seeds", lower=1, upper=MAX_SEEDS)
    if what.protection:
        settings["protections"] = tuple(what.protection)
    config = OccupancyConfig(
        seeds=tuple(range(what.seed, what.seed + (seeds if households is None else 1))),
        solutions=what.solutions,
        noisy_solutions=what.noisy_solutions,
        swap_rate=what.swap_rate,
        rho=what.rho,
        hud=what.hud,
        open_end=not what.closed,
        time_limit=optional_number(what.time_limit, "time_limit"),
        **settings,
    )
    source, public = _households(households), _households(sample)
    given = source if source is None or Partitions.there(source) else read_households(source)
    known = None if public is None else read_sample(public)
    summary = how.run(OccupancyStudy(config, households=given, sample=known), output, "occupancy")
    if figures and summary.results is not None:
        write_occupancy_report(summary.results, output)
    _print(summary, output, as_json=how.as_json)


@dataclass(frozen=True)
class AttackOptions:
    """How published statistics are read and attacked."""

    level: Annotated[str, typer.Option(help="Level of published tables.")] = "block"
    hud: HudOption = "counts"
    error: Annotated[
        str,
        typer.Option(help="Error that reconstructions may have: none, absolute or squared."),
    ] = "none"
    closed: ClosedOption = False
    solutions: SolutionsOption = 100
    seed: SeedOption = 1
    time_limit: LimitOption = None
    taken_as_true: TakenOption = False


def attack(
    blocks: Annotated[
        Path,
        typer.Argument(
            help="Published statistics: a folder of tables or of a release, or a row for each "
            "block (.parquet)."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Output folder.")],
    what: AttackOptions,
    how: RunOptions,
    sample: SampleOption = None,
) -> None:
    """Find blocks of published statistics that must hold a household above the limit."""
    from bayesrisk.experiments.occupancy_attack import OccupancyAttackStudy

    study = OccupancyAttackStudy(
        data_path(blocks, "published statistics"),
        sample=_households(sample),
        level=what.level,
        hud=what.hud,
        open_end=not what.closed,
        error=what.error,
        solutions=what.solutions,
        seed=what.seed,
        time_limit=optional_number(what.time_limit, "time_limit"),
        taken_as_true=what.taken_as_true,
    )
    summary = how.run(study, output, "occupancy")
    if how.as_json:
        print_json(summary.to_dict())
        return
    statuses = ", ".join(f"{count} {status}" for status, count in summary.statuses.items())
    typer.echo(f"{summary.blocks} blocks: {statuses}; in {Path(summary.folder) / 'blocks.parquet'}")
    print_shards(summary)
    for geoid, conflict in summary.conflicts:
        typer.echo(f"  no households fit block {geoid}: {conflict}")


def _households(given: Path | None) -> Path | None:
    """Return the file of households, which a folder of microdata has; or microdata by place."""
    if given is None:
        return None
    found = data_path(given, MICRODATA, "households.parquet")
    inside = found / "households.parquet"
    return inside if inside.is_file() else found


def _print(summary: "RunSummary", output: Path, *, as_json: bool) -> None:
    """Print the table of blocks."""
    if summary.results is None:
        if as_json:
            print_json({"folder": str(output), "complete": False, "table": None})
        else:
            print_shards(summary)
        return
    table = summary.results.table
    if as_json:
        rows = json.loads(table.to_json(orient="records"))
        print_json({"folder": str(output), "complete": True, "table": rows})
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
