"""What newcomers came for, in the few lines that pages give; other tests have the rest.

Own noisy measurements are in ``test_measurements.py``, own columns in ``test_own_records.py``,
other published files in ``test_attack.py``, and the installed plug-in in
``tests/mechanisms/test_registry_plug_in.py``.  Blocks of pages are run as they stand there.
"""

import itertools
import json
import math
import re
import shlex
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bayesrisk as br
from bayesrisk.mechanisms.registry import REGISTRY
from bayesrisk.risk import mechanism_risk_of_many, rho_for_risk

FRAME = pd.DataFrame(
    {"clinic": list("AAABBBCC"), "age": [0, 0, 1, 1, 0, 1, 0, 1], "ill": list("xxyxyyxy")}
)


def test_the_posterior_of_one_count():
    found = br.posterior_probability([1, 3, 5], rho=0.0992264, prior=1 / 10)
    # The count is the noise, or one more: the discrete Gaussian's ratio is exp((2k - 1) rho).
    odds = np.exp((2 * np.array([1, 3, 5]) - 1) * 0.0992264) / 9
    np.testing.assert_allclose(found, odds / (1 + odds), rtol=1e-12)


def test_the_risk_of_each_of_many_people():
    schema = br.Schema.from_frame(FRAME, place="clinic")
    work = br.Workload.of(schema, [["ill"]])
    records = br.Records.from_frame(FRAME, schema=schema)
    level, table = next(iter(work.tables))
    question = br.risk.MechanismQuestion(
        work, [(level, table)], alternatives=[{"ill": "y"}], prior=0.25
    )
    people = np.flatnonzero(FRAME["ill"] == "x")
    exact = mechanism_risk_of_many(
        records, br.mechanisms.Identity(), question, targets=people, draws=40, rng=1
    )
    assert exact["target"].tolist() == people.tolist()
    assert exact["prior"].tolist() == [0.25] * len(people)
    assert exact["marginal_posterior"].tolist() == pytest.approx([1.0] * len(people))
    rounded = mechanism_risk_of_many(
        records, br.make_mechanism("rounding:base=100,method=nearest"), question,
        targets=people, draws=40, rng=1,
    )  # fmt: skip
    assert rounded["marginal_posterior"].tolist() == pytest.approx([0.25] * len(people))


def test_the_budget_of_a_limit(run):
    rho = rho_for_risk(1.5, prior=1 / 10)
    assert br.marginal_risk(rho=rho, prior=1 / 10) == pytest.approx(1.5, rel=1e-6)
    status, said, _ = run("convert", "--max-risk", "1.5", "--prior", "1/10", "--json")
    assert status == 0
    assert json.loads(said)["rho"] == pytest.approx(rho, rel=1e-9)


HOWTO = Path(__file__).parents[2] / "docs" / "howto"


def blocks(page, language):
    """Return the blocks of a page in a language, as its readers copy them."""
    text = (HOWTO / f"{page}.md").read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def printed(program, capsys):
    """Run a program as a script of its folder; return its names and what it printed."""
    names = {}
    exec(compile(program, "page", "exec"), names)  # noqa: S102
    return names, capsys.readouterr().out


def attacked(run, command):
    """Run a command of a page in this folder."""
    return run(*shlex.split(command.replace("\\\n", " "))[1:])


