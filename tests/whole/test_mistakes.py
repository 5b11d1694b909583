"""Mistakes of users of notebooks: a message names the thing, and the bound or the way out."""

from pathlib import Path

import pandas as pd
import pytest

import bayesrisk as br
from bayesrisk.experiments import AuditStudy, Protection
from bayesrisk.inference import KnownRecords
from bayesrisk.reconstruction import claim_sentences, count_bounds, find_claims

PLACES = br.tables.Geography("towns", ("ward",), (1,))
SEX = br.tables.Attribute("sex", 2, labels=("F", "M"))
SCHEMA = br.Schema("people", (SEX, br.tables.Attribute("age", 3)), PLACES)
OTHER = br.Schema("homes", (br.tables.Attribute("rooms", 4),), PLACES)
PEOPLE = pd.DataFrame({"ward": ["1", "1", "2"], "sex": ["F", "M", "M"], "age": [0, 1, 2]})
RECORDS = br.Records.from_frame(PEOPLE, schema=SCHEMA)
HOMES = br.Records.from_frame(pd.DataFrame({"ward": ["1"], "rooms": [2]}), schema=OTHER)
WORK = br.Workload.of(SCHEMA, [["sex"], ["age"]])
OTHER_WORK = br.Workload.of(OTHER, [["rooms"]])
TABLES = br.tabulate(RECORDS, WORK)
RELEASE = br.mechanisms.Identity().release(RECORDS, workload=WORK, rng=1)
PRIOR = br.inference.RecordPrior.uniform_data_sets(SCHEMA)
NODES = pd.DataFrame(
    {"node": ["g", "a"], "parent": ["", "g"], "noisy_count": [3, 2], "rho": [0.2, 0.2]}
)


def two_levels(**change):
    usual = {"n_siblings": 2, "rho_block": 0.5, "rho_group": 0.5, "prior": 0.1}
    return br.TwoLevels(**usual | change)


def study(**change):
    usual = {
        "population": RECORDS, "workload": WORK, "protections": [Protection("identity")],
        "adversaries": [br.risk.Adversary.named("linker", known=["age"])], "stated": ["sex"],
        "targets": 2, "releases": 1,
    }  # fmt: skip
    return AuditStudy(**usual | change).config


def audited(records=PEOPLE, **change):
    return br.audit(records, **{"key": "sex", "secret": "age", "protections": "none"} | change)


def frame_of(**change):
    return br.Records.from_frame(PEOPLE.assign(**change), schema=SCHEMA)


def asked(mechanism=None, **change):
    usual = {"observed": [("ward", "sex")], "alternatives": [{"sex": "M"}], "prior": 0.5}
    question = br.risk.MechanismQuestion(WORK, **usual | change)
    options = {"target": 0, "question": question, "draws": 40, "rng": 1}
    return br.mechanism_risk(RECORDS, mechanism=mechanism or br.mechanisms.Identity(), **options)


def posterior(count=3, **change):
    return br.posterior_probability(count, **{"rho": 0.1, "prior": 0.1} | change)


def file_of(folder, text, name="people.csv"):
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


