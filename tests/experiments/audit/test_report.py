"""The report of an audit: six questions answered by its first screen, and only what was told."""

import base64
import io
import math
import re

import numpy as np
import pandas as pd
import pytest
from browser import Browser, needs_browser
from first_screen import (
    CHECKS,
    CONFIG,
    beliefs_of,
    check_screen,
    comparisons_of,
    errors_of,
    files_of,
    frames_of,
    half_width,
    measures_of,
    numbers,
    people_of,
    reach_of,
    releases_of,
    screens,
    statements_of,
    texts,
)

from bayesrisk.experiments.audit import report
from bayesrisk.experiments.audit.report import check_totals
from bayesrisk.experiments.audit.screen import audit_brief

GAINS = {"true counts": 0.16, "noise, weak": 0.11, "noise, strong": 0.05}
SIZES = {"noise, strong": 2.5, "true counts": 0.0, "noise, weak": 0.5}
WHO = ("outsider", "linker")


@pytest.fixture(autouse=True)
def no_figures(monkeypatch):
    """Draw nothing but for the audit that is made once."""
    for figures in ("_answer_figures", "_belief_figures"):
        monkeypatch.setattr(report, figures, lambda *_: [])


def page_of(files):
    return files["report.html"].decode()


@pytest.fixture(scope="module")
def made():
    """Statements and errors of three protections, and the files of their audit."""
    statements = statements_of(GAINS, adversaries=WHO, spread=0.005)
    errors = errors_of(SIZES, withheld={"noise, strong": 0.25})
    return statements, errors, files_of(statements, errors, 300)


@pytest.fixture(scope="module")
def screen(made):
    (found,) = screens(page_of(made[2]))
    return found


@pytest.fixture(scope="module")
def counted(made):
    """What each release of the linker's best model comes to, counted from the statements."""
    rows = releases_of(made[0], 300)
    return rows[rows["adversary"] == "linker"]


def mean(counted, protection, name):
    return counted.loc[counted["protection"] == protection, name].mean()


# Six questions of a reader, each answered by the first screen alone.


def test_which_protection_affects_fewest_people(made, screen, counted):
    weak, none, strong = screen["lead"].partition(".")[0].split("; ")
    assert weak == "“noise, weak” doubles the chance of being guessed right for nobody"
    assert strong == "“noise, strong” does not surely differ in that"
    doubled = {name: mean(counted, name, "doubled") for name in GAINS}
    assert doubled == {"true counts": 20.0, "noise, weak": 0.0, "noise, strong": 0.0}
    row = measures_of(made[0], 300).query("protection == 'true counts' and adversary == 'linker'")
    ends = row[["doubled_lower", "doubled_upper"]].round().iloc[0].tolist()
    assert numbers(none) == [20.0, *ends, 300.0, 30.0]


def test_which_protection_lets_least_be_learned_where_no_people_differ():
    statements = statements_of({"noise, a": 0.12, "noise, b": 0.08}, spread=0.005)
    errors = errors_of({"noise, a": 0.5, "noise, b": 2.5})
    (found,) = screens(page_of(files_of(statements, errors)))
    front, _, rest = found["lead"].partition(": ")
    assert front == "“noise, b” lets less be learned than “noise, a”"
    rows = releases_of(statements).groupby("protection")["score"].mean()
    wanted = [math.exp(-rows[name]) for name in ("noise, b", "noise, a")]
    assert numbers(rest)[:2] == pytest.approx(wanted, abs=0.00501)
    check_screen(found, statements, errors)


