"""Mistakes of new users: each answer names the option, the value, and what to write."""

import shlex

import numpy as np
import pandas as pd
import pytest

import bayesrisk as br

#: What is typed, and the parts of the one line that answers it; grades as a reader gives them: A
#: names the place and what to write, B the place and the rule alone.  The status is 2, or the 3
#: that follows: the data are at fault.
MISTAKES = """
risk 3 --rho 0.1 --prior 10% | --prior .. '10%' .. write 0.1 | A
risk 3 --rho 0.1 --prior 10 | --prior must be < 1 .. 10 % is 0.1 | A
risk 3 --rho 0.1 --prior 0,1 | --prior .. '0,1' .. write 0.1 | A
risk 3 --rho 0,1 --prior 0.1 | --rho .. '0,1' .. write 0.1 | A
risk 1,3,5 --rho 0.1 --prior 0.1 | '1,3,5' .. write 1 3 5 | A
risk 3 --rho 0.1 --prior 0.1,0.2 | --prior .. write --prior 0.1 --prior 0.2 | A
risk 3 --rho 0.1,0.2 --prior 0.1 | --rho .. '0.1,0.2': write one number, such as 0.1 | A
risk 3 --epsilon 1 --prior 0.1 | --epsilon .. bayesrisk convert --epsilon 1 --delta | A
risk 3 --prior 0.1 | --rho and --sigma2 .. such as --rho 0.1 | A
risk 3 --rho 0.1 | --prior must be given, such as --prior 1/10 | A
risk --rho 0.1 --prior 0.1 | released counts .. such as 3 --rho 0.1 | A
risk -3 --rho 0.1 --prior 0.1 | put -- before negative counts .. -- -3 | A
risk 3 --rho 0.1 --prior 0.1 --known-count 1,5 | '1,5' .. a whole number, such as 1 | A
risk 3 --rho 0.1 --prior 0.1 --scenario member | 'member' .. Did you mean 'membership' | A
risk 3 --rho 0.1 --prior 0.1 --sensitivity change | --sensitivity .. 'change' .. 'change-one' | A
risk 3 --rho 5% --prior 0.1 | --rho .. '5%' .. write 0.05 | A
risk --release nowhere --prior 0.1 | --release must be the folder .. pl94 .. 'nowhere' | A
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
attack {r}/tables/sex.csv -o O | with --accept, .. set them: --set 'counts= | A
audit {p} --cut Age=65,18 | --cut of 'Age' .. write Age=18,65 | A
audit {p} '--cut=Age=65;18' | --cut .. write Age=65,18 .. 'Age=65;18' | A
audit {p} --known Age --cut Age=18 | --cut goes with --protection .. compared as they are | A
audit {p} --known Age --place sex | --place goes with --protection | A
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
audit {p} -o O --protection none --targets 10% | '10%': write how many, not a share | A
audit {p} -o O --protection discrete-gaussian:epsilon=1 | convert --epsilon 1 --delta .. rho=RHO | A
audit {run} --known sex | holds results .. read {run}/report.html | A
sweep {run} -o O | of a finished sweep: `bayesrisk report {run}` | A
release {pop} --protection none --tables pl94 -o {r} | holds a release; choose a new folder | A
report {run} | its report is {run}/report.html | A
attack {t} | --output .. write -o OUT | A
audit {sdmx} | a published table: column 'OBS_VALUE' .. bayesrisk attack {sdmx} -o | A 3
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
verify . | .: holds no release .. release -o | A 3
verify {t} | holds exact tables, no release .. bayesrisk attack {t} | A 3
attack {r}/tables -o O | holds no tables .. give the whole release, {r}, .. *.csv | A
release {p} -o O --place sex --columns Age --config {plan} | leave out --place .. plan again | A
tabulate {p} -o O | release RECORDS -o OUT --protection none | A
attack {p} -o O | records of people are no table .. use audit | A 3
attack {pop} -o O | holds microdata, not tables .. release {pop} -o TABLES --protection none | A
attack . -o O --only claims | . holds no tables | A
attack {t} -o O --only record | --only .. 'record' .. Did you mean 'records' | A
attack {t} -o O --only bounds --columns sex | --columns goes with --only claims | A
census occupancy attack {p} -o O | must be a folder of tables .. bayesrisk release | A
census measurements . -o O | must hold folders such as Block.parquet | B 3
risk 3.5 --rho 0.1 --prior 0.1 | noisy_count .. whole number .. '3.5': write 3 or 4 | A
risk 1,234 --rho 0.1 --prior 0.1 | noisy_count .. '1,234': write 1234 | A
risk '3 4' --rho 0.1 --prior 0.1 | noisy_count .. '3 4': write 3 4, each apart | A
risk 99999999999999999999 --rho 0.1 --prior 0.1 | <= 4503599627370496, got 9999999999999999 | A
risk 3 --rho 0.1 --prior 1/0 | --prior .. such as 0.1 or 1/10 .. '1/0'; nothing is divided by 0 | A
risk 3 --sigma 2.24 --prior 0.1 | no --sigma: .. --sigma2 with the square of 2.24 | A
risk 3 --rho 0.1 --pior 0.1 | no --pior. Did you mean '--prior' | A
risk 3 --rho 0.1 --prior 0.1 --csv | no --csv; it has --prior, --release | A
risk 3 --rho 0.1 --prior | --prior needs a value | A
risk 3 --release pl94 --prior 0.1 | leave out --release | A
convert pl49 | release .. 'pl49'. Did you mean 'pl94' | A
convert --rho 1 --method tite | --method must be one of tight, bun-steinke, got 'tite' | A
convert --rho 1 0.1 | 0.1 is taken for a release .. leave it out | A
sweep {d}/scalar.toml -o O | grid.prior must be a list, got 0.1: write [0.1] | A
sweep {d}/ten.toml -o O | grid.prior[0] .. got 10: 10 % is 0.1 | A
sweep {d}/bare.toml -o O | line 1 .. write title = "dare", in quotes | A
sweep {d}/open.toml -o O | close all brackets and quotes | A
sweep {d}/audit.toml -o O | unknown key population; .. `bayesrisk audit FILE -o OUT` | A
release {p} -o O --config {d}/ten.toml | unknown key title; .. `bayesrisk sweep FILE -o OUT` | A
sweep sample:dare-county-sweep -o {d} | must be empty .. choose another folder | A
sweep sample:dare-county-sweep -o {p} | is a file; .. choose another folder | A
sweep sample:dare-county-sweep -o /proc/O | /proc/O: cannot be written .. choose another place | A
sweep sample:dare-county-sweep -o O --seed -1 | --seed must be >= 0, got -1 | A
sweep sample:dare-county-sweep -o O --workers two | --workers .. whole number, got 'two' | A
sweep sample:dare-county-sweep | --output must be given, such as --output out | A
audit {d}/header.csv | header.csv: must have at least one row, got none | A 3
audit {d}/book.csv | book.csv: must be text, is a workbook .. CSV UTF-8 | A 3
audit {d}/bytes.csv | bytes.csv: must be text .. CSV UTF-8 | A 3
audit {d}/twice.csv --known a | column 'b' .. once: rename one | A 3
release {d}/cells.csv -o O --protection none | cells.csv .. row 2 must have 2 fields, got 1: 3 | A 3
audit {d}/cut.parquet -o O --protection none | cut.parquet .. a part of one: copy it again | A 3
sweep {d}/quote.toml -o O | line 2, .. close the quote of "dare | A
release {p} -o O --protection suppression:threshold=<5 | suppression:threshold .. '<5' .. as 5 | A
release {p} -o O --protection suppression:threshold=5,complementary=no | 'no' .. true or false | A
release {p} -o O --protection rounding:base=5 --set base=3 | --set base .. has base=5, got 3 | A
release {p} -o O --protection cell-key | write cell-key:ptable=FILE.csv | A
release {p} -o O --from-audit {run} --protection rounding:base=7 | one of none .. are in {run} | A
plan {p} -o O --rule round-5 --limit proved=0 | --rule .. 'round-5'. Did you mean 'rounding' | A
attack {r} -o O --only claims --columns sex,sex | --columns .. got 'sex' more than once | A
attack {r} -o O --only links --adversary {p} | --only links needs --truth FILE | A
attack {d}/pub.csv -o O --only links --adversary {p} --truth {p} | --only records -o OUT` writes | A
attack {d}/cells.json -o O | JSON .. save .. as CSV .. bayesrisk audit {d}/cells.csv | A 3
verify {run} | proofs.csv .. such as an attack writes, and no audit; verify checks | A 3
audit {d}/ids.csv | must have a column that is counted .. id; name columns with --columns | A 3
audit {d}/book.xlsx | .parquet or .csv .. save it as CSV UTF-8 | A
audit {p} --columns Age,Age | --columns must give each once, got 'Age' more than once | A
audit {p} --known 'sex;Age' | --known .. Did you mean 'sex' and 'Age', each apart | A
audit {p} --known sex Age | write --known sex,Age | A
audit {p} -o O --protection swapping rate=0.05 | write --protection swapping:rate=0.05 | A
audit {p} -o O --protection swapping,rate=0.05 | --protection .. write swapping:rate=0.05 | A
audit {p} -o O --protection swapping:rate:0.05 | 'rate:0.05': write rate=0.05 | A
audit {p} -o O --protection none:rate=1 | --protection none has no 'rate'; possible: none | A
audit {p} -o O --protection rounding:base=5,5 | rounding:base must be a whole number, got '5,5' | A
audit {p} -o O --protection discrete-gaussian:rho=0 | discrete-gaussian:rho must be > 0, got 0 | A
release {p} -o O --protection rounding --set base 5 | --set .. 'base': write --set base=5 | A
release {p} -o O --protection rounding --set base:5 | --set .. 'base:5': write --set base=5 | A
release {p} -o O --protection rounding:base=5 --places x:Ward | --places .. --place, got | A
release {p} -o O --protection none --only nope | --only must be one of total .. got 'nope' | A
release {p} O --protection none | --output must be given, such as --output release | A
verify {r}/tables | give {r} | A 3
verify {r}/_release.json | is a file: give {r} | A
verify {nest} | give {nest}/rel | A 3
attack {nest} -o O | holds no tables (_manifest.json is not there): give {nest}/rel | A
attack {r}/_release.json -o O | it is a file of {r}: `bayesrisk attack {r} -o OUT` | A 3
attack {d}/pup.csv -o O | no such file or folder .. Did you mean 'pub.csv' in {d} | A
attack {d}/pub*.csv -o O | no name fits the pattern | A
attack {d}/bytes.csv -o O | must be a table .. bytes that are no text: save .. as CSV | A 3
attack {d}/empty.csv -o O | must be a table .. an empty file: save .. as CSV | A 3
attack {d}/pub.csv -o O --accept yes | --accept takes no value: leave out yes | A
attack {d}/pub.csv -o O --set counts exact | --set .. 'counts': write --set counts=exact | A
attack {d}/pub.csv -o O --set marks=1-4 | marks must be given by mark: write marks.MARK=1-4 | A
attack {d}/pub.csv -o O --set sheet=T --accept | --set sheet goes with a workbook .. 'T' | A
attack {d}/pub.csv -o O --accept --time-limit 0 | --time-limit must be > 0, got 0 | A
attack {d}/pub.csv -o O --assume {d}/ten.toml | the keys of {d}/ten.toml, must be .. 'title' | A
plan {p} -o O --limit proved | --limit .. 'proved': write --limit proved=VALUE | A
plan {p} -o O --limit gain=-1 | --limit gain must be >= 0, got -1 | A
plan {p} -o O --limit proved=0 --rule nearest-0 | --rule .. Did you mean 'nearest-5' | A
warmup now | takes no 'now' there: leave it out | A
attak | no command 'attak'. Did you mean 'attack' | A
census simulat | `bayesrisk census` has no command 'simulat'. Did you mean 'simulate' | A
"""
#: Files with a fault of their own.
FILES = {
    "scalar.toml": 'title = "x"\n[grid]\nrho = [0.1]\nprior = 0.1\n',
    "ten.toml": 'title = "x"\n[grid]\nrho = [0.1]\nprior = [10]\n',
    "bare.toml": "title = dare\n[grid]\nrho = [0.1]\nprior = [0.1]\n",
    "open.toml": 'title = "x"\n[grid]\n\trho = [0.1]\n\tprior = [0.1,\n',
    "audit.toml": 'population = "p.csv"\nprotection = ["none"]\n',
    "header.csv": "a,b\n",
    "cells.csv": "a,b\n1,2\n3\n",
    "cells.json": '[{"a": 1}]',
    "cut.parquet": "PAR1 and so on",
    "quote.toml": '[grid]\ntitle = "dare\nrho = [0.1]\n',
    "empty.csv": "",
    "book.csv": "PK\x03\x04 and so on\n",
    "bytes.csv": "a\0b\tc\n",
    "twice.csv": "a,b,b\n1,2,3\n",
    "ids.csv": "id\n" + "\n".join(map(str, range(1000, 1060))) + "\n",
    "book.xlsx": "PK\x03\x04",
    "pub.csv": "Ward,Count\nA,4\nB,c\nAll,6\n",
}


