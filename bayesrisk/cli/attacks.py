"""``bayesrisk attack``: what must be true behind published tables, and which records fit them."""

import functools
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

import bayesrisk as br
from bayesrisk._base import disk
from bayesrisk._base.interrupts import LATE
from bayesrisk._base.wings import wing_points
from bayesrisk.cli.command import renamed
from bayesrisk.cli.data import TABLES, data_path, made_up_mark
from bayesrisk.cli.options import (
    DialectOption,
    RuleOption,
    RunOptions,
    SeedOption,
    TakenOption,
    optional_number,
    parse_names,
)
from bayesrisk.cli.printing import print_answer, progress, say, warnings_as_lines
from bayesrisk.exceptions import ArgumentError, DataError

#: Limits of what may go on for days where nobody asked for any: a tract is one component.  That of
#: nodes is mostly reached first, and leaves the same answer on any machine.
JOINT_NODES, JOINT_SECONDS = 100, 600
#: Seconds for an attack on text files.
_SECONDS = "60"
_MANY = 2**15  # numbers that take more than a few seconds to read


@dataclass(frozen=True)
class ReadingOptions:
    """How text files are read."""

    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="Text files: how they are read: counts=exact, 'marks.*=1-4', ...; repeat."
        ),
    ] = None
    assume: Annotated[Path | None, "Text files: TOML file with such settings."] = None
    save_assumptions: Annotated[
        Path | None, "Text files: write such a file with the guesses, to be checked."
    ] = None
    accept: Annotated[bool, "Text files: take all guesses about the reading for true."] = False


@dataclass(frozen=True)
class StepOptions:
    """Options of some steps of an attack."""

    scope: Annotated[
        str | None,
        "Bounds, records: level whose tables are taken together, with those below [the finest].",
    ] = None
    columns: Annotated[
        list[str] | None, "Claims: columns of claims; repeat, or separate by commas [all]."
    ] = None
    max_columns: Annotated[int | None, "Claims: most columns of a claim [all]."] = None
    time_limit: Annotated[
        str | None,
        f"Seconds, or none: for all of text files [{_SECONDS}; with --only none]; for each place "
        f"or component of folders [{JOINT_SECONDS} with --variability tract-joint, else none].",
    ] = None
    proofs: Annotated[
        int,
        "Text files: certificates of so many claims and of so many bounds, with their checker; 0 "
        "for none.",
    ] = 10
    variability: Annotated[
        str | None,
        "Records: also bound how much others that fit may differ: block, tract-bounds, "
        "tract-joint.",
    ] = None
    nearest: Annotated[bool, "Records: least deviation where none fit."] = False
    plain: Annotated[bool, "Claims: any combination of codes, no structural rules."] = False
    tenure: Annotated[str, "Claims: renters: merged, cash (all pay) or four-way."] = "merged"
    solver: Annotated[str, "Solver of whole numbers: highs, pulp:highs, pulp:cbc, ..."] = "highs"
    node_limit: Annotated[
        str | None,
        "Bounds, records: most programs and nodes of the solver for each component, or none "
        f"[{JOINT_NODES} with --variability tract-joint and highs, else none].",
    ] = None
    taken_as_true: TakenOption = False
    no_rule: RuleOption = False


@dataclass(frozen=True)
class LinkOptions:
    """Files of people with whom reconstructed records are linked."""

    adversary: Annotated[
        list[Path] | None,
        "Links: people whom the adversary knows: block, sex, age, person; a file, a folder of "
        "microdata by place, or sample:NAME. May be repeated.",
    ] = None
    truth: Annotated[
        Path | None,
        "Links: confidential records: block, sex, age, race, hisp, person; a file, a folder of "
        "microdata by place, or sample:NAME.",
    ] = None
    dialect: DialectOption = None
    truth_dialect: Annotated[str | None, "Links: dialect of --truth, if it has another."] = None


