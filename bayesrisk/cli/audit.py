"""``bayesrisk audit``: protections of a population judged on one scale."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bayesrisk._files.text import shown
from bayesrisk.cli.base import (
    SEED,
    RunOptions,
    audit_settings_path,
    called,
    check_folder_names_its_own,
    names,
    optional_number,
    print_json,
    print_shards,
    record_path,
    schema_of,
    union_of_workloads,
)
from bayesrisk.exceptions import ArgumentError

if TYPE_CHECKING:
    from bayesrisk.experiments import AuditStudy, Protection
    from bayesrisk.experiments.audit.choosing import ProtectionGoal
    from bayesrisk.risk.audit import Adversary
    from bayesrisk.tables import Workload

_ATTACKS = ("outsider", "linker", "knows-all-but-one")
#: What is published, known and stated where nothing is said: redistricting tables of persons.
_TABLES, _ONLY = "sf1-block", ("P8", "P9", "P10", "P11")
_GOAL = ("target_ratio", "quantile", "against", "steps")
_KNOWN, _STATED = ("sex", "age"), ("race", "hisp")


@dataclass(frozen=True)
class AuditOptions:
    """Options of an audit: tables, protections, adversaries and their questions."""

    protection: Annotated[
        list[str] | None,
        typer.Option(
            help="MECHANISM or MECHANISM:KEY=VALUE,KEY=VALUE, such as swapping:rate=0.05; may be "
            "repeated."
        ),
    ] = None
    attack: Annotated[
        list[str] | None,
        typer.Option(
            help="outsider, linker, insider or knows-all-but-one; may be repeated "
            "[all but insider]."
        ),
    ] = None
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="How they conclude: posterior, reconstruction, majority or claims; may be "
            "repeated [posterior]."
        ),
    ] = None
    known: Annotated[
        list[str] | None,
        typer.Option(help="Attribute that a linker knows of the target [sex,age]."),
    ] = None
    stated: Annotated[
        list[str] | None,
        typer.Option(help="Attribute that is to be learned [race,hisp; all that are not known]."),
    ] = None
    tables: Annotated[
        list[str] | None,
        typer.Option(help="Workload to publish, a name or a .toml file [sf1-block, only P8-P11]."),
    ] = None
    only: Annotated[list[str] | None, typer.Option(help="Table to publish [all].")] = None
    schema: Annotated[
        str | None,
        typer.Option(help="Schema of a file of records, a name or a .toml file [the tables' own]."),
    ] = None
    targets: Annotated[
        int | None, typer.Option(help="People who are asked about, drawn at random [200].")
    ] = None
    concentration: Annotated[
        str | None, typer.Option(help="How alike people of one place are, in records [fitted].")
    ] = None
    target_ratio: Annotated[
        float | None,
        typer.Option(
            help="Find the weakest setting of each protection that is given without one (swapping) "
            "or with a range (swapping:rate=0.01..0.3), so that posterior over belief without the "
            "own record exceeds this for no more than 1 - quantile of people."
        ),
    ] = None
    quantile: Annotated[
        float | None, typer.Option(help="Share of people for whom it shall hold [0.99].")
    ] = None
    against: Annotated[
        str | None, typer.Option(help="Adversary for whom it shall hold [the worst].")
    ] = None
    steps: Annotated[
        int | None, typer.Option(help="Bisections of the range of each protection [6].")
    ] = None
    seed: Annotated[int | None, SEED] = None


def audit(
    population: Annotated[
        list[Path],
        typer.Argument(
            help="Folder of microdata, file of records (Parquet, CSV), or sample:NAME; several "
            "are judged side by side; or a TOML file with these settings."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Output folder.")],
    what: AuditOptions,
    how: RunOptions,
) -> None:
    """Judge protections: what adversaries learn, and how much of it from people's own records."""
    document = {k: v for k, v in dataclasses.asdict(what).items() if v is not None}
    files = [audit_settings_path(one) for one in population]
    given: Any = population
    if any(files):
        from bayesrisk.cli.recipes import read_audit_file  # slow to import

        if len(files) > 1 or files[0] is None:
            raise ArgumentError("a file of settings must be the only population argument")
        settings = read_audit_file(files[0])
        if "population" not in settings:
            raise ArgumentError(f"{files[0]}: population must be given")
        given = settings.pop("population")
        document = settings | document
    populations = _populations(given)
    _check_schema(populations, document.get("schema"))
    study = _study(populations, document)
    summary = how.run(study, output, "audit")
    if how.as_json:
        print_json(summary.to_dict())
        return
    for sentence in summary.brief:
        typer.echo(sentence)
    print_shards(summary)
    if summary.complete:
        typer.echo(f"Checks: {summary.checks}")
        typer.echo(f"{summary.statements} statements; report: {output / 'report.html'}")