def test_people_who_surely_differ_come_first():
    """Two protections that no average tells apart may differ by 26 people against none."""
    statements = statements_of({"true counts": 0.45, "swap 5": 0.4, "noise": 0.05}, spread=0.04)
    errors = errors_of({"true counts": 0.0, "swap 5": 0.16, "noise": 2.5})
    files = files_of(statements, errors)
    (found,) = screens(page_of(files))
    rows = releases_of(statements).query("attack in ('likelihood', 'swap-aware')")
    doubled = rows.groupby("protection")["doubled"].mean()
    assert doubled["noise"] == 0.0 < 10.0 < doubled["swap 5"]
    first, second, *_ = found["lead"].split("; ")
    assert first == "Noise doubles the chance of being guessed right for nobody"
    assert second.startswith("swap 5 doubles it for ")
    assert numbers(second)[1:3] == [round(doubled["swap 5"]), 30]
    assert "almost as many as true counts" in second
    assert numbers(second)[3] == round(doubled["true counts"])
    assert numbers(found["lead"].partition("The price:")[2])[::2] == [0.16, 2.5]
    check_screen(found, statements, errors)
    # What construction says is never turned round by a number of people.
    told = comparisons_of(statements)
    told.loc[told["against"].eq("noise"), "verdict"] = "no more"
    turned = files_of(statements, errors, **frames_of(statements, errors) | {"comparisons": told})
    assert not screens(page_of(turned))[0]["lead"].startswith("Noise")


def test_nothing_is_ranked_against_no_protection_by_construction_alone():
    """The price is of each protection, of noise too."""
    statements = statements_of({"true counts": 0.1, "noise": 0.1})
    errors = errors_of({"true counts": 0.0, "noise": 1.4})
    told = comparisons_of(statements)
    told["verdict"] = ["no more" if a == "noise" else "no less" for a in told["protection"]]
    for measure in ("doubled", "proved"):
        told[[measure, f"{measure}_lower", f"{measure}_upper"]] = 0.0, -1.0, 1.0
    found = files_of(statements, errors, **frames_of(statements, errors) | {"comparisons": told})
    lead = screens(page_of(found))[0]["lead"]
    assert lead.startswith("This audit measures no sure difference between true counts and noise")
    assert numbers(lead.partition("The price:")[2]) == [1.4]


def test_how_sure_is_that(made, screen, counted):
    beliefs = beliefs_of(made[0])
    beliefs = beliefs[beliefs["adversary"] == "linker"]
    assert numbers(screen["lines"]["How sure"]) == [95, 6, 30, 300]
    for row in screen["rows"]:
        mine = counted[counted["protection"] == row["protection"]]["score"]
        value, *ends = numbers(row["and after (interval)"])
        assert value == pytest.approx(math.exp(-mine.mean()), abs=0.00501)
        reach = reach_of(beliefs[beliefs["protection"] == row["protection"]], "score", 300)
        both = [math.exp(-mine.mean() - reach), math.exp(-mine.mean() + reach)]
        assert ends == pytest.approx(both, abs=0.00501)
    verdicts = {row["protection"]: row["against no protection"] for row in screen["rows"]}
    assert verdicts == {
        "true counts": "–", "noise, weak": "less is learned", "noise, strong": "less is learned",
    }  # fmt: skip


def test_how_many_people_are_affected(screen, counted):
    for measure in ("doubled", "proved"):
        for row in screen["rows"]:
            wanted = mean(counted, row["protection"], measure)
            assert numbers(row[f"people {measure}"])[0] == pytest.approx(wanted, abs=0.501)
    proved = {row["protection"]: numbers(row["people proved"])[0] for row in screen["rows"]}
    assert proved == {
        "true counts": 30.0,
        "noise, weak": 0.0,
        "noise, strong": 0.0,
    }  # a tenth of all


def test_what_it_costs(screen):
    assert numbers(screen["lead"].partition("The price:")[2]) == [0.5, 2.5]
    assert [float(row["error of a count"]) for row in screen["rows"]] == [0.0, 0.5, 2.5]


def test_what_counts_prove_stands_below_the_figure(made):
    text = page_of(made[2]).partition('<p class="proved">')[2].partition("</p>")[0]
    assert numbers(texts(text)) == [7, 40]


def test_what_another_release_would_show(screen, counted):
    score = counted[counted["protection"] == "noise, strong"]["score"]
    reach = half_width(score) * math.sqrt(len(score) + 1.0)
    ends = [math.exp(-score.mean() - reach), math.exp(-score.mean() + reach)]
    line = screen["lines"]["Another release"]
    assert numbers(line) == pytest.approx(ends, abs=0.00501)
    assert "noise, strong" in line  # of which protection


