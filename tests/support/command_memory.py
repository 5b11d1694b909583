"""Commands that work by place, and the largest memory of each: for the test and the benchmark.

A command that reads part by part is added to ``COMMANDS``, and nowhere else.
"""

import pyarrow.parquet as pq
from peak_memory import run_and_measure

#: Blocks of a county here: a tract, 23 times fewer than in 2010, so that many parts are few blocks.
BLOCKS = 153
_COUNTY = "--set blocks_per_group=51 --set groups_per_tract=3 --set tracts_per_county=1 -q"
_FEW = 6
_FEW_COUNTY = "--set blocks_per_group=2 --set groups_per_tract=3 --set tracts_per_county=1 -q"
_ALL = 11_078_297

#: The words of each command, in an order in which each finds what it reads: a name in braces is
#: the folder that another has written, ``{-o}`` that of its own.  ``{few}`` is the share of a
#: nation of as many counties of six blocks, for what takes long.
COMMANDS = {
    "simulate": f"census simulate --nation --scale {{all}} --seed 1 {_COUNTY} {{-o}}",
    "tabulate": "release --protection none {simulate} --tables sf1-block,sf1-tract -q {-o}",
    "tabulate --by": "release --protection none {records} --by county --tables sf1-block -q {-o}",
    "reconstruct": "attack --only records {tabulate} --scope tract --variability tract-bounds -q "
    "{-o}",
    "release, noise": "release {simulate} --protection discrete-gaussian --tables sf1-block "
    "--only P1,P12 --set sensitivity=change-one --set budgets.block.P1=1/2 "
    "--set budgets.block.P12=1/2 -q {-o}",
    "release, swapping": "release {simulate} --protection swapping --tables sf1-block "
    "--set rate=1/20 --set unit=household --set swap_key=['size','adults'] "
    "--set unique_by=['size','adults','race'] --set within=county --set unique_within=tract "
    "-q {-o}",
    "audit": "audit {simulate} --protection identity --protection rounding:base=3 "
    "--method majority --adversary linker --targets 20 --seed 1 -q {-o}",
    "reidentify": "attack --only links {reconstruct} --adversary {simulate} --truth {simulate} "
    "-q {-o}",
    "simulate few": f"census simulate --nation --scale {{few}} --seed 2 {_FEW_COUNTY} {{-o}}",
    "tabulate households": "release --protection none {simulate few} --tables household-dhc -q "
    "{-o}",
    "tabulate occupancy": "release --protection none {simulate few} --tables household-occupancy "
    "-q {-o}",
    "occupancy attack": "census occupancy attack {tabulate occupancy} --solutions 1 -q {-o}",
    "occupancy study": "census occupancy study {simulate few} --protection none --protection "
    "swapping:rate=0.1 "
    "--solutions 1 --no-figures -q {-o}",
    "claims": "attack --only claims {tabulate households} --max-columns 2 -q {-o}",
}
#: Runs a command in a process that says how much memory it held.
RUN = """
import contextlib, io
from bayesrisk.cli.app import main
sys.argv = ["bayesrisk", *sys.argv[1:]]
answer = 0
with contextlib.redirect_stdout(io.StringIO()):
    try:
        main()
    except SystemExit as end:
        answer = end.code or 0
"""


def peaks(folder, counties):
    """Yield each command and the most memory in MB that it held, for so many counties."""
    folder.mkdir()
    places = {"all": f"{counties * BLOCKS}/{_ALL}", "few": f"{counties * _FEW}/{_ALL}"}
    places["records"] = folder / "records.parquet"
    for name, words in COMMANDS.items():
        if "{records}" in words:
            _in_one_file(places["simulate"], places["records"])
        places[name] = folder / name.replace(",", "").replace(" ", "-")
        places["-o"] = f"-o {places[name]}"
        status, kilobytes = run_and_measure(RUN, *words.format(**places).split(), timeout=7200)
        assert status == 0, name
        yield name, kilobytes / 1000


def _in_one_file(people, target):
    """Write the persons of all counties into one file, those of the first county last."""
    files = sorted(people.glob("part-*/persons.parquet"))
    with pq.ParquetWriter(target, pq.read_schema(files[0])) as writer:
        for file in [*files[1:], files[0]]:
            writer.write_table(pq.read_table(file))