#: The options that go with each step; those of text files alone, with the attack on these.
_TAKES = {
    "bounds": {"scope", "solver", "time_limit", "node_limit", "no_rule"},
    "records": {
        *("scope", "variability", "nearest", "solver", "time_limit", "node_limit"),
        *("taken_as_true", "no_rule"),
    },
    "claims": {
        *("columns", "max_columns", "plain", "tenure", "solver", "time_limit"),
        *("taken_as_true", "no_rule"),
    },
    "links": {"adversary", "truth", "dialect", "truth_dialect", "seed"},
}
_STEPS = tuple(_TAKES)
_OF_TEXT = {"time_limit", "proofs", "seed"}
#: What a step found, the lines before its parts, and those after.
Answer = tuple[Any, Iterable[str], Iterable[str]]


def attack(
    tables: Annotated[
        list[Path],
        typer.Argument(
            help="Published tables: text files or workbooks of an agency; or a folder of tables or "
            "of a release; for --only links a folder of reconstructed records."
        ),
    ],
    reading: ReadingOptions,
    options: StepOptions,
    people: LinkOptions,
    runner: RunOptions,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Output folder.")] = None,
    only: Annotated[
        str | None,
        "One step alone: bounds of true counts; records that fit; claims that must be true; links "
        "of records to known people [the first three].",
    ] = None,
    method: Annotated[
        str | None,
        "Another attack of `bayesrisk list attacks` instead, such as a plug-in: NAME or "
        "NAME:KEY=VALUE,KEY=VALUE.",
    ] = None,
    seed: SeedOption = 0,
) -> None:
    """Say what published tables give away, and prove it.

    Of text files all steps share one report; of a folder each step has a folder of its own.
    """
    begun = time.monotonic()  # libraries are slow to load
    from bayesrisk._base import validation as check

    step = None if only is None else check.choice(only, "only", _STEPS)
    folder = tables[0] if len(tables) == 1 and tables[0].is_dir() else None
    _check_options(step, folder, options, people, seed)
    if method is not None and step is not None:
        raise ArgumentError("--method does not go with --only: an attack by name is one step")
    if step == "links":
        name = wing_points().get("bayesrisk.steps", {}).get("links", "")
        module, _, function = name.partition(":")
        getattr(import_module(module), function)(tables, _output(output), people, seed, runner)
        return
    if method is not None:
        _by_method(method, tables, _output(output), runner)
        return
    if step is None and folder is None:
        runner.refuse("goes with --only, or with a folder of tables")
        _read_and_attack(tables, output, reading, options, seed, runner)
        return
    from bayesrisk.experiments.clock import Clock

    limit = None
    if not _names_folder(tables):  # of all that is asked for, and no setting of what is resumed
        limit, options = _seconds(options.time_limit), replace(options, time_limit=None)
    clock = Clock(limit, begun)
    with (
        clock.guard(functools.partial(_late, "finished shards are kept, go on with --resume")),
        clock.interrupts(),
        _folder(tables, output, reading, runner) as source,
    ):
        if source is None:
            return
        target, documents = _output(output), {}
        if step is None and not runner.resume and runner.shard == "1/1":
            disk.new_folder(target)
        for name in [step] if step else list(_RUN):
            place = target if step else target / name
            summary, before, after = _RUN[name](source, place, options, runner)
            documents[name] = summary.to_dict()
            if not runner.as_json:
                runner.show(summary, before, after)
    if runner.as_json:
        print_answer(documents[step] if step else documents, (), as_json=True)


def _late(words: str) -> int:
    """Say what becomes of a command whose time is over, and return its status."""
    say(f"bayesrisk: --time-limit is over; {words}")
    return LATE