@pytest.mark.parametrize("made_up", [True, False])
def test_whose_data_it_is(made, made_up):
    statements, errors, _ = made
    page = page_of(files_of(statements, errors, 300, config={"made_up": made_up}))
    before = texts(page.partition('<p class="lead">')[0].partition("</h1>")[2])
    assert ("Made-up data" in before) == made_up
    assert ("Confidential" in before) != made_up
    assert "300 people" in screens(page)[0]["lines"]["How sure"]


# What it is made of.


def test_every_number_is_that_of_the_statements(made, screen):
    check_screen(screen, made[0], made[1], 300)


def test_a_wrong_number_is_seen_wherever_it_stands(made, screen):
    places = [(screen, "lead"), *((screen["lines"], name) for name in screen["lines"])]
    places += [(row, head) for row in screen["rows"] for head in list(row)[1:6]]
    seen = 0
    for holder, key in places:
        text = holder[key]
        for found in re.finditer(r"(?<![\w.])[+-]?\d+(\.\d+)?", text):
            wrong = float(found[0]) + 1.1
            holder[key] = text[: found.start()] + f"{wrong:+.1f}" + text[found.end() :]
            with pytest.raises(AssertionError):
                check_screen(screen, made[0], made[1], 300, wide=0.001)
            seen += 1
        holder[key] = text
    check_screen(screen, made[0], made[1], 300)
    assert seen > 30


def test_it_has_few_words_and_one_table(made, screen):
    page = page_of(made[2])
    first = page.partition("</h1>")[2].partition('<figure class="panels">')[0]
    words = first.partition("<table")[0]
    advice = re.search('<p class="advice">.*?</p>', words)[0]
    assert len(texts(words.replace(advice, "")).split()) <= 120
    assert len(texts(advice).split()) <= 55
    assert first.count("<table") == 1
    assert [row["protection"] for row in screen["rows"]] == [
        "true counts",
        "noise, weak",
        "noise, strong",
    ]
    # Then figures, who asked, words, tables, and settings last and folded.
    heads = ["<img", "Who asked", "Words of this page", "<h2>Tables", "Settings of the audit"]
    places = [page.index(head) for head in heads]
    assert places == sorted(places)
    assert '<details class="screen">' in page[places[3] : places[4]]


def test_figures_are_a_panel_for_each_adversary(made):
    page = page_of(made[2])
    panels = page.partition('<figure class="panels">')[2].partition("</figure>")[0]
    captions = re.findall(r'alt="(.*?)"', panels)
    assert ["linker" in captions[0], "outsider" in captions[1]] == [True, True]
    assert len(captions) == 2
    names = {name for name in made[2] if name.startswith("figures/answers-against-cost")}
    assert {name.partition(".")[0] for name in names} == {
        "figures/answers-against-cost", "figures/answers-against-cost-adversary-2",
    }  # fmt: skip


def test_the_adversary_is_the_one_to_whom_own_records_tell_most(made):
    statements, errors, _ = made
    swapped = statements_of({"true counts": 0.1, "swap": 0.05}, adversaries=WHO)
    # Whoever takes the tables as true seems to learn more, and is second all the same.
    true = swapped["attack"].eq("as-true") & swapped["correct"]
    swapped.loc[true, "posterior"] = 0.9
    found = screens(page_of(files_of(swapped, errors_of({"true counts": 0.0, "swap": 0.3}))))[0]
    check_screen(found, swapped, errors_of({"true counts": 0.0, "swap": 0.3}))
    assert found["lead"].startswith("Swap doubles the chance of being guessed right for nobody")
    first = statements["adversary"].eq("outsider")
    other = statements.assign(
        adversary=np.where(first, "linker", "outsider"),
    )
    assert " an outsider" in screens(page_of(files_of(other, errors, 300)))[0]["prose"]


# Only what was told.


