"""Hostile calls of the public callables: a result, or an error of the package, and in time.

    python tests/fuzz/calls.py --count 50000 --seed 1

Every call changes one or two arguments of a call that works to a hostile value.  Calls run in a
child process, so that a crash of the interpreter or a call that cannot be interrupted is a finding
and not the end.  A finding is reproduced by its seed and number.
"""

import argparse
import faulthandler
import inspect
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
HANG = 10  # seconds of processor time that a call may take: other work on the machine is no hang
DEAD = 120  # seconds after which a call that ignores its alarm is ended with its process
MEMORY = 6 * 2**30


#: What is as it should be: call, argument and kind of the finding, and why.
OTHERWISE = {
    ("Histogram", "geoids", "unnamed"): "counts, which is named, has a row for each",
    **{
        (name, "progress", "raw"): "what the caller's function raises is the caller's"
        for name in (
            "compare_mechanisms",
            "mechanism_risk",
            "run",
            "simulated_likelihood",
            "write_reidentification",
        )
    },
    ("compare_with_truth", "sources", "unnamed"): "baseline_from, which is named, is to be in them",
    ("reidentify", "sources", "unnamed"): "baseline_from, which is named, is to be in them",
    ("compare_mechanisms", "mechanisms", "unnamed"): "one of them, and what it is, is named",
    **{
        (f"DiscreteGaussian.{method}", argument, "nan"): "as in SciPy: what is no number stays so"
        for method, argument in (
            *((name, "x") for name in ("pmf", "logpmf", "cdf", "sf", "logcdf", "logsf")),
            *((name, "q") for name in ("ppf", "isf")),
        )
    },
    (
        "simulated_likelihood",
        "simulate",
        "raw",
    ): "what the caller's function raises is the caller's",
}


#: Call, argument and value of findings that are the caller's: what its own iterator, or a class
#: that is called as a function of its, raises, goes through as it is.
CALLERS = {
    ("write_ppmf", "records", "raises"),
    ("write_record_form", "records", "raises"),
    ("write_ipums_1940", "records", "raises"),
    ("sample_tree", "leaf_prior", "type"),
}


class Late(BaseException):
    """The alarm: no code catches it by mistake."""


def _alarm(number: int, frame: Any) -> None:
    raise Late


def child(seed: int, begin: int, end: int, only: str | None) -> None:
    """Make the calls begin..end-1: a line of JSON before each, and one for each finding."""
    import numpy as np
    from fuzz.hostile import VALUES
    from fuzz.recipes import recipes
    from writing_cases import quick_figures

    from bayesrisk import BayesRiskError
    from bayesrisk.experiments.runs import executors
    from bayesrisk.mechanisms import registry as mechanisms
    from bayesrisk.reconstruction import registry as attacks
    from bayesrisk.reconstruction.solvers import registry as solvers

    registries = (attacks.REGISTRY, executors.REGISTRY, mechanisms.REGISTRY, solvers.REGISTRY)
    faulthandler.enable(sys.stderr)
    every = [r for r in recipes() if only is None or r.name == only]
    names = sorted(VALUES)
    signal.signal(signal.SIGPROF, _alarm)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    out = os.fdopen(os.dup(1), "w", buffering=1)
    sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  # what calls print
    work = Path(tempfile.mkdtemp(prefix="fuzz-calls-"))
    os.chdir(work)
    warnings.simplefilter("ignore")
    for number in range(begin, end):
        rng = np.random.default_rng([seed, number])
        recipe = every[int(rng.integers(len(every)))]
        parameters = [
            n
            for n, p in inspect.signature(recipe.function).parameters.items()
            if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        ]
        if not parameters:
            continue
        chosen = rng.choice(
            parameters, size=min(len(parameters), 1 + int(rng.random() < 0.1)), replace=False
        )
        values = {str(p): names[int(rng.integers(len(names)))] for p in chosen}
        out.write(json.dumps({"at": number, "call": recipe.name, "values": values}) + "\n")
        found = None
        began = time.monotonic()
        signal.setitimer(signal.ITIMER_PROF, HANG)
        try:
            given = {p: VALUES[v]() for p, v in values.items()}
            with quick_figures():
                result = recipe.call(given)
            if inspect.isgenerator(result):
                next(result, None)
            elif _is_nan(result):
                found = {"kind": "nan", "detail": repr(result)[:200]}
        except BayesRiskError as error:
            text = str(error)
            if not any(p in text or _is_called(v, text) for p, v in given.items()):
                found = {"kind": "unnamed", "detail": text[:200]}
        except Late:
            found = {"kind": "hang", "detail": f"> {HANG} s"}
        except MemoryError:
            found = {"kind": "memory", "detail": _place(sys.exc_info()[2])}
        except BaseException as error:
            detail = f"{type(error).__name__} at {_place(error.__traceback__)}: {str(error)[:150]}"
            found = {"kind": "raw", "detail": detail}
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            for registry in registries:  # what a call registers is not there for the next one
                registry._registered.clear()
        sound = found and all(
            (recipe.name, p, found["kind"]) in OTHERWISE or (recipe.name, p, v) in CALLERS
            for p, v in values.items()
        )
        if found is not None and not sound:
            spent = round(time.monotonic() - began, 2)
            out.write(json.dumps({"number": number, "seconds": spent} | found) + "\n")
        _clear(work)


