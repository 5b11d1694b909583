"""Memory of every command that works by place does not grow with the number of places."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_memory import COMMANDS, peaks
from peak_memory import run_and_measure

#: MB that a command may hold more on four times as many counties.  Nothing is kept from place to
#: place but a line of an index; what grows is the largest tract met so far, what the allocator
#: holds for use again, and the persons that are looked up at a time, which are at most 260,000: 31
#: were measured.  Who held all known persons and their truth took 0.5 KB for each, 60 MB more here.
ALLOWED = 45


@pytest.mark.slow
def test_four_times_as_many_counties_take_no_more_memory(tmp_path):
    few, many = (dict(peaks(tmp_path / str(n), n)) for n in (9, 36))
    assert few.keys() == many.keys() == COMMANDS.keys()
    grown = {name: many[name] - few[name] for name in COMMANDS}
    assert max(grown.values()) < ALLOWED, grown


#: Sorts a file of records into counties and says how many there are.
_SPLIT = """
from pathlib import Path
from bayesrisk.experiments.by_place import split_by_place
from bayesrisk.tables import Schema, iter_records
split_by_place(iter_records(sys.argv[1], schema=Schema.named("pl94")), sys.argv[2])
answer = len(list(Path(sys.argv[2]).glob("part-*")))
"""


@pytest.mark.slow
def test_a_longer_file_of_records_takes_no_more_memory_to_sort_into_counties(tmp_path):
    held = []
    for rows in (2**18, 2**20):
        rng = np.random.default_rng(rows)
        counties = pa.array([f"50{number:03}0001001000" for number in range(30)])
        columns = {"block": counties.take(pa.array(rng.integers(0, 30, rows)))}
        for name, codes in {"hhgq": 8, "votingage": 2, "hispanic": 2, "cenrace": 63}.items():
            columns[name] = pa.array(rng.integers(0, codes, rows))
        file = tmp_path / f"{rows}.parquet"
        pq.write_table(pa.table(columns), file)
        counted, peak = run_and_measure(_SPLIT, file, tmp_path / str(rows))
        assert counted == 30
        held.append(peak / 1000)
    # Pieces of 2**20 records took 110 MB more.
    assert held[1] - held[0] < ALLOWED, held