@pytest.mark.parametrize("wrong", ["unexplained", "impossible"])
def test_a_model_that_is_wrong_ranks_no_protection(wrong):
    statements = statements_of({"true counts": 0.2, "swap": 0.05}, adversaries=WHO)
    errors = errors_of({"true counts": 0.0, "swap": 0.3})
    measures = measures_of(statements)

    def screen_with(fails, *who):
        rows = measures["protection"].eq("swap") & measures["adversary"].isin(who)
        some, told = measures.copy(), comparisons_of(statements)
        if wrong == "unexplained":
            some["unstated"] = some["unstated"].mask(rows, 0.6 if fails else 0.5)
        elif fails:
            some["answers_posterior"] = some["answers_posterior"].mask(rows, math.inf)
            some["own_factor"] = some["own_factor"].mask(rows, math.inf)
        if fails:  # as `compare` has them
            failed = told["adversary"].isin(who)
            told.loc[failed, ["factor", "lower", "upper"]] = np.nan
            told.loc[failed, "verdict"] = "cannot tell"
        files = files_of(statements, errors, measures=some, comparisons=told)
        return screens(page_of(files))[0]

    half = screen_with(False, "linker")
    assert half == screen_with(False)
    assert " a linker" in half["prose"]
    other = screen_with(True, "linker")
    assert " an outsider" in other["prose"]
    assert other["lead"].startswith("Swap ")
    nobody = screen_with(True, *WHO)
    assert "lets less" not in nobody["lead"]
    assert nobody["lead"].endswith("model cannot explain the tables of swap.")
    assert {row["against no protection"] for row in nobody["rows"]} == {"–", "cannot tell"}


def test_equal_settings_are_not_ranked():
    statements = statements_of({"noise, one": 0.1, "noise, two": 0.1}, spread=0.03)
    errors = errors_of({"noise, one": 1.0, "noise, two": 1.0})
    found = screens(page_of(files_of(statements, errors)))[0]
    assert "cannot tell" in found["lead"]
    assert "lets less" not in found["lead"]
    assert 90 not in numbers(found["lead"])  # releases that would tell stand in the table
    check_screen(found, statements, errors)


def test_what_would_tell_stands_in_the_table():
    statements = statements_of({"true counts": 0.1, "noise, two": 0.1}, spread=0.03)
    errors = errors_of({"true counts": 0.0, "noise, two": 1.0})
    told = comparisons_of(statements).assign(
        verdict="cannot tell", needed=90.0, needed_people=500.0
    )
    files = files_of(statements, errors, **frames_of(statements, errors) | {"comparisons": told})
    (found,) = screens(page_of(files))
    cell = found["rows"][1]["against no protection"]
    assert numbers(cell) == [90, 500]
    assert cell.startswith("cannot tell")


def test_a_verdict_is_read_from_either_side(made):
    statements, errors, files = made
    told = comparisons_of(statements)
    turned = told.rename(columns={"protection": "against", "against": "protection"})
    turned["verdict"] = told["verdict"].replace({"less": "more", "more": "less"})
    turned[["factor", "lower", "upper"]] = 1.0 / told[["factor", "upper", "lower"]].to_numpy()
    for name in ("doubled", "proved"):
        columns = [f"{name}{end}" for end in ("", "_lower", "_upper")]
        turned[columns] = -told[[columns[0], columns[2], columns[1]]].to_numpy()
    other = files_of(statements, errors, 300, comparisons=turned)
    assert screens(page_of(other)) == screens(page_of(files))


def test_exact_numbers_are_said_to_be():
    statements = statements_of({"one": 0.1, "two": 0.1, "three": 0.05})
    errors = errors_of({"one": 0.0, "two": 1.0, "three": 2.0})
    found = screens(page_of(files_of(statements, errors)))[0]
    assert all("(exact)" in row["and after (interval)"] for row in found["rows"])
    assert found["lines"]["Another release"] == "the same."
    # Nothing varies here, and no order is told of it.
    assert {row["against no protection"] for row in found["rows"]} == {"–", "cannot tell"}


