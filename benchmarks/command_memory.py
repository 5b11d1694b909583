"""Peak memory of every command that works by place, on nations of 1, 4 and 16 times as many parts.

Run it by itself; it makes the table of the documentation::

    python benchmarks/command_memory.py --to docs/explanation/attacks/command-memory.csv

Each command runs in a process of its own, with one worker, which is what a worker holds.
"""

import argparse
import csv
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
from command_memory import BLOCKS, COMMANDS, peaks


def main():
    found = {}
    with tempfile.TemporaryDirectory(dir=ARGUMENTS.folder) as folder:
        for times in ARGUMENTS.times:
            counties = times * ARGUMENTS.counties
            for name, megabytes in peaks(Path(folder) / str(times), counties):
                found[name, times] = megabytes
                print(f"{name}, {counties} counties: {megabytes:.0f} MB", flush=True)
    heads = [f"{BLOCKS * ARGUMENTS.counties * times:,} blocks" for times in ARGUMENTS.times]
    rows = [
        [f"`{name}`", *(f"{found[name, times]:.0f}" for times in ARGUMENTS.times)]
        for name in COMMANDS
    ]
    if ARGUMENTS.to:
        with ARGUMENTS.to.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([["command, MB", *heads], *rows])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--counties", type=int, default=9, help="of the smallest nation")
    parser.add_argument("--times", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--folder", default=tempfile.gettempdir(), help="where data are made")
    parser.add_argument("--to", type=Path, help="the table, as a file")
    ARGUMENTS = parser.parse_args()
    main()
