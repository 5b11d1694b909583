"""Microdata before protection, beside sdcMicro in R."""

import shutil
import tempfile
from pathlib import Path

from peers.comparison import Case, Comparison
from peers.worker import Worker
from test_microdata import KEYS, people

from bayesrisk.risk import first_look

SOME = 200_000


def uniques_sdcmicro() -> Case:
    frame = people(SOME)
    script = Path(__file__).parent / "uniques.R"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "keys.csv"
        frame[KEYS].to_csv(file, index=False)
        worker = Worker([shutil.which("Rscript"), str(script)], str(file))
        found = int(worker.ask("count"))

    def ours():
        return first_look(frame, keys=KEYS)

    assert int(ours().unique.sum()) == found
    return Case(ours, lambda: worker.ask("count"))


ALL = [
    Comparison(
        "Records that are alone with their keys",
        "risk.first_look",
        "sdcMicro, `freqCalc`",
        ("R:sdcMicro",),
        "as many records",
        "ours also looks at every smaller set of keys",
        uniques_sdcmicro,
    )
]