def _is_nan(value: Any) -> bool:
    """Whether a number or an array of them holds what is no number."""
    import numpy as np

    return (
        isinstance(value, float | np.ndarray)
        and np.asarray(value).dtype.kind == "f"
        and bool(np.isnan(value).any())
    )


def _is_called(value: Any, text: str) -> bool:
    """Whether a message begins with a name that was given: of a file, or of an item by name."""
    names = [value] if isinstance(value, str) else value if isinstance(value, Mapping) else ()
    return any(text.startswith((f"{name}: ", f"{name} ", f"{name}/", f"{name}.")) for name in names)


def _clear(folder: Path) -> None:
    """Every call finds an empty folder."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def _place(trace: Any) -> str:
    """Return the innermost place in the package."""
    frames = [f for f in traceback.extract_tb(trace) if "/bayesrisk/" in f.filename]
    if not frames:
        return "?"
    last = frames[-1]
    return f"{last.filename.rpartition('/bayesrisk/')[2]}:{last.lineno}"


def run(count: int, seed: int, only: str | None = None, begin: int = 0) -> Iterator[dict[str, Any]]:
    """Make the calls, starting the child again after each crash or hang; yield the findings."""
    end = begin + count
    told = begin // 1000
    while begin < end:
        command = [sys.executable, __file__, "--child", str(seed), str(begin), str(end)]
        process = subprocess.Popen(
            [*command, *([only] if only else [])],
            stdout=subprocess.PIPE,
            text=True,
            stderr=subprocess.DEVNULL,
        )
        at: dict[str, Any] = {"at": begin, "call": "start", "values": {}}
        beat = [time.monotonic() + 900.0]  # kernels may have to be compiled

        def watch(process: Any = process, beat: list[float] = beat) -> None:
            while process.poll() is None:
                if time.monotonic() - beat[0] > DEAD:
                    process.kill()
                time.sleep(0.5)

        threading.Thread(target=watch, daemon=True).start()
        assert process.stdout is not None
        for line in process.stdout:
            row = json.loads(line)
            beat[0] = time.monotonic()
            if "at" in row:
                at = row
                if at["at"] // 1000 > told:  # a run that is ended early says how far it came
                    told = at["at"] // 1000
                    print(f"call {told * 1000} of {end}", file=sys.stderr, flush=True)  # noqa: T201
            else:
                yield at | row
        process.stdout.close()
        status = process.wait()
        if status == 0:
            break
        if at["call"] == "start":
            raise RuntimeError(f"the child did not start: status {status}")
        kind = "frozen" if status == -signal.SIGKILL else "crash"
        yield at | {"kind": kind, "detail": f"status {status}", "number": at["at"]}
        begin = at["at"] + 1


def main() -> None:
    """Print the findings by place, and fail if there is one that is not only badly worded."""
    if sys.argv[1:2] == ["--child"]:
        seed, begin, end = map(int, sys.argv[2:5])
        child(seed, begin, end, sys.argv[5] if len(sys.argv) > 5 else None)
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=50_000)
    parser.add_argument("--begin", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    findings = []
    for found in run(given.count, given.seed, given.only, given.begin):
        findings.append(found)
        if given.json:  # as they come: a long run may be ended before its end
            with given.json.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(found) + "\n")
    kinds = Counter(row["kind"] for row in findings)
    for (kind, place), times in Counter(
        (row["kind"], row["detail"].partition(": ")[0] if row["kind"] == "raw" else row["call"])
        for row in findings
    ).most_common():
        row = next(
            r
            for r in findings
            if r["kind"] == kind and (r["detail"].startswith(place) or r["call"] == place)
        )
        about = f"{row['call']}{row['values']}: {row['detail'][:120]}"
        print(f"{times:6} {kind:8} {place:60} {about}".encode(errors="replace").decode())  # noqa: T201
    print(f"seed {given.seed}, {given.count} calls: {dict(kinds) or 'no finding'}")  # noqa: T201
    sys.exit(1 if set(kinds) - {"unnamed"} else 0)


if __name__ == "__main__":
    main()