@pytest.mark.parametrize("ends", [(1.0, math.inf), (math.nan, math.nan)])
def test_intervals_that_say_nothing_are_too_few(made, ends):
    statements, errors, _ = made
    measures = measures_of(statements, 300)
    for like in ("", "_like"):
        measures[[f"answers_posterior{like}_lower", f"answers_posterior{like}_upper"]] = ends
    page = page_of(files_of(statements, errors, 300, measures=measures))
    for row in screens(page)[0]["rows"]:
        assert row["and after (interval)"].endswith("(too few)")
    assert "inf" not in texts(page.partition("Tables</h2>")[0]).replace("information", "")
    assert "nan" not in texts(page.partition("Tables</h2>")[0])


@pytest.mark.parametrize(
    ("verdict", "words"),
    [
        ("no more", "can tell no more, by construction"),
        ("no less", "can tell no less, by construction"),
        ("as much", "tells as much, by construction"),
    ],
)
def test_by_construction_stands_beside(made, verdict, words):
    statements, errors, _ = made
    told = comparisons_of(statements)
    told["verdict"] = told["verdict"].mask(
        told["protection"].eq("true counts") & told["against"].eq("noise, weak"),
        {"no more": "no less", "no less": "no more"}.get(verdict, verdict),
    )
    found = screens(page_of(files_of(statements, errors, 300, comparisons=told)))[0]
    assert found["rows"][1]["against no protection"] == words


def test_one_protection_is_compared_with_none():
    statements, errors = statements_of({"noise": 0.1}), errors_of({"noise": 1.0})
    found = screens(page_of(files_of(statements, errors)))[0]
    assert found["lead"].startswith("Under noise the chance of being guessed right is doubled for")
    assert not any("against" in head for head in found["rows"][0])
    check_screen(found, statements, errors)


def test_identity_is_called_no_protection_wherever_it_is_shown():
    statements = statements_of({"identity": 0.15, "noise": 0.05}, spread=0.01)
    errors = errors_of({"identity": 0.0, "noise": 1.0})
    files = files_of(statements, errors)
    visible = texts(page_of(files).partition("Settings of the audit</summary>")[0])
    assert "identity" not in re.sub(r"href=.*?>", "", visible)
    assert "no protection" in screens(page_of(files))[0]["rows"][0]["protection"]
    frames = frames_of(statements, errors)
    brief = audit_brief(*(frames[name] for name in ("measures", "comparisons", "costs")))
    assert "identity" not in " ".join(brief)
    assert b"identity" in files["measures.csv"]  # by which its file is asked for


def test_a_single_random_release_says_nothing_of_another(made):
    statements, errors, _ = made
    measures = measures_of(statements, 300)
    noisy = measures["protection"] != "true counts"
    names = ["answers_posterior_lower", "answers_posterior_upper", "error_releases"]
    measures.loc[noisy, names] = math.nan
    measures["releases"] = 1
    found = screens(page_of(files_of(statements, errors, 300, measures=measures)))[0]
    assert found["lines"]["Another release"] == "unknown: of one."


# Other parts of the page.


def test_names_are_escaped_and_no_formula():
    name = "=<script>alert(1)</script>"
    statements = statements_of({name: 0.1, "noise": 0.05})
    statements["place"] = "=1+1"
    errors = errors_of({name: 0.0, "noise": 1.0})
    files = files_of(statements, errors)
    page = page_of(files)
    assert page.count("<script") == 1  # the report's own
    assert "&lt;script&gt;" in page
    data = re.search(r'download="at-risk.csv" href="data:text/csv;base64,(.*?)"', page).group(1)
    found = pd.read_csv(io.BytesIO(base64.b64decode(data)))
    assert set(found["place"]) == {"'=1+1"}
    assert f"'{name}" in set(found["protection"])
    assert f"'{name}".encode() in files["measures.csv"]


def test_names_that_end_with_a_full_stop_end_a_sentence_with_one():
    statements = statements_of({"noise no.": 0.1, "noise so.": 0.05}, spread=0.01)
    errors = errors_of({"noise no.": 0.5, "noise so.": 2.5})
    known = [{"name": "linker", "known": ["sex", "Geschl."], "neighbours": 0.0}]
    files = files_of(statements, errors, config={"adversaries": known})
    assert ".." not in texts(page_of(files).partition("<h1")[2].partition("Tables</h2>")[0])
    frames = frames_of(statements, errors)
    lines = audit_brief(*(frames[name] for name in ("measures", "comparisons", "costs")))
    assert not any(line.endswith("..") for line in lines)


