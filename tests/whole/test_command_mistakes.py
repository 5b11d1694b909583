"""Sixty mistakes of new users: each answer names the option, the value, and what to write."""

import shlex

import numpy as np
import pandas as pd
import pytest

import bayesrisk as br

#: What is typed, and the parts of the one line that answers it; grades as a reader gives them: A
#: names the place and what to write, B the place and the rule alone.
MISTAKES = """
risk 3 --rho 0.1 --prior 10% | --prior .. '10%' .. write 0.1 | A
risk 3 --rho 0.1 --prior 10 | --prior must be < 1 .. 10 % is 0.1 | A
risk 3 --rho 0.1 --prior 0,1 | --prior .. '0,1' .. write 0.1 | A
risk 3 --rho 0,1 --prior 0.1 | --rho .. '0,1' .. write 0.1 | A
risk 1,3,5 --rho 0.1 --prior 0.1 | '1,3,5' .. write 1 3 5 | A
risk 3 --rho 0.1 --prior 0.1,0.2 | --prior .. write 0.1 0.2 | A
risk 3 --epsilon 1 --prior 0.1 | --epsilon .. bayesrisk convert --epsilon 1 --delta | A
risk 3 --prior 0.1 | --rho and --sigma2 .. such as --rho 0.1 | A
risk 3 --rho 0.1 | Missing option '--prior' | B
risk --rho 0.1 --prior 0.1 | released counts .. such as 3 --rho 0.1 | A
risk -3 --rho 0.1 --prior 0.1 | put -- before negative counts .. -- -3 | A
risk 3 --rho 0.1 --prior 0.1 --known-count 1,5 | '1,5' .. a whole number, such as 1 | A
risk 3 --rho 0.1 --prior 0.1 --scenario member | 'member' .. Did you mean 'membership' | A
risk 3 --rho 0.1 --prior 0.1 --sensitivity change | --sensitivity .. 'change' .. 'change-one' | A
risk 3 --rho 5% --prior 0.1 | --rho .. '5%' .. write 0.05 | A
risk --release nowhere --prior 0.1 | no such file or folder: nowhere | B
risk --hierarchy block=2 --prior 0.1 | --hierarchy must have group, siblings | A
convert --epsilon 1 | add --delta 1e-10 | A
convert --delta 1e-10 | add --epsilon 1 | A
convert --rho 1 --sigma2 5 | exactly one of --rho, --sigma2 .. leave out | A
convert --max-risk 50% --prior 0.1 | '50%' .. a ratio, such as 1.5 | A
convert --max-risk 5% --prior 0.1 | --max-risk .. '5%' .. a ratio | A
convert --max-risk 2 | --max-risk needs a --prior | A
sweep nowhere.toml -o O | no such file or folder: nowhere.toml | B
sweep sample:dare -o O | dare-county-sweep | A
sweep sample:dare-county-sweep -o O --rho 0.1 | --rho .. rho = [0.1] stands in the file | A
sweep sample:dare-county-sweep -o O --epsilon 2 | --epsilon .. convert --epsilon 2 --delta | A
audit {p} --known age | --known .. 'age' .. Did you mean 'Age' | A
audit {p} --known ward | --known .. 'ward' .. Did you mean 'Ward of stay' | A
audit {p} --known Age --stated Dx | --stated .. 'Dx' .. Did you mean 'Dx.code' | A
audit {p} --known Age --stated Dxcode | --stated .. Did you mean 'Dx.code' | A
audit {p} -o O --protection none --known Age --stated Age | --stated cannot .. known .. 'Age' | A
attack {r}/tables/sex.csv -o O | with --accept, or set them: --set 'counts= | A
audit {p} --cut Age=65,18 | --cut of 'Age' .. write Age=18,65 | A
audit {p} '--cut=Age=65;18' | --cut Age .. '65;18' .. write 65 18 | A
audit {p} --cut age=18 | --cut .. 'age' .. Did you mean 'Age' | A
audit {p} -o O --protection none --stated income | --stated must be one of .. 'income' | A
risk 3 --rho 1 --sigma2 5 --prior 0.1 | exactly one of --rho and --sigma2, not both | A
audit {p} -o O --attack linker | `--attack` .. is now `--adversary` | A
audit {p} -o O --protection none --adversary hacker | 'hacker' .. one of outsider, linker | A
audit {p} -o O --protection rounding:base=5 --method guess | 'guess' .. one of posterior, | A
audit {p} -o O --protection swaping:rate=0.1 | 'swaping'. Did you mean 'swapping' | A
audit {p} -o O --protection swapping:rate=5 | rate .. 5 % is 0.05 | A
audit {p} -o O --protection swapping:rate=5% | '5%' .. write 0.05 | A
audit {p} -o O --rate 0.05 | --rate .. --protection swapping:rate=0.05 | A
audit {p} -o O --protection none --targets 10% | '10%' .. a whole number, such as 10 | A
audit {p} -o O --protection discrete-gaussian:epsilon=1 | convert --epsilon 1 --delta .. rho=RHO | A
audit {run} --known sex | holds results .. read {run}/report.html | A
sweep {run} -o O | of a finished sweep: `bayesrisk report {run}` | A
release {pop} --protection none --tables pl94 -o {r} | holds a release; choose a new folder | A
report {run} | its report is {run}/report.html | A
attack {t} | --output .. write -o OUT | A
audit {sdmx} | a published table: column 'OBS_VALUE' .. bayesrisk attack {sdmx} -o | A
release {p} -o O --protection topdown --columns sex | write topdown:rho=1 | A
release {p} -o O --protection discrete-laplace --columns sex | discrete-laplace:epsilon=1 | A
audit {t} --known sex | holds no microdata .. bayesrisk attack | A
release {p} -o O | --protection must be given, such as swapping:rate=0.05 | A
release {p} -o O --protection rounding | needs base .. write rounding:base=5 | A
release {p} -o O --protection swapping | needs rate .. write swapping:rate=0.05 | A
release {p} -o O --protection discrete-gaussian:epsilon=1 | convert --epsilon 1 --delta .. rho | A
release {p} -o O --protection rounding:base | must be KEY=VALUE, got 'base' | B
release {p} -o O --protection rounding:base=5 --place ward | Did you mean 'Ward of stay' | A
release {p} -o O --mechanism rounding:base=5 | `--mechanism` .. is now `--protection` | A
release {p} -o O --protection rounding:base=5 --tables sf1 | Did you mean 'sf1-block' | A
release {p} -o O --epsilon 1 | --epsilon .. convert --epsilon 1 --delta | A
release {t} -o O --protection rounding:base=5 | holds no microdata .. bayesrisk attack | A
verify . | .: holds no release .. release -o | A
verify {t} | holds exact tables, no release .. bayesrisk attack {t} | A
attack {r}/tables -o O | holds no tables .. give the whole release, {r}, .. *.csv | A
release {p} -o O --place sex --columns Age --config {plan} | leave out --place .. plan again | A
tabulate {p} -o O | release RECORDS -o OUT --protection none | A
attack {p} -o O | records of people are no table .. use audit | A
attack {pop} -o O | holds microdata, not tables .. release {pop} -o TABLES --protection none | A
attack . -o O --only claims | . holds no tables | A
attack {t} -o O --only record | --only .. 'record' .. Did you mean 'records' | A
attack {t} -o O --only bounds --columns sex | --columns goes with --only claims | A
census occupancy attack {p} -o O | must be a folder of tables .. bayesrisk release | A
census measurements . -o O | must hold folders such as Block.parquet | B
"""


