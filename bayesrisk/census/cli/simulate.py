"""``bayesrisk census simulate``: a synthetic population, beside the nation's figures."""

import dataclasses
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

import bayesrisk as br
from bayesrisk._base import disk
from bayesrisk.cli.command import renamed
from bayesrisk.cli.options import RunOptions, SeedOption, parse_number
from bayesrisk.cli.printing import MADE_UP, counter, print_answer, progress, shard_lines
from bayesrisk.exceptions import ArgumentError, OutputError, quote

if TYPE_CHECKING:
    from bayesrisk.census.population.summary import PopulationSummary

#: Settings that ``--set`` changes; ``--blocks`` gives n_blocks, too.
_CHANGED = (
    "subsidised_blocks, subsidised_share, bedroom_mixing, alpha, occupied_blocks, "
    "quarters_blocks, tract_mixing, block_mixing, block_mixing_growth, household_homogeneity, "
    "tenure_correlation, n_blocks, blocks_per_group, groups_per_tract, tracts_per_county or state"
)


def _settings(preset: str, blocks: int | None, changes: list[str]) -> "br.census.PopulationSpec":
    """Return the named settings, changed by texts NAME=VALUE."""
    from bayesrisk._base import validation as check

    kinds = get_type_hints(br.census.PopulationSpec)
    settings: dict[str, Any] = {} if blocks is None else {"n_blocks": blocks}
    for text in changes:
        name, _, value = text.partition("=")
        if name not in kinds:
            advice = check.did_you_mean(name, kinds) or f"; there are {', '.join(kinds)}"
            raise ArgumentError(f"--set: unknown setting {quote(name)}{advice}")
        settings[name] = value if kinds[name] is str else parse_number(value, f"--set {name}")
    option_names = {"name": "--preset", "n_blocks": "--blocks"}
    changed = (text.partition("=")[0] for text in changes)
    option_names |= {name: f"--set {name}" for name in changed}
    with renamed(option_names):
        return br.census.population_spec(preset, **settings)


def _lines(summary: "PopulationSummary") -> list[str]:
    """Return the summary as lines of text, with the nation's figures in brackets."""
    frame = summary.to_frame()
    names = [c for c in frame if f"published_{c}" in frame]
    lines = [
        "By block population, in per cent (in brackets: United States 2010, published):",
        "  " + "".join(str(c).rjust(16) for c in ["population", *names]),
    ]
    for row in frame.to_dict(orient="records"):
        shares = [
            "-" if math.isnan(row[name]) else f"{row[name]:.1f}" for name in names
        ]  # no share of nobody
        cells = [
            f"{share} ({row[f'published_{name}']:.1f})"
            for share, name in zip(shares, names, strict=True)
        ]
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
    """Return the summary as JSON, with null for unknown figures."""

    def plain(value: object) -> object:
        return None if isinstance(value, float) and math.isnan(value) else value

    values = dataclasses.asdict(summary)
    arrays = {n: [plain(v) for v in a.tolist()] for n, a in values.items() if hasattr(a, "tolist")}
    return {"folder": str(folder), **{n: plain(v) for n, v in values.items()}, **arrays}


def simulate(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the microdata.")],
    seed: SeedOption,
    runner: RunOptions,
    preset: Annotated[str, "tract, county or state."] = "county",
    blocks: Annotated[int | None, "Blocks, instead of the preset's."] = None,
    changes: Annotated[
        list[str] | None, typer.Option("--set", help=f"NAME=VALUE: one of {_CHANGED}.")
    ] = None,
    nation: Annotated[bool, "A nation by county, each drawn by itself."] = False,
    scale: Annotated[
        str | None, "With --nation: share of the 11,078,297 blocks of 2010 [1]."
    ] = None,
    years: Annotated[
        int | None, "Also the same people so many years later: folders first and later."
    ] = None,
    change: Annotated[
        list[str] | None, "With --years, NAME=RATE: share for whom another value is recorded."
    ] = None,
    replace: Annotated[bool, "Replace microdata that the folder holds."] = False,
) -> None:
    """Make a synthetic population: persons, households and blocks."""
    settings = _settings(preset, blocks, changes or [])
    if change and years is None:
        raise ArgumentError("--change goes with --years")
    if nation or years is not None:
        other = "--nation" if nation else "--years"
        alone = ("--years", years), ("--blocks", blocks)
        for option, value in (*(alone if nation else ()), ("--replace", replace or None)):
            if value is not None:
                raise ArgumentError(f"{option} does not go with {other}")
    if nation:
        _nation(output, settings, seed, scale, runner)
        return
    if scale is not None:
        raise ArgumentError("--scale goes with --nation")
    runner.refuse("goes with --nation, which is drawn county by county")
    law = None if years is None else _law(years, change or [])
    _population(output, settings, seed, runner, replace=replace, law=law)


