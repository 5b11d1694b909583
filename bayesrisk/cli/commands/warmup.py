"""``bayesrisk warmup``: compile all kernels ahead."""

import time

import typer

from bayesrisk.cli.options import JsonOption, QuietOption
from bayesrisk.cli.output import print_json, progress, steps_done, warnings_as_lines


def warmup(as_json: JsonOption = False, quiet: QuietOption = False) -> None:
    """Compile all kernels ahead, so that no later command waits; once for an installation."""
    from bayesrisk import _numba
    from bayesrisk.cli.examples import EXAMPLES

    clock, start = time.perf_counter(), time.time_ns()
    with warnings_as_lines(), progress(quiet=quiet or as_json, title="warmup", unit="groups") as go:
        step = steps_done(go, len(EXAMPLES))
        for call in EXAMPLES.values():
            call()
            step()
            if _numba.cache_folder() is None:
                break  # the rest would be compiled in vain
    folder, compiled = _numba.cache_folder(), _numba.compiled_since(start)
    summary = {
        "kernels": len(_numba.DECLARED),
        "compiled": compiled,
        "seconds": round(time.perf_counter() - clock, 1),
        "folder": folder,
    }
    if as_json:
        print_json(summary)
    elif folder is None:
        typer.echo("nothing was compiled ahead: compiled kernels cannot be kept")
    elif compiled:
        typer.echo(
            f"{compiled} versions of {summary['kernels']} kernels compiled in "
            f"{summary['seconds']} s, kept in {folder}"
        )
    else:
        typer.echo(f"nothing was left to compile: {summary['kernels']} kernels, kept in {folder}")
