"""Attacks on published tables, and ``bayesrisk audit``, which judges protections by them."""

import dataclasses
import functools
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import bayesrisk as br
from bayesrisk.cli import base
from bayesrisk.cli.records import MOST_KINDS, ColumnOptions, usual_tables
from bayesrisk.exceptions import ArgumentError, quote

if TYPE_CHECKING:
    from bayesrisk.experiments.audit.choosing import ProtectionGoal
    from bayesrisk.experiments.audit.populations import SimulatedPopulation
    from bayesrisk.experiments.runs.engine import RunSummary
    from bayesrisk.risk.audit import Adversary

# -----------------------------------------------------------------------------
# ``bayesrisk claims``: a folder of published tables in, what must be true of its blocks out.


def claims(
    tables: base.TablesArgument,
    output: base.OutputOption,
    runner: base.RunOptions,
    columns: Annotated[
        list[str] | None, "Columns of claims; repeat, or separate by commas [all]."
    ] = None,
    max_columns: Annotated[int | None, "Most columns of a claim."] = None,
    plain: Annotated[bool, "Any combination of codes, no structural rules."] = False,
    tenure: Annotated[str, "Renters: merged, cash (all pay) or four-way."] = "merged",
    solver: base.SolverOption = "highs",
    time_limit: Annotated[str | None, "Seconds for each block [none]."] = None,
    taken_as_true: base.TakenOption = False,
    no_rule: base.RuleOption = False,
) -> None:
    """Say what must be true of the records behind published tables, and prove it."""
    from bayesrisk.experiments.reconstruction import ClaimsStudy

    study = ClaimsStudy(
        base.data_path(tables, base.TABLES),
        columns=base.names(columns) if columns else None,
        max_columns=max_columns,
        structural_rules=not plain,
        tenure=tenure,
        solver=solver,
        time_limit=base.optional_number(time_limit, "time_limit"),
        taken_as_true=taken_as_true,
        known_rule=not no_rule,
    )
    summary = runner.run(study, output, "claims")
    sentence = (
        f"{summary.claims} verified claims that no table states, {summary.singletons} about one "
        f"record, in {output}; blocks: {base.listed(summary.statuses)}"
    )
    conflicts = [f"  no records fit: {conflict}" for conflict in summary.conflicts]
    runner.show(
        summary, [sentence], [*(f"  {example}" for example in summary.examples), *conflicts]
    )


# -----------------------------------------------------------------------------
# ``bayesrisk reconstruct``: a folder of published tables in, records and what is proved out.


#: Limits of what may go on for days where nobody asked for any: a tract is one component.  That of
#: nodes is mostly reached first, and leaves the same answer on any machine.
JOINT_NODES, JOINT_SECONDS = 100, 600


def reconstruct(
    tables: base.TablesArgument,
    output: base.OutputOption,
    scope: Annotated[str, "block: each block alone; tract: with its tract's tables."],
    runner: base.RunOptions,
    variability: Annotated[
        str | None, "Also bound the solution variability: block, tract-bounds, tract-joint."
    ] = None,
    solver: base.SolverOption = "highs",
    time_limit: Annotated[
        str | None,
        "Seconds of the solver for each component, or none "
        f"[{JOINT_SECONDS} with --variability tract-joint, else none].",
    ] = None,
    node_limit: Annotated[
        str | None,
        "Nodes of the solver for the variability of each component, or none "
        f"[{JOINT_NODES} with --variability tract-joint and highs, else none].",
    ] = None,
    nearest: Annotated[bool, "Least deviation where no records fit."] = False,
    taken_as_true: base.TakenOption = False,
    no_rule: base.RuleOption = False,
) -> None:
    """Reconstruct the records behind published tables, and say what is proved about them."""
    from bayesrisk.experiments.reconstruction import ReconstructionStudy

    joint = (variability or "").endswith("-joint")
    seconds = _limit(time_limit, JOINT_SECONDS if joint else None)
    study = ReconstructionStudy(
        base.data_path(tables, base.TABLES),
        scope=scope,
        variability=variability,
        solver=solver,
        time_limit=base.optional_number(seconds, "time_limit"),
        node_limit=_nodes(node_limit, JOINT_NODES if joint and solver == "highs" else None),
        nearest=nearest,
        taken_as_true=taken_as_true,
        known_rule=not no_rule,
    )
    summary = runner.run(study, output, "reconstruct")
    sentence = f"{summary.records} records in {output}; blocks: {base.listed(summary.statuses)}"
    sentence += "; published counts are read as ranges" * summary.coarsened
    runner.show(summary, [sentence], (f"  no records fit: {text}" for text in summary.conflicts))


