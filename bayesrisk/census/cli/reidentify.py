"""``bayesrisk reidentify``: reconstructed records against files of known persons."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from bayesrisk.cli.data import MICRODATA, data_path
from bayesrisk.cli.options import DialectOption, FragmentOption, JsonOption, QuietOption, SeedOption
from bayesrisk.cli.printing import print_answer, progress, write_fragment
from bayesrisk.exceptions import ArgumentError


def reidentify(
    folder: Annotated[Path, typer.Argument(help="Folder of a finished reconstruction.")],
    attacker: Annotated[
        list[Path],
        "Known persons: block, sex, age, person; a file, a folder of microdata by place, "
        "or sample:NAME. May be repeated.",
    ],
    truth: Annotated[
        Path,
        "Confidential records: block, sex, age, race, hisp, person; a file, a folder of "
        "microdata by place, or sample:NAME.",
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="New or empty folder.")],
    dialect: DialectOption = None,
    truth_dialect: Annotated[str | None, "That of --truth, if it has another."] = None,
    seed: SeedOption = 0,
    fragment: FragmentOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Link records to known persons, confirm the links, and compare with guessing."""
    from bayesrisk.census.studies.reidentification import write_reidentification

    paths = [data_path(file, MICRODATA, "persons.parquet") for file in attacker]
    # A sample is called by its name: the file is persons.parquet in each.
    names = [
        str(file).removeprefix("sample:") if file != path else file.stem
        for file, path in zip(attacker, paths, strict=True)
    ]
    files = dict(zip(names, paths, strict=True))
    truth = data_path(truth, MICRODATA, "persons.parquet")
    if len(files) < len(attacker):
        raise ArgumentError(f"attacker files must have different names, got {sorted(files)}")
    with progress(quiet=quiet or as_json, title="reidentify", unit="steps") as advance:
        result = write_reidentification(
            folder,
            output,
            attackers=files,
            truth=truth,
            dialect=dialect,
            truth_dialect=truth_dialect,
            seed=seed,
            progress=advance,
        )
        if fragment:
            write_fragment(result.report)
    lines = [*map(_line, result.rates.to_dict(orient="records")), f"report: {result.report}"]
    print_answer(result.to_dict(), lines, as_json=as_json)


def _line(row: Mapping[Any, Any]) -> str:
    precision, ratio, published = (
        row[name] for name in ("precision", "left_out_ratio", "precision_ratio")
    )
    rate = f"precision {precision:.1%}" if math.isfinite(precision) else "no precision"
    comparison = (
        f", {ratio:.2f} times a guesser's without their own records" if math.isfinite(ratio) else ""
    )
    comparison += (
        f", {published:.2f} times the published guesser's" if math.isfinite(published) else ""
    )
    return (
        f"{row['attacker']}, {row['source']}: {row['confirmed']} confirmed of {row['putative']} "
        f"putative of {row['attacker_records']} persons: {rate}{comparison}"
    )
