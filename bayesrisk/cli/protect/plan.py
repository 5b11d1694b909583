"""``bayesrisk plan``: the most detailed release that keeps limits, with its proof."""

import dataclasses
import math
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

import bayesrisk as br
from bayesrisk.cli.command import renamed
from bayesrisk.cli.data import data_path, load_schema, made_up_mark, record_path
from bayesrisk.cli.options import (
    SEED,
    JsonOption,
    OutputOption,
    QuietOption,
    SchemaOption,
    parse_names,
)
from bayesrisk.cli.printing import print_answer, say
from bayesrisk.cli.sources import ColumnOptions, usual_tables
from bayesrisk.exceptions import ArgumentError, number_advice

_SECONDS = 5.0  # between two lines of progress
_COUNTED = 2**24  # settings of which those that are left are counted
_LOOKS = 5  # from which a time is told


@dataclass(frozen=True)
class PlanOptions(ColumnOptions):
    """Options of a plan: tables, limits, and the rules that may be chosen."""

    limit: Annotated[
        list[str] | None,
        "NAME=NUMBER, the most that is allowed, may be repeated: recovered (counts of 1 or 2), "
        "sentences (such counts proved to be at least 1), proved (records), gain (points from the "
        "own record), doubled (people), within (0: how near a recovered count is known).",
    ] = None
    rule: Annotated[
        list[str] | None,
        "Rule that each table may have, such as nearest-5 or "
        "'recode:groups.age=[0,18,65] + nearest-5'; may be repeated [usual ones].",
    ] = None
    ladders: Annotated[
        Path | None,
        "TOML file of [[ladder]] entries: rules, and the tables and levels that they are for.",
    ] = None
    weight: Annotated[
        list[str] | None, "TABLE=NUMBER, how much the error of a table counts [1]; may be repeated."
    ] = None
    adversary: Annotated[
        list[str] | None, "outsider or linker, who may gain no more; may be repeated [both]."
    ] = None
    known: Annotated[list[str] | None, "Attribute that a linker knows of the target."] = None
    stated: Annotated[list[str] | None, "Attribute that is to be learned."] = None
    tables: Annotated[list[str] | None, "Workload to publish, a name or a .toml file."] = None
    level: Annotated[list[str] | None, "Level to publish [the workload's own]."] = None
    only: Annotated[list[str] | None, "Table to publish [all]."] = None
    schema: SchemaOption = None


