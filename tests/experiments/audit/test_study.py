"""An audit as a study: same bytes however it is run, refusals, damage, and a private folder."""

import html
import io
import json
import string

import numpy as np
import pandas as pd
import pytest
from audits import WORKLOAD, contents
from hypothesis import given
from hypothesis import strategies as st

from bayesrisk.exceptions import ArgumentError, BayesRiskError, OutputError, PartFileError
from bayesrisk.experiments import run
from bayesrisk.experiments.audit import AuditStudy, Protection, parse_protection, read_audit
from bayesrisk.experiments.audit.report import audit_files
from bayesrisk.risk import Statements
from bayesrisk.risk.audit import Adversary, audit_checks

WHO = [Adversary.named("outsider"), Adversary.named("linker", known=["sex"])]
WHAT = [parse_protection(text) for text in ("identity", "swapping:rate=0.3", "rounding")]


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    rng = np.random.default_rng(3)
    codes = {"sex": rng.integers(0, 2, 40), "race": rng.choice(3, 40, p=[0.7, 0.2, 0.1])}
    frame = pd.DataFrame(codes | {"block": [f"10{i}" for i in rng.integers(0, 6, 40)]})
    file = tmp_path_factory.mktemp("people") / "people.csv"
    frame.to_csv(file, index=False)
    return file


def study(people, **options):
    options = {"protections": WHAT[:2], "adversaries": WHO, "stated": ["race"]} | options
    return AuditStudy(
        people, WORKLOAD, targets=options.pop("targets", 8), targets_per_shard=4, **options
    )


@pytest.fixture(scope="module")
def done(people, tmp_path_factory):
    folder = tmp_path_factory.mktemp("done") / "out"
    return folder, run(study(people), folder)


def test_the_summary_says_what_the_files_say(done):
    folder, summary = done
    statements, found = read_audit(folder)
    assert summary.complete
    assert summary.shards == summary.computed > 3
    assert summary.statements == len(statements)
    assert summary.targets == 8 == statements["target"].nunique()
    assert len(summary.answers) == len(found[found["group"] == "everybody"]) == 2 * 3
    first = found.iloc[0]
    assert f"right about {first['right_posterior']:.1%}" in summary.answers[0]
    assert set(pd.read_csv(folder / "summary.csv")["protection"]) == {p.name for p in WHAT[:2]}


def test_statements_of_an_audit_have_two_ratios(done):
    statements, _ = read_audit(done[0])
    said = Statements(statements)
    assert Statements.read(done[0] / "statements.parquet").frame.equals(said.frame)
    np.testing.assert_array_equal(said.frame[statements.columns], statements)
    prior, without, posterior = (said.frame[c] for c in ("prior", "without", "posterior"))
    np.testing.assert_array_equal(said.learned, said.frame["ratio"])
    np.testing.assert_allclose(said.learned * prior, posterior, rtol=1e-12)
    known = without > 0
    np.testing.assert_allclose(
        (said.learned_from_own_record * without)[known], posterior[known], rtol=1e-12
    )
    # They differ: what an outsider learns of a place is not due to the target alone.
    assert not np.allclose(said.learned[known], said.learned_from_own_record[known])
    assert {"posterior_error", "without_error", "correct"} <= set(said.frame)
    missing = Statements(statements.drop(columns="without"))
    assert missing.learned_from_own_record.isna().all()


def test_only_the_owner_may_read_the_folder(done):
    folder, _ = done
    assert folder.stat().st_mode & 0o777 == 0o700
    for file in folder.rglob("*"):
        # These hold settings and digests alone, which the closed folder keeps.
        if file.is_file() and file.name not in ("manifest.json", "config.json"):
            assert file.stat().st_mode & 0o077 == 0