def test_who_is_most_at_risk_is_of_the_adversary_that_gains_most(made):
    page = page_of(made[2])
    data = re.search(r'download="at-risk.csv" href="data:text/csv;base64,(.*?)"', page).group(1)
    found = pd.read_csv(io.BytesIO(base64.b64decode(data)))
    rows = people_of(made[0]).query("adversary == 'linker'")
    assert found.groupby("protection").size().tolist() == [20, 20, 20]
    for protection, some in found.groupby("protection"):
        mine = rows[rows["protection"] == protection]
        ratio = mine.assign(ratio=mine["truth_posterior"] / mine["truth_without"])
        by_person = ratio.groupby("target")["ratio"].agg(["mean", "std", "size"])
        most = by_person.sort_values("mean", ascending=False).head(20)
        np.testing.assert_allclose(some["ratio"], most["mean"])
        error = by_person["std"] / np.sqrt(by_person["size"])
        np.testing.assert_allclose(some["error"], error[some["target"].astype(str)])


def test_each_population_has_its_screen(made):
    statements, errors, _ = made
    parts = {"north": statements, "<south>": statements_of(GAINS, seed=2, spread=0.005)}
    frames = {name: frames_of(part, errors) for name, part in parts.items()}
    joined = {
        kind: pd.concat([f[kind].assign(population=n) for n, f in frames.items()])
        for kind in frames["north"]
    }
    both = pd.concat([part.assign(population=name) for name, part in parts.items()])
    sizes = pd.concat([errors.assign(population=name) for name in parts])
    digests = {"population": dict.fromkeys(parts, "0" * 64)}
    page = page_of(files_of(both, sizes, config=digests, **joined))
    found = screens(page)
    assert len(found) == 2
    for screen, part in zip(found, parts.values(), strict=True):
        check_screen(screen, part, errors)
    assert page.index("<h2>north</h2>") < page.index("<h2>&lt;south&gt;</h2>")
    lines = audit_brief(*(joined[name] for name in ("measures", "comparisons", "costs")))
    assert len(lines) == 5
    assert lines[0].startswith("north: “noise, weak” doubles the chance")


def test_a_goal_is_answered_first(made):
    statements, errors, _ = made
    choice = pd.DataFrame(
        {"setting": ["noise, weak"], "cheapest": [True], "answer": ["noise, weak: rho 2 is enough"]}
    )
    goal = {"quantile": 0.9, "target_ratio": 1.5}
    files = files_of(statements, errors, config=goal, choice=choice, settings=choice)
    page = page_of(files)
    assert page.index("rho 2 is enough") < page.index('<p class="lead">')
    assert {"choice.csv", "settings.csv"} <= files.keys()


def test_a_report_about_nobody_is_still_a_report(made):
    statements, errors, _ = made
    frames = frames_of(statements, errors)
    nobody = {name: frames[name].iloc[:0] for name in ("measures", "comparisons", "targets")}
    page = page_of(files_of(statements.assign(status="undecided"), errors, **nobody))
    assert "nothing can be said" in page
    assert screens(page) == []
    assert audit_brief(nobody["measures"], nobody["comparisons"], frames["costs"]) == []


def test_who_is_left_out_is_said(made):
    statements, errors, _ = made
    some = statements["protection"].eq("noise, weak") & statements["target"].eq("4")
    some &= statements["adversary"].eq("linker") & statements["release"].isin([0, 3])
    left = statements.assign(status=statements["status"].mask(some, "undecided"))
    page = page_of(files_of(left, errors))
    assert "2 times there is no posterior" in page
    assert "no posterior about" not in page_of(made[2])
    check_screen(screens(page)[0], left, errors, wide=0.2)


