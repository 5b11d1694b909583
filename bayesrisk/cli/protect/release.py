"""``bayesrisk release``: confidential records in, protected tables out."""

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import bayesrisk as br
from bayesrisk._base import disk
from bayesrisk._base.disk.text import IN_PIECES
from bayesrisk.cli.command import advised, renamed
from bayesrisk.cli.data import MICRODATA, data_path, is_tables, made_up_mark
from bayesrisk.cli.options import (
    DialectOption,
    JsonOption,
    QuietOption,
    RunOptions,
    SchemaOption,
    parse_names,
)
from bayesrisk.cli.printing import counter, listed, print_answer, progress, say
from bayesrisk.cli.protect.tabulation import tabulate
from bayesrisk.cli.sources import FILE_BY_PLACE, ColumnOptions, RecordSource, usual_tables
from bayesrisk.exceptions import ArgumentError, DataError, quote

if TYPE_CHECKING:
    from bayesrisk.interfaces import Mechanism
    from bayesrisk.release import Likelihood, MechanismSpec

_OCCUPIED = "occupied"
_GIVE = "; give the folder that `bayesrisk release -o` wrote"
#: The recipe of no protection.
NONE = "none"

_SIMULATION = (
    "Warning: this is a simulation, not a protected release. Its random draws can be repeated by "
    "whoever guesses the seed, and the folder says so."
)
_GRADE = (
    "Note: NumPy draws the noise, which is made for simulation. To protect people let a vetted "
    "sampler draw it: sampler=opendp, a parameter of the mechanism (--set, with --from-audit)."
)


@dataclass(frozen=True)
class ReleaseOptions(ColumnOptions):
    """Options of a release: its tables and its protection."""

    protection: Annotated[
        str | None,
        "none, which writes exact tables; MECHANISM or MECHANISM:KEY=VALUE,KEY=VALUE, such as "
        "swapping:rate=0.05 (`bayesrisk list mechanisms` has the names); with --from-audit the "
        "name that the audit gave it.",
    ] = None
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="KEY=VALUE, a parameter of the mechanism, the value as in TOML: rate=0.1, "
            'swap_key=["size", "adults"]; a.b=1 goes deeper.',
        ),
    ] = None
    tables: Annotated[
        list[str] | None,
        "Tables to publish: sf1-block or another workload, or a .toml file; repeat, or separate "
        "by commas [of a file with columns of its own: one- and two-way tables of each place].",
    ] = None
    level: Annotated[list[str] | None, "Level to publish [those of the tables]."] = None
    only: Annotated[list[str] | None, "Table to publish [all]."] = None
    without: Annotated[list[str] | None, "Table to leave out [none]."] = None
    geography: Annotated[str | None, "census, spine-2020 or enumeration-1940 [census]."] = None
    schema: SchemaOption = None
    dialect: DialectOption = None
    places: Annotated[
        str | None,
        "Public list of places: FILE[:COLUMN] (CSV or Parquet; without COLUMN that of the finest "
        "level) or a folder of microdata; 'occupied' publishes the places with a record, and the "
        "release says so [the blocks of the microdata].",
    ] = None
    config: Annotated[Path | None, "TOML file with any of these, which options override."] = None
    from_audit: Annotated[
        Path | None, "Folder of an audit: its tables, its schema, and a --protection of it."
    ] = None

    def document(self) -> dict[str, Any]:
        """Return the settings of the file and of the options, which come first."""
        document: dict[str, Any] = {}
        if self.config is not None:
            from bayesrisk.cli.recipes import read_release_file  # slow to import

            file = data_path(self.config, "settings of a release")
            document = read_release_file(file, ReleaseOptions)
        settings = {
            key: value for key, value in dataclasses.asdict(self).items() if value is not None
        }
        for key in ("config", "from_audit", "settings"):
            settings.pop(key, None)
        for key, value in (("levels", settings.pop("level", None)), *settings.items()):
            if key in ("tables", "levels", "only", "without") and value is not None:
                settings[key] = parse_names(value)
                if not settings[key]:
                    raise ArgumentError(f"--{key} must name at least one, got none")
        document |= settings
        if self.from_audit is not None:
            if self.protection is None:
                raise ArgumentError("--from-audit FOLDER and --protection NAME go together")
            other = sorted({*document} - {"places", "dialect", "protection"})
            sampler = all(text.startswith("sampler=") for text in self.settings or ())
            if other := other + ["set"] * (not sampler):
                raise ArgumentError(f"--{other[0]} does not go with --from-audit, which says it")
        elif not document.get("protection"):
            raise ArgumentError(
                "--protection must be given, such as swapping:rate=0.05, or protection in "
                "--config; none writes exact tables; `bayesrisk list mechanisms` has the names"
            )
        return document


