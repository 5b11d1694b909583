"""``bayesrisk audit``: protections of a population judged by what adversaries learn."""

import dataclasses
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import bayesrisk as br
from bayesrisk._base import interrupts
from bayesrisk.cli import first_look
from bayesrisk.cli.command import renamed
from bayesrisk.cli.data import audit_settings_path, load_schema, record_path
from bayesrisk.cli.options import SEED, RunOptions, SchemaOption, optional_number, parse_names
from bayesrisk.cli.printing import print_answer, say, shard_lines
from bayesrisk.cli.sources import (
    MOST_KINDS,
    ColumnOptions,
    check_folder_names_its_own,
    usual_tables,
)
from bayesrisk.exceptions import ArgumentError, BayesRiskError, quote

if TYPE_CHECKING:
    from bayesrisk.experiments.audit.choosing import ProtectionGoal
    from bayesrisk.interfaces import PopulationSource
    from bayesrisk.risk.audit import Adversary

_ADVERSARIES = ("outsider", "linker", "knows-all-but-one")
#: What is published, known and stated where nothing is said: redistricting tables of persons.
_TABLES, _ONLY = "sf1-block", ("P8", "P9", "P10", "P11")
#: More columns than these are slow, and of exact tables little is found.
_FEW = 4
_REPORT = 3.0  # processor seconds of the report of an audit whose time is over
_GOAL = ("target_ratio", "quantile", "against", "steps")
#: Between two methods, and not between the parameters of one: NAME:KEY=VALUE,KEY=VALUE.
_NEXT_METHOD = r",(?![^,:]*=)"


def _people(text: str) -> int:
    """Return a number of people; all are more than there can be."""
    from bayesrisk._base.validation import MAX_COUNT

    return MAX_COUNT if text == "all" else int(text)


@dataclass(frozen=True)
class AuditOptions(ColumnOptions):
    """Options of an audit: tables, protections, adversaries and their questions."""

    protection: Annotated[
        list[str] | None,
        "none, MECHANISM or MECHANISM:KEY=VALUE,KEY=VALUE, such as swapping:rate=0.05; may be "
        "repeated. Without any, rare records are counted, and that is all.",
    ] = None
    adversary: Annotated[
        list[str] | None,
        "Who asks: outsider, linker, insider or knows-all-but-one; may be repeated [all but "
        "insider].",
    ] = None
    method: Annotated[
        list[str] | None,
        "What is computed, one of `bayesrisk list methods`: posterior, reconstruction, majority, "
        "claims, ...; or an attack of a plug-in, NAME:KEY=VALUE,KEY=VALUE; may be repeated "
        "[posterior].",
    ] = None
    known: Annotated[
        list[str] | None,
        "Attribute that others may know of the target: a linker does, and rare records are counted "
        "by it [sex,age; of a file all but the last column].",
    ] = None
    stated: Annotated[
        list[str] | None,
        "Attribute that is to be learned [race,hisp; of a file the last column].",
    ] = None
    tables: Annotated[
        list[str] | None, "Workload to publish, a name or a .toml file [sf1-block, only P8-P11]."
    ] = None
    only: Annotated[list[str] | None, "Table to publish [all]."] = None
    schema: SchemaOption = None
    targets: Annotated[
        int | None,
        typer.Option(
            parser=_people,
            help="People who are asked about, drawn at random, or all [everybody of up to 2000, "
            "else 200; 20 where a random protection needs draws anew for each].",
        ),
    ] = None
    releases: Annotated[
        int | None,
        "Most releases of each randomised protection [20; 4 where one needs draws anew for each "
        "person and no --targets are given].",
    ] = None
    time_limit: Annotated[
        float | None,
        "So many seconds of the clock: fewer people are asked about, under fewer releases, and the "
        "slowest protections come last, where all would take longer. What is done when they are "
        "over is reported [none].",
    ] = None
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
    seed: Annotated[int | None, SEED] = None
    max_size: Annotated[
        int | None, "Rare records: most attributes of a combination that is looked at [3]."
    ] = None


