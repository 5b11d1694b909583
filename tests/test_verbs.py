"""Verbs of the front door: the same numbers as by hand, and what they refuse."""

import html

import pandas as pd
import pytest

import bayesrisk as br
from bayesrisk.exceptions import BayesRiskError
from bayesrisk.experiments import AuditStudy, Protection
from bayesrisk.risk import Adversary

pytestmark = pytest.mark.usefixtures("quick_figures")

FRAME = pd.DataFrame(
    {
        "place": list("AB") * 20,
        "sex": ["F", "M"] * 20,
        "age": [20, 30, 40, 50] * 10,
        "ill": (["no"] * 17 + ["yes"] * 3) * 2,
    }
)
FEW = {"targets": 6, "releases": 2, "seed": 5}


def test_audit_is_the_study_of_the_same_records(tmp_path):
    found = br.audit(
        FRAME, key=["sex", "age"], secret="ill", protections={"half": "swapping:rate=0.5"}, **FEW
    )
    schema = br.Schema.from_frame(FRAME, columns=["sex", "age", "ill"], place="place")
    names = ("outsider", "linker", "knows-all-but-one")
    known = {"linker": ["sex", "age"]}
    study = AuditStudy(
        br.Records.from_frame(FRAME, schema=schema),
        br.Workload.of(schema),
        protections=[Protection("half", "swapping:rate=0.5")],
        adversaries=[Adversary.named(name, known=known.get(name, ())) for name in names],
        stated=["ill"],
        **FEW,
    )
    br.run(study, tmp_path / "by-hand")
    by_hand = br.read_audit(tmp_path / "by-hand")
    for name in ("statements", "measures", "costs", "comparisons"):
        pd.testing.assert_frame_equal(getattr(found, name), getattr(by_hand, name))
    assert len(found.statements) > 30


def test_audit_results_say_the_sentences_of_the_run_first(tmp_path):
    schema = br.Schema.from_frame(FRAME, columns=["sex", "ill"], place="place")
    study = AuditStudy(
        br.Records.from_frame(FRAME, schema=schema),
        br.Workload.of(schema),
        protections=[Protection("none")],
        adversaries=[Adversary.named("outsider")],
        stated=["ill"],
        **FEW,
    )
    brief = br.run(study, tmp_path / "audit").brief
    found = br.read_audit(tmp_path / "audit")
    assert len(brief) == 2  # the sentence in front, and a line for the protection
    assert " ".join(repr(found).split()) == " ".join(f"AuditResults: {' '.join(brief)}".split())
    assert html.escape(brief[0]) in found._repr_html_()


def test_audit_of_a_file_keeps_its_folder_when_it_is_named(tmp_path):
    FRAME.to_csv(tmp_path / "people.csv", index=False)
    options = {"key": "sex", "secret": "ill", "protections": ["identity"], **FEW}
    found = br.audit(tmp_path / "people.csv", folder=tmp_path / "audit", **options)
    assert (tmp_path / "audit" / "report.html").exists()
    assert (tmp_path / "audit").stat().st_mode & 0o077 == 0
    pd.testing.assert_frame_equal(found.measures, br.audit(FRAME, **options).measures)


def test_audit_refuses_what_cannot_be_asked():
    with pytest.raises(br.ArgumentError, match="secret must be no key, got 'ill'"):
        br.audit(FRAME, key=["sex", "ill"], secret="ill", protections=["identity"])
    with pytest.raises(br.DataError, match=r"lacks \['illness'\]"):
        br.audit(FRAME, key="sex", secret="illness", protections=["identity"])


def test_a_release_counts_the_records_of_a_frame_or_a_file(tmp_path):
    made = br.release(FRAME, protection="identity")
    by_place = pd.crosstab(FRAME["place"], FRAME["ill"])
    assert made.tables.counts["place", "ill"].toarray().tolist() == by_place.to_numpy().tolist()
    FRAME.to_csv(tmp_path / "people.csv", index=False)
    assert br.release(tmp_path / "people.csv", protection="identity").tables == made.tables
    rounded = br.release(FRAME, protection="rounding:base=5,method=nearest")
    by_hand = (2 * by_place + 5) // 10 * 5
    assert rounded.tables.counts["place", "ill"].toarray().tolist() == by_hand.to_numpy().tolist()


def test_a_seed_makes_a_simulation_and_a_folder_is_written(tmp_path):
    options = {"protection": "discrete-gaussian:rho=1", "columns": ["sex", "ill"], "seed": 3}
    made = br.release(FRAME, folder=tmp_path / "out", **options)
    assert made.simulation
    assert br.Release.read(tmp_path / "out").tables == made.tables
    assert br.release(FRAME, **options).tables == made.tables
    assert not br.release(FRAME, **options | {"seed": None}).simulation


