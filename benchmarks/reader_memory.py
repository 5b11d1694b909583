"""Peak memory and speed of every reader on files of several sizes, each in a process of its own.

Run it by itself; files are made below ``--folder`` and deleted again::

    python benchmarks/reader_memory.py --megabytes 64 256 1024 --kinds hud-county nhgis

Beside each reader stands pyarrow alone, which parses the same bytes a piece at a time with one
thread and checks nothing; of the smallest size only.  Seconds are those of the processor.
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
from large_files import MAKERS, MORE, PREPARE, READ_MANY, WHOLE, bytes_of
from peak_memory import run_and_time

IMPORTS = """
from pathlib import Path
import pyarrow.csv
from pyarrow import parquet
"""
PARSE = """
place = Path(sys.argv[2])
files = sorted(f for f in place.rglob("*") if f.is_file()) if place.is_dir() else [place]
answer = 0
for file in files:
    if file.suffix == ".parquet":
        with parquet.ParquetFile(file) as held:
            answer += sum(b.num_rows for b in held.iter_batches(2**15, use_threads=False))
    elif file.suffix in (".csv", ".gz", ".pl", ".dhc", ".sf1"):
        if file.name == "vtgeo2010.sf1":
            continue  # of fixed width
        pieces = pyarrow.csv.open_csv(
            file,
            read_options=pyarrow.csv.ReadOptions(
                use_threads=False,
                autogenerate_column_names=file.suffix in (".pl", ".dhc", ".sf1"),
            ),
            parse_options=pyarrow.csv.ParseOptions(
                delimiter="|" if file.suffix in (".pl", ".dhc") else ","
            ),
        )
        answer += sum(piece.num_rows for piece in pieces)
"""
UNIT = 2**17
SHORT = {"hud-county": 2**13, "read_hud": 2**13, "hud-xlsx": 2**12}
MOST = {"hud-xlsx": 2**20 - 1}


def rows_for(make, kind, megabytes):
    """Return how many rows take so many megabytes, from a file of few."""
    few = SHORT.get(kind, UNIT)
    with tempfile.TemporaryDirectory(dir=ARGUMENTS.folder) as folder:
        size = bytes_of(make(Path(folder), few))
    rows = max(1, round(megabytes * 1e6 / size)) * few
    return min(rows, MOST.get(kind, rows))


def main():
    makers = {kind: make for kind, (make, _, _) in MAKERS.items()} | MORE | WHOLE
    print("| form | MB | rows | peak MB | rows a second | pyarrow: peak MB, rows a second |")
    print("|---|---|---|---|---|---|")
    for kind in ARGUMENTS.kinds or makers:
        for megabytes in ARGUMENTS.megabytes:
            rows = rows_for(makers[kind], kind, megabytes)
            with tempfile.TemporaryDirectory(dir=ARGUMENTS.folder) as folder:
                made = makers[kind](Path(folder), rows)
                size = bytes_of(made) / 1e6
                read, peak, seconds = run_and_time(PREPARE, READ_MANY, kind, made)
                if made.suffix in (".xlsx", ".zip") or megabytes != min(ARGUMENTS.megabytes):
                    alone = "-"
                else:
                    _, other, parsing = run_and_time(IMPORTS, PARSE, kind, made)
                    alone = f"{other / 1000:.0f}, {read / parsing:,.0f}"
                speed = f"{peak / 1000:.0f} | {read / seconds:,.0f}"
                print(f"| {kind} | {size:.0f} | {read:,} | {speed} | {alone} |")
                sys.stdout.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, nargs="+", default=[16, 64])
    parser.add_argument("--kinds", nargs="+", help="forms; default all")
    parser.add_argument("--folder", default=tempfile.gettempdir(), help="where files are made")
    ARGUMENTS = parser.parse_args()
    if shutil.disk_usage(ARGUMENTS.folder).free < 4e6 * max(ARGUMENTS.megabytes):
        sys.exit("the disk must have four times as much room as the longest file")
    main()
