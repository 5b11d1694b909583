"""What commands refuse: a status, one line that names the option and its bound, nothing written."""

import re
import shlex

import numpy as np
import pandas as pd
import pytest
from oracles.readers import person_records

import bayesrisk as br
from bayesrisk.experiments.by_place import split_by_place

#: Below the words that they share, what is asked and what is said; ``|3`` where data are at fault.
CASES = """
= risk
1.5 --rho .1 --prior .5 | noisy_count must be a whole number
1 --rho .1 --prior 1/0 | prior must be a finite number
1 --prior .5 | give exactly one of --rho and --sigma2, such as --rho 0.1
1 --rho .1 --prior .5 --scenario x | --scenario must be one
1 --rho 1 --prior .1 --sensitivity change-on | Did you mean 'change-one'?
= convert
--rho 1 --sigma2 1 | give exactly one of --rho
--max-risk 2 | --max-risk needs a --prior
--rho 1 --prior .1 | --prior and --probability belong with
--max-risk .5 --prior .1 | --max-risk must be > 1, got 0.5
= risk
--prior .5 --hierarchy={levels},group_prior=normal | group_prior must be flat or truncated:MAX
--prior .5 --hierarchy={levels},group_prior=truncated:100000000000000000000 | must name a count
--prior .5 --hierarchy={levels},known_total=5 --known-count 5 | known_total must be above
--prior .5 --hierarchy={levels},known_total=9,group_prior=truncated:8 | group_prior (0 to 8), got 9
--prior .5 --hierarchy={levels},blocks=9 | setting must be one of block .. Did you mean 'block'?
--prior .5 --hierarchy=block=2,group=1 | must have siblings, n_siblings, rho_block, rho_group
--prior .5 --prior .2 --hierarchy={levels} | --prior must be one for a hierarchy
--prior 2 --hierarchy={levels} | prior must be
--prior .5 --hierarchy={levels} --known-count -1 | --known-count must be >= 0
--prior .5 --hierarchy={levels} --rho 1 | states its noise
= sweep
no.toml -o {out} | no such file or folder: no.toml
dare-county-sweep -o {out} | no such file or folder: dare-county-sweep; sample:dare-county-sweep
{used} -o {out} | must be a TOML file of a sweep
{own} -o {out} | must be a TOML file of a sweep .. sample:dare-county-sweep
sample:dare-county-sweep -o {out} --shard 2 | --shard must be i/n
sample:dare-county-sweep -o {out} --shard 3/2 | --shard must be <= 2, got 3
sample:dare -o {out} | of this kind: dare-county-sweep, granville-county
= census simulate -o {out} --seed 3
--preset conty | Did you mean 'county'?
--preset city | --preset must be one of tract, county, state, got 'city'
--blocks 0 | --blocks must be >= 1, got 0
--set n_blocks=0 | --set n_blocks must be >= 1, got 0
--set n_blocks=1/2 | n_blocks must be a whole number, got 0.5
--set n_blok=1 | unknown setting 'n_blok'. Did you mean 'n_blocks'?
--set alpha | --set must be NAME=VALUE
--set alpha=2 | alpha must be <= 1, got 2
--set state=1 | state must be two digits, got '1'
--set occupied_blocks=0 | nobody lives in any of the blocks
--nation --blocks 5 | --blocks does not go with --nation
--nation --replace | --replace does not go with --nation
--nation --scale 3 | --scale must be <= 2, got 3
--scale 1 | --scale goes with --nation
--workers 2 | --workers goes with --nation
--years 0 | --years must be
--years 10 --replace | --replace does not go with --years
--years 10 --nation | --years does not go with --nation
--change sex=0.1 | --change goes with --years
--years 10 --preset tract --blocks 9 --change age=0.1 | --change
--years 10 --preset tract --blocks 9 --change sx=0.1 | --change must be NAME=RATE of sex, race, hisp
--years 10 --preset tract --blocks 9 --change sex=2 | --change
= release --protection none
no -o {out} --tables pl94 | no such file or folder: no
{pop} -o {out} --tables sf1-block --without P13 | --without must be one of P1,
{pop} -o {out} --tables sf1-block --level blok | --level must be one of nation
{pop} -o {out} --tables , | --tables must name at least one
{pop} -o {out} --tables sf1-block,pl94 | schemas must be the same
{people} -o {out} --tables sf1-block --schema sf1-persn | --schema must be one of
{people} -o {out} --tables pl94 |3 must have one column 'hhgq'
{people} -o {out} --tables sf1-block --by block | --by must be one of nation, state, county, tract
{people} -o {out} --tables sf1-block --by nation | --by must have places of its own
{people} -o {out} --tables sf1-block --by county --replace | --replace does not go with tables by
{people} -o {out} --tables sf1-block --workers 2 | --workers goes with --by
{own} -o {out} --place clinc | --place .. Did you mean 'clinic'
{own} -o {out} --columns sax | --columns .. patient, clinic, age
{own} -o {out} --cut age | --cut must be NAME=NUMBERS .. write --cut age=18,65
{own} -o {out} --cut ages=1 | --cut .. patient, clinic, age
{own} -o {out} --cut age=x | --cut age must be .. 'x'
{own} -o {out} --cut sex=1 | --cut must be of a column of numbers, got 'sex'
{own} -o {out} --cut age=9,3 | --cut of 'age' must increase
{own} -o {out} --tables sf1-blok | --tables .. 'sf1-block'
{own} -o {out} --tables sf1-block --place clinic | --place goes with files
= release --protection none sample:hospital -o {out} --tables
moon.toml | moon.toml: cannot be read
sample:fifty-blocks | must be a sample of records with tables
sample:hospital --geography census | names its own
sample:hospital,sf1-block | schemas must be the same
sample:hospital --schema moon.toml | moon
sample:hospital --level block | level must be one of all
sample:hospital --by region | --by must be one above the places .. schema 'hospital' has none
= release {pop} -o {out}
 | --protection must be given
--protection identity | --tables must be given
--protection rounding --set base=3 | --tables must be given .. bayesrisk list workloads
--protection topdwn --tables pl94 | Did you mean 'topdown'?
--protection identity --tables pl9 | --tables must be one of 13 names .. Did you mean 'pl94'?
--protection identity --tables pl94 --only P8 | --only must be one of
--protection identity --tables pl94 --level blok | --level must be
--protection identity --tables pl94 --simulation-seed -1 | --simulation-seed must be >= 0
--protection identity --tables sf1-block --set x=1 | 'x'
--protection identity --tables sf1-block --set x | KEY=VALUE
--protection identity --tables sf1-block --schema pl94 | names its own
--protection identity --schema sf1-person | --tables must be given
--protection identity --tables sf1-block --schema sf1-person | names its own
--protection identity --tables sf1-block --whole | --whole goes with microdata by place
--protection identity --tables sf1-block --workers 2 | --workers goes with --by, or with
--protection identity --tables sf1-block --by block | --by must be one of
--protection ranges --tables sf1-block | ranges needs edges .. write ranges:edges=
= release {parts} -o {out} --protection rounding:base=3,method=nearest --tables sf1-block
--by tract | --by goes with records that are not by place
--schema pl94 | --schema goes with a file of records
--level county,block | protects each county as a whole, and a part is one tract
--whole --resume | --resume goes with --by
= release {own} -o {out} --quiet
--place clinic | --protection must be given .. list
--place clinic --protection rounding:bse=3 | write rounding:base=5 .. no 'bse'. Did you mean 'base'?
--place clinic --protection swapping | swapping needs rate .. write swapping:rate=0.05
--from-audit {own} | --protection NAME go together
--protection none --set x=1 --tables pl94 | --set does not go with
--from-audit A --protection x --only a | --only does not go with --from-audit
--from-audit A --protection x --set rho=1 | --set does not go with --from-audit
= audit {own} -o {out} --place clinic --quiet
 | --output must end in .parquet
--protection swaping:rate=0.1 | Did you mean 'swapping'
--protection swapping:rate | must be KEY=VALUE, got 'rate'
--protection swapping:rat=0.1 | no 'rat'. Did you mean 'rate'?
--protection swapping:rate=2 | rate must be in [0, 1], got
--protection swapping=0.05 | write swapping:rate=0.05
--protection none --time-limit 2min | must be a number, got '2min': write 120, in seconds
--protection none --time-limit soon | --time-limit must be a number, got 'soon'
--protection rounding:5 | write rounding:base=5
--protection discrete-gaussian | the recipe discrete-gaussian:rho=1
--protection discrete-laplace | the recipe discrete-laplace:epsilon=1
--protection none --cut age=20-40 | write age=20,40
--protection none --cut 20,40 | must be NAME=NUMBER,NUMBER, such as --cut
--protection identity --known aeg | --known must be one of
--protection identity --adversary outsider --known aeg | --known must be one of
--protection identity --quantile 0.5 --against linker --steps 0 | --against goes with --target-ratio
--protection identity --protection identity | --protection must give each once, got 'identity' more
--protection identity --adversary link | --adversary must be one of
--protection identity --method guess | --method must be one of
--protection identity --only ages | must be one of total, age
= attack {tables}
-o {used} | must be new or an empty folder; nothing was changed
= attack
no.csv --accept | must be a folder, got none: write -o OUT
= attack --only claims {tables} -o {out}
--time-limit 1m | --time-limit must be seconds, such as 60, or none, got '1m'
--columns colour | columns must be one of
--max-columns 0 | --max-columns must be
--time-limit 0 | --time-limit must be
= attack --only records {tables} -o {out}
--scope state | scope must be one of tract, block
--scope block --variability all | variability must be one
--scope block --time-limit -1 | --time-limit must be > 0
--scope block --node-limit 1.5 | --node-limit must be a
--scope block --node-limit 5 | --node-limit goes with a
--scope block --node-limit 5 --solver pulp:highs | --node-limit must be None for solver 'pulp:highs'
--scope block --solver pulp:nothing | nothing
= attack --only records
no -o {out} --scope block | no such file or folder: no
{pop} -o {out} --scope block | holds microdata, not tables: make some by `bayesrisk release
{tables} -o {used} --scope block | nothing was changed
= census measurements {nmf}
-o {out} | --prior must be given for the risk of every cell
-o {out} --prior .1 --budget dhc-us | budget must be one of pl94-us, pl94-pr, got 'dhc-us'
-o {out} --prior .1 --query cenrase | Did you mean 'cenrace'?
-o {out} --prior .1 --exceeds 0 | --exceeds must be > 0, got 0
-o {out} --prior .1 --known-count -1 | --known-count must be >= 0, got -1
-o {out} --prior .1 --top State | --top belongs to --posterior counts
-o {out} --prior .1 --posterior count | --posterior must be one of risk, counts, got 'count'
-o {out} --prior .1 --posterior counts | --prior belongs to --posterior risk
-o {out}.parquet --prior .1 | --output must be a folder
-o {used} --prior .1 | must be empty or hold a run on noisy measurements, but holds 'notes.txt'
= census occupancy study -o {out}
--protection swaping | --protection must be one of none
--protection swapping | --protection swapping needs rate: write swapping:rate=0.05
--protection none --protection uniform | uniform needs rho: write uniform:rho=0.1
--protection swapping:rte=0.1 | --protection swapping has no rte; settings: rate
--protection swapping:rate=2 | --protection must be in [0, 1], got '2'
--seeds 0 | --seeds must be >= 1, got 0
--seeds 1000000000 | --seeds must be <= 10000, got 1000000000
--alpha 0 | alpha must be
= census read -o {out}.parquet --from
ppmf {people} --dialect pums | --dialect goes with --from records
records {people} | --dialect must be said
sf1 {people} | --workload must be given
hud {people} | --level must be given once
sf1 {people} --state VT | --state goes with
ipums {own} | --codebook must be given
pl94 {people} --dataset ds248 | --dataset goes with --from nhgis
sf1 {pop} --workload sf1-block --table P | --table must be one
= release --protection none -o {out}
{used} | holds no microdata .. a file of records
{semicolons} |3 separated by commas, got ';' .. save records with commas .. bayesrisk attack
{latin} |3 save it as text in UTF-8
{counts} |3 counts.csv: column 'n' .. `bayesrisk attack
{dates} |3 column 'day': must hold no dates .. or write --columns ward,sex,ill; if it is
{dates} --place ward |3 or write --columns sex,ill;
= plan {own} -o {out} --quiet
--limit gain=3,5 | --limit must be NAME=NUMBER, got '3,5': write 3.5, with a point
= audit
{own} -o {out} --quiet --columns age,sex --protection swapping:rate=.1 | be more than one .. none
{odd} --known race | Did you mean 'race, group'? Write '"race, group"'
sample:hospital --known x | --known: column must be one of region, .. got 'x'
sample:hospital --known '' | --known must name a column
sample:dare-county-sweep --known a | must be a sample of microdata
sample:fifty-blocks --known a --schema pl94 | --schema goes
{used}/notes.txt --known a | records must end in .parquet or .csv
sample:synthetic-county | --known must be given .. such as sex,age
= report
nowhere | is not there: give the output folder of a sweep
{used} | holds no sweep .. give the output folder
= census simulate -o {used} --seed 3
--preset tract | notes.txt
= verify
none | none
{own} | is a file; give the folder that `bayesrisk release -o` wrote
{used} |3 _release.json
= census measurements -o {out} --prior .1
sample:dare-county-sweep | of noisy measurements, but 'dare-county-sweep' is settings of a sweep
sample:moon | of noisy measurements, but 'moon' is none .. samples of this kind: noisy-measurements
= release --protection none -o {out} --tables sf1-block
sample:dare-county-sweep | of microdata .. is settings of a sweep .. kind: fifty-blocks, synth
= census occupancy study -o {out}
sample:moon | must be a sample of microdata, but 'moon' is none .. kind: fifty-blocks, synth
= attack --only links x -o {out} --truth {people} --adversary
sample:dare-county-sweep | of microdata .. is settings of a sweep .. kind: fifty-blocks
= attack --only records -o {out} --scope block
sample:dare-county-sweep | of published tables .. is settings of a sweep .. none ships
= census occupancy attack -o {out}
sample:moon | must be a sample of published statistics, but 'moon' is none .. none ships
= census read -o {out}.parquet --from records
sample:dare-county-sweep | of census files .. is settings of a sweep .. none ships
= list
mechanism | must be one of mechanisms .. Did you mean 'mechanisms'
"""


