"""``bayesrisk census occupancy``: subsidised households above the occupancy limit."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import bayesrisk as br
from bayesrisk.cli.data import MICRODATA, data_path
from bayesrisk.cli.options import (
    OutputOption,
    RuleOption,
    RunOptions,
    SeedOption,
    TakenOption,
    optional_number,
)
from bayesrisk.cli.printing import MADE_UP, listed, print_answer, shard_lines
from bayesrisk.exceptions import ArgumentError

if TYPE_CHECKING:
    from bayesrisk.experiments.runs.engine import RunSummary

#: Most synthetic populations of a study; every one has a part on disk for each protection.
MAX_SEEDS = 10_000
SEEDS = 6


SampleOption = Annotated[
    Path | None,
    "Public sample of households (.parquet) [synthetic for studies; for published "
    "statistics without one blocks only].",
]
HudOption = Annotated[str, "Read HUD's tables as counts or percentages."]
ClosedOption = Annotated[
    bool, typer.Option("--closed", help="Households of 7 people or more count as 7.")
]
LimitOption = Annotated[str | None, "Seconds for a block [none]."]
SolutionsOption = Annotated[int, "Reconstructions of a block."]


@dataclass(frozen=True)
class StudyOptions:
    """Options of a study: protections and attack."""

    seeds: Annotated[
        int | None, "Synthetic populations, at most 10000: of this seed and those after [6]."
    ] = None
    n_blocks: Annotated[
        int | None, typer.Option("--blocks", help="Blocks of each synthetic population [300].")
    ] = None
    seed: SeedOption = 1
    protection: Annotated[
        list[str] | None,
        "none, swapping:rate=1/10, das, uniform:rho=0.1, das-hud, uniform-hud:rho=0.1; may be "
        "repeated [all].",
    ] = None
    alpha: Annotated[
        float | None, "Weight of violations in synthetic households, in (0, 1] [1e-4]."
    ] = None
    solutions: SolutionsOption = 100
    noisy_solutions: Annotated[int, "The same for noisy tables."] = 10
    hud: HudOption = "counts"
    closed: ClosedOption = False
    time_limit: LimitOption = None

    def synthetic(self) -> dict[str, Any]:
        """Return the settings of synthetic households that were given."""
        settings = {"seeds": self.seeds, "blocks": self.n_blocks, "alpha": self.alpha}
        return {name: value for name, value in settings.items() if value is not None}

    def protections(self) -> dict[str, Any]:
        """Return the names of protections, the swapping rate and the noise budget."""
        from bayesrisk._base.plugins import STATED
        from bayesrisk.census.studies.occupancy import SETTINGS
        from bayesrisk.mechanisms.registry import read_recipe

        settings: dict[str, Any] = {}
        names = []
        for recipe in self.protection or ():
            name, parameters = read_recipe(recipe, "--protection")
            names.append(name)
            allowed = SETTINGS.get(name, {})
            for key, value in parameters.items():
                if key not in allowed:
                    possible = ", ".join(allowed) or "none"
                    raise ArgumentError(
                        "--protection", f"{name} has no {key}; settings: {possible}", got=recipe
                    )
                if settings.setdefault(allowed[key], str(value)) != str(value):
                    raise ArgumentError("--protection", f"must have one {key}", got=recipe)
            for key in set(allowed).difference(parameters):
                rule = f"{name} needs {key}: write {name}:{key}={STATED[key]}, or a value of yours"
                raise ArgumentError("--protection", rule)
        return settings | ({"protections": tuple(names)} if names else {})


def study(
    output: OutputOption,
    options: StudyOptions,
    runner: RunOptions,
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
    """Protect households in several ways, attack each, and judge both."""
    from bayesrisk._base import validation as check
    from bayesrisk.census.studies.occupancy_attack import read_households, read_sample
    from bayesrisk.tables.exchange import Partitions

    settings = options.synthetic()
    if households is not None and settings:
        raise ArgumentError(f"--{next(iter(settings))} goes with synthetic households")
    seeds = check.integer(settings.pop("seeds", SEEDS), "--seeds", lower=1, upper=MAX_SEEDS)
    source, public = _households(households), _households(sample)
    population = source if source is None or Partitions.there(source) else read_households(source)
    experiment = br.census.OccupancyStudy(
        seeds=tuple(range(options.seed, options.seed + (seeds if households is None else 1))),
        solutions=options.solutions,
        noisy_solutions=options.noisy_solutions,
        hud=options.hud,
        open_end=not options.closed,
        time_limit=optional_number(options.time_limit, "time_limit"),
        households=population,
        sample=None if public is None else read_sample(public),
        made_up=source is not None and br.datasets.is_made_up(source),
        **settings,
        **options.protections(),
    )
    summary = runner.run(experiment, output, "occupancy")
    if figures and summary.results is not None:
        summary.results.write_report(output)
    _print(summary, output, as_json=runner.as_json)


@dataclass(frozen=True)
class AttackOptions:
    """Options of the attack on published statistics."""

    level: Annotated[str, "Level of published tables."] = "block"
    hud: HudOption = "counts"
    error: Annotated[str, "Error that reconstructions may have: none, absolute or squared."] = (
        "none"
    )
    closed: ClosedOption = False
    solutions: SolutionsOption = 100
    seed: SeedOption = 1
    time_limit: LimitOption = None
    taken_as_true: TakenOption = False
    no_rule: RuleOption = False


def attack(
    blocks: Annotated[
        Path,
        typer.Argument(
            help="Published statistics: a folder of tables or of a release, or a row for each "
            "block (.parquet)."
        ),
    ],
    output: OutputOption,
    options: AttackOptions,
    runner: RunOptions,
    sample: SampleOption = None,
) -> None:
    """Find blocks that must hold a household above the limit."""
    from bayesrisk.census.studies.occupancy_attack import OccupancyAttackStudy
    from bayesrisk.census.studies.occupancy_results import attack_lead

    if blocks.is_file() and blocks.suffix != ".parquet":
        raise ArgumentError(
            f"{blocks} must be a folder of tables or a .parquet file; of records make tables: "
            f"`bayesrisk release {blocks} -o TABLES --protection none --tables household-occupancy`"
        )
    study = OccupancyAttackStudy(
        data_path(blocks, "published statistics"),
        sample=_households(sample),
        level=options.level,
        hud=options.hud,
        open_end=not options.closed,
        error=options.error,
        solutions=options.solutions,
        seed=options.seed,
        time_limit=optional_number(options.time_limit, "time_limit"),
        taken_as_true=options.taken_as_true,
        known_rule=not options.no_rule,
    )
    summary = runner.run(study, output, "occupancy")
    folder = Path(summary.folder)
    sentence = (
        f"{summary.blocks} blocks: {listed(summary.statuses)}; in {folder / 'blocks.parquet'}"
    )
    after = [f"  no households fit block {block}: {text}" for block, text in summary.conflicts]
    after += [f"report: {folder / 'report.html'}"] * summary.complete
    runner.show(summary, [attack_lead(summary.facts, options.level), sentence], after)


def _households(argument: Path | None) -> Path | None:
    """Return the file of households: given, inside a folder of microdata, or microdata by place."""
    if argument is None:
        return None
    path = data_path(argument, MICRODATA, "households.parquet")
    inside = path / "households.parquet"
    return inside if inside.is_file() else path


def _print(summary: "RunSummary", output: Path, *, as_json: bool) -> None:
    """Print what was found under each protection."""
    document = {"folder": str(output), "complete": summary.complete, "table": None}
    if summary.facts.get(MADE_UP):
        document[MADE_UP] = True
    if summary.results is None:
        print_answer(document, shard_lines(summary), as_json=as_json)
        return
    table = summary.results.table
    document["table"] = json.loads(table.to_json(orient="records"))
    lines = summary.results.sentences
    print_answer(document, [*lines, f"results: {output}"], as_json=as_json)