def test_shards_and_a_resumed_run_give_the_same_bytes(people, done, tmp_path):
    parts = [run(study(people), tmp_path / "out", shard=(i, 3), resume=True) for i in (1, 2, 3)]
    assert [part.complete for part in parts] == [False, False, True]
    assert sum(part.computed for part in parts) == done[1].shards
    assert contents(tmp_path / "out") == contents(done[0])


def test_an_unfinished_or_altered_audit_is_not_read(people, done, tmp_path):
    with pytest.raises(OutputError):
        read_audit(tmp_path / "nowhere")
    run(study(people), tmp_path / "part", shard=(1, 3))
    with pytest.raises(PartFileError, match="is not finished"):
        read_audit(tmp_path / "part")
    run(study(people), tmp_path / "part", resume=True)
    file = tmp_path / "part" / "statements.parquet"
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    with pytest.raises(PartFileError, match=r"statements\.parquet: .*changed"):
        read_audit(tmp_path / "part")
    file.unlink()
    with pytest.raises(PartFileError, match=r"statements\.parquet"):
        read_audit(tmp_path / "part")


def test_more_targets_than_people_are_everybody(people):
    both = [study(people, targets=n).shards for n in (None, 40, 10**6)]
    assert len(set(both)) == 1
    (population,) = study(people, targets=10**6)._populations.values()
    np.testing.assert_array_equal(population.known.targets, np.arange(40))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"protections": [WHAT[0], WHAT[0]]}, "each of another name"),
        ({"protections": []}, "at least one"),
        ({"protections": [parse_protection("identify")]}, "Did you mean 'identity'"),
        ({"protections": [parse_protection("swapping")]}, "rate"),
        ({"protections": [parse_protection("discrete-gaussian")]}, "rho|budgets"),
        ({"protections": [parse_protection("rounding:base=0")]}, "base must be"),
        ({"protections": [parse_protection("swapping:rate=0.1,unit=household")]}, "household"),
        ({"stated": ["colour"]}, "colour"),
        ({"stated": ["sex"]}, "none of what 'linker' knows"),
        ({"stated": []}, "at least one"),
        ({"adversaries": [WHO[0], WHO[0]]}, "different names"),
        ({"targets": 0}, "targets must be"),
        ({"seed": -1}, "seed must be"),
        ({"concentration": -1.0}, "concentration must be"),
        ({"methods": ["guess"]}, "methods must be one of"),
    ],
)
def test_refusals_before_there_is_a_folder(people, tmp_path, options, words):
    with pytest.raises(BayesRiskError, match=words):
        run(study(people, **options), tmp_path / "out")
    assert not (tmp_path / "out" / "statements.parquet").exists()


def test_a_damaged_population_is_refused_by_row_and_column(people, tmp_path):
    lines = people.read_text(encoding="utf-8").splitlines()
    lines[3] = lines[3].replace(lines[3].split(",")[0], "7", 1)
    bad = tmp_path / "bad.csv"
    bad.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(BayesRiskError, match=r"bad\.csv: row 3, column"):
        run(study(bad), tmp_path / "out")
    with pytest.raises(BayesRiskError):
        run(study(tmp_path / "missing.csv"), tmp_path / "out")


def test_the_report_says_the_sentences_and_escapes_names(people, tmp_path):
    name = "<script>alert(1)</script>"
    protection = Protection(name, "identity")
    run(study(people, protections=[protection]), tmp_path / "out")
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert page.count("<script") == 1  # the report's own
    assert "&lt;script&gt;" in page
    assert "How often somebody's race is guessed right" in html.unescape(page)
    assert "who knows sex (" in page
    statements, _ = read_audit(tmp_path / "out")
    assert set(statements["protection"]) == {name}
    errors = pd.read_parquet(tmp_path / "out" / "errors.parquet")
    one = study(people, protections=[protection])
    again = audit_files(statements, errors, one.config, one.checks(statements, [protection]))
    assert again["report.html"].decode() == page


