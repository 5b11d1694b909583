"""Attacks on published tables, and ``bayesrisk audit``, which judges protections by them."""

import dataclasses
import functools
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
    from bayesrisk.interfaces import PopulationSource
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
        raise ArgumentError("node_limit", "must be a whole number or none", got=nodes)
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
        "How they conclude, one of `bayesrisk list methods`: posterior, reconstruction, "
        "majority, claims, ...; may be repeated [posterior].",
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


def _source(entry: dict[str, Any]) -> "Path | PopulationSource":
    if "records" in entry:
        return base.record_path(Path(entry["records"]))
    from bayesrisk.experiments.audit.populations import REGISTRY

    settings = {name: entry[name] for name in ("seed", "blocks") if name in entry}
    with base.renamed({"name": "simulate", "n_blocks": "blocks"}):
        return REGISTRY.make("simulate", entry["simulate"], **settings)


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
        with base.renamed({"attribute": "--known"}):
            workload.schema.attribute(name)
    schema = document.get("schema") or None
    if isinstance(schema, str):
        with base.renamed({"name": "--schema"}):
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
    persons = [_TABLES], document["only"] or list(_ONLY)
    workload = usual_tables(sources, document, quiet=quiet, persons=persons)
    if not isinstance(document.get("schema"), str | None) and workload.schema.size > MOST_KINDS:
        raise ArgumentError(
            "columns",
            f"must make at most {MOST_KINDS} kinds of records",
            shown=f"{workload.schema.size}: name fewer with --columns, or fewer groups with --cut",
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
    from bayesrisk.risk.audit import METHODS, available_methods

    methods = base.names(texts) or [METHODS[0]]
    for name in methods:
        with base.renamed({"method": "--method"}):
            choice(name, "method", available_methods())
    return methods


def _adversaries(texts: list[str] | None, background: list[str]) -> list["Adversary"]:
    from bayesrisk.risk.audit import Adversary

    adversaries = []
    for name in base.names(texts) or list(_ATTACKS):
        with base.renamed({"name": "--attack"}):
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
        raise ArgumentError("output", "must be a folder", shown="none")
    limit = base.optional_number(time_limit, "time_limit")
    quiet = quiet or as_json
    with (
        base.warnings_as_lines(),
        base.progress(quiet=quiet, title="attack", unit="steps") as advance,
    ):
        answer = attack(
            reading, output, seed=seed, time_limit=limit, proofs=proofs, progress=advance,
            say=None if as_json else functools.partial(base.say, err=False),
        )  # fmt: skip
    report = str(output / "report.html")
    rows = {name: len(frame) for name, frame in answer.frames.items()}
    result = {"report": report, "sentences": answer.sentences, **rows, **answer.facts}
    base.print_answer(result, [*answer.last, f"report: {report}"], as_json=as_json)
