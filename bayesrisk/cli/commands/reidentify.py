"""``bayesrisk reidentify``: reconstructed records against files of known persons."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from bayesrisk.cli.data import MICRODATA, data_path
from bayesrisk.cli.options import DialectOption, JsonOption, QuietOption, SeedOption
from bayesrisk.cli.output import print_json, progress
from bayesrisk.exceptions import ArgumentError


def reidentify(
    folder: Annotated[Path, typer.Argument(help="Folder of a finished reconstruction.")],
    attacker: Annotated[
        list[Path],
        typer.Option(
            help="Known persons: block, sex, age, person; a file, a folder of microdata by place, "
            "or sample:NAME. May be repeated."
        ),
    ],
    truth: Annotated[
        Path,
        typer.Option(
            help="Confidential records: block, sex, age, race, hisp, person; a file, a folder of "
            "microdata by place, or sample:NAME."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="New or empty folder.")],
    dialect: DialectOption = None,
    truth_dialect: Annotated[
        str | None, typer.Option(help="That of --truth, if it has another.")
    ] = None,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Link records to known persons, confirm the links, and compare with guessing."""
    from bayesrisk.experiments import write_reidentification

    known = [data_path(file, MICRODATA, "persons.parquet") for file in attacker]
    # A sample is called by its name: the file is persons.parquet in each.
    names = [
        str(file).removeprefix("sample:") if file != at else file.stem
        for file, at in zip(attacker, known, strict=True)
    ]
    files = dict(zip(names, known, strict=True))
    truth = data_path(truth, MICRODATA, "persons.parquet")
    if len(files) < len(attacker):
        raise ArgumentError(f"attacker files must have different names, got {sorted(files)}")
    with progress(quiet=quiet or as_json, title="reidentify", unit="steps") as advance:
        done = write_reidentification(
            folder,
            output,
            attackers=files,
            truth=truth,
            dialect=dialect,
            truth_dialect=truth_dialect,
            seed=seed,
            progress=advance,
        )
    if as_json:
        print_json(done.to_dict())
        return
    for row in done.rates.to_dict(orient="records"):
        typer.echo(_line(row))
    typer.echo(f"report: {done.report}")


def _line(row: Mapping[Any, Any]) -> str:
    precision, ratio, published = (
        row[name] for name in ("precision", "left_out_ratio", "precision_ratio")
    )
    rate = f"precision {precision:.1%}" if math.isfinite(precision) else "no precision"
    beside = (
        f", {ratio:.2f} times a guesser's without their own records" if math.isfinite(ratio) else ""
    )
    beside += f", {published:.2f} times the published guesser's" if math.isfinite(published) else ""
    return (
        f"{row['attacker']}, {row['source']}: {row['confirmed']} confirmed of {row['putative']} "
        f"putative of {row['attacker_records']} persons: {rate}{beside}"
    )
