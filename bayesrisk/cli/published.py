"""``bayesrisk attack``: what published tables give away, for somebody who holds nothing else."""

from pathlib import Path
from typing import Annotated, Any

import typer

from bayesrisk._files.text import shown
from bayesrisk.cli.base import (
    TABLES,
    JsonOption,
    QuietOption,
    SeedOption,
    data_path,
    number,
    print_json,
    progress,
    warnings_as_lines,
)
from bayesrisk.exceptions import ArgumentError

Several = list[str] | None


def attack(
    tables: Annotated[list[Path], typer.Argument(help="Published tables: one or more text files.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Output folder.")] = None,
    counts: Annotated[
        Several, typer.Option(help="exact, nearest-5, random-3, ..., or FILE=exact; may be repeated.")
    ] = None,
    mark: Annotated[
        Several, typer.Option(help="MARK=1-4, MARK=0, MARK=withheld (any), MARK=note; repeat.")
    ] = None,
    column: Annotated[
        Several, typer.Option(help="HEADING=variable, =count, =ignored, or 'sex=Male'; repeat.")
    ] = None,
    label: Annotated[
        Several, typer.Option(help="VARIABLE:LABEL=all, =other label, ='a | b'; repeat.")
    ] = None,
    totals: Annotated[
        str | None, typer.Option(help="complete: labels make up the totals; partial: or not.")
    ] = None,
    absent: Annotated[
        str | None, typer.Option(help="Counts that no row has: unknown or zero [unknown].")
    ] = None,
    blank: Annotated[
        str | None, typer.Option(help="Blank labels: above (the last one) or total.")
    ] = None,
    assume: Annotated[
        Path | None, typer.Option(help="TOML file that says how the tables are read.")
    ] = None,
    save_assumptions: Annotated[
        Path | None, typer.Option(help="Write such a file, guesses included, to be checked.")
    ] = None,
    time_limit: Annotated[str, typer.Option(help="Seconds for each step, or none.")] = "60",
    seed: SeedOption = 0,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Say what published tables give away: proofs, bounds, records that fit, likely records."""
    from bayesrisk import _files
    from bayesrisk.experiments.published_attack import write_attack
    from bayesrisk.tables.layouts import file_grid, read_layouts

    options: dict[str, Any] = {
        "counts": _pairs(counts, "counts"),
        "marks": _pairs(mark, "mark"),
        "columns": _pairs(column, "column"),
        "totals": totals,
        "absent": absent,
        "blank": blank,
        "assume": assume,
    }
    named: dict[str, dict[str, str]] = {}
    for key, text in (_pairs(label, "label") or {}).items():
        variable, _, own = key.partition(":")
        named.setdefault(variable, {})[own] = text
    options["labels"] = named or None
    grids = [file_grid(data_path(file, TABLES)) for file in tables]
    layouts = read_layouts(grids, {k: v for k, v in options.items() if v is not None})
    for line in [*layouts.lines, *(f"  guess: {q.text}" for q in layouts.questions)]:
        typer.echo(line, err=as_json)
    if save_assumptions is not None:
        _files.write_bytes(save_assumptions, layouts.assumptions.to_toml().encode())
        typer.echo(f"what is assumed is in {save_assumptions}: check it", err=as_json)
    if layouts.questions:
        lines = " ".join(dict.fromkeys(question.line for question in layouts.questions))
        raise ArgumentError(f"guesses must be confirmed, or put right: {lines}")
    if output is None:
        if save_assumptions is None:
            raise ArgumentError("output must be a folder, got none")
        return
    limit = None if time_limit == "none" else number(time_limit, "time_limit")
    quiet = quiet or as_json
    with warnings_as_lines(), progress(quiet=quiet, title="attack", unit="steps") as advance:
        done = write_attack(layouts, output, seed=seed, time_limit=limit, progress=advance)
    if as_json:
        print_json(done.to_dict())
        return
    typer.echo("")
    for line in done._answer():
        typer.echo(line)


def _pairs(texts: Several, option: str) -> dict[str, str] | None:
    """Return texts such as ``*=1-4`` as pairs; of counts a text alone stands for all files."""
    found = {}
    for text in texts or ():
        key, sign, value = text.rpartition("=") if option != "column" else text.partition("=")
        if not sign and option != "counts":
            raise ArgumentError(f"{option} must be NAME=MEANING, got {shown(text)}")
        found[key] = value
    return found or None