def release(
    records: Annotated[
        Path,
        typer.Argument(help="Folder of microdata, file of records (Parquet, CSV), or sample:NAME."),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="New or empty folder.")],
    options: ReleaseOptions,
    runner: RunOptions,
    simulation_seed: Annotated[
        int | None,
        "Draw from this seed: for simulation, never for publication, since whoever guesses the "
        "seed takes the protection off [entropy of the operating system, kept nowhere].",
    ] = None,
    by: Annotated[
        str | None, "Level, such as county: released by place, one place in memory at a time."
    ] = None,
    whole: Annotated[bool, "Release microdata by place in one piece, in memory."] = False,
    replace: Annotated[bool, "With --protection none: replace tables in the folder."] = False,
) -> None:
    """Protect records and write the tables that may be published.

    Codes of a file of records are those of the schema, unless --dialect or the file says otherwise.
    Microdata by place become a release by the same places, if the mechanism acts within a place.
    """
    document = options.document()
    report = _report_file(output)
    # A folder that is not empty is refused in words of its own.
    with disk.explained(output):
        conflict = report.exists() and not (output.is_dir() and any(output.iterdir()))
    if conflict:
        rule = f"{report} exists already, the report of another release: choose another folder"
        raise ArgumentError(f"--output: {rule}")
    source = RecordSource(records)
    if options.from_audit is None:
        workload = usual_tables([source.file or source.path], document, quiet=runner.quiet)
        exact = document["protection"].strip() == NONE
        protection = None if exact else _mechanism(options, document, workload, source)
    else:
        workload, protection = _audited(options, document, source)
    if protection is None:
        for option, value in (
            ("simulation-seed", simulation_seed), ("places", document.get("places")),
            ("whole", whole or None), ("set", options.settings),
        ):  # fmt: skip
            if value is not None:
                raise ArgumentError(f"--{option} does not go with --protection none")
        tabulate(source, workload, document, output, runner, by=by, replace=replace)
        return
    if replace:
        raise ArgumentError("--replace goes with --protection none; choose a new folder")
    places = _listed(document.get("places"), workload)
    request = _Request(source, document, workload, protection, simulation_seed, places)
    if whole and not source.is_by_place:
        raise ArgumentError("--whole goes with microdata by place, which are released by place")
    if by is None and (whole or not source.is_by_place):
        runner.refuse("goes with --by, or with microdata by place")
        _whole(request, output, runner)
        return
    source.check_by_place(by, document)
    if source.is_by_place and places not in (None, _OCCUPIED):
        raise ArgumentError("--places FILE goes with records that are not by place")
    listed_places = None if places == _OCCUPIED else places
    with source.parts(request.pieces, by, output, listed_places) as folder:
        _by_place(request, folder, output, runner)


@dataclass(frozen=True)
class _Request:
    """The release that is asked for, wherever the records come from."""

    source: RecordSource
    document: Mapping[str, Any]
    workload: "br.Workload"
    protection: "Mechanism"
    seed: int | None
    places: Any

    def pieces(self) -> "br.tables.Microdata | Iterator[br.Records]":
        """Return the microdata of a folder, or the pieces of a file."""
        schema, dialect = self.document.get("schema"), self.document.get("dialect")
        return self.source.pieces(self.workload.schema, schema, dialect)


