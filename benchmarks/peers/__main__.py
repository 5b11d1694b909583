"""Compare with other tools: ``python -m peers [--to FOLDER] [NAME ...]``.

Without names every comparison is made, and with ``--to`` the tables of the documentation are
written.
"""

import argparse
import contextlib
import tempfile
from pathlib import Path

from peers import budgets, certificates, files, matching, noise, posteriors, programs, protections
from peers.comparison import compare
from peers.report import line, write

ALL = [
    c
    for part in (noise, budgets, posteriors, programs, certificates, matching, protections, files)
    for c in part.ALL
]


def main() -> None:
    names = [c.name for c in ALL]
    parser = argparse.ArgumentParser(prog="peers", description="Compare with other tools.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(names))
    parser.add_argument("--to", type=Path, help="folder for the tables, of all comparisons")
    asked = parser.parse_args()
    if asked.to and asked.names:
        parser.error("--to takes all comparisons: give no names")
    unknown = [name for name in asked.names if name not in names]
    if unknown:
        parser.error(f"no comparison is called {unknown[0]!r}")
    to, results = asked.to and asked.to.resolve(), []
    # Some tools leave files where they run.
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for comparison in ALL:
            if not asked.names or comparison.name in asked.names:
                results.append(compare(comparison))
                print(line(results[-1]), flush=True)
        if to:
            write(results, to)


if __name__ == "__main__":
    main()