def _by_method(recipe: str, tables: list[Path], output: Path, runner: RunOptions) -> None:
    """Run an attack by its name on a release, and write what it found as a table."""
    import pandas as pd

    from bayesrisk._base.disk.delimited import csv_bytes
    from bayesrisk.mechanisms.registry import read_recipe
    from bayesrisk.release.release import RELEASE_FILE

    runner.refuse("does not go with --method")
    name, parameters = read_recipe(recipe, "--method")
    with renamed({"name of the attack": "--method", "attack": "--method"}):
        method: Any = br.reconstruction.make_attack(name, **parameters)
    folder = data_path(tables[0], TABLES)
    if len(tables) > 1 or not (folder / RELEASE_FILE).is_file():
        raise ArgumentError(
            f"--method goes with one folder of a release, which {tables[0]} is not: `bayesrisk "
            "release -o` writes one"
        )
    with disk.explained(output), disk.whole_folder(output, disk.new_folder) as scratch:
        result: Any = method.run(br.Release.read(folder))
        frame = result if isinstance(result, pd.DataFrame) else result.to_frame()
        disk.write_bytes(scratch / f"{name}.csv", csv_bytes(frame))
    file = output / f"{name}.csv"
    document = {"method": name, "rows": len(frame), "file": str(file)}
    print_answer(document, [f"{name}: {len(frame):,} rows in {file}"], as_json=runner.as_json)


def _check_options(
    step: str | None, folder: Path | None, options: StepOptions, people: LinkOptions, seed: int
) -> None:
    """Refuse options that do not go with what is asked for."""
    steps = [step] if step else [name for name in _STEPS if name != "links"]
    takes = set[str]().union(*(_TAKES[name] for name in steps))
    takes = _OF_TEXT if step is None and folder is None else takes
    chosen = {
        field.name
        for group in (options, people)
        for field in fields(group)
        if getattr(group, field.name) != field.default
    } | ({"seed"} if seed else set())
    if wrong := sorted(chosen - takes):
        option = f"--{wrong[0].replace('_', '-')}"
        goes = [f"--only {name}" for name in _STEPS if wrong[0] in _TAKES[name]]
        goes += ["text files without --only"] * (wrong[0] in _OF_TEXT)
        raise ArgumentError(f"{option} goes with {' or '.join(goes)}")


def _output(output: Path | None) -> Path:
    """Return the output folder, which must be given."""
    if output is None:
        raise ArgumentError("output", "must be a folder", shown="none: write -o OUT")
    return output


def _names_folder(tables: list[Path]) -> bool:
    """Return whether a folder of tables is named, or a sample, and no text files are."""
    return len(tables) == 1 and (tables[0].is_dir() or str(tables[0]).startswith("sample:"))


@contextmanager
def _folder(
    tables: list[Path], output: Path | None, options: ReadingOptions, runner: RunOptions
) -> Iterator[Path | None]:
    """Provide a folder of tables: the one that is named, or one of text files as they are read."""
    from bayesrisk.experiments.place_bounds import write_read_tables
    from bayesrisk.tables import PublishedTables

    if _names_folder(tables):
        for name in (f.name for f in fields(options) if getattr(options, f.name) != f.default):
            option = {"settings": "set"}.get(name, name).replace("_", "-")
            raise ArgumentError(f"--{option} goes with text files, which {tables[0]} is not")
        yield data_path(tables[0], TABLES)
        return
    reading = _reading(tables, output, options, runner)
    if reading is None:
        yield None
        return
    with disk.scratch_folder(_output(output)) as scratch:
        tables_read = PublishedTables(*reading.confirmed())
        write_read_tables(reading, tables_read, scratch / "tables")
        yield scratch / "tables"