def _whole(request: _Request, output: Path, runner: RunOptions) -> None:
    """Release all records at once."""
    from bayesrisk.tables.records import joined

    quiet = runner.quiet or runner.as_json
    _warn(request)
    with progress(quiet=quiet, title="release", unit="steps", patient=True) as advance:
        count_step = counter(advance, 3)
        people: br.tables.Microdata | br.Records
        pieces = request.pieces()
        if isinstance(pieces, br.tables.Microdata):
            people = pieces
        else:
            with advised(IN_PIECES, FILE_BY_PLACE):
                people = joined(pieces, request.source.path)
        count_step()
        mark = request.source.mark
        if mark:
            people = dataclasses.replace(br.tables.microdata.as_microdata(people), made_up=True)
        if not quiet:
            data = br.tables.microdata.as_microdata(people)
            from bayesrisk.cli.protect.time_ahead import release_seconds  # slow to import

            seconds = release_seconds(request.protection, data, request.workload, rng=request.seed)
            if seconds:
                from bayesrisk._base.display import spoken  # loads NumPy

                say(f"release: {spoken(seconds)}")
        listing = {} if request.places is None else {"places": request.places}
        with renamed({"places": "--places"}):
            release = request.protection.release(
                people, workload=request.workload, rng=request.seed, **listing
            )
        count_step()
        release.write(output)
        count_step()
    report, exact = _report(output, runner)
    summary: dict[str, Any] = {
        **mark,
        "output": str(output),
        "mechanism": release.spec.mechanism,
        "simulation": release.simulation,
        "tables": len(release.tables.counts),
        "places": {name: len(geoids) for name, geoids in release.tables.geoids.items()},
        "list_of_places": release.spec.places,
        "diagnostics": dict(release.diagnostics),
        "report": report,
    }
    places = listed(summary["places"], " at ")
    lines = [f"{summary['tables']} tables ({places}) in {output}"]
    lines += [*exact, *_measured(release.diagnostics), f"report: {report}"]
    print_answer(summary, lines, as_json=runner.as_json)


def _report(output: Path, runner: RunOptions) -> tuple[str, list[str]]:
    """Write the report beside a release, and return its path and a line of what is exact."""
    from bayesrisk.experiments.release_report import release_page

    release = _contents(output, lambda _: None)  # what may be published alone
    file = _report_file(output)
    disk.write_bytes(file, release_page(release, _exactly(release)))
    runner.embed(file)
    cells = [part["cells"] for part in release["tables"]]
    true = sum(part["cells"] for part in release["tables"] if part["exact"])
    exact = [f"{'all' if true == sum(cells) else f'{true:,} of'} {sum(cells):,} counts"] * (
        true > 0
    )
    exact += ["which places have a record"] * (release["list_of_places"] == _OCCUPIED)
    return str(file), [f"Published exactly: {', and '.join(exact)}"] * bool(exact)


def _report_file(output: Path) -> Path:
    return output.with_name(f"{output.name}-report.html")


def _by_place(request: _Request, source: Path, output: Path, runner: RunOptions) -> None:
    """Release microdata by place, a part at a time."""
    from bayesrisk.experiments.by_place import ReleaseStudy

    _warn(request)
    listing: Any = _OCCUPIED if request.places == _OCCUPIED else None
    study = ReleaseStudy(source, request.workload, request.protection, request.seed, listing)
    with renamed({"places": "--places"}):
        summary = runner.run(study, output, "release")
    lines = []
    if summary.complete:
        number, finest = len(study.published.tables), study.published.levels[-1]
        lines.append(
            f"{number} tables ({summary.places} at {finest}, in {summary.shards} parts) in "
            f"{output}; {output.resolve().name}.confidential beside it is not for publication"
        )
        report, exact = _report(output, runner)
        lines += [*exact, f"report: {report}"]
    runner.show(summary, [*lines, *_measured(summary.diagnostics)])


def _warn(request: _Request) -> None:
    """Say before the draw who draws, where that is not fit to protect people."""
    from bayesrisk._base.randomness import generator
    from bayesrisk.mechanisms.samplers import stated_samplers

    spec = request.protection.spec
    if request.seed is not None:
        generator(request.seed, "--simulation-seed")  # refused before anything is said
        say(_SIMULATION)
    elif spec.noise and not stated_samplers(spec.parameters):
        say(_GRADE)


def _measured(diagnostics: Mapping[str, float]) -> list[str]:
    return [f"  {name.replace('_', ' ')} {value:.6g}" for name, value in diagnostics.items()]


def _mechanism(
    options: ReleaseOptions,
    document: Mapping[str, Any],
    workload: "br.Workload",
    source: RecordSource,
) -> "Mechanism":
    """Return the mechanism; say how parameters are given where they do not fit."""
    from bayesrisk.mechanisms.registry import (
        given_once,
        make_mechanism,
        read_recipe,
        usual_parameters,
        with_settings,
    )

    option = "--protection" if options.protection else f"{options.config}: protection"
    names = ("name of the mechanism", "mechanism", "protection")
    with renamed(dict.fromkeys(names, option)):
        name, parameters = read_recipe(document["protection"])
        if options.protection:
            given_once(parameters, with_settings({}, options.settings or [], "--set"), "--set")
        parameters = with_settings(
            parameters | document.get("parameters", {}), options.settings or [], "--set"
        )
        usual = usual_parameters(name, workload, households=source.has_households, **parameters)
        return make_mechanism(name, **usual)