def plan(
    records: Annotated[
        Path, typer.Argument(help="Folder of microdata, records (Parquet, CSV), or sample:NAME.")
    ],
    output: OutputOption,
    options: PlanOptions,
    write_release: Annotated[bool, "Also the release by the chosen rules, in the folder."] = False,
    workers: Annotated[int, "Worker processes."] = 1,
    resume: Annotated[bool, "Keep finished shards."] = False,
    seed: Annotated[int, SEED] = 1,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Find the most detailed release that keeps limits, and prove it."""
    from bayesrisk.experiments.plan_report import write_plan  # slow to import
    from bayesrisk.risk.planning.ladders import PlanLimits
    from bayesrisk.risk.planning.release_plan import plan as planned

    document: dict[str, Any] = {
        k: v for k, v in dataclasses.asdict(options).items() if v is not None
    }
    limits = parse_names(document.pop("limit", None))
    if part := next((text for text in limits if text.isdecimal()), None):  # gain=3,5
        before = limits[limits.index(part) - 1]
        value = f"{before.rpartition('=')[2]},{part}"
        raise ArgumentError(
            "--limit", "must be NAME=NUMBER", got=value, advice=number_advice(value, "a number")
        )
    if not limits:
        raise ArgumentError("--limit must be given, such as --limit proved=0 --limit recovered=0")
    ladders, adversaries = _ladders(document), document.pop("adversary", None)
    weights = _weights(document.pop("weight", None) or [])
    known, stated = (parse_names(document.get(name)) for name in ("known", "stated"))
    for name in ("tables", "only"):
        document[name] = parse_names(document.get(name))
    document["levels"] = parse_names(document.pop("level", None)) or None
    tables = _recipe_keys(document)
    path = record_path(records)
    silent = quiet or as_json
    workload = usual_tables([path], document, quiet=silent)
    schema = document.get("schema") or workload.schema
    schema = load_schema(schema) if isinstance(schema, str) else schema
    read = br.tables.Microdata.read(path) if path.is_dir() else br.Records.read(path, schema=schema)
    data, mark = br.tables.microdata.as_microdata(read), made_up_mark(path)
    if mark:
        data = dataclasses.replace(data, made_up=True)
    names = {
        "ladders": "--rule" if options.rule else "--ladders", "limits": "--limit",
        "stated": "--stated", "folder": "--output",
        **{limit.name: f"--limit {limit.name}" for limit in dataclasses.fields(PlanLimits)},
    }  # fmt: skip
    with renamed(names):
        result = planned(
            data, workload, limits=limits, ladders=ladders(workload), weights=weights,
            adversaries=_adversaries(adversaries, known, workload),
            stated=stated or None, workers=workers, seed=seed, folder=output, resume=resume,
            report=None if silent else _Progress(),
        )  # fmt: skip
    release = result.release(data) if result.publishes else None
    target = output / "release"  # which an earlier part of the run may have written
    if release is None:
        shutil.rmtree(target, ignore_errors=True)
        if write_release:
            say("No release was written: nothing may be published")
    elif write_release or target.exists():
        release.write(target, replace=True)
    if result.occupied and not silent:
        say("Published exactly: which places have a record (release with --places occupied)")
    made_up = bool(mark or data.made_up)
    if result.occupied:
        tables["places"] = "occupied"
    lines = write_plan(
        result, output, release, places=result.places, tables=tables, made_up=made_up
    )
    answer = {
        **mark,
        "answer": lines, "rules": result.rules, "blocking": dict(result.blocking),
        "settings": result.settings, "tried": len(result.frontier), "folder": str(output),
    }  # fmt: skip
    print_answer(answer, [*lines, f"Report: {output / 'report.html'}"], as_json=as_json)


def _recipe_keys(document: dict[str, Any]) -> dict[str, Any]:
    """Return the keys of a file of a release that name the columns and tables of a plan."""
    keys = {name: document.get(name) for name in ("place", "columns", "cuts", "levels", "only")}
    keys["place"], keys["columns"] = (parse_names(keys[n] or []) for n in ("place", "columns"))
    files = document.get("tables") or []
    keys["tables"] = [str(Path(one).resolve()) if Path(one).is_file() else one for one in files]
    if schema := document.get("schema"):
        keys["schema"] = str(Path(schema).resolve()) if Path(schema).is_file() else schema
    return {name: value for name, value in keys.items() if value}


class _Progress:
    """Lines about the settings that were looked at, how many are left, and about how long."""

    def __init__(self) -> None:
        self._next, self._first = 0.0, 0

    def __call__(self, tried: int, left: int, seconds: float) -> None:
        if tried == 1:
            self._first = left
            from bayesrisk._base.display import spoken  # loads NumPy

            say(f"plan: the first setting took {spoken(seconds)}; up to {left:,} more settings, "
                "most of which go unseen with others")  # fmt: skip
        elif seconds >= self._next and left:
            time = "the time that is left is not known"
            if left <= _COUNTED and tried >= _LOOKS:  # else nothing says how many looks leave out
                time = f"{time_left(tried, left, self._first, seconds)} left"
            say(f"plan: {tried:,} settings looked at, up to {left:,} left, {time}")
        else:
            return
        self._next = seconds + _SECONDS


def time_left(tried: int, left: int, first: int, seconds: float) -> str:
    """Return the time that the rest takes, in words.

    Each look leaves a share of the settings open.  If this share stays what it has been on average,
    one setting is left after log(left) / log(first / left) times as many looks as were needed.
    """
    from bayesrisk._base.display import spoken  # loads NumPy

    looks = left if left >= first else min(left, tried * math.log(left) / math.log(first / left))
    return spoken(looks * seconds / tried)


def _ladders(document: dict[str, Any]) -> Any:
    """Return a function of a workload that makes its ladders, None for the usual ones."""
    rules, file = document.pop("rule", None), document.pop("ladders", None)
    if rules and file:
        raise ArgumentError("--rule and --ladders say the same: give one")
    if file is not None:
        from bayesrisk._base.disk.text import read_toml

        entries = read_toml(data_path(file, "ladders")).get("ladder", [])
        return lambda workload: entries
    if rules:
        return lambda workload: [
            {"levels": [level], "tables": [name], "rules": rules} for level, name in workload.tables
        ]
    return lambda workload: None


def _weights(texts: list[str]) -> dict[str, float]:
    weights = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        try:
            weights[name] = float(number)
        except ValueError:
            raise ArgumentError("--weight", "must be TABLE=NUMBER", got=text) from None
    return weights


def _adversaries(names: list[str] | None, known: list[str], workload: "br.Workload") -> Any:
    """Return who asks, None for the usual ones."""
    from bayesrisk.mechanisms.registry import usual_roles
    from bayesrisk.risk.audit import Adversary

    if not names and not known:
        return None
    background = known or usual_roles(workload.schema)[0]
    return [
        Adversary.named(name, known=background if name == "linker" else ())
        for name in parse_names(names) or ["outsider", "linker"]
    ]