def _reading(
    tables: list[Path], output: Path | None, options: ReadingOptions, runner: RunOptions
) -> Any:
    """Return text files as they are read, no question left; None where guesses alone are kept."""
    from bayesrisk.tables.reading.reading import check_marks, read
    from bayesrisk.tables.reading.rules import setting
    from bayesrisk.tables.sheets.sheet import file_sheet
    from bayesrisk.tables.sheets.texts import says_number

    if options.accept and options.save_assumptions is None:
        _output(output)  # at once: reading may take long, and what it finds is not kept
    settings = options.settings or ()
    document: dict[str, Any] = {} if options.assume is None else {"assume": options.assume}
    pairs = dict(text.split("=", 1) for text in settings)
    wanted = pairs.get("sheet"), pairs.get("encoding")
    files = [data_path(file, TABLES) for file in tables]
    around = (files[0].parent, files[0].parent.parent)  # as a release writes them for people
    whole = next((one for one in around if (one / "_manifest.json").is_file()), None)
    instead = f"it is a file of {whole}: `bayesrisk attack {whole} -o OUT`" if whole else ""
    options_name = "--set" if options.assume is None else f"--set, or the keys of {options.assume},"
    try:
        sheets = [file_sheet(file, *wanted) for file in files]
        read_settings = (setting(text, sheets) for text in settings)
        choices = {name.strip(): value.strip() for name, value in read_settings}
        if wanted[0] and not any(sheet.part or sheet.tab for sheet in sheets):
            raise ArgumentError("--set sheet", "goes with a workbook, not with text", got=wanted[0])
        document |= choices
        texts = Counter(t for sheet in sheets for _, row in sheet.rows for t in row)
        number = sum(n for text, n in texts.items() if says_number(text))
        if number > _MANY and not runner.quiet:
            say(f"{number:,} numbers are read", err=True)
        with renamed({"assumptions": options_name}):
            reading = read(sheets, document)
    except DataError as error:
        if "audit" in str(error):
            raise
        file = tables[0] if tables[0].suffix == ".parquet" else tables[0].with_suffix(".csv")
        records = f"if each row is one person, they are records: `bayesrisk audit {file}`"
        raise error.advised(f"{error.advice}; {instead or records}") from error
    check_marks(reading, choices)
    if instead:
        say(f"{files[0].name}: {instead} knows its rule and all other tables")
    mark = [br.datasets.MADE_UP] if made_up_mark(*files) else []
    for line in [*mark, *reading.screen()]:
        say(line, err=runner.as_json)
    if options.save_assumptions is not None:
        with disk.whole_file(options.save_assumptions, new=True) as stream:
            stream.write(reading.to_toml().encode())
        say(f"what is assumed is in {options.save_assumptions}: check it", err=runner.as_json)
        if output is None:
            return None
    reading = reading.accepted() if options.accept else reading
    if guesses := [f"{name[:80]}={guess[:80]}" for name, (guess, _) in reading.questions.items()]:
        sets = " ".join(f"--set {guess!r}" for guess in guesses[:12])
        if options.accept:
            raise ArgumentError(f"--accept does not answer what only you can say: {sets} if so")
        but = "but those that only you can say, " * bool(reading.open)
        raise ArgumentError(f"confirm the guesses above with --accept, {but}or set them: {sets}")
    _output(output)
    return reading


def _read_and_attack(
    tables: list[Path],
    output: Path | None,
    options: ReadingOptions,
    steps: StepOptions,
    seed: int,
    runner: RunOptions,
) -> None:
    """Attack text files: all steps, and one report."""
    begun = time.monotonic()  # libraries are slow to load
    from bayesrisk.experiments.clock import Clock

    limit = _seconds(steps.time_limit, _SECONDS)
    # Reading is a part of what is asked for.
    clock = Clock(limit if steps.time_limit else None, begun)

    with clock.guard(functools.partial(_late, f"reading takes more than {limit or 0.0:g} seconds")):
        reading = _reading(tables, output, options, runner)
    if reading is None:
        return
    from bayesrisk.experiments.table_attack import AttackAnswer, attack as attack_tables

    folder = _output(output)
    mark = made_up_mark(*(data_path(file, TABLES) for file in tables))
    answers = list[AttackAnswer]()

    def show() -> int:
        if not answers:
            return _late(f"nothing was proved within {limit:g} seconds")
        answer, report = answers[-1], folder / "report.html"
        runner.embed(report)
        rows = {name: len(frame) for name, frame in answer.frames.items()}
        result = {  # lines have said it first
            **(mark if runner.as_json else {}), "report": str(report),
            "sentences": answer.sentences, **rows, **answer.facts,
        }  # fmt: skip
        print_answer(result, [*answer.last, f"report: {report}"], as_json=runner.as_json)
        return LATE  # a step was not over

    clock = clock if steps.time_limit else Clock(limit)
    with (
        clock.guard(show),
        warnings_as_lines(),
        progress(quiet=runner.quiet or runner.as_json, title="attack", unit="steps") as advance,
    ):
        attack_tables(
            reading, folder, seed=seed, time_limit=clock, proofs=steps.proofs, progress=advance,
            made_up=bool(mark), tell=answers.append,
            say=None if runner.as_json else functools.partial(say, err=False),
        )  # fmt: skip
    show()