def _populations(given: Any) -> Any:
    """Return one population, or several by their names."""
    if isinstance(given, str):
        return record_path(Path(given))
    if isinstance(given[0], Path):
        if len(given) == 1:
            return record_path(given[0])
        named = [(_called(one), record_path(one)) for one in given]
    else:
        named = [(entry["name"], _source(entry)) for entry in given]
    names = [name for name, _ in named]
    for name in names:
        if names.count(name) > 1:
            raise ArgumentError(
                f"populations must have different names, got {shown(name)} twice; "
                "[[population]] tables of a file of settings give names"
            )
    return dict(named)


def _called(path: Path) -> str:
    """Return how results call a file, a folder or a sample: without the ending of a file alone."""
    path = path if path.name else path.resolve()
    name = path.name if path.is_dir() else path.stem
    return name.removeprefix("sample:")


def _source(entry: dict[str, Any]) -> Any:
    if "records" in entry:
        return record_path(Path(entry["records"]))
    from bayesrisk.experiments.audit.populations import SimulatedPopulation
    from bayesrisk.population import population_spec

    changes = {"n_blocks": entry["blocks"]} if "blocks" in entry else {}
    with called("name", "simulate"), called("n_blocks", "blocks"):
        return SimulatedPopulation(population_spec(entry["simulate"], **changes), entry["seed"])


def _check_schema(populations: Any, schema: str | None) -> None:
    """Refuse a schema where no population is a file: all others name their own."""
    sources = populations.values() if isinstance(populations, dict) else [populations]
    if not any(isinstance(source, Path) and not source.is_dir() for source in sources):
        check_folder_names_its_own(schema, None)


def _study(population: Any, document: dict[str, Any]) -> "AuditStudy":
    from bayesrisk.experiments import AuditStudy

    workload = _workload(document)
    attributes = workload.schema.names
    known = document.get("known")
    stated = document.get("stated")
    known = names(known) if known else [a for a in _KNOWN if a in attributes]
    for name in known:  # also where nobody who asks knows them
        with called("attribute", "--known"):
            workload.schema.attribute(name)
    if stated:
        stated = names(stated)
    else:
        stated = [a for a in _STATED if a in attributes] or [
            a for a in attributes if a not in known
        ]
    schema = None
    if document.get("schema"):
        with called("name", "--schema"):
            schema = schema_of(document["schema"])
    return AuditStudy(
        population,
        workload,
        protections=_protections(document.get("protection")),
        adversaries=_adversaries(document.get("attack"), known),
        stated=stated,
        schema=schema,
        targets=document.get("targets", 200),
        concentration=optional_number(document.get("concentration"), "concentration"),
        methods=_methods(document.get("method")),
        seed=document.get("seed", 1),
        goal=_goal(document),
    )


def _goal(document: dict[str, Any]) -> "ProtectionGoal | None":
    from bayesrisk.experiments.audit.choosing import ProtectionGoal

    given = {n: document[n] for n in _GOAL if document.get(n) is not None}
    if given and "target_ratio" not in given:
        raise ArgumentError(f"{', '.join(given)}: can only be given with a target ratio")
    return ProtectionGoal(**given) if given else None


def _workload(document: dict[str, Any]) -> "Workload":
    tables = names(document.get("tables"))
    only = names(document.get("only"))
    if not tables:
        tables, only = [_TABLES], only or list(_ONLY)
    return union_of_workloads(tables, only=only)


def _protections(given: Any) -> list["Protection"]:
    from bayesrisk.experiments import Protection
    from bayesrisk.experiments.audit.populations import parse_protection

    found = []
    if not given:
        raise ArgumentError("--protection must be given at least once, such as swapping:rate=0.05")
    for one in given:
        if isinstance(one, str):
            found.append(parse_protection(one))
        else:
            found.append(
                Protection(
                    one.get("name") or one["mechanism"], one["mechanism"], one.get("parameters", {})
                )
            )
    return found


def _methods(given: Any) -> list[str]:
    from bayesrisk._validation import choice
    from bayesrisk.risk.audit import METHODS

    found = names(given) or [METHODS[0]]
    for name in found:
        with called("method", "--method"):
            choice(name, "method", METHODS)
    return found


def _adversaries(given: Any, known: list[str]) -> list["Adversary"]:
    from bayesrisk.risk.audit import Adversary

    found = []
    for name in names(given) or list(_ATTACKS):
        with called("name", "--attack"):
            knows = known if name == "linker" else ()
            found.append(Adversary.named(name, known=knows))
    return found
