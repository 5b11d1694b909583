"""The report: self-contained, escaped, the same bytes twice."""

import re

import pytest
from figures import quick_figures
from label_boxes import drawn_labels
from studies import run_sweep

from bayesrisk.exceptions import PartFileError
from bayesrisk.experiments import read_results, write_report
from bayesrisk.experiments.sweep_document import parse_config
from bayesrisk.experiments.sweep_report import Average, _answer, _quotes, chance, growth
from bayesrisk.risk import marginal_risk


@pytest.fixture(scope="module")
def page(shared_document, tmp_path_factory):
    grid = shared_document["grid"] | {"sensitivity": ["add-remove", "change-one"]}
    folder = tmp_path_factory.mktemp("report") / "out"
    run_sweep(parse_config(shared_document | {"grid": grid}), folder)
    with drawn_labels() as faults:
        report = write_report(folder)
    assert faults == []
    return report


@pytest.fixture
def words_only():
    """Figures are not drawn: the test is about the words of the page."""
    with quick_figures():
        yield


def test_report_is_self_contained_and_escaped(page):
    html = page.read_text(encoding="utf-8")
    assert "<h1>small &lt;sweep&gt; &amp; more</h1>" in html
    assert "<sweep>" not in html
    assert not re.search(r'(src|href)="(?!data:)', html)
    assert html.count("<script") == 1  # the report's own
    assert str(page.parent) not in html
    assert html.count("<img") == 2 * 9
    assert html.count("data:image/png;base64,") == 2 * html.count("<img")  # and for a phone
    assert "Everything else is exact" in html
    assert "neighbours change one record" in html


def test_report_shows_the_published_numbers(page):
    """Table 5 of Kazan and Reiter, prior 1/2, and its budget."""
    html = page.read_text(encoding="utf-8")
    assert "block (add or remove): rho = 0.09922635, sigma2 = 5.039" in html
    assert "<td>1/2</td><td>0.52367</td><td>1.0473</td><td>1</td><td>0.58886</td>" in html
    assert "block (change one): rho = 0.09922635, sigma2 = 10.078" in html


@pytest.mark.usefixtures("words_only")
def test_a_budget_of_the_census_comes_with_both_of_its_noises(document, tmp_path):
    """Also where the sweep has one sensitivity only; a budget of one's own has one noise."""
    document["quantities"] = ["marginal_posterior", "marginal_risk"]
    document["grid"]["rho"].append({"name": "mine", "value": "0.5"})
    run_sweep(parse_config(document), tmp_path / "out")
    html = write_report(tmp_path / "out").read_text(encoding="utf-8")
    header = html[html.index("Two noises for one rho") :]
    assert "<th>block, add or remove: sigma2 5.039</th>" in header
    assert "<th>block, change one: sigma2 10.08</th>" in header
    assert "<tr><td>1/2</td><td>1.0473</td><td>1.0242</td></tr>" in header
    assert "<tr><td>1/864</td><td>1.2188</td><td>1.104</td></tr>" in header
    assert "mine, as" not in html
    document["grid"]["rho"] = [0.1, 0.2, 0.3]
    run_sweep(parse_config(document), tmp_path / "own")
    html = write_report(tmp_path / "own").read_text(encoding="utf-8")
    assert "change one" not in html
    assert "rho = 0.2" not in html.split("Resolved configuration")[0]
    lead = re.search(r'class="lead">(.*?)</p>', html, re.S)[1]
    assert "the budget rho = 0.1 " in lead  # the ends, where none has a name
    numbers = [float(marginal_risk(rho=rho, prior=1 / 864)) for rho in (0.1, 0.3)]
    assert f"from 1 in 864 to 1 in {864 / numbers[0]:.0f} at the budget rho = 0.1 (" in lead
    assert f"and to 1 in {864 / numbers[1]:.0f} at the largest of this sweep, rho = 0.3." in lead
    assert "The numbers of 2 of 3 budgets are shown; all are in results.csv." in html


@pytest.mark.usefixtures("words_only")
def test_two_names_of_one_budget_are_two_budgets_with_the_same_numbers(document, tmp_path):
    """As where two products of the Census spend alike."""
    document["grid"]["rho"] = [0.1, {"name": "a", "value": 1}, {"name": "b", "value": "1"}]
    run_sweep(parse_config(document), tmp_path / "out")
    html = write_report(tmp_path / "out").read_text(encoding="utf-8")
    tables = [
        re.search(rf"<figcaption>{name}: rho = 1, .*?(<tbody>.*?</tbody>)", html, re.S)[1]
        for name in "ab"
    ]
    assert tables[0] == tables[1]
    assert tables[0].count("<tr>") == 2  # a row for each prior
    assert "No other of the 2 marked budgets and 2 priors" in html


@pytest.mark.usefixtures("words_only")
def test_found_and_right_are_told_apart(document, tmp_path):
    """At prior 1/5 the target is hardly found, and "no" without a release is right in 80 %."""
    document["grid"]["prior"] = ["1/5"]
    (tmp_path / "t.csv").write_text("who,count\n<script>alert(1)</script>,1\n", encoding="utf-8")
    document["table"] = {"path": "t.csv"}
    run_sweep(parse_config(document, folder=tmp_path), tmp_path / "out")
    html = write_report(tmp_path / "out").read_text(encoding="utf-8")
    heads = "<th>found, if in the cell</th><th>right without a release</th><th>right with it</th>"
    assert heads in html
    assert "<td>8</td><td>0.0017522</td><td>0.8</td><td>0.80005</td>" in html
    assert "correct decision probability" not in html
    # The name of a target is text.
    assert html.count("<script") == 1  # the report's own
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html


