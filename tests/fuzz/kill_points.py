"""Stop every command that writes at every change of a file, and look at what is left.

``python tests/fuzz/kill_points.py [COMMAND ...]``: some minutes for all of them.  The suite tries
some of the points (``tests/test_whole_or_as_before.py``).
"""

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from writing_cases import Case, commands, inputs


def main(names):
    """Try every point of some commands; return how many left something else."""
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        known = commands(inputs(Path(folder) / "inputs"))
        for name in names or known:
            case = Case(known[name], Path(folder) / name)
            found = []
            for point in range(case.points):
                try:
                    case.check(point)
                except AssertionError as error:
                    found.append((point, str(error).splitlines()[0]))
            print(  # noqa: T201
                f"{name}: {case.points} points, {len(found)} failures", *found[:3], flush=True
            )
            failures += len(found)
    return failures


if __name__ == "__main__":
    sys.exit(1 if main(sys.argv[1:]) else 0)