def _bounds(tables: Path, output: Path, options: StepOptions, runner: RunOptions) -> Answer:
    """Bound the true counts behind rounded, withheld or otherwise coarsened ones."""
    from bayesrisk.experiments.folder_attack import step_sentences
    from bayesrisk.experiments.reconstruction import BoundsStudy

    study = BoundsStudy(
        tables,
        scope=options.scope,
        known_rule=not options.no_rule,
        solver=options.solver,
        time_limit=_seconds(options.time_limit),
        node_limit=_nodes(options.node_limit, None),
    )
    summary = runner.run(study, output, "bounds")
    return (
        summary,
        step_sentences("bounds", summary),
        [f"{summary.counts:,} counts: {output}/bounds.csv"],
    )


def _records(tables: Path, output: Path, options: StepOptions, runner: RunOptions) -> Answer:
    """Reconstruct the records behind tables, and say what is proved about them."""
    from bayesrisk.experiments.folder_attack import step_sentences
    from bayesrisk.experiments.reconstruction import ReconstructionStudy, open_tables

    joint = (options.variability or "").endswith("-joint")
    seconds = _limit(options.time_limit, str(JOINT_SECONDS) if joint else None)
    study = ReconstructionStudy(
        tables,
        scope=options.scope or open_tables(tables).workload.levels[-1],
        variability=options.variability,
        solver=options.solver,
        time_limit=optional_number(seconds, "time_limit"),
        node_limit=_nodes(
            options.node_limit, str(JOINT_NODES) if joint and options.solver == "highs" else None
        ),
        nearest=options.nearest,
        taken_as_true=options.taken_as_true,
        known_rule=not options.no_rule,
    )
    summary = runner.run(study, output, "records")
    lines = step_sentences("records", summary, f" in {output}")
    return summary, lines, (f"  no records fit: {text}" for text in summary.conflicts)


def _claims(tables: Path, output: Path, options: StepOptions, runner: RunOptions) -> Answer:
    """Say what must be true of the records behind tables."""
    from bayesrisk.experiments.folder_attack import step_sentences
    from bayesrisk.experiments.reconstruction import ClaimsStudy

    study = ClaimsStudy(
        tables,
        columns=parse_names(options.columns) or None,
        max_columns=options.max_columns,
        structural_rules=not options.plain,
        tenure=options.tenure,
        solver=options.solver,
        time_limit=_seconds(options.time_limit),
        taken_as_true=options.taken_as_true,
        known_rule=not options.no_rule,
    )
    summary = runner.run(study, output, "claims")
    lines = step_sentences("claims", summary, f" in {output}")
    conflicts = [f"  no records fit: {conflict}" for conflict in summary.conflicts]
    return summary, lines, [*(f"  {example}" for example in summary.examples), *conflicts]


#: What a folder of tables is asked, one step after the other.
_RUN = {"bounds": _bounds, "records": _records, "claims": _claims}


def _seconds(text: str | None, usual: str | None = None) -> float | None:
    """Return the limit of time, > 0, or None."""
    from bayesrisk._base import validation as check

    return check.time_limit(optional_number(_limit(text, usual), "time_limit"))


def _limit(text: str | None, usual: str | None) -> str | None:
    """Return the limit that was asked for, or the usual one of what takes long; None for none."""
    limit = usual if text is None else text
    if re.fullmatch(r"\s*[\d.]+\s*[a-z]+\s*", limit or ""):
        raise ArgumentError("time_limit", "must be seconds, such as 60, or none", got=limit)
    return None if limit == "none" else limit


def _nodes(text: str | None, usual: str | None) -> int | None:
    """Return the limit of nodes, a whole number, or None."""
    nodes = _limit(text, usual)
    if nodes is not None and not nodes.isdecimal():
        raise ArgumentError("node_limit", "must be a whole number or none", got=nodes)
    return None if nodes is None else int(nodes)