def test_figures_come_as_png_and_svg(page):
    figures = page.parent / "figures"
    names = {path.stem for path in figures.glob("*.png")}
    assert names == {path.stem for path in figures.glob("*.svg")}
    assert len(names) == 18
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in figures.glob("*.png"))


@pytest.mark.slow
def test_same_bytes_twice(page):
    folder = page.parent
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    write_report(folder)
    assert before == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_unfinished_sweep_has_no_report(document, tmp_path):
    run_sweep(parse_config(document), tmp_path / "out", shard=(1, 2))
    with pytest.raises(PartFileError, match="missing"):
        write_report(tmp_path / "out")
    assert not (tmp_path / "out" / "report.html").exists()


def answer_of(page):
    text = page.read_text(encoding="utf-8")
    start = text.index('class="answer"')
    return " ".join(re.sub("<[^>]*>", "", text[start : text.index("</div>", start)]).split())


def test_the_answer_comes_first_and_is_that_of_the_results(page):
    """The posterior on average of the marked budget and prior that gain most."""
    rows = read_results(page.parent)[1]
    text = answer_of(page)
    named = rows[rows["rho_name"] != ""]
    for sensitivity, convention in (
        (1.0, "add or remove"),
        (2.0**0.5, "change one"),
    ):
        own = named[(named["sensitivity"] == sensitivity)]
        risk = own[own["quantity"] == "marginal_risk"]
        most = risk.loc[risk["value"].idxmax()]
        posterior = own[
            (own["quantity"] == "marginal_posterior")
            & (own["rho"] == most["rho"])
            & (own["prior"] == most["prior"])
        ]["value"].item()
        assert convention in text
        assert f"at {100 * posterior:.3g}%: {most['value']:.3g} times as much" in text


@pytest.mark.usefixtures("words_only")
def test_the_answer_of_decisions_and_of_none(document, tmp_path):
    document["quantities"] = ["decision_accuracy", "decision_baseline"]
    document["grid"]["prior"] = ["1/2"]
    run_sweep(parse_config(document), tmp_path / "right")
    text = answer_of(write_report(tmp_path / "right"))
    assert "best guess is right in 58.9% of all cases with the released count" in text
    assert "and in 50% without a release" in text
    document["quantities"] = ["decision_threshold", "epsilon"]
    run_sweep(parse_config(document), tmp_path / "none")
    page = write_report(tmp_path / "none")
    assert "has no averages over releases" in answer_of(page)
    assert "data:image" not in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("probability", "words"),
    [
        (1 / 864, "1 in 864"), (0.00189, "1 in 529"), (0.5, "50 %"), (0.1, "10 %"),
        (0.0999, "1 in 10"), (0.9951, "more than 99 %"), (1.0, "100 %"), (0.0, "0 %"),
    ],
)  # fmt: skip
def test_a_probability_as_people_say_it(probability, words):
    assert chance(probability) == words


@pytest.mark.parametrize(
    ("ratio", "words"),
    [
        (1.0, "stays as it was"), (1.004, "stays as it was"), (1.634, "grows by 63 %"),
        (2.99, "grows by 199 %"), (4.41, "becomes 4.41 times as large"), (0.9, "falls by 10 %"),
    ],
)  # fmt: skip
def test_how_a_belief_grows(ratio, words):
    assert growth(ratio).startswith(words)


def average(ratio=1.63, before=1 / 864, after=0.00189, label="2020 block group"):
    return Average("Noise", label, "1/864 (0.116%)", before, after, ratio)


def test_the_first_sentence_is_what_a_belief_was_and_is():
    assert average().lead == (
        "At the budget “2020 block group” an adversary's belief in the truth grows by 63 % on "
        "average: from 1 in 864 to 1 in 529."
    )
    unnamed = average(label="rho = 0.1").lead
    assert unnamed.startswith("At the budget rho = 0.1 (smaller is more noise) ")
    right = average(ratio=None, before=0.8, after=0.9).lead
    assert "is right in 90 % of all cases with the released count, and in 80 % without it" in right
    same = average(ratio=None, before=0.8, after=0.8001).lead
    assert "no more than without it" in same


def test_the_panel_that_gains_most_leads():
    averages = [average(1.2), average(1.9, label="large"), average(1.9, label="the same")]
    (front, text, _), _, (_, rest) = _answer(averages)
    assert (front, "“large”" in text, len(rest)) == ("sentence", True, 4)
    for some in ([], averages, [average(None)]):
        quotes = _quotes(some, "all others")
        assert (len(quotes.may), len(quotes.may_not)) == (3, 3)
    assert "no averages over releases" in _answer([])[0]


@pytest.mark.parametrize("named", [True, False])
def test_a_caption_speaks_of_named_budgets_where_there_are_some(tmp_path, named):
    one = {"name": "small", "value": 0.5} if named else 0.5
    document = {"quantities": ["marginal_risk", "marginal_posterior"],
                "grid": {"rho": [0.1, one], "prior": [0.1]}}  # fmt: skip
    run_sweep(parse_config(document), tmp_path / "out")
    write_report(tmp_path / "out")
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert ("mark the named budgets" in page) is named
