"""An audit as a study: same bytes however it is run, refusals, damage, and a private folder."""

import csv
import json
import re
import string
import time

import numpy as np
import pandas as pd
import pytest
from audits import WORKLOAD, contents, town_frame
from hypothesis import given, strategies as st

from bayesrisk import plotting
from bayesrisk.exceptions import (
    ArgumentError,
    BayesRiskError,
    DataError,
    OutputError,
    PartFileError,
)
from bayesrisk.experiments import run
from bayesrisk.experiments.audit import AuditStudy, Protection, populations, read_audit
from bayesrisk.experiments.audit.populations import Pilot, PopulationInParts
from bayesrisk.experiments.runs import engine
from bayesrisk.inference.microdata import posterior
from bayesrisk.inference.microdata.posterior import record_law
from bayesrisk.risk import Statements
from bayesrisk.risk.audit import Adversary, audit_measures, audit_targets, compare, place_beliefs
from bayesrisk.risk.audit.measures import widest_interval

pytestmark = pytest.mark.usefixtures("quick_figures")

WHO = [Adversary.named("outsider"), Adversary.named("linker", known=["sex"])]
WHAT = [
    *(Protection(text) for text in ("identity", "swapping:rate=0.3")),
    Protection("rounding", "rounding", {"base": 3}),
]


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    file = tmp_path_factory.mktemp("people") / "people.csv"
    town_frame(3, 40, [f"10{i}" for i in range(6)]).to_csv(file, index=False)
    return file


def study(people, **options):
    options = {"protections": WHAT[:2], "adversaries": WHO, "stated": ["race"]} | options
    options = {"releases": 2, "targets": 8} | options
    return AuditStudy(people, WORKLOAD, targets_per_shard=4, **options)


@pytest.fixture(scope="module")
def done(people, tmp_path_factory):
    folder = tmp_path_factory.mktemp("done") / "out"
    return folder, run(study(people), folder)


def test_the_summary_says_what_the_files_say(done):
    folder, summary = done
    statements, measures = read_audit(folder)
    assert summary.complete
    assert summary.shards == summary.computed > 3
    assert summary.statements == len(statements)
    assert summary.targets == 8 == statements["target"].nunique()
    assert summary.releases == 2 == measures["releases"].max()
    assert len(measures[measures["group"] == "everybody"]) == 2 * 3
    assert set(measures["protection"]) == {p.name for p in WHAT[:2]}
    kinds = statements.groupby("protection")[["release", "randomised"]].max().to_dict("index")
    assert kinds["identity"] == {"release": 0, "randomised": False}  # no other could be
    assert kinds["swapping:rate=0.3"] == {"release": 1, "randomised": True}
    again = audit_measures(audit_targets(statements), people=40)
    pd.testing.assert_frame_equal(again, measures, check_dtype=False, rtol=1e-12)
    pairs = pd.read_csv(folder / "comparisons.csv")
    again = compare(statements, people=40)
    pd.testing.assert_frame_equal(again, pairs, check_dtype=False, rtol=1e-12)


def test_parts_without_rows_are_read_with_the_others(people, tmp_path):
    """Of counts without a law there are no differences, and an empty part has no types."""
    both = [Protection(text) for text in ("identity", "topdown:rho=2")]
    assert run(study(people, protections=both, releases=1), tmp_path / "out").complete
    parts = pd.read_parquet(tmp_path / "out" / "differences.parquet")
    assert set(parts["protection"]) == {"identity"}
    assert set(read_audit(tmp_path / "out")[0]["protection"]) == {p.name for p in both}


def test_releases_are_made_until_the_gain_is_told(people, tmp_path):
    """Eight, then more until the half-width, or the limit; other releases stay as they were."""
    options = {"protections": [Protection("rounding:base=3")], "adversaries": WHO[:1]}
    found = {}
    for width, most in ((1.0, 12), (0.0, 12), (1e-9, 10)):
        folder = tmp_path / f"{width} {most}"
        run(study(people, releases=most, half_width=width, targets=None, **options), folder)
        found[width] = read_audit(folder)[0]
    assert [frame["release"].nunique() for frame in found.values()] == [8, 12, 10]
    first = found[0.0][found[0.0]["release"] < 8].reset_index(drop=True)
    keys = ["release", "target", "statement"]
    pd.testing.assert_frame_equal(
        first.sort_values(keys).reset_index(drop=True),
        found[1.0].sort_values(keys).reset_index(drop=True),
    )
    one = audit_measures(audit_targets(found[1.0])).iloc[0]
    half = (one["gain_upper"] - one["gain_lower"]) / 2
    assert widest_interval(audit_targets(found[1.0]), share=1.0) == pytest.approx(half)


