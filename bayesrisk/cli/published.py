"""``bayesrisk attack``: text files of an agency in, all that they give away out."""

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
    optional_number,
    print_answer,
    progress,
    warnings_as_lines,
)
from bayesrisk.exceptions import ArgumentError


def attack(
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
    time_limit: Annotated[str | None, typer.Option(help="Seconds for each component [60].")] = "60",
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
    from bayesrisk import _files
    from bayesrisk.experiments.published_attack import write_attack
    from bayesrisk.tables.layouts import file_sheet, read_layouts

    options: dict[str, Any] = {} if assume is None else {"assume": assume}
    for text in settings or ():
        name, sign, value = text.rpartition("=")
        if not sign:
            raise ArgumentError(f"--set must be NAME=VALUE, got {shown(text)}")
        options[name] = value
    layouts = read_layouts([file_sheet(data_path(file, TABLES)) for file in tables], options)
    for line in layouts.lines:
        typer.echo(line, err=as_json)
    for name, (guess, text) in layouts.questions.items():
        typer.echo(f"  guess: {text}; to confirm: --set {f'{name}={guess}'!r}", err=as_json)
    if save_assumptions is not None:
        _files.write_bytes(save_assumptions, layouts.to_toml().encode())
        typer.echo(f"what is assumed is in {save_assumptions}: check it", err=as_json)
        if output is None:
            return
    layouts.confirmed()
    if output is None:
        raise ArgumentError("output must be a folder, got none")
    limit = optional_number(time_limit, "time_limit")
    quiet = quiet or as_json
    with warnings_as_lines(), progress(quiet=quiet, title="attack", unit="steps") as advance:
        found = write_attack(
            layouts, output, seed=seed, time_limit=limit, proofs=proofs, progress=advance
        )
    print_answer(found, ["", *found["sentences"], f"report: {found['report']}"], as_json=as_json)