def test_records_say_their_places_and_censuses_need_tables():
    people = br.Records.from_frame(FRAME.drop(columns="place"))
    with pytest.raises(br.ArgumentError, match="place and cuts go with frames and files"):
        br.release(people, protection="identity", place="sex")
    town = br.datasets.load_microdata("synthetic-county")
    with pytest.raises(br.ArgumentError, match="tables must be given"):
        br.release(town, protection="identity")


def test_tables_are_lists_of_the_columns_that_each_crosses():
    chosen = {"columns": ["sex", "ill"], "place": "place"}
    schema = br.Schema.from_frame(FRAME, **chosen)
    work, listed = br.Workload.of(schema, [("sex", "ill"), "ill", ()]), [["sex", "ill"], "ill", []]
    made = br.release(FRAME, protection="identity", tables=listed, **chosen)
    assert made.tables.workload == work
    by_hand = FRAME.groupby(["place", "sex", "ill"]).size().unstack(["sex", "ill"], fill_value=0)
    cells = [tuple(name.split(", ")) for name in work.tables["place", "sex * ill"].cells]
    counts = made.tables.counts["place", "sex * ill"].toarray()
    assert counts.tolist() == by_hand[cells].to_numpy().tolist()
    people = br.Records.from_frame(FRAME, schema=schema)
    assert br.release(people, protection="identity", tables=listed).tables == made.tables
    assert br.plan(FRAME, listed, limits={"proved": 9}, **chosen).workload == work
    asked = {"key": "sex", "secret": "ill", "protections": "none", **FEW}
    found = br.audit(FRAME, tables=listed, **asked)
    by_workload = br.audit(FRAME, tables=work, **asked)
    pd.testing.assert_frame_equal(found.statements, by_workload.statements)


@pytest.mark.parametrize(
    ("tables", "text"),
    [
        ("sex", r"tables must be lists of columns, such as .*, or a Workload, got 'sex'"),
        (3, r"tables must be lists of columns, such as .*, or a Workload, got 3"),
        ([["sex", "il"]], r"tables\[0\] must be one of sex, ill, got 'il'. Did you mean 'ill'"),
        (["ill", ["sex", 3]], r"tables\[1\]\[1\] must be a text, got 3"),
        ([["sex"], ["sex"]], "table 'sex' must be defined once"),
        ([], "tables must have at least one table, got none"),
    ],
)
def test_tables_that_are_none_are_refused_with_what_to_write(tables, text):
    with pytest.raises(br.ArgumentError, match=text):
        br.release(FRAME, protection="identity", tables=tables, columns=["sex", "ill"])
    with pytest.raises(br.ArgumentError, match=text):
        br.audit(FRAME, key="sex", secret="ill", protections="none", tables=tables)


def test_a_plan_takes_frames_files_and_records_as_the_other_verbs(tmp_path):
    limits = {"recovered": 0}
    chosen = {"columns": ["sex", "age"], "place": "place", "cuts": {"age": [35]}}
    found = br.plan(FRAME, limits=limits, **chosen)
    schema = br.Schema.from_frame(FRAME, **chosen)
    work, people = br.Workload.of(schema), br.Records.from_frame(FRAME, schema=schema)
    by_hand = br.risk.planning.release_plan.plan(people, work, limits=limits)
    assert by_hand.workload.levels == ("place",)
    assert found.rules == by_hand.rules
    assert len(found.rules["place"]) == 4
    pd.testing.assert_frame_equal(found.frontier, by_hand.frontier)
    # A file has the same answer, and so have records with their tables.
    FRAME.to_csv(tmp_path / "people.csv", index=False)
    assert br.plan(tmp_path / "people.csv", limits=limits, **chosen).rules == found.rules
    assert br.plan(people, work, limits=limits).rules == found.rules
    assert br.plan(FRAME, tables=work, limits=limits).rules == found.rules
    assert found.release(people).tables.workload == work
    with pytest.raises(br.ArgumentError, match="place and cuts go with frames"):
        br.plan(people, limits=limits, place="place")


def test_release_is_the_verb_and_the_room():
    assert callable(br.release)
    assert br.release.Release is br.Release
    with pytest.raises(TypeError, match="protection"):
        br.release(FRAME)


def test_one_name_is_a_sequence_of_one():
    made = br.release(FRAME, protection="none", columns="sex", place="place")
    assert made.tables.workload.schema.names == ("sex",)
    found = br.audit(FRAME, key="sex", secret="ill", protections="none", targets=2)
    assert found.measures["protection"].unique().tolist() == ["none"]
    assert br.plan(FRAME, limits="recovered=0", columns="ill").rules is not None