def test_settings_of_a_mechanism_share_random_numbers_and_other_mechanisms_do_not(people):
    texts = ("discrete-gaussian:rho=1", "discrete-gaussian:rho=1.0", "discrete-laplace:epsilon=1")
    one = study(people, protections=[Protection(text) for text in texts])
    (population,) = one._populations.values()
    tables = [population.release(p, 1, 0)[1].tables for p in one.protections]
    alone = []  # without a setting beside it that is equal in law
    for protection in one.protections:
        (single,) = study(people, protections=[protection])._populations.values()
        alone.append(single.release(protection, 1, 0)[1].tables)
    assert alone[0] == alone[1] == tables[0] != tables[1]
    assert tables[0] != tables[2] == alone[2]
    assert tables[0] != population.release(one.protections[0], 0, 0)[1].tables


def test_a_prior_from_public_records_has_nothing_of_the_confidential_ones(people, tmp_path):
    """The composition is that of the file, whoever lives in the place or elsewhere."""
    public = pd.read_csv(people, dtype={"block": str}).assign(race=2)
    public.to_csv(tmp_path / "public.csv", index=False)
    options = {"prior_from": tmp_path / "public.csv", "protections": WHAT[:1], "targets": None}
    one = study(people, concentration=5.0, **options)
    run(one, tmp_path / "out")
    statements, _ = read_audit(tmp_path / "out")
    prior = statements[statements["adversary"] == "outsider"]
    prior = prior.groupby("statement")["prior"].agg(["min", "max"])
    # 40 records of race 2, and one more in equal parts in the six cells.
    assert prior.loc["race 2"].tolist() == pytest.approx([(40 + 1 / 3) / 41] * 2)
    assert prior.drop("race 2").to_numpy() == pytest.approx(np.full((2, 2), 1 / 3 / 41))
    own = study(people, **options | {"prior_from": None}).config
    assert own["prior_from"] is None
    assert one.config["prior_from"] != own["population"]
    with pytest.raises(BayesRiskError, match="nobody"):
        run(study(people, **options | {"prior_from": tmp_path / "nobody.csv"}), tmp_path / "none")


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


def test_a_pilot_says_what_is_left_out_and_how_long_it_takes_and_changes_nothing(
    people, done, tmp_path
):
    said = []
    run(study(people), tmp_path / "out", announce=lambda *call: said.append(call))
    assert contents(tmp_path / "out") == contents(done[0])
    before, left = ([text for text, begun in said if begun is kind] for kind in (False, True))
    before = [text for text in before if not text.startswith("so far: ")]
    assert before[0].startswith("8 of 40 people, ")
    assert before[1].startswith("at most 2 releases ")
    time = r"(about \d+ (seconds|minutes)|about a minute|a few seconds|less than a second)"
    times = rf"{time}( to [a-z0-9 ]+)?"  # on a busy machine a range
    assert re.fullmatch(rf"{times} with 1 worker(; .* takes (most of it|longest))?", before[2])
    assert len(before) == 3
    assert len(left) == done[1].shards
    assert all(re.fullmatch(time + " left", text) for text in left[:-1])
    assert left[-1] == "only the results are left"


