"""Read damaged files, and tell what came of each that is not a result or an error of our own.

    python -m fuzz.files --seed 1 --count 2000      (with PYTHONPATH=.:tests)
    python -m fuzz.files --seed 1 --only 1234       again, with the trace; --keep FILE leaves it

Case ``i`` of a seed is the same on every machine.  What is found is printed as lines of JSON.
"""

import argparse
import json
import sys
import time
import traceback
import warnings
from pathlib import Path

import numpy as np
from fuzz.file_kinds import KINDS
from fuzz.memory import quick_folder
from fuzz.mutations import damaged

from bayesrisk.exceptions import BayesRiskError, BayesRiskWarning

SECONDS = 10
KILOBYTES = 500_000


def _kilobytes(field):
    with Path("/proc/self/status").open(encoding="ascii") as status:
        return int(next(line for line in status if line.startswith(field)).split()[1])


def _forget_peak():
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


class Bench:
    """Examples in a folder, each made once and mended after it was damaged."""

    def __init__(self, folder):
        self.folder = folder
        self.examples = {}

    def example(self, kind):
        if kind not in self.examples:
            place = self.folder / kind
            place.mkdir()
            made = KINDS[kind](place)
            made.read()  # what is compiled or looked up once does not count
            self.examples[kind] = made, {file: file.read_bytes() for file in made.files}
        return self.examples[kind]

    def run(self, seed, case, *, keep=None):
        """Return what is wrong with the answer to a case, or None; and its kind and file."""
        rng = np.random.default_rng([seed, case])
        kind = list(KINDS)[int(rng.integers(len(KINDS)))]
        made, sound = self.example(kind)
        file = made.files[int(rng.integers(len(made.files)))]
        data, how = damaged(rng, file.name, sound[file])
        if keep:
            Path(keep).write_bytes(data)
        file.write_bytes(data)
        try:
            wrong = self._answer(made.read, file)
        finally:
            file.write_bytes(sound[file])
        return wrong, {"case": case, "kind": kind, "file": file.name, "how": how}

    def _answer(self, read, file):
        _forget_peak()
        before, start = _kilobytes("VmRSS"), time.process_time()
        wrong = None
        try:
            read()
        except BayesRiskError as error:
            # One file may ask for what another one beside it does not have.
            places = (*(p.name for p in file.parents[:4]), *(p.name for p in file.parent.iterdir()))
            if not any(name in str(error) for name in places):
                wrong = f"{type(error).__name__} names no file: {str(error)[:300]}"
        except Exception as error:
            frame = [
                f for f in traceback.extract_tb(error.__traceback__) if "bayesrisk" in f.filename
            ]
            place = f"{Path(frame[-1].filename).name}:{frame[-1].lineno}" if frame else "?"
            wrong = f"{type(error).__name__} at {place}: {str(error)[:200]}"
            self.last = error
        seconds, grown = time.process_time() - start, _kilobytes("VmHWM") - before
        if wrong is None and seconds > SECONDS:
            wrong = f"took {seconds:.1f} s"
        if wrong is None and grown > KILOBYTES:
            wrong = f"took {grown // 1000} MB"
        return wrong


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--only", type=int)
    parser.add_argument("--keep")
    given = parser.parse_args(arguments)
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", BayesRiskWarning)
    with quick_folder() as folder:
        bench = Bench(folder)
        only = given.only is not None
        last = given.only + 1 if only else given.first + given.count
        for case in range(given.only if only else given.first, last):
            # Were the interpreter itself to fall, the last line is the case.
            print(f"case {case}", file=sys.stderr, flush=True)  # noqa: T201
            wrong, about = bench.run(given.seed, case, keep=given.keep)
            if wrong:
                print(json.dumps({"seed": given.seed, **about, "wrong": wrong}), flush=True)  # noqa: T201
                if only and hasattr(bench, "last"):
                    traceback.print_exception(bench.last)
    return 0


if __name__ == "__main__":
    sys.exit(main())