def _law(years: int, changes: list[str]) -> "br.tables.PopulationChange":
    """Return the stylised law of change, with rates given as texts NAME=RATE."""
    with renamed({"years": "--years"}):
        law = br.census.stylised_change(years)
    parts = [text.partition("=") for text in changes]
    for name, equals, _ in parts:
        if not equals or name not in law.schema.names:
            attributes = ", ".join(n for n in law.schema.names if n != law.age)
            raise ArgumentError(f"--change must be NAME=RATE of {attributes}, got {quote(name)}")
    option_names = {"changes": "--change"}
    option_names |= {f"changes[{n!r}]": f"--change {n}" for n, _, _ in parts}
    with renamed(option_names):
        rates = {name: parse_number(rate, f"--change {name}") for name, _, rate in parts}
        return dataclasses.replace(law, changes=rates)


def _nation(
    output: Path,
    settings: "br.census.PopulationSpec",
    seed: int,
    scale: str | None,
    runner: RunOptions,
) -> None:
    """Make a nation county by county, as a run in shards."""
    from bayesrisk.census.population.nation import Nation
    from bayesrisk.census.studies.nation_attack import NationStudy

    with renamed({"scale": "--scale"}):
        nation = Nation.scaled(1.0 if scale is None else parse_number(scale, "--scale"), settings)
    summary = runner.run(NationStudy(nation, seed), output, "simulate")
    run = {k: v for k, v in summary.to_dict().items() if k != "population"}
    figures, lines = {}, list(shard_lines(summary))
    if summary.population is not None:
        figures, lines = _document(summary.population, output), _lines(summary.population) + lines
    print_answer({**figures, **run}, lines, as_json=runner.as_json)


def _population(
    output: Path,
    settings: "br.census.PopulationSpec",
    seed: int,
    runner: RunOptions,
    *,
    replace: bool,
    law: "br.tables.PopulationChange | None",
) -> None:
    """Make a population in one piece, and optionally its later state by a law of change."""
    from numpy.random import SeedSequence

    with disk.explained(output):
        occupied = output.is_dir() and any(output.glob("*.parquet"))
    if occupied and not replace:
        raise OutputError(
            f"{output}: holds microdata; add --replace to make them again, or choose another "
            "folder; nothing was changed"
        )
    hidden = runner.quiet or runner.as_json
    with progress(quiet=hidden, title="simulate", unit="steps", patient=True) as advance:
        count_step = counter(advance, 3)
        population = br.simulate_population(settings, rng=seed)
        persons = population.persons
        if persons is None or len(persons) == 0:
            raise ArgumentError("nobody lives in any of the blocks: give more blocks")
        count_step()
        if law is None:
            population.write(output)
        else:
            later = br.census.simulate_later(persons, law, rng=SeedSequence([seed, law.years]))
            with disk.whole_folder(output, disk.new_folder) as folder:
                population.write(folder / "first")
                aged = dataclasses.replace(population, persons=later, households=None)
                aged.write(folder / "later")
        count_step()
        summary = br.census.population_summary(population)
        count_step()
    document, lines = _document(summary, output) | {MADE_UP: True}, _lines(summary)
    if law is not None:
        survivors = int(later.to_frame()["person"].isin(persons.to_frame()["person"]).sum())
        document |= {"later": len(later), "both": survivors}
        lines.append(f"{law.years} years later: {len(later)} people, {survivors} of them the same")
    print_answer(document, [*lines, f"microdata: {output}"], as_json=runner.as_json)