def _limit(text: str | None, usual: int | None) -> str | None:
    """Return the limit that was asked for, or the usual one of what takes long; None for none."""
    limit = usual if text is None else text
    return None if limit in (None, "none") else str(limit)


def _nodes(text: str | None, usual: int | None) -> int | None:
    """Return the limit of nodes, a whole number, or None."""
    nodes = _limit(text, usual)
    if nodes is not None and not nodes.isdecimal():
        raise ArgumentError(f"node_limit must be a whole number or none, got {quote(nodes)}")
    return None if nodes is None else int(nodes)


# -----------------------------------------------------------------------------
# ``bayesrisk bounds``: coarsened tables in, the true counts that they allow out.


def bounds(
    tables: base.TablesArgument,
    output: base.OutputOption,
    runner: base.RunOptions,
    scope: Annotated[
        str | None, "Level whose tables are taken together, with those below [the finest]."
    ] = None,
    no_rule: base.RuleOption = False,
    solver: base.SolverOption = "highs",
    time_limit: Annotated[
        str | None, "Seconds for each component of the integer system [none]."
    ] = None,
    node_limit: Annotated[
        str | None, "Linear programs and nodes for each component, on any machine [none]."
    ] = None,
) -> None:
    """Bound the true counts behind rounded, withheld or otherwise coarsened ones, and prove it."""
    from bayesrisk.experiments.reconstruction import BoundsStudy

    study = BoundsStudy(
        base.data_path(tables, base.TABLES),
        scope=scope,
        known_rule=not no_rule,
        solver=solver,
        time_limit=base.optional_number(time_limit, "time_limit"),
        node_limit=_nodes(node_limit, None),
    )
    summary = runner.run(study, output, "bounds")
    runner.show(summary, summary.sentences, [f"{summary.counts:,} counts: {output}/bounds.csv"])


# -----------------------------------------------------------------------------
# ``bayesrisk reidentify``: reconstructed records against files of known persons.


def reidentify(
    folder: Annotated[Path, typer.Argument(help="Folder of a finished reconstruction.")],
    attacker: Annotated[
        list[Path],
        "Known persons: block, sex, age, person; a file, a folder of microdata by place, "
        "or sample:NAME. May be repeated.",
    ],
    truth: Annotated[
        Path,
        "Confidential records: block, sex, age, race, hisp, person; a file, a folder of "
        "microdata by place, or sample:NAME.",
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="New or empty folder.")],
    dialect: base.DialectOption = None,
    truth_dialect: Annotated[str | None, "That of --truth, if it has another."] = None,
    seed: base.SeedOption = 0,
    fragment: base.FragmentOption = False,
    as_json: base.JsonOption = False,
    quiet: base.QuietOption = False,
) -> None:
    """Link records to known persons, confirm the links, and compare with guessing."""
    from bayesrisk.experiments.reidentification import write_reidentification

    paths = [base.data_path(file, base.MICRODATA, "persons.parquet") for file in attacker]
    # A sample is called by its name: the file is persons.parquet in each.
    names = [
        str(file).removeprefix("sample:") if file != path else file.stem
        for file, path in zip(attacker, paths, strict=True)
    ]
    files = dict(zip(names, paths, strict=True))
    truth = base.data_path(truth, base.MICRODATA, "persons.parquet")
    if len(files) < len(attacker):
        raise ArgumentError(f"attacker files must have different names, got {sorted(files)}")
    with base.progress(quiet=quiet or as_json, title="reidentify", unit="steps") as advance:
        result = write_reidentification(
            folder,
            output,
            attackers=files,
            truth=truth,
            dialect=dialect,
            truth_dialect=truth_dialect,
            seed=seed,
            progress=advance,
        )
        if fragment:
            base.write_fragment(result.report)
    lines = [*map(_line, result.rates.to_dict(orient="records")), f"report: {result.report}"]
    base.print_answer(result.to_dict(), lines, as_json=as_json)


