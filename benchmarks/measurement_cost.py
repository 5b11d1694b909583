"""What the risk of every cell of the nation's noisy measurements costs: time, memory and room.

Run it by itself; files are made below ``--folder`` and deleted again::

    python benchmarks/measurement_cost.py --counties 2 8 32

A file of one state is written with so many counties, with all queries, levels and constraints,
and `bayesrisk census measurements` goes over it in a process of its own: that is its memory.  Then
the same is run here, and the processor time of each shard taken; intervals are of their mean
(95 %, Student's t).  Putting the results together, and room on the disk, are of the largest file.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy.stats import t as student

from bayesrisk.census import MeasurementsStudy, write_nmf
from bayesrisk.experiments import run

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
from command_memory import RUN
from peak_memory import run_and_measure

NATION = 8_132_968  # blocks of 2020
CELLS = 2016
PRIOR = 0.1


def made(folder, counties):
    """Write a file of one state, 11 tracts of 3 groups of 18 to 22 blocks in a county."""
    sizes = {"tracts": (11, 11), "block_groups": (3, 3), "blocks": (18, 22)}
    return write_nmf(
        folder / "US_Person_PL_PROD", rng=1, states=("057",), counties=counties, **sizes
    )


def main():
    print("| blocks | peak MB | shards | ms a block | 95 % interval | rest, ms | bytes a cell |")
    print("|---|---|---|---|---|---|---|")
    for counties in ARGUMENTS.counties:
        with tempfile.TemporaryDirectory(dir=ARGUMENTS.folder) as name:
            folder = Path(name)
            sample = made(folder, counties)
            blocks = len(sample.geocodes["Block"])
            place, prior = str(sample.folder), str(PRIOR)
            del sample
            words = [
                "census",
                "measurements",
                place,
                "--prior",
                prior,
                "-q",
                "-o",
                str(folder / "command"),
            ]
            status, kilobytes = run_and_measure(RUN, *words, timeout=7200)
            assert status == 0
            seconds, rest = shards(place, folder / "out", blocks)
            row(folder / "out", blocks, kilobytes / 1000, seconds, rest)


def shards(place, out, blocks):
    """Return the processor time of each shard, and of what comes after the last."""
    times = [time.process_time()]
    study = MeasurementsStudy(place, prior=PRIOR)
    found = run(study, out, progress=lambda *_: times.append(time.process_time()))
    assert found.units + found.unmeasured == blocks
    return np.diff(times), time.process_time() - times[-1]


def row(out, blocks, megabytes, seconds, rest):
    """Print the row of a file; the first shard, which opens and compiles, belongs to the rest."""
    per_shard = blocks / seconds.size
    each = seconds[1:] / per_shard
    half = student.isf(0.025, each.size - 1) * each.std(ddof=1) / np.sqrt(each.size)
    more = (rest + seconds[0] - seconds[1:].mean()) / blocks
    size = sum(f.stat().st_size for f in out.rglob("*.parquet")) / (blocks * CELLS)
    hours = (each.mean() + np.array([0.0, -half, half])) * NATION / 3600
    print(
        f"| {blocks:,} | {megabytes:.0f} | {seconds.size} | {1e3 * each.mean():.3f} "
        f"| {1e3 * (each.mean() - half):.3f} to {1e3 * (each.mean() + half):.3f} "
        f"| {1e3 * more:.3f} | {size:.2f} |"
    )
    print(
        f"  nation: {hours[0]:.2f} ({hours[1]:.2f} to {hours[2]:.2f}) core-hours for the shards, "
        f"{more * NATION / 3600:.2f} for the rest, {size * NATION * CELLS / 1e12:.2f} TB",
        flush=True,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--counties", type=int, nargs="+", default=[2, 8, 32])
    parser.add_argument("--folder", default=tempfile.gettempdir(), help="where files are made")
    ARGUMENTS = parser.parse_args()
    main()
