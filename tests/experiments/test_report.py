"""The report: self-contained, escaped, the same bytes twice."""

import re

import pytest

from bayesrisk.exceptions import PartFileError
from bayesrisk.experiments import parse_config, run_sweep, write_report


@pytest.fixture
def page(document, tmp_path):
    document["grid"]["sensitivity"] = ["add-remove", "change-one"]
    folder = tmp_path / "out"
    run_sweep(parse_config(document), folder)
    return write_report(folder)


def test_report_is_self_contained_and_escaped(page):
    html = page.read_text(encoding="utf-8")
    assert "<h1>small &lt;sweep&gt; &amp; more</h1>" in html
    assert "<sweep>" not in html
    assert not re.search(r'(src|href)="(?!data:)', html)
    assert "<script" not in html
    assert str(page.parent) not in html
    assert html.count("data:image/png;base64,") == 2 * 6
    assert "Everything else is exact" in html
    assert "neighbours change one record" in html


def test_report_shows_the_published_numbers(page):
    """Table 5 of Kazan and Reiter, prior 1/2, and its budget."""
    html = page.read_text(encoding="utf-8")
    assert "block: rho = 0.09922635, sigma2 = 5.039" in html
    assert "<td>1/2</td><td>0.52367</td><td>1.0473</td><td>1</td><td>0.58886</td>" in html
    assert "block: rho = 0.09922635, sigma2 = 10.078" in html


def test_figures_come_as_png_and_svg(page):
    figures = page.parent / "figures"
    names = {path.stem for path in figures.glob("*.png")}
    assert names == {path.stem for path in figures.glob("*.svg")}
    assert len(names) == 12
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in figures.glob("*.png"))


def test_same_bytes_twice(page):
    folder = page.parent
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    write_report(folder)
    assert before == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_target_names_are_escaped(document, tmp_path):
    (tmp_path / "t.csv").write_text("who,count\n<script>alert(1)</script>,1\n", encoding="utf-8")
    document["table"] = {"path": "t.csv"}
    run_sweep(parse_config(document, folder=tmp_path), tmp_path / "out")
    html = write_report(tmp_path / "out").read_text(encoding="utf-8")
    assert "<script" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html


def test_report_with_few_quantities(document, tmp_path):
    document["quantities"] = ["decision_threshold", "epsilon"]
    run_sweep(parse_config(document), tmp_path / "out")
    html = write_report(tmp_path / "out").read_text(encoding="utf-8")
    assert "decision threshold" in html
    assert "data:image" not in html


def test_report_without_named_budgets(document, tmp_path):
    document["grid"]["rho"] = [0.1, 0.2, 0.3]
    run_sweep(parse_config(document), tmp_path / "out")
    assert "rho = 0.2" in write_report(tmp_path / "out").read_text(encoding="utf-8")


def test_unfinished_sweep_has_no_report(document, tmp_path):
    run_sweep(parse_config(document), tmp_path / "out", shard=(1, 2))
    with pytest.raises(PartFileError, match="missing"):
        write_report(tmp_path / "out")
    assert not (tmp_path / "out" / "report.html").exists()