def several(done):
    """Return the statements of an audit as if of every method under many protections."""
    statements, _ = read_audit(done[0])
    errors = pd.read_parquet(done[0] / "errors.parquet")
    again = [
        statements[statements["protection"].eq(WHAT[0].name)].assign(attack=method)
        for method in ("reconstruction", "majority", "claims")
    ]
    frame = pd.concat([statements, *again], ignore_index=True)
    many = [frame.assign(protection=frame["protection"] + f" {i}") for i in range(6)]
    size = [errors.assign(protection=errors["protection"] + f" {i}") for i in range(6)]
    return pd.concat(many, ignore_index=True), pd.concat(size, ignore_index=True)


def test_each_method_has_a_line_and_a_figure_that_has_room_for_its_names(people, done):
    """Warnings are errors: the panels of a figure without room would be given up."""
    statements, errors = several(done)
    files = audit_files(statements, errors, study(people).config, audit_checks(statements))
    figures = {name for name in files if name.startswith("figures/own") and name.endswith("png")}
    ends = ("", "-reconstruction", "-majority", "-claims")
    assert figures == {f"figures/own-against-error{end}.png" for end in ends}
    page = html.unescape(files["report.html"].decode())
    answer = page.split('class="answer"')[1].split("Every person who was asked about")[0]
    first = answer.split("<p><b>")[1]
    assert first.startswith(f"{WHAT[0].name} 0</b>")
    # Methods have equal numbers here, and each has its line all the same.
    for how in ("taking reconstructed", "saying what most", "believing only", "weighing all"):
        assert first.count(f"<i>{how}") == 2  # of each adversary
    assert first.count("right before any release") == 2


def test_the_report_says_who_is_left_out(people, done):
    statements, _ = read_audit(done[0])
    some = statements["protection"].eq(WHAT[0].name) & statements["target"].eq(
        statements["target"].iloc[0]
    )
    statements.loc[some, "status"] = "undecided"
    errors = pd.read_parquet(done[0] / "errors.parquet")
    files = audit_files(statements, errors, study(people).config, audit_checks(statements))
    page = files["report.html"].decode()
    assert "they are left out, under every protection" in page
    assert "left out</th>" in page
    found = pd.read_csv(io.BytesIO(files["summary.csv"]))
    assert found[found["group"] == "everybody"]["left_out"].tolist() == [1] * 6


def test_a_report_about_nobody_is_still_a_report(people, done):
    statements, _ = read_audit(done[0])
    errors = pd.read_parquet(done[0] / "errors.parquet")
    nobody = statements.assign(status="undecided")
    files = audit_files(nobody, errors, study(people).config, audit_checks(nobody))
    assert pd.read_csv(io.BytesIO(files["summary.csv"])).empty
    assert b"<html" in files["report.html"]


KEYS = st.text(string.ascii_lowercase + "_", min_size=1, max_size=8)
VALUES = st.one_of(
    st.integers(-(10**6), 10**6),
    st.booleans(),
    st.lists(st.integers(0, 9), max_size=3),
    st.lists(st.sampled_from(["size", "adults"]), max_size=2),
    st.sampled_from(["1/3", "0.05", "household", "1e-3", "a b"]),
)


@given(st.sampled_from(["swapping", "rounding", "x-y"]), st.dictionaries(KEYS, VALUES, max_size=4))
def test_protections_are_read_as_they_are_written(mechanism, parameters):
    told = ",".join(
        f"{k}={v if isinstance(v, str) else json.dumps(v)}" for k, v in parameters.items()
    )
    text = f"{mechanism}:{told}" if told else mechanism
    found = parse_protection(text)
    assert (found.name, found.mechanism, found.parameters) == (text, mechanism, parameters)


@pytest.mark.parametrize(
    "text", ["", "swapping:rate", "swapping:=1", "swapping:rate=", "swapping:rate=1,rate=2"]
)
def test_texts_that_are_no_protections(text):
    with pytest.raises(ArgumentError, match="protection must"):
        parse_protection(text)