def cases():
    shared = ""
    for line in CASES.strip().splitlines():
        if line.startswith("= "):
            shared = line[2:]
        else:
            words, data, message = re.split(r" ?\|(3?) ", line)
            yield pytest.param(
                f"{shared} {words}", 3 if data else 2, message, id=f"{shared} {words}"
            )


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """Return a small input of each kind, by its name in a command."""
    at = tmp_path_factory.mktemp("inputs")
    rng = np.random.default_rng(4)
    population = br.simulate_population("tract", rng=1)
    population.write(at / "pop")
    split_by_place(population, at / "parts", level="tract")
    people = person_records(rng, 20)
    people.write(at / "people.parquet")
    asked = br.Workload.named("sf1-block").union(br.Workload.named("sf1-tract"))
    br.tabulate(people, asked).write(at / "tables")
    own = {"patient": range(70), "clinic": "Mercy", "age": rng.integers(0, 95, 70), "sex": "M"}
    own |= {"diagnosis": rng.choice(["injury", "heart", "lung"], 70)}
    pd.DataFrame(own).to_csv(at / "own.csv", index=False)
    br.census.write_nmf(at / "US_Person_PL_PROD", rng=41, states=("057", "157"))
    texts = {
        "semicolons": b"ward;age\nA;1\nB;2\n", "latin": "ward,sex\nK\xf6ln,F\n".encode("latin-1"),
        "counts": b"sex,n\nF,*\nM,6\n",
        "dates": b"ward,day,sex,ill\n" + b"".join(
            b"A,2024-%02d-%02d,F,no\n" % (month, day) for month in (1, 2, 3) for day in range(1, 20)
        ) * 2,
        "odd": b'"race, group",ill\n"Black, alone",no\nWhite,yes\n',
    }  # fmt: skip
    for name, text in texts.items():
        (at / f"{name}.csv").write_bytes(text)
    (at / "used").mkdir()
    (at / "used" / "notes.txt").write_text("mine")
    names: tuple[str, ...] = tuple(f"{name}.csv" for name in texts)
    names += ("pop", "parts", "people.parquet", "tables", "own.csv", "used")
    return {name.split(".")[0]: at / name for name in names} | {
        "nmf": at / "US_Person_PL_PROD",
        "levels": "block=2,group=1,siblings=-1,n_siblings=27,rho_block=.1,rho_group=.2",
    }


@pytest.mark.parametrize(("words", "expected", "message"), list(cases()))
def test_refusals_name_the_option_and_write_nothing(
    run, inputs, tmp_path, monkeypatch, words, expected, message
):
    monkeypatch.chdir(tmp_path)
    status, out, err = run(*shlex.split(words.format(out=tmp_path / "out", **inputs)))
    assert (status, out) == (expected, ""), err
    assert err.startswith("bayesrisk: ")
    assert err.count("\n") == 1
    assert all(part in err for part in message.split(" .. ")), err
    assert list(tmp_path.iterdir()) == []
    assert [file.name for file in inputs["used"].iterdir()] == ["notes.txt"]