#: What is done, its call (with an empty folder), and what the message must hold.
MISTAKES = {
    # Names.
    "a preset misspelt": (lambda f: br.simulate_population("conty", rng=1), "conty .. county"),
    "a sample misspelt": (lambda f: br.datasets.path("hospitl"), "hospitl .. hospital"),
    "a workload misspelt": (lambda f: br.Workload.named("sf1-blok"), "sf1-blok .. sf1-block"),
    "a scenario misspelt": (
        lambda f: posterior(sensitivity="change-on"),
        "sensitivity .. number .. change-on",
    ),
    "a solver misspelt": (lambda f: br.reconstruct(TABLES, scope="ward", solver="pulp:cbk"), "cbk"),
    "a scope misspelt": (lambda f: br.reconstruct(TABLES, scope="wards"), "scope .. wards .. ward"),
    "an adversary misspelt": (
        lambda f: br.risk.Adversary.named("linkr", known=["age"]),
        "linkr .. linker",
    ),
    # Budgets, priors and counts.
    "rho negative": (lambda f: posterior(rho=-1), "rho .. > 0 .. -1"),
    "rho as text": (lambda f: posterior(rho="big"), "rho .. 'big'"),
    "no rho and no sigma2": (lambda f: posterior(rho=None), "--rho|rho .. sigma2"),
    "rho and sigma2": (lambda f: posterior(sigma2=1), "rho .. sigma2"),
    "sigma2 of zero": (lambda f: posterior(rho=None, sigma2=0), "sigma2 .. > 0 .. 0"),
    "a prior of one": (lambda f: posterior(prior=1), "prior .. < 1 .. 1"),
    "a list of fractions, one wrong": (
        lambda f: posterior(prior=["1/10", "2/1"]),
        "prior .. < 1 .. 2",
    ),
    "a prior in per cent": (lambda f: posterior(prior=10), "prior .. < 1 .. 10"),
    "a fraction that divides by zero": (lambda f: posterior(prior="1/0"), "prior .. 1/0"),
    "text for a fraction": (lambda f: posterior(prior="one in ten"), "prior .. one in ten"),
    "a list where text belongs": (lambda f: posterior(prior=["1/10", "x"]), "prior .. 'x'"),
    "a count of half a person": (lambda f: posterior(2.5), "noisy_count .. whole number .. 2.5"),
    "axes that do not fit": (
        lambda f: posterior([1, 2, 3], prior=[0.1, 0.2]),
        "noisy_count .. prior .. (3,) .. (2,)",
    ),
    "probabilities that do not sum to 1": (
        lambda f: br.distributions.FiniteLaw(0, [0.5, 0.4]),
        "probabilities .. 1 .. 0.9",
    ),
    "a probability below 0": (
        lambda f: br.distributions.FiniteLaw(0, [1.5, -0.5]),
        "probabilities .. -0.5",
    ),
    "siblings that are no number": (
        lambda f: two_levels(n_siblings=-1),
        "n_siblings .. >= 1 .. -1",
    ),
    "a group without budget": (lambda f: two_levels(rho_group=-1), "rho_group .. >= 0 .. -1"),
    "no draws": (
        lambda f: two_levels().sample(1, 2, 3, draws=0, warmup=1, chains=1, rng=1),
        "draws .. >= .. 0",
    ),
    "a seed as text": (
        lambda f: two_levels().sample(1, 2, 3, draws=9, warmup=1, chains=1, rng="one"),
        "rng .. 'one'",
    ),
    "seed instead of rng": (lambda f: two_levels().sample(1, 2, 3, seed=1), "seed"),
    "seed of a population": (lambda f: br.simulate_population("tract", seed=1), "seed .. rng"),
    "a seed below 0": (lambda f: br.simulate_population("tract", rng=-1), "rng .. >= 0 .. -1"),
    # Frames, records and files.
    "a frame without a column": (
        lambda f: br.Records.from_frame(PEOPLE[["ward", "sex"]], schema=SCHEMA),
        "age .. ward, sex",
    ),
    "a column of places misspelt": (
        lambda f: br.Schema.from_frame(PEOPLE, place="wrd"),
        "wrd .. is it called 'ward'",
    ),
    "columns misspelt": (
        lambda f: br.Schema.from_frame(PEOPLE, columns=["sxe"]),
        "sxe .. 'ward', 'sex', 'age'",
    ),
    "a label that does not exist": (
        lambda f: frame_of(sex=["F", "M", "X"]),
        "row 3 .. 'sex' .. 'F', 'M' .. 'X'",
    ),
    "no frame": (lambda f: br.Records.from_frame([1, 2], schema=SCHEMA), "frame .. list"),
    "a name where a schema belongs": (
        lambda f: br.Records.from_frame(PEOPLE, schema="people"),
        "schema .. 'people'|schema .. str",
    ),
    "a file with a wrong value": (
        lambda f: br.Records.read(file_of(f, "ward,sex,age\n1,F,x\n"), schema=SCHEMA),
        "people.csv .. row 1 .. 'age' .. 'x'",
    ),
    "a tree without a column": (lambda f: br.Tree.from_frame(NODES.drop(columns="rho")), "rho"),
    "a parent that is no node": (
        lambda f: br.Tree.from_frame(NODES.assign(parent=["", "x"])),
        "parent .. 'x'",
    ),
    "a node twice": (lambda f: br.Tree.from_frame(NODES.assign(node="g")), "node .. 'g'"),
    "known people without a place": (
        lambda f: KnownRecords.from_frame(PEOPLE, place="block"),
        "block",
    ),
    # Tables and workloads.
    "a column that no table can have": (
        lambda f: br.Workload.of(SCHEMA, [["race"]]),
        "race .. sex, age",
    ),
    "records where a workload belongs": (
        lambda f: br.tabulate(WORK, RECORDS),
        "workload .. Records",
    ),
    "a count of people below 0": (
        lambda f: two_levels().average(group_count=-1),
        "group_count .. >= .. -1",
    ),
    # Protections and releases.
    "a parameter misspelt": (lambda f: br.make_mechanism("swapping:rat=0.1"), "rat"),
    "a recipe without a value": (
        lambda f: br.make_mechanism("rounding:base"),
        "KEY=VALUE .. 'base'",
    ),
    "rounding to 1": (lambda f: br.Rounding(base=1, method="random"), "base .. >= 2 .. 1"),
    "a method of rounding misspelt": (
        lambda f: br.Rounding(base=3, method="randm"),
        "method .. randm .. random",
    ),
    "records of another schema": (
        lambda f: br.mechanisms.Identity().release(HOMES, workload=WORK),
        "records .. homes .. people",
    ),
    "a release without tables": (lambda f: br.mechanisms.Identity().release(RECORDS), "workload"),
    "the name of a protection where one belongs": (
        lambda f: asked(mechanism="identity"),
        "mechanism .. 'identity'",
    ),
    "a folder that exists": (lambda f: RELEASE.write(file_of(f, "x").parent), "people.csv|empty"),
    "a file that is no release": (lambda f: br.Release.read(file_of(f, "x")), "people.csv"),
    "a folder that is no release": (lambda f: br.Release.read(f), "release.json"),
    # Attacks and audits.
    "records where a release belongs": (
        lambda f: br.reconstruct(RECORDS, scope="ward"),
        "tables .. Records",
    ),
    "no table at all": (lambda f: br.attack([]), "tables .. at least one .. none"),
    "an option nearly right": (
        lambda f: find_claims(TABLES, maxcolumns=2),
        "maxcolumns .. find_claims .. 'max_columns'",
    ),
    "a time limit of 0": (
        lambda f: br.reconstruct(TABLES, scope="ward", time_limit=0),
        "time_limit .. > 0 .. 0",
    ),
    "claims about a column that is not there": (
        lambda f: find_claims(TABLES, among={"race": [1]}),
        "among .. race .. sex",
    ),
    "sentences about something else": (
        lambda f: claim_sentences(TABLES),
        "claims .. Claims .. PublishedTables",
    ),
    "a query about no column": (
        lambda f: count_bounds(TABLES, queries=[{"race": 1}]),
        "queries .. Workload .. race",
    ),
    "a truth of another schema": (
        lambda f: br.reconstruct(TABLES, scope="ward").statements(
            release=RELEASE, prior=PRIOR, truth=HOMES, known=["age"], stated=["sex"]
        ),
        "records .. homes .. people",
    ),
    "known and stated the same": (lambda f: study(stated=["age"]), "stated .. age"),
    "stated no column": (lambda f: study(stated=["race"]), "stated .. race .. sex"),
    "no protection at all": (lambda f: study(protections=[]), "protections"),
    "targets below 1": (lambda f: study(targets=0), "targets .. >= 1 .. 0"),
    "tables of another schema": (lambda f: study(workload=OTHER_WORK), "stated .. rooms .. sex"),
    "an alternative that does not exist": (
        lambda f: asked(alternatives=[{"sex": "X"}]),
        "sex .. 'X'",
    ),
    "an alternative that is the record": (
        lambda f: asked(alternatives=[{"sex": "F"}]),
        "alternatives",
    ),
    "observed no table": (lambda f: asked(observed=[("ward", "race")]), "observed .. race .. sex"),
    # Types and names of arguments.
    "a column where a frame belongs": (
        lambda f: audited(PEOPLE["age"]),
        "records .. pandas.Series: write records.to_frame()",
    ),
    "an array where a frame belongs": (
        lambda f: audited(PEOPLE.to_numpy()),
        "records .. numpy.ndarray: write pandas.DataFrame(records",
    ),
    "tables where records belong": (
        lambda f: audited(TABLES),
        "records .. PublishedTables: bayesrisk.attack(tables)",
    ),
    "records where tables belong": (
        lambda f: br.attack(RECORDS),
        "tables .. Records: bayesrisk.audit(records",
    ),
    "a release where its tables belong": (
        lambda f: br.reconstruct(RELEASE, scope="ward"),
        "tables .. Release: give its tables, release.tables",
    ),
    "a frame where records belong": (
        lambda f: br.tabulate(PEOPLE, WORK),
        "records must be a Records, got a DataFrame of 3 x 3: write Records.from_frame(frame)",
    ),
    "a class made of a frame": (
        lambda f: br.PublishedTables(PEOPLE),
        "write PublishedTables.from_frame(frame)",
    ),
    "a number for a recipe": (
        lambda f: audited(protections={"noise": 0.1}),
        "protections['noise'] must be a recipe .. got 0.1",
    ),
    "a mechanism for a recipe": (
        lambda f: audited(protections=[br.Rounding(base=5)]),
        "protections[0] must be a recipe .. Rounding(base=5",
    ),
    "a class for a mechanism": (
        lambda f: br.release(PEOPLE[["sex"]], protection=br.Rounding),
        "protection must be a recipe, such as 'rounding:base=5'",
    ),
    "a key twice": (lambda f: audited(key=["sex", "sex"]), "key .. once, got 'sex' more than once"),
    "one cut that is no list": (
        lambda f: audited(cuts={"age": 65}),
        "cuts['age'] must be a sequence, got 65",
    ),
    "cuts in the wrong order": (
        lambda f: audited(cuts={"age": [65, 18]}),
        "cuts['age'] must increase: write [18, 65], got [65.0, 18.0]",
    ),
    "cuts without a column": (
        lambda f: audited(cuts=[18, 65]),
        "cuts must be a mapping, got [18, 65]: write cuts={'age': [18, 65]}",
    ),
    "a text for a list": (
        lambda f: find_claims(TABLES, among={"sex": "F"}),
        "among['sex'] must be a sequence, got 'F': write ['F']",
    ),
    "an adversary alone misspelt": (
        lambda f: audited(adversaries="linkr"),
        "adversaries .. 'linkr'. Did you mean 'linker'",
    ),
    "a method alone misspelt": (
        lambda f: audited(methods="posterio"),
        "methods .. 'posterio'. Did you mean 'posterior'",
    ),
    "a base as a word": (
        lambda f: br.release(PEOPLE[["sex"]], protection="rounding:base=five"),
        "rounding:base must be a whole number, got 'five'",
    ),
    "a base that is no whole number": (
        lambda f: br.Rounding(base=5.5),
        "base must be a whole number, got 5.5: write 5 or 6",
    ),
    "a recipe without its colon": (
        lambda f: br.make_mechanism("rounding base=5"),
        "write rounding:base=5",
    ),
    "a parameter that is not there": (
        lambda f: br.make_mechanism("rounding", bas=3),
        "rounding needs base: write rounding:base=5; it has no 'bas'. Did you mean 'base'?",
    ),
    "one word among numbers": (
        lambda f: br.risk_curve([0.1, "a"], 0.1),
        "rho .. got 'a'",
    ),
    "a list where one number belongs": (
        lambda f: br.rho_for_risk("50%", prior=0.1),
        "limit must be a number, got '50%': write 0.5",
    ),
    "no seed of chains": (
        lambda f: two_levels().sample(1, 2, 3, draws=9, warmup=1, chains=1),
        "TwoLevels.sample needs rng: write TwoLevels.sample(..., rng=...)",
    ),
    "a method of the class": (
        lambda f: br.TwoLevels.sample(1, 2, 3, draws=9, warmup=1, chains=1, rng=1),
        "sample must be called on an object .. write TwoLevels(...).sample(...)",
    ),
    "a release of the class": (
        lambda f: br.Rounding.release(RECORDS, workload=WORK),
        "release must be called on an object",
    ),
    "an argument without its name": (
        lambda f: br.Rounding(base=5).release(RECORDS, WORK),
        "Rounding.release takes 1 argument .. write Rounding.release(microdata=..., workload=...)",
    ),
    "no folder to write into": (lambda f: RELEASE.write(), "Release.write needs folder"),
    "epsilon of a scale": (
        lambda f: br.DiscreteLaplace(epsilon=1),
        "epsilon .. write scale=1 / epsilon",
    ),
    "a range for every mark": (
        lambda f: br.attack(file_of(f, "Ward,Count\nA,c\nAll,6\n"), marks="1-4"),
        "marks .. write marks.MARK=1-4, got '1-4'",
    ),
    "a mark that is not there": (
        lambda f: br.attack(file_of(f, "Ward,Count\nA,c\nAll,6\n"), marks={"X": "1-4"}),
        "marks.X must be about a mark of the files: 'c'",
    ),
    "no workers of a plan": (
        lambda f: br.plan(PEOPLE[["sex"]], limits={"recovered": 0}, workers=0),
        "workers must be >= 1, got 0",
    ),
    "no scope": (lambda f: br.solution_variability(TABLES, scope=None), "scope .. None"),
    "a file that is not there": (
        lambda f: br.attack(file_of(f, "x").with_name("peple.csv")),
        "peple.csv: cannot be read: there is no such file. Did you mean 'people.csv' in",
    ),
    "a workbook called csv": (
        lambda f: audited(file_of(f, "PK\x03\x04")),
        "people.csv: must be text, is a workbook",
    ),
    "an iterator for numbers": (
        lambda f: br.risk_curve((rho for rho in (0.1, 1.0)), 0.1),
        "rho must hold real numbers .. write list(rho)",
    ),
    "an iterator for tables": (
        lambda f: br.attack(iter(["a.csv"])),
        "tables .. write list(tables)",
    ),
    "several numbers in a text": (
        lambda f: br.risk_curve("0.1,0.2", 0.1),
        "rho .. got '0.1,0.2': write [0.1, 0.2]",
    ),
    "a seed of a release as text": (
        lambda f: br.release(PEOPLE[["sex"]], protection="none", seed="2024"),
        "seed .. got '2024': write 2024",
    ),
    "a seed as a decimal": (
        lambda f: br.release(PEOPLE[["sex"]], protection="none", seed=3.0),
        "seed .. got 3.0: write 3",
    ),
    "a parameter beside a recipe that has it": (
        lambda f: br.make_mechanism("rounding:base=5", base=3),
        "base must be given once: the recipe has base=5, got 3",
    ),
    "no as text": (
        lambda f: br.Suppression(threshold=3, complementary="no"),
        "complementary must be True or False, got 'no'; in a recipe write true or false",
    ),
    "the budget for the noise": (
        lambda f: br.risk_distribution(rho=0.1, prior=0.1),
        "rho is no argument of risk_distribution .. write noise=bayesrisk.Noise(rho=0.1)",
    ),
    "the noise for the budget": (
        lambda f: br.marginal_risk(noise=br.Noise(rho=0.1), prior=0.1),
        "noise is no argument of marginal_risk .. write rho=",
    ),
    "a probability without its measure": (
        lambda f: br.rho_for_risk(1.5, prior=0.1, probability=0.9),
        "probability .. got 0.9: write measure='quantile'",
    ),
    "a folder for tables": (
        lambda f: count_bounds("rel"),
        "tables must be PublishedTables .. 'rel'",
    ),
    "places in the index": (
        lambda f: br.Schema.from_frame(PEOPLE.set_index("ward"), place="ward"),
        "lacks ['ward'] .. it is an index; write frame.reset_index()",
    ),
    "a number for a heading": (
        lambda f: br.Schema.from_frame(PEOPLE.rename(columns={"age": 7})),
        "lacks ['7'] .. write frame.rename(columns=str)",
    ),
    "numbers as objects": (
        lambda f: br.Schema.from_frame(PEOPLE.astype(object), columns=["age"]),
        "column 'age' .. got 0 as an object: frame.infer_objects()",
    ),
    "no rows, but places": (
        lambda f: br.Schema.from_frame(PEOPLE.head(0), place="ward"),
        "frame must have a row to have places, got none",
    ),
    "labels of other records": (
        lambda f: frame_of(sex=["yes", "no", "no"]),
        "row 1, column 'sex' .. 'F', 'M', got 'yes'",
    ),
    "a secret that is the place": (
        lambda f: audited(PEOPLE.assign(ward=list("AAB")), secret="ward", place="ward"),
        "columns and places must give each once, got 'ward'",
    ),
    "a place without records": (
        lambda f: br.release(
            PEOPLE.assign(ward=["Hill", "Hill", "Lake"]),
            protection="none",
            place="ward",
            places=["Hill", "Lake", "North"],
        ),
        "places must be codes .. 'North'] .. names: ['Hill', 'Lake']",
    ),
    "no audit in the folder": (lambda f: br.run(f / "no.toml", f / "out"), "study .. Path"),
}


def holds(message, wanted):
    """Return whether a message has all parts, in one of the wordings that ``|`` separates."""
    return any(all(part in message for part in way.split(" .. ")) for way in wanted.split("|"))


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named_with_the_way_out(mistake, tmp_path):
    call, wanted = MISTAKES[mistake]
    with pytest.raises((br.BayesRiskError, AttributeError, TypeError)) as caught:
        call(tmp_path)
    if not isinstance(caught.value, br.BayesRiskError):
        assert "Did you mean" in str(caught.value) or "argument" in str(caught.value)
    assert holds(str(caught.value), wanted), f"{type(caught.value).__name__}: {caught.value}"
    assert len(str(caught.value)) < 400
    assert str(Path(__file__).parents[2]) not in str(caught.value)