def cases():
    for line in MISTAKES.strip().splitlines():
        words, parts, _ = line.split(" | ")
        yield pytest.param(words, parts, id=words)


def test_the_grades():
    """Sixty at least, 55 of them A, and none below B."""
    grades = [line.rpartition(" | ")[2] for line in MISTAKES.strip().splitlines()]
    assert set(grades) == {"A", "B"}
    assert len(grades) >= 60
    assert grades.count("A") >= 55


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    at = tmp_path_factory.mktemp("inputs")
    rng = np.random.default_rng(3)
    ages, codes = rng.integers(0, 95, 60), rng.choice(["flu", "asthma"], 60)
    people = {"Ward of stay": rng.choice(["A", "B"], 60), "Age": ages, "Dx.code": codes}
    pd.DataFrame(people | {"sex": rng.choice(["F", "M"], 60)}).to_csv(at / "p.csv", index=False)
    population = br.simulate_population("tract", rng=1)
    population.write(at / "pop")
    br.tabulate(population, br.Workload.named("pl94")).write(at / "tables")
    made = br.release(at / "p.csv", protection="rounding:base=5", columns=["sex"])
    made.write(at / "r", readable=True)
    (at / "plan.toml").write_text(
        'protection = "rules-by-table"\nparameters.rules.all.total = "identity"'
    )
    folder = at / "run"
    br.audit(at / "p.csv", key="sex", secret="Age", protections="none", targets=2, folder=folder)
    rows = "SEX,OBS_VALUE,OBS_STATUS\nF,3,A\nM,5,A\n_T,8,A\n"
    (at / "sdmx.csv").write_text(rows)
    return {
        "run": folder,
        "sdmx": at / "sdmx.csv",
        "p": at / "p.csv",
        "pop": at / "pop",
        "t": at / "tables",
        "r": at / "r",
        "plan": at / "plan.toml",
    }


@pytest.mark.command
@pytest.mark.parametrize(("words", "parts"), list(cases()))
def test_a_mistake_is_answered_with_what_to_write(run, inputs, tmp_path, monkeypatch, words, parts):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "500")
    status, _, err = run(*shlex.split(words.format(**inputs)))
    assert status in (2, 3), err
    assert all(part in err for part in parts.format(**inputs).split(" .. ")), err
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []
