"""``bayesrisk attack --only links``: reconstructed records against files of known persons."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bayesrisk.cli.attacks import LinkOptions
from bayesrisk.cli.data import MICRODATA, data_path
from bayesrisk.cli.options import RunOptions
from bayesrisk.cli.printing import print_answer, progress
from bayesrisk.exceptions import ArgumentError


def links(
    folders: Sequence[Path], output: Path, options: LinkOptions, seed: int, runner: RunOptions
) -> None:
    """Link records to known persons, confirm the links, and compare with guessing."""
    from bayesrisk.census.studies.reidentification import write_reidentification

    runner.refuse("does not go with --only links")
    adversary, truth_file = options.adversary or [], options.truth
    if not adversary or truth_file is None:
        missing = ["--adversary FILE"] * (not adversary) + ["--truth FILE"] * (truth_file is None)
        raise ArgumentError(f"--only links needs {' and '.join(missing)}")
    paths = [data_path(file, MICRODATA, "persons.parquet") for file in adversary]
    # A sample is called by its name: the file is persons.parquet in each.
    names = [
        str(file).removeprefix("sample:") if file != path else file.stem
        for file, path in zip(adversary, paths, strict=True)
    ]
    files = dict(zip(names, paths, strict=True))
    truth = data_path(truth_file, MICRODATA, "persons.parquet")
    if len(folders) != 1 or not folders[0].is_dir():
        rule = "links must be given one folder of reconstructed records"
        advice = ": `bayesrisk attack TABLES --only records -o OUT` writes one"
        raise ArgumentError("--only", rule, got=[str(one) for one in folders], advice=advice)
    if len(files) < len(adversary):
        raise ArgumentError(f"--adversary: files must have different names, got {sorted(files)}")
    with progress(quiet=runner.quiet or runner.as_json, title="links", unit="steps") as advance:
        result = write_reidentification(
            folders[0],
            output,
            attackers=files,
            truth=truth,
            dialect=options.dialect,
            truth_dialect=options.truth_dialect,
            seed=seed,
            progress=advance,
        )
        runner.embed(result.report)
    lines = [*map(_line, result.rates.to_dict(orient="records")), f"report: {result.report}"]
    print_answer(result.to_dict(), lines, as_json=runner.as_json)


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
