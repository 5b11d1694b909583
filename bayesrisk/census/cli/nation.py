"""``bayesrisk census nation``: attacks on exact and coarsened tables of a made-up nation."""

from pathlib import Path
from typing import Annotated

import typer

from bayesrisk.cli.command import renamed
from bayesrisk.cli.options import RunOptions, SeedOption, parse_number


def nation(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder, or a URL such as s3://bucket/run.")
    ],
    seed: SeedOption,
    runner: RunOptions,
    scale: Annotated[str, "Share of the 11,078,297 blocks of 2010."] = "1",
    every: Annotated[int, "Attack every so many counties."] = 1,
    protection: Annotated[
        list[str] | None, "Rule that is tried, as in release; repeat [four of agencies]."
    ] = None,
    share: Annotated[str, "Share of the blocks that each rule is tried on."] = "0.2",
    claims: Annotated[int, "Blocks of each county in which claims are looked for."] = 1,
) -> None:
    """Attack tables of a made-up nation, county by county."""
    from bayesrisk.census.population.nation import Nation
    from bayesrisk.census.studies.nation_attack import RULES, NationAttackStudy

    with renamed({"scale": "--scale"}):
        population = Nation.scaled(parse_number(scale, "--scale"))
    study = NationAttackStudy(
        population,
        seed,
        every=every,
        rules=tuple(protection or RULES),
        share=parse_number(share, "--share"),
        claims=claims,
    )
    summary = runner.run(study, output, "nation")
    runner.show(summary, summary.facts.get("brief", []), [f"tables: {summary.folder}"])