def test_the_outlook_adds_up_places_releases_and_targets(people, monkeypatch):
    """Two shards of eight targets; eight releases, and then four more that may not be needed."""
    pilots = {
        "identity": Pilot(9.0, 1.0, 0.5, 0.1, 0.01, 0.3),
        "rounding": Pilot(7.0, 2.0, 0.25, 0.2, 0.02),
    }  # fmt: skip
    monkeypatch.setattr(PopulationInParts, "pilot", lambda _, one: pilots[one.name])
    asked = study(people, protections=[WHAT[0], WHAT[2]], releases=12)
    found = asked.outlook(range(asked.shards))
    population = asked._populations[""]
    part, expected = population.part(0), []
    for numbers in (8, 4):
        for name, releases in (("identity", int(numbers == 8)), ("rounding", numbers)):
            for rows in population.shards(4):
                places, pilot = np.unique(population.part(0).place[rows]).size, pilots[name]
                kinds = len({(part.place[row], part.cells[row]) for row in rows})
                each = places * pilot.release + kinds * pilot.target + rows.size * pilot.person
                once = places * (pilot.place + pilot.proof) + rows.size * pilot.check
                expected.append(releases * each + (once if numbers == 8 else 0.0))
    assert list(found.seconds) == list(range(asked.shards))
    np.testing.assert_allclose(list(found.seconds.values()), expected)
    assert found.optional == pytest.approx(sum(expected[len(expected) // 2 :]))
    assert found.optional > 0.0
    assert sum(found.parts.values()) == pytest.approx(sum(expected))
    assert max(found.parts, key=found.parts.get) == "rounding"


@pytest.mark.parametrize("seconds", [1000.0, 60.0, 30.0, 14.0])
def test_as_many_people_and_releases_as_a_time_allows(people, monkeypatch, seconds):
    pilots = {"identity": Pilot(0.0, 1.0, 0.5, 0.1), "rounding": Pilot(0.0, 0.5, 0.25, 0.2)}
    monkeypatch.setattr(engine, "_pace", [(1.0, 0.0)])
    monkeypatch.setattr(PopulationInParts, "pilot", lambda _, one: pilots[one.name])
    asked = study(people, protections=[WHAT[0], WHAT[2]], releases=12, targets=8)
    homes = np.unique(asked._populations[""].survey.target_places).size
    population, found = asked._populations[""], asked.fit_time(seconds)
    kinds = population.kinds(population.survey.targets)

    def total(n, releases):
        places, different = min(n, homes), min(n, kinds)
        whole = 0.2 * n + releases * (0.5 * places + 0.25 * different)
        if WHAT[0].name not in found._spare:
            whole += places + 0.5 * different + 0.1 * n
        return whole

    seconds = max(0.75 * seconds - 6.0, seconds / 4.0)  # but for those of the results
    assert {one.name for one in found.protections} == {"identity", "rounding"}
    assert WHAT[2].name not in found._spare
    assert total(found.targets, found.releases) <= seconds
    if total(8, 12) <= seconds:
        assert (found.targets, found.releases) == (8, 12)
    elif found.targets == 8:
        assert total(8, 2 * found.releases) > seconds
    else:
        assert found.releases <= 3
        assert total(found.targets + 1, found.releases) > seconds


@pytest.mark.parametrize("places", [["101"], ["101", "102", "103"]])
def test_a_pilot_tells_places_kinds_and_people_apart(tmp_path, monkeypatch, places):
    """Of 300 people of few kinds; the clock of a processor goes on by what statements cost."""
    file, spent = tmp_path / "people.csv", [0.0]
    town_frame(3, 300, places).to_csv(file, index=False)
    asked = study(file, protections=[WHAT[2]], targets=None)
    population = asked._populations[""]
    part = population.part(0)

    def statements(protection, numbers, rows, too_large=None):
        kinds = {(part.place[row], part.cells[row]) for row in rows}
        spent[0] += 5.0 * len({place for place, _ in kinds}) + 0.5 * len(kinds) + 0.01 * len(rows)
        return pd.DataFrame()

    monkeypatch.setattr(population, "statements", statements)
    monkeypatch.setattr(population, "spots", lambda *_: None)
    monkeypatch.setattr(populations.time, "process_time", lambda: spent[0])
    found = population.pilot(WHAT[2])
    assert found.place == 0.0
    assert found[1:3] == pytest.approx((5.0, 0.5))
    assert found.person == pytest.approx(0.01)
    targets = population.survey.targets
    kinds = {(part.place[row], part.cells[row]) for row in targets}
    assert population.kinds(targets) == len(kinds) < targets.size / 3


def test_a_time_for_nobody_is_refused_with_what_is_needed(people, monkeypatch):
    monkeypatch.setattr(engine, "_pace", [(1.0, 0.0)])
    monkeypatch.setattr(PopulationInParts, "pilot", lambda *_: Pilot(0.0, 1.0, 1.0))
    with pytest.raises(ArgumentError, match="about 11 are needed"):
        study(people, protections=[WHAT[0], WHAT[2]]).fit_time(1.0)


def slow_rounding(monkeypatch, now):
    """Let pilots take 3 seconds of a clock, where rounding took 100, and laws nothing."""
    costs = {"identity": 3.0, "rounding": 100.0}

    def measured(population, protection):
        now[0] += costs[protection.name]
        if now[0] > population.pilots_end:
            raise place_beliefs.PilotTimeError
        return Pilot(0.0, 0.1, 0.1)

    monkeypatch.setattr(PopulationInParts, "_measured", measured)
    monkeypatch.setattr(time, "monotonic", lambda: now[0])


def test_a_protection_whose_pilot_takes_too_long_comes_last_in_a_limited_time(people, monkeypatch):
    now = [1000.0]
    asked = study(people, protections=[WHAT[2], WHAT[0]])
    slow_rounding(monkeypatch, now)
    monkeypatch.setattr(engine, "pace_since", lambda _: (1.0, 0.0))
    found = asked.fit_time(30.0)
    assert [one.name for one in found.protections] == ["identity", "rounding"]
    assert found.targets == 8
    before = found.outlook(range(found.shards))
    assert before.lines[-1] == "then, if time is left: rounding"
    assert max(before.seconds) < len(found._shards)  # no time is foretold of what may not be
    assert not before.unknown
    slow_rounding(monkeypatch, now)
    with pytest.raises(ArgumentError, match="got 2: "):
        study(people, protections=[WHAT[2], WHAT[0]]).fit_time(2.0, begun=now[0] - 1.0)


def test_a_pilot_that_is_cut_after_one_target_knows_the_cost_of_its_place(people, monkeypatch):
    population = study(people)._populations[""]
    took = iter([2.5])

    def one_target(_, protection, rows):
        if (seconds := next(took, None)) is None:
            raise place_beliefs.PilotTimeError
        population.too_large[protection.name] = {}
        population._law_stores[protection.setting] = place_beliefs.DrawnLaws()
        return seconds, pd.DataFrame()

    monkeypatch.setattr(PopulationInParts, "_try", one_target)
    assert population.pilot(WHAT[1]) == Pilot(0.0, 2.5)
    assert population.cut == {WHAT[1].name}
    assert population.pilot(WHAT[1]).release_time(3, 8, 8) == 7.5


@pytest.mark.parametrize(
    ("mechanism", "kinds"), [("discrete-gaussian:rho=1", 0), ("rounding:base=3", 1)]
)
def test_under_noise_the_draws_of_a_place_serve_all_its_people(people, mechanism, kinds):
    """A pilot that was cut knows one law; rounding needs more for each kind."""
    asked = study(people, protections=[Protection(mechanism)], targets=None)
    population = asked._populations[""]
    population.cut.add(mechanism)
    population._pilots[mechanism, asked.protections[0].setting] = Pilot(0.0, 3.0)
    number = population.kinds(population.survey.targets)
    places = np.unique(population.survey.target_places).size
    assert number > places
    cost = asked._cost(population, asked.protections[0])
    assert cost(len(population.survey.targets), 2) == 2 * 3.0 * (places + kinds * number)


def test_what_is_known_to_be_too_large_costs_a_place_nothing_more(people, monkeypatch):
    population = study(people)._populations[""]
    places = np.unique(population.survey.target_places).size
    known = {("likelihood", "101"): {0}, ("as-true", "101"): {0}, ("likelihood", "102"): set()}
    population.too_large[WHAT[1].name] |= known
    monkeypatch.setattr(population, "_measured", lambda _: Pilot(10.0, 1.0))
    assert population.pilot(WHAT[1]) == Pilot(10.0 * (places - 1) / places, 1.0)


def test_what_kernels_take_to_compile_is_no_cost_of_a_check(people, monkeypatch):
    """The first spot check takes 15 seconds, and each other one a tenth."""
    population, spent = study(people)._populations[""], [0.0]
    costs = iter([15.0, 8.0, 0.1, 0.2])

    def check(*_):
        spent[0] += next(costs)

    monkeypatch.setattr(populations.time, "process_time", lambda: spent[0])
    monkeypatch.setattr(population, "_costs", lambda *_: Pilot(0.0, 1.0, 0.5))
    monkeypatch.setattr(population, "spots", check)
    monkeypatch.setattr(population, "proofs", check)
    assert population.pilot(WHAT[1])[1:] == pytest.approx((1.0, 0.5, 0.1, 0.0, 0.2))


def test_checks_are_not_tried_after_the_time_of_pilots(people, monkeypatch):
    population = study(people)._populations[""]
    monkeypatch.setattr(population, "_try", lambda *_: (1.0, None))
    monkeypatch.setattr(population, "_costs", lambda *_: Pilot(0.0, 1.0, 0.5))
    population.pilots_end = time.monotonic() - 1.0
    assert population._measured(WHAT[1]) == Pilot(0.0, 1.0, 0.5)


def test_the_first_pilot_has_all_the_time_and_the_others_equal_shares(people, monkeypatch):
    withheld = Protection("suppression:threshold=3")
    asked = study(people, protections=[WHAT[2], WHAT[0], WHAT[1], withheld])
    now, had = [100.0], []

    def pilot(population, protection):
        had.append(population.pilots_end - now[0])
        now[0] += 10.0
        return Pilot()

    monkeypatch.setattr(PopulationInParts, "pilot", pilot)
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    tried = asked._tried(asked._surveyed.values(), 150.0)
    assert had == pytest.approx([50.0, 40.0 / 3, 15.0, 20.0])
    chances = [asked._surveyed[""].randomised(one) for one in tried]
    assert chances == sorted(chances)


def test_an_outlook_waits_for_no_pilot_and_names_those_that_are_left(people, monkeypatch):
    asked, now = study(people, protections=[WHAT[2], WHAT[0]], releases=2), [1000.0]
    assert asked.shards
    slow_rounding(monkeypatch, now)
    found = asked.outlook(range(asked.shards))
    assert found.unknown == ["rounding"]
    assert found.parts["rounding"] == 0.0 < found.parts["the release without protection"]
    assert found.sentences(1)[-1].endswith(": rounding")


def test_a_pilot_that_is_cut_says_how_long_it_takes_at_least(people, monkeypatch):
    """A law of a place had taken 40 seconds when the time was over."""
    asked = study(people, protections=[WHAT[0], WHAT[2]], releases=2, half_width=0.0)
    population, rounding = asked._populations[""], asked.protections[1]

    def measured(one):
        if one is rounding:
            raise place_beliefs.PilotTimeError
        return Pilot(0.0, 1.0)

    monkeypatch.setattr(population, "_measured", measured)
    assert population.least(rounding) is None
    store = place_beliefs.DrawnLaws(least={("101", None, b"", False, 1): 40.0})
    population._law_stores[rounding.setting] = store
    assert population.least(rounding) == Pilot(0.0, 40.0)
    found = asked.outlook(range(asked.shards))
    places = np.unique(population.survey.target_places).size
    assert found.parts["rounding"] == pytest.approx(2 * 40.0 * places)
    assert found.unknown == ["rounding"]
    before = next(text for text in found.sentences(1) if "worker" in text)
    assert before.startswith("more than ")
    assert "rounding takes most of it" in before


def test_whether_chains_are_needed_is_known_before_any_is_drawn(people, attempts, monkeypatch):
    asked = study(people, protections=[WHAT[2]], targets=None, releases=None)

    def draw(*_, **__):
        raise AssertionError("no chain is drawn")

    monkeypatch.setattr(posterior, "draw", draw)
    assert asked._populations[""].survey.targets.size == 20
    assert asked._most_releases == 4
    assert attempts == [True]
    assert not asked._surveyed[""]._law_stores[WHAT[2].setting].exact_only


def test_workers_share_the_few_targets_of_a_protection(people):
    asked = study(people, targets=4)  # as many as a shard may have
    places = np.unique(asked._populations[""].survey.target_places).size
    assert asked.shards == 2 * places > 2
    assert study(people, targets=4, protections=WHAT[:1]).shards == places


def test_news_come_once_of_each_protection(people, done, tmp_path):
    asked, told = study(people), []
    run(asked, tmp_path / "run", announce=lambda text, _: told.append(text))
    news = [text for text in told if text.startswith("so far: ")]
    names = [text.removeprefix("so far: ").split(":")[0] for text in news]
    assert len(names) == len(set(names)) >= 1
    measures = read_audit(done[0])[1]
    numbers = [float(re.search(r"before, ([0-9.]+)", text)[1]) for text in news]
    linker = measures[(measures["group"] == "everybody") & (measures["adversary"] == "linker")]
    assert set(numbers) <= set(linker["answers_posterior"].round(2))


def test_fewer_people_are_asked_about_where_each_needs_chains_under_each_release(
    people, monkeypatch
):
    def targets(chains, protections, **options):
        monkeypatch.setattr(PopulationInParts, "chained", lambda *_: chains)
        asked = study(people, **{"protections": protections, "targets": None} | options)
        return asked._populations[""].survey.targets.size

    assert targets(True, WHAT) == 20
    assert targets(False, WHAT) == targets(True, WHAT[:1]) == targets(True, WHAT, targets=40) == 40


@pytest.mark.parametrize(
    ("chains", "options", "most"),
    [(True, {}, 4), (False, {}, 20), (True, {"targets": 30}, 20), (True, {"releases": 7}, 7)],
)
def test_fewer_releases_are_made_where_each_person_needs_chains(people, monkeypatch, chains,
                                                                options, most):  # fmt: skip
    monkeypatch.setattr(PopulationInParts, "pilot", lambda *_: Pilot(0.0, 1.0, 1.0))
    monkeypatch.setattr(PopulationInParts, "chained", lambda *_: chains)
    asked = study(people, **{"protections": WHAT, "targets": None, "releases": None} | options)
    lines = asked.outlook(range(1)).lines
    assert sum(f"at most {most} releases" in line for line in lines) == 1


def test_few_people_get_fewer_releases_too_where_each_needs_chains(tmp_path, monkeypatch):
    """Twelve people, of whom everybody is asked about: chains are as slow as in a larger town."""
    file = tmp_path / "few.csv"
    town_frame(3, 12, ["101", "102"]).to_csv(file, index=False)
    for chains, most in ((True, 4), (False, 20)):
        monkeypatch.setattr(PopulationInParts, "chained", lambda *_, found=chains: found)
        asked = study(file, protections=WHAT, targets=None, releases=None)
        assert asked._populations[""].survey.targets.size == 12
        assert asked._most_releases == most


@pytest.fixture
def attempts(monkeypatch):
    """Exact laws of next to no sums; whether each law was tried to be exact."""
    tried = []

    def limited(system, **options):
        tried.append("max_pairs" not in options)
        return record_law(system, **{"max_pairs": 30} | options)

    monkeypatch.setattr(place_beliefs, "record_law", limited)
    return tried


def test_what_is_too_large_is_tried_once_in_a_place_and_shards_do_not_matter(
    people, attempts, tmp_path
):
    options = {"protections": [WHAT[2]], "releases": 3, "half_width": 0.0}
    asked = study(people, **options)
    run(asked, tmp_path / "whole")
    laws = read_audit(tmp_path / "whole")[0].groupby("place")["engine"].agg(set)
    chains = [place for place, engines in laws.items() if engines & {"lattice", "people"}]
    assert chains
    assert sum(attempts) < len(attempts) / 2
    for part in (2, 1):
        run(study(people, **options), tmp_path / "parts", shard=(part, 2), resume=True)
    run(study(people, **options), tmp_path / "parts", resume=True)
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")


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
    np.testing.assert_array_equal(population.survey.targets, np.arange(40))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"protections": [WHAT[0], WHAT[0]]},
            "protections must give each once, got '.*' more than once",
        ),
        ({"protections": [Protection("discrete-gaussian")]}, "rho|budgets"),
        ({"protections": [Protection("rounding:base=0")]}, "base must be"),
        ({"protections": [Protection("swapping:rate=0.1,unit=household")]}, "household"),
        ({"stated": []}, "at least one"),
        ({"adversaries": [WHO[0], WHO[0]]}, "adversaries must give each once, got"),
        ({"releases": 0}, "releases must be"),
        ({"half_width": -1}, "half_width must be"),
        ({"seed": -1}, "seed must be"),
        ({"concentration": -1.0}, "concentration must be"),
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
    found = Protection(text)
    assert (found.name, found.mechanism, found.parameters) == (text, mechanism, parameters)


@pytest.mark.parametrize(
    "text", ["", "swapping:rate", "swapping:=1", "swapping:rate=", "swapping:rate=1,rate=2"]
)
def test_texts_that_are_no_protections(text):
    with pytest.raises(ArgumentError, match=r"(protection|name) must (be|give)"):
        Protection(text)


def points(axes):
    """Return what the points of a panel say, by protection: their cost and remaining answers."""
    found = {}
    for bars in axes.containers:
        assert bars.get_label() not in found  # a point for each protection
        found[bars.get_label()] = tuple(bars.lines[0].get_xydata()[0])
    return found


def figure_of(folder, name):
    """Return what the panel of an adversary shall show, by plain Python from the files."""
    costs = {row["protection"]: row["error"] for row in rows_of(folder / "costs.csv")}
    best = {
        row["protection"]: row
        for row in rows_of(folder / "measures.csv")
        if row["adversary"] == name and row["group"] == "everybody" and row["attack"] != "as-true"
    }
    shown = {"identity": "no protection"}
    return {
        shown.get(p, p): (float(costs[p]), float(row["answers_posterior"]))
        for p, row in best.items()
    }


def rows_of(file):
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def test_a_finished_audit_is_drawn_of_everybody_by_the_best_reading(done):
    folder, _ = done
    results = read_audit(folder)
    frames = results.measures, results.costs, results.comparisons
    assert results.measures["group"].nunique() > 1
    assert "as-true" in set(results.measures["attack"])
    for drawn in (
        plotting.plot_audit(folder),
        plotting.plot_audit(str(folder)),
        plotting.plot_audit(results),
        results.plot(),
        plotting.plot_audit(*frames),
    ):
        assert [axes.get_title() for axes in drawn] == [who.name for who in WHO]
        for axes in drawn:
            wanted = figure_of(folder, axes.get_title())
            assert len(wanted) == 2
            assert points(axes) == {name: pytest.approx(at) for name, at in wanted.items()}
    for name, frame in zip(("measures", "costs", "comparisons"), frames, strict=True):
        assert len(frame) == len(rows_of(folder / f"{name}.csv"))
    statements, measures = results
    assert results[0] is statements is results.statements
    assert results[1] is measures is results.measures
    alone = results.measures.query("group == 'unlike their place'")
    for one, other in zip(
        plotting.plot_audit(alone, results.costs),
        plotting.plot_audit(alone.drop(columns="group"), results.costs),
        strict=True,
    ):
        assert points(one) == points(other) != {}
    # Beliefs are drawn of everybody too, all readings of them.
    beliefs = plotting.plot_beliefs(results.measures)[0]
    assert [t.get_text() for t in beliefs.get_yticklabels()].count("no protection") == 1
    assert len(beliefs.collections[0].get_segments()) == 3


def test_what_cannot_be_drawn_without_a_choice_is_refused(done, tmp_path):
    results = read_audit(done[0])
    others = results.measures.query("group != 'everybody'")
    with pytest.raises(ArgumentError, match="group must be one of unlike their place, "):
        plotting.plot_audit(others, results.costs)
    two = pd.concat([results.measures.assign(population=name) for name in ("A", "B")])
    with pytest.raises(ArgumentError, match="population must be one of A, B"):
        plotting.plot_audit(two, results.costs)
    for one in (results.measures, results.measures.assign(population="A")):
        for plot in (
            plotting.plot_beliefs,
            lambda m, **k: plotting.plot_audit(m, results.costs, **k),
        ):
            with pytest.raises(ArgumentError, match=r"population must be .*; got 'C'"):
                plot(one, population="C")
    with pytest.raises(ArgumentError, match="population must be one of A, B"):
        plotting.plot_beliefs(two, population="C")
    with pytest.raises(ArgumentError, match="costs and comparisons must be left out"):
        plotting.plot_audit(done[0], results.costs)
    with pytest.raises(ArgumentError, match="costs"):
        plotting.plot_audit(results.measures)
    with pytest.raises(DataError, match=r"finished audit, has no measures\.csv"):
        plotting.plot_audit(tmp_path)
    costs = pd.concat([results.costs.assign(population=n, error=i) for i, n in enumerate("AB")])
    drawn = plotting.plot_audit(two, costs, population="B")
    assert {x for axes in drawn for x, _ in points(axes).values()} == {1.0}
