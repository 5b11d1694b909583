"""Names that somebody chose are text in figures and pages: neither mathematics nor markup."""

import io

import pandas as pd
import pytest

from bayesrisk.plotting import plot_mechanisms, plot_statements
from bayesrisk.plotting._canvas import Axes, Figure, as_text, legend, mark

NASTY = ["a $\\bad{$", "$x$", "nul \0 and esc \x1b[31m", "$", "\\$", "_hidden", "line\nbreak"]


def drawn(figure):
    """Return the figure as SVG, its texts as text."""
    file = io.BytesIO()
    figure.savefig(file, format="svg")
    return file.getvalue().decode("utf-8")


@pytest.mark.parametrize("name", NASTY)
def test_statements_and_mechanisms_draw_any_name(name):
    statements = pd.DataFrame(
        {
            "attack": name,
            "protection": name,
            "target": ["a", "b"],
            "statement": "is",
            "status": "proved",
            "ratio": [1.0, 2.0],
        }
    )
    assert drawn(plot_statements(statements)[0].figure).startswith("<?xml")
    columns = ("marginal_risk", "marginal_risk_lower", "marginal_risk_upper")
    frame = pd.DataFrame({"protection": [name, "other"], "prior": 0.1, "target": 0})
    frame = frame.assign(**dict.fromkeys(columns, 1.2), mean_absolute_error=1.0)
    frame["mean_absolute_error_error"] = 0.1
    assert drawn(plot_mechanisms(frame)[0].figure).startswith("<?xml")


@pytest.mark.parametrize("name", NASTY)
def test_marks_draw_any_name(name):
    figure = Figure()
    axes = figure.subplots()
    assert isinstance(axes, Axes)
    axes.plot([0.1, 1.0], [1, 2], label=as_text(name))
    mark(axes, {name: 0.5})
    legend(axes)
    shown = [text.get_text() for text in axes.get_legend().get_texts()]
    assert shown == [as_text(name)]
    assert drawn(figure).startswith("<?xml")


def test_the_text_is_the_name():
    figure = Figure()
    figure.text(0.5, 0.5, as_text("5 $ and 6 $"))
    import matplotlib as mpl

    with mpl.rc_context({"svg.fonttype": "none"}):
        assert "5 $ and 6 $" in drawn(figure)