def _line(row: Mapping[Any, Any]) -> str:
    precision, ratio, published = (
        row[name] for name in ("precision", "left_out_ratio", "precision_ratio")
    )
    rate = f"precision {precision:.1%}" if math.isfinite(precision) else "no precision"
    comparison = (
        f", {ratio:.2f} times a guesser's without their own records" if math.isfinite(ratio) else ""
    )
    comparison += (
        f", {published:.2f} times the published guesser's" if math.isfinite(published) else ""
    )
    return (
        f"{row['attacker']}, {row['source']}: {row['confirmed']} confirmed of {row['putative']} "
        f"putative of {row['attacker_records']} persons: {rate}{comparison}"
    )


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
    """Options of a study: the protections, and the attack."""

    seeds: Annotated[
        int | None, "Synthetic populations, at most 10000: of this seed and those after [6]."
    ] = None
    n_blocks: Annotated[
        int | None, typer.Option("--blocks", help="Blocks of each synthetic population [300].")
    ] = None
    seed: base.SeedOption = 1
    protection: Annotated[
        list[str] | None, "none, swapping, das, uniform, das-hud, uniform-hud; repeat [all]."
    ] = None
    alpha: Annotated[
        float | None, "Weight of violations in synthetic households, in (0, 1] [1e-4]."
    ] = None
    solutions: SolutionsOption = 100
    noisy_solutions: Annotated[int, "The same for noisy tables."] = 10
    swap_rate: Annotated[str, "Share of households swapped."] = "1/10"
    rho: Annotated[str, "Budget of uniform noise."] = "0.1"
    hud: HudOption = "counts"
    closed: ClosedOption = False
    time_limit: LimitOption = None

    def synthetic(self) -> dict[str, Any]:
        """Return the settings of synthetic households that were given."""
        settings = {"seeds": self.seeds, "blocks": self.n_blocks, "alpha": self.alpha}
        return {name: value for name, value in settings.items() if value is not None}