def _audited(
    options: ReleaseOptions, document: dict[str, Any], source: RecordSource
) -> tuple["br.Workload", "Mechanism"]:
    """Return tables and mechanism of an audit; its schema is that of a file of records."""
    from bayesrisk.experiments.audit import audited_protection
    from bayesrisk.mechanisms.registry import with_settings

    folder, name = str(options.from_audit), str(options.protection)
    with renamed({"protection": "--protection"}):
        audited = audited_protection(folder, name, records=source.path)
    protection, workload, schema, identical = audited
    if not identical:
        say(f"Warning: {source} is not what was audited in {folder}")
    if source.file is not None:
        document["schema"] = schema
    parameters = with_settings(protection.parameters, options.settings or (), "--set")
    return workload, br.make_mechanism(protection.mechanism, **parameters)


def _listed(argument: str | None, workload: "br.Workload") -> str | list[str] | None:
    """Return the public list of places that ``--places`` names; ``occupied`` as it is."""
    if argument is None or argument == _OCCUPIED:
        return argument
    if workload.schema.geography.levels == ("all",):
        rule = "goes with records that have places: name their column with --place"
        raise ArgumentError("--places", rule, got=argument)

    name, _, column = argument.rpartition(":")
    path, column = (argument, "") if not name or Path(argument).exists() else (name, column)
    file = data_path(Path(path), MICRODATA)
    if file.is_dir():
        codes = br.tables.Microdata.read(file).geoids()
        if codes is None:
            raise ArgumentError(f"--places must be of microdata that list blocks, got {file}")
        blocks: list[str] = codes.tolist()
        return blocks
    geography = workload.schema.geography
    place_geography = br.tables.Geography(
        geography.name, (*geography.levels[:-1], column or geography.finest), geography.widths,
        geography.names,
    )  # fmt: skip
    pieces = br.tables.iter_records(file, schema=br.Schema("places", (), place_geography))
    return sorted(set().union(*(piece.places()[0].tolist() for piece in pieces)))