def cases():
    for line in MISTAKES.strip().splitlines():
        words, parts, grade = line.split(" | ")
        yield pytest.param(words, parts, 3 if grade.endswith("3") else 2, id=words)


def test_the_grades():
    """Ninety at least, of 60 at least 55 A, and none below B."""
    grades = [line.rpartition(" | ")[2][0] for line in MISTAKES.strip().splitlines()]
    assert set(grades) == {"A", "B"}
    assert len(grades) >= 90
    assert grades.count("A") * 60 >= 55 * len(grades)


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
    for name, text in FILES.items():
        (at / "d" / name).parent.mkdir(exist_ok=True)
        (at / "d" / name).write_text(text)
    made.write(at / "nest" / "rel")
    return {
        "d": at / "d",
        "nest": at / "nest",
        "run": folder,
        "sdmx": at / "sdmx.csv",
        "p": at / "p.csv",
        "pop": at / "pop",
        "t": at / "tables",
        "r": at / "r",
        "plan": at / "plan.toml",
    }


@pytest.mark.command
@pytest.mark.parametrize(("words", "parts", "wanted"), list(cases()))
def test_a_mistake_is_answered_with_what_to_write(
    run, inputs, tmp_path, monkeypatch, words, parts, wanted
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "500")
    before = {path: path.stat().st_mtime_ns for path in inputs["d"].parent.rglob("*")}
    status, _, err = run(*shlex.split(words.format(**inputs)))
    assert status == wanted, err
    answer = err.splitlines()[-1]
    assert answer.startswith("bayesrisk: ")
    # Three lines of a terminal, but for the paths, which are as long as the folder of a test.
    assert len(answer.replace(str(inputs["d"].parent), "")) <= 3 * 80
    assert all(part in err for part in parts.format(**inputs).split(" .. ")), err
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []
    after = {path: path.stat().st_mtime_ns for path in inputs["d"].parent.rglob("*")}
    assert after == before