def study(
    output: base.OutputOption,
    options: StudyOptions,
    runner: base.RunOptions,
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
    from bayesrisk._base import validation as check
    from bayesrisk.experiments.published_attack import read_households, read_sample
    from bayesrisk.tables.exchange import Partitions

    settings = options.synthetic()
    if households is not None and settings:
        raise ArgumentError(f"--{next(iter(settings))} goes with synthetic households")
    seeds = check.integer(settings.pop("seeds", SEEDS), "--seeds", lower=1, upper=MAX_SEEDS)
    if options.protection:
        settings["protections"] = tuple(options.protection)
    source, public = _households(households), _households(sample)
    population = source if source is None or Partitions.there(source) else read_households(source)
    experiment = br.census.OccupancyStudy(
        seeds=tuple(range(options.seed, options.seed + (seeds if households is None else 1))),
        solutions=options.solutions,
        noisy_solutions=options.noisy_solutions,
        swap_rate=options.swap_rate,
        rho=options.rho,
        hud=options.hud,
        open_end=not options.closed,
        time_limit=base.optional_number(options.time_limit, "time_limit"),
        households=population,
        sample=None if public is None else read_sample(public),
        made_up=source is not None and br.datasets.is_made_up(source),
        **settings,
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
    seed: base.SeedOption = 1
    time_limit: LimitOption = None
    taken_as_true: base.TakenOption = False
    no_rule: base.RuleOption = False


def attack(
    blocks: Annotated[
        Path,
        typer.Argument(
            help="Published statistics: a folder of tables or of a release, or a row for each "
            "block (.parquet)."
        ),
    ],
    output: base.OutputOption,
    options: AttackOptions,
    runner: base.RunOptions,
    sample: SampleOption = None,
) -> None:
    """Find blocks of published statistics that must hold a household above the limit."""
    from bayesrisk.experiments.published_attack import OccupancyAttackStudy

    study = OccupancyAttackStudy(
        base.data_path(blocks, "published statistics"),
        sample=_households(sample),
        level=options.level,
        hud=options.hud,
        open_end=not options.closed,
        error=options.error,
        solutions=options.solutions,
        seed=options.seed,
        time_limit=base.optional_number(options.time_limit, "time_limit"),
        taken_as_true=options.taken_as_true,
        known_rule=not options.no_rule,
    )
    summary = runner.run(study, output, "occupancy")
    file = Path(summary.folder) / "blocks.parquet"
    sentence = f"{summary.blocks} blocks: {base.listed(summary.statuses)}; in {file}"
    conflicts = (f"  no households fit block {block}: {text}" for block, text in summary.conflicts)
    runner.show(summary, [sentence], conflicts)


def _households(argument: Path | None) -> Path | None:
    """Return the file of households, which a folder of microdata has; or microdata by place."""
    if argument is None:
        return None
    path = base.data_path(argument, base.MICRODATA, "households.parquet")
    inside = path / "households.parquet"
    return inside if inside.is_file() else path


def _print(summary: "RunSummary", output: Path, *, as_json: bool) -> None:
    """Print the table of blocks."""
    document = {"folder": str(output), "complete": summary.complete, "table": None}
    if summary.facts.get(base.MADE_UP):
        document[base.MADE_UP] = True
    if summary.results is None:
        base.print_answer(document, base.shard_lines(summary), as_json=as_json)
        return
    table = summary.results.table
    document["table"] = json.loads(table.to_json(orient="records"))
    lines = [
        "Blocks said to hold a household above the limit (intervals in brackets; blind guess "
        "after a bar):"
    ]
    for row in table[table["infeasible_as"] == "apart"].to_dict(orient="records"):
        parts = [
            f"{m} {row[m]:.2f} [{row[f'{m}_lower']:.2f}, {row[f'{m}_upper']:.2f}] | "
            f"{row[f'{m}_baseline']:.2f}"
            for m in ("precision", "recall")
        ]
        lines.append(
            f"  {row['protection']:12s} {row['putative']} of {row['blocks']} blocks, "
            f"{row['infeasible']} infeasible; {'; '.join(parts)}"
        )
    base.print_answer(document, [*lines, f"results: {output}"], as_json=as_json)


# -----------------------------------------------------------------------------
# ``bayesrisk audit``: protections of a population judged on one scale.


_ATTACKS = ("outsider", "linker", "knows-all-but-one")
#: What is published, known and stated where nothing is said: redistricting tables of persons.
_TABLES, _ONLY = "sf1-block", ("P8", "P9", "P10", "P11")
_GOAL = ("target_ratio", "quantile", "against", "steps")


@dataclass(frozen=True)
class AuditOptions(ColumnOptions):
    """Options of an audit: tables, protections, adversaries and their questions."""

    protection: Annotated[
        list[str] | None,
        "MECHANISM or MECHANISM:KEY=VALUE,KEY=VALUE, such as swapping:rate=0.05; may be repeated.",
    ] = None
    attack: Annotated[
        list[str] | None,
        "outsider, linker, insider or knows-all-but-one; may be repeated [all but insider].",
    ] = None
    method: Annotated[
        list[str] | None,
        "How they conclude: posterior, reconstruction, majority, claims or (of "
        "households) occupancy; may be repeated [posterior].",
    ] = None
    known: Annotated[list[str] | None, "Attribute that a linker knows of the target [sex,age]."] = (
        None
    )
    stated: Annotated[
        list[str] | None, "Attribute that is to be learned [race,hisp; all that are not known]."
    ] = None
    tables: Annotated[
        list[str] | None, "Workload to publish, a name or a .toml file [sf1-block, only P8-P11]."
    ] = None
    only: Annotated[list[str] | None, "Table to publish [all]."] = None
    schema: base.SchemaOption = None
    targets: Annotated[
        int | None,
        "People who are asked about, drawn at random [everybody of up to 2000, else 200; 30 where "
        "a random protection needs draws anew for each].",
    ] = None
    releases: Annotated[int | None, "Most releases of each randomised protection [20]."] = None
    half_width: Annotated[
        float | None,
        "Half-width of the interval of every gain, in points, that is enough: fewer "
        "releases are made then [0.5].",
    ] = None
    prior_from: Annotated[
        Path | None,
        "Public records that adversaries take their prior from, such as a sample or an "
        "earlier census [the other places of the population].",
    ] = None
    concentration: Annotated[
        str | None, "How alike people of one place are, in records [fitted]."
    ] = None
    target_ratio: Annotated[
        float | None,
        "Find the weakest setting of each protection that is given without one (swapping) "
        "or with a range (swapping:rate=0.01..0.3), so that posterior over belief without the "
        "own record exceeds this for no more than 1 - quantile of people.",
    ] = None
    quantile: Annotated[float | None, "Share of people for whom it shall hold [0.99]."] = None
    against: Annotated[str | None, "Adversary for whom it shall hold [the worst]."] = None
    steps: Annotated[int | None, "Bisections of the range of each protection [6]."] = None
    seed: Annotated[int | None, base.SEED] = None


def audit(
    population: Annotated[
        list[Path],
        typer.Argument(
            help="Folder of microdata, file of records (Parquet, CSV), or sample:NAME; several "
            "are judged side by side; or a TOML file with these settings."
        ),
    ],
    output: base.OutputOption,
    options: AuditOptions,
    runner: base.RunOptions,
) -> None:
    """Judge protections: what adversaries learn, and how much of it from people's own records."""
    document = {k: v for k, v in dataclasses.asdict(options).items() if v is not None}
    files = [base.audit_settings_path(one) for one in population]
    arguments: Any = population
    if any(files):
        from bayesrisk.cli.recipes import read_audit_file  # slow to import

        if len(files) > 1 or files[0] is None:
            raise ArgumentError("a file of settings must be the only population argument")
        settings = read_audit_file(files[0], AuditOptions)
        if "population" not in settings:
            raise ArgumentError(f"{files[0]}: population must be given")
        arguments = settings.pop("population")
        document = settings | document
    populations = _populations(arguments)
    sources = populations.values() if isinstance(populations, dict) else [populations]
    # Where no population is a file all name their own schema.
    if not any(isinstance(source, Path) and not source.is_dir() for source in sources):
        base.check_folder_names_its_own(document.get("schema"), None)
    study = _study(populations, document, quiet=runner.quiet)
    summary = runner.run(study, output, "audit")
    page = f"{summary.statements} statements; report: {output / 'report.html'}"
    after = [f"Checks: {summary.checks}", page] if summary.complete else []
    runner.show(summary, summary.brief, after)


def _populations(arguments: str | list[Any]) -> Path | dict[str, Any]:
    """Return one population, or several by their names."""
    if isinstance(arguments, str):
        return base.record_path(Path(arguments))
    named: list[tuple[str, Any]]
    if isinstance(arguments[0], Path):
        if len(arguments) == 1:
            return base.record_path(arguments[0])
        named = [(_called(one), base.record_path(one)) for one in arguments]
    else:
        named = [(entry["name"], _source(entry)) for entry in arguments]
    names = [name for name, _ in named]
    for name in names:
        if names.count(name) > 1:
            raise ArgumentError(
                f"populations must have different names, got {quote(name)} twice; "
                "[[population]] tables of a file of settings give names"
            )
    return dict(named)


def _called(path: Path) -> str:
    """Return the name of a file, a folder or a sample in results; a file's without its ending."""
    path = path if path.name else path.resolve()
    name = path.name if path.is_dir() else path.stem
    return name.removeprefix("sample:")


def _source(entry: dict[str, Any]) -> "Path | SimulatedPopulation":
    if "records" in entry:
        return base.record_path(Path(entry["records"]))
    from bayesrisk.experiments.audit.populations import SimulatedPopulation

    changes = {"n_blocks": entry["blocks"]} if "blocks" in entry else {}
    with base.called("name", "simulate"), base.called("n_blocks", "blocks"):
        return SimulatedPopulation(
            br.census.population_spec(entry["simulate"], **changes), entry["seed"]
        )


def _study(
    population: Path | dict[str, Any], document: dict[str, Any], *, quiet: bool
) -> "br.experiments.AuditStudy":
    from bayesrisk.mechanisms.registry import usual_roles

    workload = _workload(population, document, quiet=quiet)
    usual, risky = usual_roles(workload.schema)
    stated = base.names(document.get("stated"))
    background = base.names(document.get("known")) or [a for a in usual if a not in stated]
    stated = (
        stated
        or [a for a in risky if a not in background]
        or [a for a in workload.schema.names if a not in background]
    )
    for name in background:  # also where nobody who asks knows them
        with base.called("attribute", "--known"):
            workload.schema.attribute(name)
    schema = document.get("schema") or None
    if isinstance(schema, str):
        with base.called("name", "--schema"):
            schema = base.load_schema(schema)
    return br.experiments.AuditStudy(
        population,
        workload,
        protections=_protections(document.get("protection")),
        adversaries=_adversaries(document.get("attack"), background),
        stated=stated,
        schema=schema,
        targets=document.get("targets"),
        releases=document.get("releases", 20),
        half_width=document.get("half_width", 0.5) / 100.0,
        prior_from=base.record_path(Path(public))
        if (public := document.get("prior_from"))
        else None,
        concentration=base.optional_number(document.get("concentration"), "concentration"),
        methods=_methods(document.get("method")),
        seed=document.get("seed", 1),
        goal=_goal(document),
    )


def _goal(document: dict[str, Any]) -> "ProtectionGoal | None":
    from bayesrisk.experiments.audit.choosing import ProtectionGoal

    settings = {n: document[n] for n in _GOAL if document.get(n) is not None}
    if settings and "target_ratio" not in settings:
        raise ArgumentError(f"{', '.join(settings)}: can only be given with a target ratio")
    return ProtectionGoal(**settings) if settings else None


def _workload(
    population: Path | dict[str, Any], document: dict[str, Any], *, quiet: bool
) -> "br.Workload":
    sources = [*population.values()] if isinstance(population, dict) else [population]
    for key in ("tables", "only"):
        document[key] = base.names(document.get(key))
    census = [_TABLES], document["only"] or list(_ONLY)
    workload = usual_tables(sources, document, quiet=quiet, census=census)
    if not isinstance(document.get("schema"), str | None) and workload.schema.size > MOST_KINDS:
        raise ArgumentError(
            f"columns must make at most {MOST_KINDS} kinds of records, got {workload.schema.size}: "
            "name fewer with --columns, or fewer groups with --cut"
        )
    return workload


def _protections(recipes: list[Any] | None) -> list["br.experiments.Protection"]:
    if not recipes:
        raise ArgumentError("--protection must be given at least once, such as swapping:rate=0.05")

    tables: list[dict[str, Any]]
    tables = [{"mechanism": one} if isinstance(one, str) else one for one in recipes]
    return [
        br.experiments.Protection(
            one.get("name") or one["mechanism"], one["mechanism"], one.get("parameters", {})
        )
        for one in tables
    ]


def _methods(texts: list[str] | None) -> list[str]:
    from bayesrisk._base.validation import choice
    from bayesrisk.risk.audit import METHODS

    methods = base.names(texts) or [METHODS[0]]
    for name in methods:
        with base.called("method", "--method"):
            choice(name, "method", METHODS)
    return methods


def _adversaries(texts: list[str] | None, background: list[str]) -> list["Adversary"]:
    from bayesrisk.risk.audit import Adversary

    adversaries = []
    for name in base.names(texts) or list(_ATTACKS):
        with base.called("name", "--attack"):
            knows = background if name == "linker" else ()
            adversaries.append(Adversary.named(name, known=knows))
    return adversaries


# -----------------------------------------------------------------------------
# ``bayesrisk attack``: text files of an agency in, all that they give away out.


def attack_(
    tables: Annotated[list[Path], typer.Argument(help="Text files as an agency publishes them.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Output folder.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="How they are read: counts=exact, 'marks.*=1-4', ...; repeat."),
    ] = None,
    assume: Annotated[Path | None, typer.Option(help="TOML file with such settings.")] = None,
    save_assumptions: Annotated[
        Path | None, typer.Option(help="Write such a file with the guesses, to be checked.")
    ] = None,
    accept: Annotated[
        bool, typer.Option("--accept", help="Take all guesses about the reading for true.")
    ] = False,
    time_limit: Annotated[str | None, typer.Option(help="Seconds for all steps [60].")] = "60",
    proofs: Annotated[
        int,
        typer.Option(
            help="Certificates of so many claims and of so many bounds, with their checker; 0 for "
            "none."
        ),
    ] = 10,
    seed: base.SeedOption = 0,
    as_json: base.JsonOption = False,
    quiet: base.QuietOption = False,
) -> None:
    """Say what published tables give away: proofs, bounds, records that fit, likely records."""
    from bayesrisk._base import disk
    from bayesrisk.experiments.table_attack import attack
    from bayesrisk.tables.reading.reading import read
    from bayesrisk.tables.reading.rules import setting
    from bayesrisk.tables.reading.sheet import file_sheet

    options: dict[str, Any] = {} if assume is None else {"assume": assume}
    if wrong := next((text for text in settings or () if "=" not in text), None):
        raise ArgumentError(f"--set must be NAME=VALUE, got {quote(wrong)}")
    wanted = [text.partition("=")[2] for text in settings or () if text.startswith("sheet=")]
    files = [base.data_path(file, base.TABLES) for file in tables]
    sheets = [file_sheet(file, *wanted[:1]) for file in files]
    options |= dict(setting(text, sheets) for text in settings or ())
    reading = read(sheets, options)
    for line in reading.screen():
        base.say(line, err=as_json)
    if save_assumptions is not None:
        with disk.whole_file(save_assumptions, new=True) as stream:
            stream.write(reading.to_toml().encode())
        base.say(f"what is assumed is in {save_assumptions}: check it", err=as_json)
        if output is None:
            return
    reading = reading.accepted() if accept else reading
    reading.confirmed()
    if output is None:
        raise ArgumentError("output must be a folder, got none")
    limit = base.optional_number(time_limit, "time_limit")
    quiet = quiet or as_json
    with (
        base.warnings_as_lines(),
        base.progress(quiet=quiet, title="attack", unit="steps") as advance,
    ):
        found = attack(
            reading, output, seed=seed, time_limit=limit, proofs=proofs, progress=advance,
            say=None if as_json else functools.partial(base.say, err=False),
        )  # fmt: skip
    report = str(output / "report.html")
    rows = {name: len(frame) for name, frame in found.frames.items()}
    result = {"report": report, "sentences": found.sentences, **rows, **found.facts}
    base.print_answer(result, [*found.last, f"report: {report}"], as_json=as_json)