def verify(
    folder: Annotated[
        Path, typer.Argument(help="Folder of a release, or one that `bayesrisk attack` wrote.")
    ],
    published: Annotated[
        list[Path] | None,
        typer.Option(help="Of an attack: the published file that was attacked; may be repeated."),
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Check a release, or the proofs of an attack, and say what holds.

    Every file of a release must be the one that its description names. Every proof must hold, and
    rest on published counts. Else the status is 3, and the message says what is wrong.
    """
    from bayesrisk.experiments.release_report import privacy
    from bayesrisk.release.specification import PLACES

    if not folder.is_dir():
        fault = f"{folder} is a file" if folder.exists() else f"no such folder: {folder}"
        instead = disk.nearby(folder, "_release.json")
        raise ArgumentError(f"{fault}{instead or _GIVE}")
    for proofs in (folder, folder / "proofs"):
        if (proofs / "proofs.csv").is_file():
            lines = _verified_proofs(proofs, published)
            print_answer({"folder": str(folder), "answer": lines}, lines, as_json=as_json)
            return
    if published:
        raise ArgumentError(f"--published goes with the proofs of an attack, and {folder} has none")
    if not (folder / "_release.json").is_file():
        if is_tables(folder):
            raise DataError(
                f"{folder} holds exact tables, no release: no protection is there to verify; "
                f"`bayesrisk attack {folder} -o OUT` says what they give away"
            )
        instead = disk.nearby(folder, "_release.json")
        raise DataError(
            f"{folder}: holds no release (_release.json is not there){instead or _GIVE}"
        )
    title, unit = "verify", "parts"
    with progress(quiet=quiet or as_json, title=title, unit=unit, patient=True) as advance:
        contents = _contents(folder, counter(advance))
    chance = "Nothing in it is random: the same records would give the same release"
    if contents["simulation"]:
        chance = "It is a simulation: whoever guesses the seed takes the protection off"
    elif contents["random"]:
        chance = "What is random came from entropy of the operating system, kept nowhere"
    places = listed(contents["places"], " at ")
    lines = [
        f"{folder} is whole: every file is the one that its description names.",
        *(f"not part of the release: {name}" for name in contents["other_files"]),
        f"protected by {contents['mechanism']}, {contents['parameters']}",
        chance,
        *privacy(contents),
        *_measured(contents["diagnostics"]),
        "Published exactly:",
        f"  the list of places ({places}): {PLACES[contents['list_of_places']]}",
    ]
    groups: dict[tuple[bool, str, str], list[Any]] = {}
    for part in contents["tables"]:
        groups.setdefault((not part["exact"], part["level"], part["is"]), []).append(part)
    # Tables that are exact come first; those of one level and one law share a line.
    for (inexact, level, law), parts in sorted(groups.items(), key=lambda item: item[0][0]):
        if inexact and "Not exactly:" not in lines:
            lines.append("Not exactly:")
        names = ", ".join(part["table"] for part in parts)
        cells = sum(part["cells"] for part in parts)
        lines.append(f"  {level} {names} ({cells} counts): {law}")
    print_answer(contents, lines, as_json=as_json)


def _verified_proofs(proofs: Path, published: list[Path] | None) -> list[str]:
    """Check the proofs of an attack; return sentences on their counts, and what they prove."""
    from bayesrisk.reconstruction.proofs import check_proofs

    reading, stored, tables = proofs.parent / "reading.toml", proofs.parent / "tables", None
    counts = "listed in them: compare these with what was published"
    if published:
        counts = f"those of {', '.join(map(str, published))}, read by {reading}"
        tables = _attacked_tables(published, proofs.parent)
    elif stored.is_dir():
        counts = f"those of {stored}: --published FILE compares them with what was published"
        tables = br.PublishedTables.read(stored)
    sentences = check_proofs(proofs, tables)
    holds = f"All {len(sentences)} proofs hold. The counts that they rest on are {counts}."
    return [
        holds,
        "This is proved, and nothing else that the folder says:",
        *dict.fromkeys(sentences),
    ]


def _attacked_tables(files: list[Path], attack: Path) -> "br.PublishedTables":
    """Return published files as tables, read with the settings of an attack of them.

    If they are then read otherwise, counts were changed: the first is named.
    """
    from bayesrisk._base.disk.delimited import read_own_csv
    from bayesrisk.tables.reading.reading import TableReading

    reading, stored = TableReading.read(files, assume=attack / "reading.toml"), attack / "tables"
    schema = reading.parts[0].schema
    if stored.is_dir():
        schema = br.PublishedTables.read(stored).workload.schema
    if schema == reading.parts[0].schema and not reading.questions:
        return br.PublishedTables(*reading.parts)
    faults = [text for _, text in reading.questions.values()] or [
        "labels or totals are read otherwise"
    ]
    if (bounds := attack / "bounds.csv").is_file():
        new_cells, old_cells = reading.stated_cells, read_own_csv(bounds, ("file", "stated"))
        old_names, new_names = (
            list(dict.fromkeys(frame["file"])) for frame in (old_cells, new_cells)
        )
        new_only = [name for name in new_names if name not in old_names]
        old_only = [name for name in old_names if name not in new_names]
        old_cells = old_cells.replace({"file": dict(zip(old_only, new_only, strict=False))})
        old_rows, new_rows = (
            {key: Counter(texts) for key, texts in frame.groupby(["file", "row"])["stated"]}
            for frame in (old_cells, new_cells)
        )
        faults = [
            f"row {row:.0f} of {file} has {', '.join(new_texts - old_texts) or 'no count'}, "
            f"and had {', '.join(old_texts - new_texts)} when attacked"
            for (file, row), old_texts in old_rows.items()
            if old_texts - (new_texts := new_rows.get((file, row), Counter()))
        ] or faults
    more = f"; {len(faults) - 1:,} more differ" * (len(faults) > 1)
    raise DataError(f"published must be the files that were attacked: {faults[0]}{more}")


def _contents(folder: Path, advance: Callable[[int], None]) -> dict[str, Any]:
    """Return the description and the contents of a release, every file checked."""
    from bayesrisk.experiments.release_report import cost
    from bayesrisk.mechanisms.registry import meaning
    from bayesrisk.release.release import ReleaseIndex, setting_words
    from bayesrisk.release.specification import MechanismSpec, law_words

    places: Counter[str] = Counter()
    cells: Counter[tuple[str, str]] = Counter()
    withheld: Counter[tuple[str, str]] = Counter()
    laws: dict[tuple[str, str], Likelihood] = {}
    for part in _parts(folder):
        spec, simulation, diagnostics = part.spec, part.simulation, part.diagnostics
        places.update({level: len(codes) for level, codes in part.tables.geoids.items()})
        for key, counts in part.tables.counts.items():
            laws[key] = spec.likelihood(*key)
            cells[key] += counts.shape[0] * counts.shape[1]
            withheld[key] += part.tables.hidden(*key).nnz
        advance(1)
    if ReleaseIndex.exists(folder):
        document = ReleaseIndex.read(folder).document
        spec = MechanismSpec.from_dict(document["spec"])
        simulation, diagnostics = document["simulation"], document["diagnostics"]
    parameters = (
        f"{name} {quote(value) if isinstance(value, str) else setting_words(value)}"
        for name, value in spec.parameters.items()
    )
    words = meaning(spec.mechanism, spec.parameters, "")
    return {
        **made_up_mark(folder),
        "folder": str(folder),
        "mechanism": spec.mechanism,
        "parameters": ", ".join(parameters) or "no parameters",
        "rho": _rho(spec),
        "epsilon": _epsilon(spec),
        "neighbour": spec.parameters.get("sensitivity"),
        "simulation": simulation,
        "random": any(law.random for law in laws.values()),
        "diagnostics": dict(diagnostics),
        "places": dict(places),
        "list_of_places": spec.places,
        "tables": [
            {
                "level": key[0],
                "table": key[1],
                "cells": cells[key],
                "withheld": withheld[key],
                "exact": law.exact,
                "is": law_words(law, withheld[key]),
                **cost(law, withheld[key], words),
            }
            for key, law in laws.items()
        ],
        "other_files": _foreign_files(folder),
    }


def _epsilon(spec: "MechanismSpec") -> float | None:
    """Return epsilon at delta 1e-10 by the law of the privacy loss; None without such a law."""
    try:
        return float(br.accounting.PrivacyLoss.of(spec).epsilon(1e-10).upper)
    except ArgumentError:
        return None


def _rho(spec: "MechanismSpec") -> float | None:
    """Return the budget of all tables of a mechanism that spends one; None of others."""
    gaussian = {law.law for law in spec.noise.values()} == {"discrete-gaussian"}
    budget = spec.parameters.get("budget", spec.parameters.get("budgets") if gaussian else None)
    if not isinstance(budget, Mapping) or not all(isinstance(t, Mapping) for t in budget.values()):
        return None
    return float(sum(Fraction(share) for tables in budget.values() for share in tables.values()))


def _exactly(release: Mapping[str, Any]) -> list[str]:
    """Return the exact parts of a release in words: the list of places, and exact tables."""
    from bayesrisk.release.specification import PLACES

    places = listed(release["places"], " at ")
    lines = [f"the list of places ({places}): {PLACES[release['list_of_places']]}"]
    exact = [part for part in release["tables"] if part["exact"]]
    for level in dict.fromkeys(part["level"] for part in exact):
        mine = [part for part in exact if part["level"] == level]
        cells = sum(part["cells"] for part in mine)
        counts = f"{cells:,} count{'s' * (cells != 1)}"
        lines.append(f"{level} {', '.join(part['table'] for part in mine)} ({counts})")
    return lines


def _parts(folder: Path) -> Iterator["br.Release"]:
    """Yield the release, or its parts one after the other where it is by place."""
    from bayesrisk.release.release import ReleaseIndex

    if not ReleaseIndex.exists(folder):
        yield br.Release.read(folder)
        return
    index = ReleaseIndex.read(folder)
    for name in index.releases:
        yield br.Release.read(index.checked(name))


def _foreign_files(folder: Path) -> list[str]:
    """Return the names of files that a release has no place for."""
    from bayesrisk.release.release import RELEASE_FILE
    from bayesrisk.tables.exchange import GEOGRAPHIES, INDEX, MANIFEST, PARTITIONS, is_part

    release_files = {RELEASE_FILE, GEOGRAPHIES, MANIFEST, INDEX, PARTITIONS}
    parts = {path for path in folder.iterdir() if path.is_dir() and path.name.startswith("part-")}
    files = [folder / name for name in disk.read_document(folder / RELEASE_FILE).get("files", ())]
    parts |= {*files, *(file.parent for file in files)}
    return [
        path.relative_to(folder).as_posix()
        for path in sorted(folder.rglob("*"))
        if path not in parts
        and not (path.name in release_files or is_part(path.name) or disk.is_leftover(path.name))
    ]