def audit(
    population: Annotated[
        list[Path],
        typer.Argument(
            help="Folder of microdata, file of records (Parquet, CSV), or sample:NAME; several "
            "are judged side by side; or a TOML file with these settings."
        ),
    ],
    options: AuditOptions,
    runner: RunOptions,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Output folder; without --protection a .parquet file, or none."
        ),
    ] = None,
) -> None:
    """Judge protections by what is learned from people's own records.

    Rare records come first; without a protection they are all that is counted.
    """
    start = time.monotonic()
    document = {k: v for k, v in dataclasses.asdict(options).items() if v is not None}
    files = [audit_settings_path(one) for one in population]
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
    max_size, limit = document.pop("max_size", 3), document.pop("time_limit", None)
    populations = _populations(arguments)
    if not document.get("protection"):
        if not isinstance(populations, Path):
            raise ArgumentError(
                "--protection must be given at least once, such as swapping:rate=0.05"
            )
        stated = parse_names(document.get("stated"))
        known = parse_names(document["known"]) if "known" in document else None
        first_look.look_alone(
            populations, options, output, known=known, stated=stated,
            schema=document.get("schema"), max_size=max_size, as_json=runner.as_json,
        )  # fmt: skip
        return
    if output is None:
        raise ArgumentError("--output must be a folder, got none: write -o OUT")
    sources = populations.values() if isinstance(populations, dict) else [populations]
    # Where no population is a file all name their own schema.
    if not any(isinstance(source, Path) and not source.is_dir() for source in sources):
        check_folder_names_its_own(document.get("schema"), None)
    study = _study(populations, document, max_size, quiet=runner.quiet)
    study.check()  # wrong settings are refused before anything is said
    with renamed({"max_size": "--max-size"}):
        rare = study.rare_records().get("")  # of several populations their page has them
    if rare is not None and not runner.as_json:
        say(*rare._answer(), err=False)
    from bayesrisk.experiments.clock import Clock
    from bayesrisk.experiments.runs.engine import clocks, ends_of_shards, pace_since

    clock, begun = Clock(limit, start), False
    try:
        with clock.guard(lambda: _late(study, output, begun=begun)):
            if runner.resume and (limit is not None or document.get("targets") in (None, "all")):
                study, limit = _begun(study, output) or study, None
            if limit is not None:
                with renamed({"seconds": "--time-limit"}):
                    study = study.fit_time(limit, workers=runner.workers, begun=start)
            begun = True  # what the folder held before is nothing that is done
            reserve = ends_of_shards([_REPORT], 1, *pace_since(clocks()))[-1]
            with clock.interrupts(reserve):
                summary = runner.run(study, output, "audit", clock.stopped.set)
    except KeyboardInterrupt:
        with interrupts.answered():
            raise KeyboardInterrupt(_so_far(study, output, begun=begun)) from None
    page = f"{summary.statements} statements; report: {output / 'report.html'}"
    after = [f"Checks: {summary.checks}", page] if summary.complete else []
    looked = {} if rare is None else {"rare_records": first_look.document(rare)}
    lines = [*summary.brief, *shard_lines(summary), *after]
    print_answer({**summary.to_dict(), **looked}, lines, as_json=runner.as_json)


def _late(study: "br.experiments.AuditStudy", output: Path, *, begun: bool) -> int:
    say(f"bayesrisk: --time-limit is over; {_so_far(study, output, begun=begun)}")
    return interrupts.LATE


def _so_far(study: "br.experiments.AuditStudy", output: Path, *, begun: bool) -> str:
    """Write and say the answer of the protections that are done; return what is missing."""
    from bayesrisk.experiments.audit.results import audit_folder

    with suppress(BayesRiskError):
        folder = audit_folder(output)
        if begun and (n_done := len(folder.finished())):
            whole, brief = study.so_far(folder)
            say(*brief, err=False)
            part = f"{n_done} of {folder.shards} parts are done"
            if whole:
                names = ", ".join(one.name for one in whole)
                part += f"; {output / 'report.html'} is about {names}"
            return f"{part}; go on with --resume"
    return "no part was done"


def _begun(study: "br.experiments.AuditStudy", output: Path) -> "br.experiments.AuditStudy | None":
    """Return a study with the people, releases and protections that a run began with, if any.

    A time limit may have cut them; protections that were not asked for then leave no study.
    """
    from bayesrisk.experiments.audit.results import begun_audit

    if not (begun := begun_audit(output)):
        return None
    protections_by_name = {one.name: one for one in study.protections}
    if not all(one["name"] in protections_by_name for one in begun["protections"]):
        return None
    protections = [protections_by_name[one["name"]] for one in begun["protections"]]
    numbers = {"targets": begun["targets"], "releases": begun["releases"]}
    return dataclasses.replace(study, protections=protections, **numbers)


