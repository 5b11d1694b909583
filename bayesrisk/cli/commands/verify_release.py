"""``bayesrisk verify-release``: what a release is, in words, and whether its folder is whole."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bayesrisk import _files
from bayesrisk._files.parse import shown
from bayesrisk.cli.options import JsonOption, QuietOption
from bayesrisk.cli.output import print_json, progress, rows_done
from bayesrisk.exceptions import ArgumentError

if TYPE_CHECKING:
    from bayesrisk.release import Likelihood, Release

_PLACES = {
    "public": "from a public list, the same whoever lives where",
    "occupied": "those with a record, a fact about the records",
    None: "where the list comes from is not said",
}


def verify_release(
    folder: Annotated[Path, typer.Argument(help="Folder of a release, whole or by place.")],
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Check that a release is whole, and say what it publishes exactly and what is random.

    Every file must be the one that the description of the release names; else the status is 3, and
    the message names the file.
    """
    if not folder.is_dir():
        raise ArgumentError(f"no such folder: {folder}")
    title, unit = "verify-release", "parts"
    with progress(quiet=quiet or as_json, title=title, unit=unit, patient=True) as advance:
        about = _about(folder, rows_done(advance))
    if as_json:
        print_json(about)
        return
    typer.echo(f"{folder} is whole: a release by {about['mechanism']}, {about['parameters']}")
    if about["simulation"]:
        typer.echo("It is a simulation: whoever guesses the seed takes the protection off")
    elif about["random"]:
        typer.echo("What is random came from entropy of the operating system, kept nowhere")
    else:
        typer.echo("Nothing in it is random: the same records would give the same release")
    for name, value in about["diagnostics"].items():
        typer.echo(f"  {name.replace('_', ' ')} {value:.6g}")
    places = ", ".join(f"{count} at {level}" for level, count in about["places"].items())
    typer.echo("Published exactly:")
    typer.echo(f"  the list of places ({places}): {_PLACES[about['list_of_places']]}")
    alike: dict[tuple[bool, str, str], list[Any]] = {}
    for part in about["tables"]:
        alike.setdefault((not part["exact"], part["level"], part["is"]), []).append(part)
    # Tables that are exact come first; those of one level and one law share a line.
    inexact = False
    for (not_exact, level, law), tables in sorted(alike.items(), key=lambda item: item[0][0]):
        if not_exact and not inexact:
            typer.echo("Not exactly:")
            inexact = True
        names = ", ".join(part["table"] for part in tables)
        typer.echo(f"  {level} {names} ({sum(part['cells'] for part in tables)} counts): {law}")
    for name in about["other_files"]:
        typer.echo(f"Not part of the release: {name}", err=True)


def _about(folder: Path, done: Callable[[int], None]) -> dict[str, Any]:
    """Return what a release says of itself and what it holds, every file checked."""
    from bayesrisk.release import MechanismSpec, ReleaseIndex

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
        done(1)
    if ReleaseIndex.there(folder):
        said = ReleaseIndex.read(folder).document
        spec = MechanismSpec.from_dict(said["spec"])
        simulation, diagnostics = said["simulation"], said["diagnostics"]
    given = (f"{name} {shown(value)}" for name, value in spec.parameters.items())
    return {
        "folder": str(folder),
        "mechanism": spec.mechanism,
        "parameters": ", ".join(given) or "no parameters",
        "simulation": simulation,
        "random": any(map(_is_random, laws.values())),
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
                "is": _words(law, withheld[key]),
            }
            for key, law in laws.items()
        ],
        "other_files": _others(folder),
    }


def _parts(folder: Path) -> Iterator["Release"]:
    """Yield the release, or its parts one after the other where it is by place."""
    from bayesrisk.release import Release, ReleaseIndex

    if not ReleaseIndex.there(folder):
        yield Release.read(folder)
        return
    index = ReleaseIndex.read(folder)
    for name in index.releases:
        yield Release.read(index.checked(name))


def _is_random(law: "Likelihood") -> bool:
    """Return whether the same records may give another release under a law."""
    from bayesrisk.release import NoiseSpec, RoundingSpec, SimulationOnly

    if isinstance(law, RoundingSpec):
        return law.method == "random"
    return isinstance(law, NoiseSpec | SimulationOnly)


def _words(law: "Likelihood", withheld: int) -> str:
    """Return what a published count says of the true one."""
    from bayesrisk.release import NoiseSpec, RoundingSpec, SimulationOnly, SuppressedCounts

    if isinstance(law, NoiseSpec):
        scale = "sigma^2" if law.law == "discrete-gaussian" else "scale"
        name = "discrete Gaussian" if scale == "sigma^2" else "discrete Laplace"
        return f"the true count plus {name} noise of {scale} {float(law.scale):.6g} in every cell"
    if isinstance(law, RoundingSpec):
        how = "at random, up or down" if law.method == "random" else "the nearest, halves up"
        return f"the true count rounded to a multiple of {law.base}, {how}"
    if isinstance(law, SuppressedCounts):
        return f"true counts, but {withheld} are withheld; which ones, depends on the records"
    if isinstance(law, SimulationOnly):
        return "a law without closed form, known by running the mechanism"
    return "true counts"


def _others(folder: Path) -> list[str]:
    """Return the names of files that a release has no place for."""
    from bayesrisk.release import RELEASE_FILE
    from bayesrisk.tables.exchange.layout import GEOGRAPHIES, MANIFEST, is_part
    from bayesrisk.tables.exchange.partitions import INDEX, PARTITIONS

    own = {RELEASE_FILE, GEOGRAPHIES, MANIFEST, INDEX, PARTITIONS}
    parts = {path for path in folder.iterdir() if path.is_dir() and path.name.startswith("part-")}
    return [
        path.relative_to(folder).as_posix()
        for path in sorted(folder.rglob("*"))
        if path not in parts
        and not (path.name in own or is_part(path.name) or _files.is_leftover(path.name))
    ]