def test_the_terminal_has_the_sentence_and_a_line_for_each(made, screen):
    frames = frames_of(*made[:2], 300)
    lines = audit_brief(frames["measures"], frames["comparisons"], frames["costs"])
    assert lines[0] == f"{screen['lead']} Adversary: linker."
    assert [line.partition(":")[0] for line in lines[1:]] == [*sorted(SIZES, key=SIZES.get)]
    for line, row in zip(lines[1:], screen["rows"], strict=True):
        assert row["and after (interval)"] in line
        assert line.endswith(row["error of a count"])
    choice = pd.DataFrame({"answer": ["a", "b"]})
    more = audit_brief(frames["measures"], frames["comparisons"], frames["costs"], choice=choice)
    assert len(more) == 5
    assert more[:2] == ["a.", "b."]
    assert more[-1] == "and 2 more in the report"


def test_files_and_targets(made):
    statements, _, files = made
    names = {name for name in files if not name.startswith("figures/")}
    assert names == {
        "measures.csv", "comparisons.csv", "costs.csv", "calibration.csv", "checks.csv",
        "proofs.csv", "targets.parquet", "report.html",
    }  # fmt: skip
    pd.testing.assert_frame_equal(
        pd.read_parquet(io.BytesIO(files["targets.parquet"])), people_of(statements)
    )


def test_checks_are_counted_and_their_power_shown(made):
    page = page_of(made[2])
    totals = check_totals(CHECKS)
    assert totals == "all 1 calibration curves within their bands, 0 of 1 other checks as they " \
        "should be"  # fmt: skip
    assert totals in page
    assert ">0.97</td>" in page


def test_the_page_has_its_glossary(made):
    words = texts(page_of(made[2]).partition("Words of this page")[2].partition("Tables</h2>")[0])
    for term in ("outsider", "linker", "insider", "own record", "remaining answers", "Brier",
                 "calibration", "rho", "doubled", "proved", "unlike their place", "likelihood",
                 "as-true", "interval"):  # fmt: skip
        assert term in words


def test_settings_are_whole(made):
    assert '"seed": 1' in page_of(made[2]).replace("&#34;", '"')
    assert CONFIG["made_up"]


@needs_browser
@pytest.mark.slow
def test_on_a_phone_panels_stand_below_each_other_and_on_paper_heads_repeat(made, tmp_path):
    file = tmp_path / "report.html"
    file.write_bytes(made[2]["report.html"])
    tops = "[...document.querySelectorAll('.panels img')].map(i => i.getBoundingClientRect())"
    with Browser(tmp_path / "profile") as browser:
        for width in (390, 1280):
            browser.open(file, width=width)
            browser.run("document.querySelectorAll('details').forEach(d => (d.open = true))")
            assert browser.run("document.scrollingElement.scrollWidth") <= width
            first, second = browser.run(f"{tops}.map(r => [r.top, r.bottom, r.right])")
            assert (second[0] >= first[1]) == (width == 390)
            assert max(first[2], second[2]) <= width
            # Nothing of the first screen's table is cut off.
            table = "document.querySelector('table.cards').parentElement"
            assert browser.run(f"{table}.scrollWidth - {table}.clientWidth") == 0
        # Intervals are sorted by their values: the third column of the first folded table's end.
        heads = "document.querySelectorAll('figure.table')[0].querySelectorAll('th button')"
        at = browser.run(f"[...{heads}].findIndex(b => b.textContent == 'after')")
        browser.run(f"{heads}[{at}].click()")
        cells = browser.run(
            "[...document.querySelectorAll('figure.table')[0].querySelectorAll('tbody tr')]"
            f".map(r => r.cells[{at}].textContent)"
        )
        values = [numbers(cell)[0] for cell in cells]
        assert values == sorted(values)
        browser.ask("Emulation.setEmulatedMedia", media="print")
        shown = "getComputedStyle(document.querySelector('{}')).display"
        assert browser.run(shown.format("thead")) == "table-header-group"
        # A button in a head would keep it from being repeated.
        assert browser.run(shown.format("th button")) == "contents"
        assert browser.run(shown.format("details.screen")) == "none"
        browser.ask("Emulation.setEmulatedMedia", media="")
        assert browser.faults == []