def test_a_published_file_with_stars_and_ranges(run, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text, read, said = blocks("attack-published-tables", "text")
    first, second = blocks("attack-published-tables", "bash")[:2]
    (tmp_path / "patients.csv").write_text(text, encoding="utf-8")
    status, heard, _ = attacked(run, first)
    assert status == 2
    assert all(line in heard for line in read.splitlines())
    status, answer, _ = attacked(run, second)
    assert status == 0
    assert all(line in answer for line in said.splitlines())

    # Every table of two regions and three ages that the file allows, one by one.
    star, wide = range(1, 5), range(10, 20)
    fits = np.array([
        (a, b, 6, c, 9, e, a + c, e + 6)
        for a, b, c, e in itertools.product(star, range(10, 15), star, range(5, 10))
        if (a + b + 6, c + 9 + e, b + 9) == (19, 17, 20) and a + c in star and e + 6 in wide
    ])  # fmt: skip
    places = [
        *(("North", age) for age in ("0-17", "18-64", "65+")),
        *(("South", age) for age in ("0-17", "18-64", "65+")),
        ("all", "0-17"), ("all", "65+"),
    ]  # fmt: skip
    bounds = pd.read_csv("OUT/bounds.csv").set_index(["region", "age"])
    assert bounds.loc[places, "low"].tolist() == fits.min(axis=0).tolist()
    assert bounds.loc[places, "high"].tolist() == fits.max(axis=0).tolist()
    hidden = bounds[bounds["low_stated"] < bounds["high_stated"]]
    assert (len(hidden), (hidden["low"] == hidden["high"]).sum()) == (6, 2)
    names, said = printed(blocks("attack-published-tables", "python")[0], capsys)
    assert names["tables"] == br.PublishedTables.read("OUT/tables")
    assert all(line in said for line in answer.splitlines()[:3])
    found = names["found"].frames["bounds"].set_index(["region", "age"])
    for end in ("low", "high"):
        assert found.loc[places, end].tolist() == bounds.loc[places, end].tolist()


def test_a_protection_of_ones_own(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(HOWTO.parent / "examples" / "bayesrisk-subsampling")
    monkeypatch.setattr(REGISTRY, "_registered", {})
    names, _ = printed(blocks("add-a-mechanism", "python")[0], capsys)
    # Two are ill, or one; each is kept with probability 1/4.
    here, gone = (
        [math.comb(n, k) * Fraction(1, 4) ** k * Fraction(3, 4) ** (n - k) if k <= n else 0
         for k in range(3)]
        for n in (2, 1)
    )  # fmt: skip
    exact = sum(p * p / (p + q) for p, q in zip(here, gone, strict=True))
    assert exact == Fraction(37, 70)
    found = names["risk"].marginal_posterior
    assert found.lower < exact < found.upper
    assert found.upper - found.lower < 0.05


@pytest.mark.slow
@pytest.mark.usefixtures("quick_figures")
@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_from_a_frame_to_a_release(library, run, tmp_path, monkeypatch, capsys):
    pytest.importorskip(library, reason=f"{library} is not installed")
    monkeypatch.chdir(tmp_path)
    people = pd.DataFrame(
        {"clinic": list("ABB" * 4), "age": [4, 71, 71] * 4, "diagnosis": list("xyxz") * 3}
    )
    people.to_csv("patients.csv", index=False)
    program = blocks("use-other-frames", "python")[0]
    if library == "pyarrow":
        program = program.replace("import polars as pl", "from pyarrow import csv as pl")
    names, said = printed(program, capsys)
    assert names["records"].to_frame().shape == (12, 3)
    assert (tmp_path / "AUDIT" / "report.html").exists()
    recommended = "rounding:base=3,method=nearest"
    assert recommended in said
    command = blocks("use-other-frames", "bash")[0]
    assert recommended in command
    status, _, heard = attacked(run, command)
    assert status == 0
    assert "is not what was audited" not in heard
    counts = br.Release.read("RELEASE").tables.to_frame().query("count > 0")["count"]
    true = people.groupby(["clinic", "age", "diagnosis"]).size().to_numpy()
    nearest = 3 * ((true + 1) // 3)
    assert sorted(counts) == sorted(nearest[nearest > 0])


def test_ages_that_came_as_text_are_refused_with_the_way_out():
    frame = FRAME.assign(age=["34", "7"] * 4)
    with pytest.raises(br.DataError, match=r"column 'age'.*pandas\.to_numeric"):
        br.Schema.from_frame(frame, place="clinic")
    assert br.Schema.from_frame(frame.assign(age=pd.to_numeric(frame["age"])), place="clinic")