DATED = pd.concat([FRAME, FRAME], ignore_index=True)
DATED["day"] = [f"2019-{i // 28 + 1:02}-{i % 28 + 1:02}" for i in range(len(DATED))]


@pytest.mark.parametrize("change", ["add-remove", "change-one"])
def test_a_sensitivity_may_be_said_by_what_a_neighbour_does(change):
    delta = {"add-remove": 1.0, "change-one": 2**0.5}[change]
    asked = {"prior": 0.1, "rho": 0.3}
    for ask in (
        lambda s: br.posterior_probability(4, **asked, sensitivity=s),
        lambda s: br.rho_for_risk(1.5, prior=0.1, sensitivity=s),
        lambda s: br.accounting.sigma2_from_rho(0.3, s),
        lambda s: br.risk_curve([0.3], 0.1, sensitivity=s).to_frame().to_numpy().tolist(),
        lambda s: br.TwoLevels(
            n_siblings=2, rho_block=0.1, rho_group=0.2, prior=0.5, sensitivity=s
        ).posterior(2, 1, -1),
    ):
        assert repr(ask(change)) == repr(ask(delta))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: br.audit(FRAME, key="sex", secret="ill", protections="none", target=3),
         ("options must be one of", "got 'target'. Did you mean 'targets'?")),
        (lambda: br.audit(FRAME, key="sex", secret="ill", protections="none", adversaries=["me"]),
         ("adversaries must be one of outsider, linker", "got 'me'")),
        (lambda: br.audit(FRAME, key="sex", secret="ill", protections=["none", "none"]),
         ("protections must give each once", "got 'none' more than once")),
        (lambda: br.audit(FRAME.drop(columns="place"), key="sex", secret="ill",
                          protections="swapping:rate=0.1"),
         ("must be more than one, between which", "--place town, in Python place='town'")),
        (lambda: br.release(FRAME, protection="none", seed="x"), ("seed must be", "got 'x'")),
        (lambda: br.release(FRAME, protection="rounding"), ("needs base", "rounding:base=5")),
        (lambda: br.release(FRAME, protection=br.Rounding),
         ("protection must be a recipe", "got the class Rounding itself")),
        (lambda: br.release(FRAME, protection="rounding:base=5%"), ("base", "'5%': write how")),
        (lambda: br.release(FRAME, protection="rounding:base=2.5"),
         ("base must be a whole number, got '2.5'",)),
        (lambda: br.Suppression(threshold="3"), ("got '3': write 3, without",)),
        (lambda: br.release(FRAME, protection="discrete-gaussian"),
         ("discrete-gaussian:rho=1",)),
        (lambda: br.release(FRAME, protection="discrete-laplace"),
         ("discrete-laplace:epsilon=1",)),
        (lambda: br.release(FRAME, protection="topdown"), ("rho", "write topdown:rho=1")),
        (lambda: br.posterior_probability(4, prior=0.1, rho=0.1, sensitivity="change_one"),
         ("a number or one of add-remove, change-one", "Did you mean 'change-one'?")),
        (lambda: br.audit(FRAME, key="sex", secret="ill", protections="none", rng=1),
         ("options must be one of 22 names", "got 'rng': write seed=1")),
        (lambda: br.audit(FRAME, key="sex", secret="ill", protections="none", columns=["sex"]),
         ("columns is no argument of audit: key and secret name",)),
        (lambda: br.audit(DATED, key="sex", secret="day", protections="none"),
         ("must hold no dates", "or name other columns as key and secret")),
        (lambda: br.audit(FRAME.head(0), key="sex", secret="ill", protections="none"),
         ("must have at least one row, got none",)),
        (lambda: br.release(FRAME, protection="none", columns="sex, ill"),
         ("write a list, ['sex', 'ill']",)),
        (lambda: br.audit(FRAME, key="sex", secret="il", protections="none"),
         ("lacks ['il']", "is it called 'ill'?")),
        (lambda: br.risk_curve("0,1", 0.1), ("rho must be a number", "write 0.1, with a point")),
        (lambda: br.Release.read("."), ("holds no release", "`bayesrisk release -o` wrote")),
        (lambda: br.PublishedTables.read("."), ("no such file", "PublishedTables.write")),
    ],
)  # fmt: skip
def test_mistakes_say_what_to_write_and_leave_nothing(call, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BayesRiskError) as caught:
        call()
    assert [part for part in said if part not in str(caught.value)] == []
    assert list(tmp_path.iterdir()) == []


def test_an_audit_has_no_columns_and_says_what_names_them():
    frame = pd.DataFrame({"sex": ["F", "M"] * 10, "ill": ["no", "yes"] * 10})
    with pytest.raises(br.exceptions.ArgumentTypeError, match="key and secret name the columns"):
        br.audit(frame, key="sex", secret="ill", protections="none", columns=["sex", "ill"])