def _populations(arguments: str | list[Any]) -> Path | dict[str, Any]:
    """Return one population, or several by their names."""
    if isinstance(arguments, str):
        return record_path(Path(arguments))
    named: list[tuple[str, Any]]
    if isinstance(arguments[0], Path):
        if len(arguments) == 1:
            return record_path(arguments[0])
        named = [(_called(one), record_path(one)) for one in arguments]
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
        return record_path(Path(entry["records"]))
    from bayesrisk.experiments.audit.populations import REGISTRY

    settings = {name: entry[name] for name in ("seed", "blocks") if name in entry}
    with renamed({"name": "simulate", "n_blocks": "blocks"}):
        return REGISTRY.make("simulate", entry["simulate"], **settings)


def _study(
    population: Path | dict[str, Any], document: dict[str, Any], max_size: int, *, quiet: bool
) -> "br.experiments.AuditStudy":
    from bayesrisk.mechanisms.registry import usual_roles

    workload = _workload(population, document, quiet=quiet)
    usual, risky = usual_roles(workload.schema)
    stated = parse_names(document.get("stated"))
    background = parse_names(document.get("known")) or [a for a in usual if a not in stated]
    stated = (
        stated
        or [a for a in risky if a not in background]
        or [a for a in workload.schema.names if a not in background]
    )
    for name in background:  # also where nobody who asks knows them
        with renamed({"attribute": "--known"}):
            workload.schema.attribute(name)
    schema = document.get("schema") or None
    if isinstance(schema, str):
        with renamed({"name": "--schema"}):
            schema = load_schema(schema)
    return br.experiments.AuditStudy(
        population,
        workload,
        protections=_protections(document["protection"]),
        adversaries=_adversaries(document.get("adversary"), background),
        stated=stated,
        schema=schema,
        targets=document.get("targets"),
        releases=document.get("releases"),
        half_width=document.get("half_width", 0.5) / 100.0,
        prior_from=record_path(Path(public)) if (public := document.get("prior_from")) else None,
        concentration=optional_number(document.get("concentration"), "concentration"),
        methods=_methods(document.get("method")),
        seed=document.get("seed", 1),
        goal=_goal(document),
        keys=background,
        max_size=max_size,
    )


def _goal(document: dict[str, Any]) -> "ProtectionGoal | None":
    from bayesrisk.experiments.audit.choosing import ProtectionGoal

    settings = {n: document[n] for n in _GOAL if document.get(n) is not None}
    if settings and "target_ratio" not in settings:
        option = f"--{min(settings).replace('_', '-')}"
        raise ArgumentError(f"{option} goes with --target-ratio, such as --target-ratio 2")
    return ProtectionGoal(**settings) if settings else None


def _workload(
    population: Path | dict[str, Any], document: dict[str, Any], *, quiet: bool
) -> "br.Workload":
    sources = [*population.values()] if isinstance(population, dict) else [population]
    for key in ("tables", "only"):
        document[key] = parse_names(document.get(key))
    persons = [_TABLES], document["only"] or list(_ONLY)
    workload = usual_tables(sources, document, quiet=quiet, persons=persons)
    by_columns = not isinstance(document.get("schema"), str | None)
    if by_columns and len(workload.schema.names) > _FEW and not quiet:
        say(
            f"audit: more than {_FEW} columns take long, and exact tables of them may leave nobody "
            "a posterior: name fewer with --columns"
        )
    if by_columns and workload.schema.size > MOST_KINDS:
        raise ArgumentError(
            "columns",
            f"must make at most {MOST_KINDS} kinds of records",
            shown=f"{workload.schema.size}: name fewer with --columns, or fewer groups with --cut",
        )
    return workload


def _protections(recipes: list[Any]) -> list["br.experiments.Protection"]:
    tables: list[dict[str, Any]]
    tables = [{"mechanism": one} if isinstance(one, str) else one for one in recipes]
    return [
        br.experiments.Protection(
            one.get("name") or one["mechanism"], one["mechanism"], one.get("parameters", {})
        )
        for one in tables
    ]


def _methods(texts: list[str] | None) -> list[str]:
    from bayesrisk.risk.audit.attacks import METHODS, choose_method

    methods = parse_names(texts, _NEXT_METHOD) or [METHODS[0]]
    for name in methods:
        choose_method(name, "--method")
    return methods


def _adversaries(texts: list[str] | None, background: list[str]) -> list["Adversary"]:
    from bayesrisk.risk.audit import Adversary

    adversaries = []
    for name in parse_names(texts) or list(_ADVERSARIES):
        with renamed({"name": "--adversary"}):
            knows = background if name == "linker" else ()
            adversaries.append(Adversary.named(name, known=knows))
    return adversaries
