"""``bayesrisk simulate``: a synthetic population in a folder, beside the nation's figures."""

import dataclasses
import math
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bayesrisk import _files
from bayesrisk._files.parse import shown
from bayesrisk.cli.options import RunOptions, SeedOption, called, number
from bayesrisk.cli.output import print_json, print_shards, progress, steps_done
from bayesrisk.exceptions import ArgumentError, OutputError

if TYPE_CHECKING:
    from bayesrisk.population import PopulationSpec, PopulationSummary


def _settings(preset: str, blocks: int | None, changes: list[str]) -> "PopulationSpec":
    """Return the settings named, with those changed that are given as NAME=VALUE."""
    from bayesrisk import _validation as check
    from bayesrisk.population import PopulationSpec, population_spec

    kinds = {f.name: f.type for f in dataclasses.fields(PopulationSpec)}
    given: dict[str, Any] = {} if blocks is None else {"n_blocks": blocks}
    for text in changes:
        name, equals, value = text.partition("=")
        if not equals:
            raise ArgumentError(f"--set must be NAME=VALUE, got {shown(text)}")
        if name not in kinds:
            advice = check.did_you_mean(name, kinds) or f"; there are {', '.join(kinds)}"
            raise ArgumentError(f"--set: unknown setting {shown(name)}{advice}")
        given[name] = value if kinds[name] is str else number(value, f"--set {name}")
    with ExitStack() as names:
        names.enter_context(called("name", "--preset"))
        for name in given:
            by_set = any(text.partition("=")[0] == name for text in changes)
            names.enter_context(called(name, f"--set {name}" if by_set else "--blocks"))
        return population_spec(preset, **given)


def _lines(summary: "PopulationSummary") -> list[str]:
    """Return the summary for people: each figure with the nation's in brackets."""
    frame = summary.to_frame()
    names = [c for c in frame if f"published_{c}" in frame]
    lines = [
        "By block population, in per cent (in brackets: United States 2010, published):",
        "  " + "".join(str(c).rjust(16) for c in ["population", *names]),
    ]
    for row in frame.to_dict(orient="records"):
        cells = [f"{row[name]:.1f} ({row[f'published_{name}']:.1f})" for name in names]
        lines.append("  " + "".join(text.rjust(16) for text in [row["population"], *cells]))
    rate = f"{100.0 * summary.violations / summary.subsidised:.1f}%" if summary.subsidised else "-"
    return [
        *lines,
        f"Blocks with people: {summary.blocks.sum()} of {summary.all_blocks}; "
        f"people: {summary.people.sum()}; in group quarters: {100 * summary.quarters:.1f}%; "
        f"people in an occupied unit: {summary.household_size:.2f}; "
        f"vacant units: {100 * summary.vacant:.1f}%",
        f"Subsidised households: {summary.subsidised}; over the occupancy limit: "
        f"{summary.violations} ({rate})",
    ]


def _document(summary: "PopulationSummary", folder: Path) -> dict[str, Any]:
    """Return the summary as JSON; what is not known is null."""

    def plain(value: Any) -> Any:
        return None if isinstance(value, float) and math.isnan(value) else value

    values = dataclasses.asdict(summary)
    arrays = {n: [plain(v) for v in a.tolist()] for n, a in values.items() if hasattr(a, "tolist")}
    return {"folder": str(folder), **{n: plain(v) for n, v in values.items()}, **arrays}


def simulate(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the microdata.")],
    seed: SeedOption,
    how: RunOptions,
    preset: Annotated[str, typer.Option(help="tract, county or state.")] = "county",
    blocks: Annotated[int | None, typer.Option(help="Blocks, instead of the preset's.")] = None,
    changes: Annotated[
        list[str] | None, typer.Option("--set", help="NAME=VALUE: a setting to change.")
    ] = None,
    nation: Annotated[
        bool, typer.Option("--nation", help="A nation by county, each drawn by itself.")
    ] = False,
    scale: Annotated[
        str | None,
        typer.Option(help="With --nation: share of the 11,078,297 blocks of 2010 [1]."),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace microdata that the folder holds.")
    ] = False,
) -> None:
    """Make a synthetic population: persons, households and blocks."""
    settings = _settings(preset, blocks, changes or [])
    if nation:
        for option, value in (("--blocks", blocks), ("--replace", replace or None)):
            if value is not None:
                raise ArgumentError(f"{option} does not go with --nation")
        _nation(output, settings, seed, scale, how)
        return
    if scale is not None:
        raise ArgumentError("--scale goes with --nation")
    how.refuse("goes with --nation, which is drawn county by county")
    _population(output, settings, seed, how, replace=replace)


def _nation(
    output: Path, settings: "PopulationSpec", seed: int, scale: str | None, how: RunOptions
) -> None:
    """Make a nation by county, as a run in shards."""
    from bayesrisk.experiments import NationStudy
    from bayesrisk.population import Nation

    with called("scale", "--scale"):
        nation = Nation.of_scale(1.0 if scale is None else number(scale, "--scale"), settings)
    done = how.run(NationStudy(nation, seed), output, "simulate")
    if how.as_json:
        run = {k: v for k, v in vars(done).items() if k != "population"}
        figures = {} if done.population is None else _document(done.population, output)
        print_json({**figures, **run})
        return
    if done.population is not None:
        typer.echo("\n".join(_lines(done.population)))
    print_shards(done)


def _population(
    output: Path, settings: "PopulationSpec", seed: int, how: RunOptions, *, replace: bool
) -> None:
    """Make a population in one piece."""
    from bayesrisk.population import population_summary, simulate_population

    with _files.explained(output):
        held = output.is_dir() and any(output.glob("*.parquet"))
    if held and not replace:
        raise OutputError(
            f"{output}: holds microdata; add --replace to make them again, or choose another "
            "folder; nothing was changed"
        )
    hidden = how.quiet or how.as_json
    with progress(quiet=hidden, title="simulate", unit="steps", patient=True) as advance:
        done = steps_done(advance, 3)
        population = simulate_population(settings, rng=seed)
        persons = population.persons
        if persons is None or len(persons) == 0:
            raise ArgumentError("nobody lives in any of the blocks: give more blocks")
        done()
        population.write(output)
        done()
        summary = population_summary(population)
        done()
    if how.as_json:
        print_json(_document(summary, output))
    else:
        typer.echo("\n".join([*_lines(summary), f"microdata: {output}"]))
