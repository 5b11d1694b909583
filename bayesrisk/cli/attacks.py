"""Attacks on published tables: what must be true of the records, and which records fit."""

import functools
from pathlib import Path
from typing import Annotated, Any

import typer

import bayesrisk as br
from bayesrisk._base import disk
from bayesrisk.cli.data import TABLES, data_path, made_up_mark
from bayesrisk.cli.options import (
    JsonOption,
    OutputOption,
    QuietOption,
    RuleOption,
    RunOptions,
    SeedOption,
    SolverOption,
    TablesArgument,
    TakenOption,
    optional_number,
    parse_names,
)
from bayesrisk.cli.printing import listed, print_answer, progress, say, warnings_as_lines
from bayesrisk.exceptions import ArgumentError, quote


def claims(
    tables: TablesArgument,
    output: OutputOption,
    runner: RunOptions,
    columns: Annotated[
        list[str] | None, "Columns of claims; repeat, or separate by commas [all]."
    ] = None,
    max_columns: Annotated[int | None, "Most columns of a claim."] = None,
    plain: Annotated[bool, "Any combination of codes, no structural rules."] = False,
    tenure: Annotated[str, "Renters: merged, cash (all pay) or four-way."] = "merged",
    solver: SolverOption = "highs",
    time_limit: Annotated[str | None, "Seconds for each block [none]."] = None,
    taken_as_true: TakenOption = False,
    no_rule: RuleOption = False,
) -> None:
    """Say what must be true of the records behind published tables, and prove it."""
    from bayesrisk.experiments.reconstruction import ClaimsStudy

    study = ClaimsStudy(
        data_path(tables, TABLES),
        columns=parse_names(columns) if columns else None,
        max_columns=max_columns,
        structural_rules=not plain,
        tenure=tenure,
        solver=solver,
        time_limit=optional_number(time_limit, "time_limit"),
        taken_as_true=taken_as_true,
        known_rule=not no_rule,
    )
    summary = runner.run(study, output, "claims")
    sentence = (
        f"{summary.claims} verified claims that no table states, {summary.singletons} about one "
        f"record, in {output}; blocks: {listed(summary.statuses)}"
    )
    conflicts = [f"  no records fit: {conflict}" for conflict in summary.conflicts]
    runner.show(
        summary, [sentence], [*(f"  {example}" for example in summary.examples), *conflicts]
    )


#: Limits of what may go on for days where nobody asked for any: a tract is one component.  That of
#: nodes is mostly reached first, and leaves the same answer on any machine.
JOINT_NODES, JOINT_SECONDS = 100, 600


def reconstruct(
    tables: TablesArgument,
    output: OutputOption,
    scope: Annotated[str, "block: each block alone; tract: with its tract's tables."],
    runner: RunOptions,
    variability: Annotated[
        str | None, "Also bound the solution variability: block, tract-bounds, tract-joint."
    ] = None,
    solver: SolverOption = "highs",
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
    taken_as_true: TakenOption = False,
    no_rule: RuleOption = False,
) -> None:
    """Reconstruct the records behind published tables, and say what is proved about them."""
    from bayesrisk.experiments.reconstruction import ReconstructionStudy

    joint = (variability or "").endswith("-joint")
    seconds = _limit(time_limit, JOINT_SECONDS if joint else None)
    study = ReconstructionStudy(
        data_path(tables, TABLES),
        scope=scope,
        variability=variability,
        solver=solver,
        time_limit=optional_number(seconds, "time_limit"),
        node_limit=_nodes(node_limit, JOINT_NODES if joint and solver == "highs" else None),
        nearest=nearest,
        taken_as_true=taken_as_true,
        known_rule=not no_rule,
    )
    summary = runner.run(study, output, "reconstruct")
    sentence = f"{summary.records} records in {output}; blocks: {listed(summary.statuses)}"
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


def bounds(
    tables: TablesArgument,
    output: OutputOption,
    runner: RunOptions,
    scope: Annotated[
        str | None, "Level whose tables are taken together, with those below [the finest]."
    ] = None,
    no_rule: RuleOption = False,
    solver: SolverOption = "highs",
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
        data_path(tables, TABLES),
        scope=scope,
        known_rule=not no_rule,
        solver=solver,
        time_limit=optional_number(time_limit, "time_limit"),
        node_limit=_nodes(node_limit, None),
    )
    summary = runner.run(study, output, "bounds")
    runner.show(summary, summary.sentences, [f"{summary.counts:,} counts: {output}/bounds.csv"])


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
    seed: SeedOption = 0,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Say what published tables give away: proofs, bounds, records that fit, likely records."""
    from bayesrisk.experiments.table_attack import attack
    from bayesrisk.tables.reading.reading import read
    from bayesrisk.tables.reading.rules import setting
    from bayesrisk.tables.reading.sheet import file_sheet

    options: dict[str, Any] = {} if assume is None else {"assume": assume}
    if wrong := next((text for text in settings or () if "=" not in text), None):
        raise ArgumentError(f"--set must be NAME=VALUE, got {quote(wrong)}")
    wanted = [text.partition("=")[2] for text in settings or () if text.startswith("sheet=")]
    files = [data_path(file, TABLES) for file in tables]
    sheets = [file_sheet(file, *wanted[:1]) for file in files]
    options |= dict(setting(text, sheets) for text in settings or ())
    reading = read(sheets, options)
    mark = made_up_mark(*files)
    for line in [*([br.datasets.MADE_UP] if mark else []), *reading.screen()]:
        say(line, err=as_json)
    if save_assumptions is not None:
        with disk.whole_file(save_assumptions, new=True) as stream:
            stream.write(reading.to_toml().encode())
        say(f"what is assumed is in {save_assumptions}: check it", err=as_json)
        if output is None:
            return
    reading = reading.accepted() if accept else reading
    reading.confirmed()
    if output is None:
        raise ArgumentError("output", "must be a folder", shown="none")
    limit = optional_number(time_limit, "time_limit")
    quiet = quiet or as_json
    with (
        warnings_as_lines(),
        progress(quiet=quiet, title="attack", unit="steps") as advance,
    ):
        answer = attack(
            reading, output, seed=seed, time_limit=limit, proofs=proofs, progress=advance,
            made_up=bool(mark), say=None if as_json else functools.partial(say, err=False),
        )  # fmt: skip
    report = str(output / "report.html")
    rows = {name: len(frame) for name, frame in answer.frames.items()}
    result = {
        **made_up_mark(*files),
        "report": report,
        "sentences": answer.sentences,
        **rows,
        **answer.facts,
    }
    print_answer(result, [*answer.last, f"report: {report}"], as_json=as_json)
