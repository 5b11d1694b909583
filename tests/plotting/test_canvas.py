"""Figures: shown whole, drawn into Axes of one's own, the same bytes each time; names are text."""

import inspect
import io
import re
from pathlib import Path

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.layout_engine import ConstrainedLayoutEngine

from bayesrisk import block_risk, plotting
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError
from bayesrisk.plotting._canvas import Panels, as_text, legend, legend_outside, mark, style

FRESH = """
import bayesrisk as br
frame = br.block_risk([1, 2, 3], rho=0.1, prior=0.1).to_frame()
br.plotting.plot_{kind}(frame.assign(rho=0.1))
"""
ROOT = Path(__file__).parents[2]


@pytest.fixture
def frame():
    return block_risk([1, 2, 3], rho=0.1, prior=0.1).to_frame().assign(rho=0.1)


@pytest.mark.filterwarnings("default")  # Jupyter's own
@pytest.mark.slow
def test_a_fresh_notebook_shows_figures():
    """Without %matplotlib inline, one panel and two; and once only with it."""
    from nbclient import NotebookClient

    sources = [FRESH.format(kind=kind) for kind in ("correct_decision", "risk")]
    sources += ["%matplotlib inline\n" + sources[-1]]
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    for cell in notebook.cells:
        (output,) = cell.outputs
        assert "image/png" in output["data"]
        assert output["metadata"]["image/png"]["width"] < 1000


def test_what_is_shown_is_the_figure(frame):
    for drawn in (plotting.plot_correct_decision(frame), plotting.plot_risk(frame)):
        image, size = drawn._repr_png_()
        assert image.startswith(b"\x89PNG")
        figure = plotting.parent_figure(drawn)
        assert [size["width"], size["height"]] == [round(100 * x) for x in figure.get_size_inches()]
        assert not plt.get_fignums()
    assert plotting.plot_risk(frame)[:0]._repr_png_() is None


def test_axes_of_ones_own_are_drawn_in_and_returned(frame):
    figure = Figure()
    one, two, three = figure.subplots(1, 3)
    assert plotting.plot_correct_decision(frame, ax=one) is one
    assert list(plotting.plot_risk(frame, ax=(two, three))) == [two, three]
    assert all(axes.lines for axes in (one, two, three))
    assert plotting.parent_figure(plotting.plot_risk(frame, ax=[two, three])) is figure
    # Whoever made a figure shows it.
    assert plotting.plot_risk(frame, ax=[two, three])._repr_png_() is None
    with pytest.raises(ArgumentError, match="ax must hold 2 Axes, one for each panel, got 1"):
        plotting.plot_risk(frame, ax=one)
    with pytest.raises(ArgumentError, match="ax must hold 1 Axes"):
        plotting.plot_correct_decision(frame, ax="here")


def test_axes_arrays_and_figures_are_saved_alike(frame, tmp_path):
    panels = plotting.plot_risk(frame, against="noisy_count")
    written = [
        plotting.save_figure(drawn, tmp_path / str(i))[0].read_bytes()
        for i, drawn in enumerate((panels, panels[0], panels[0].figure))
    ]
    assert written[0] == written[1] == written[2]
    for wrong in (frame, np.array([]), None):
        with pytest.raises(ArgumentTypeError, match="figure must be a Figure, Axes or an array"):
            plotting.save_figure(wrong, tmp_path / "wrong")


def test_panels_know_their_figure():
    fig, axes = plt.subplots(1, 2)
    assert np.asarray(axes, dtype=object).view(Panels).figure is fig
    plt.close(fig)


def test_every_figure_takes_axes_and_returns_them():
    for name in FIGURES:
        signature = inspect.signature(getattr(plotting, name))
        assert signature.parameters["ax"].kind is inspect.Parameter.KEYWORD_ONLY
        assert signature.parameters["ax"].default is None
        assert signature.return_annotation in (Axes, Panels, Panels | Axes)


def test_no_page_shows_a_figure_as_text():
    """Cells of the documentation end in what the plot functions return, never in a Figure."""
    pages = [
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("notebooks/*.ipynb"),
        *ROOT.glob("docs/**/*.html"),
    ]
    assert len(pages) > 50
    for page in pages:
        shown = page.read_text(encoding="utf-8")
        assert "<Figure size" not in shown, page
        assert "&lt;Figure size" not in shown, page
        # A semicolon keeps what a cell ends in from being shown: the figure, too.
        assert re.findall(r"plotting\.plot_\w+\(.*\);", shown) == [], page


FIGURES = [name for name in plotting.__all__ if name.startswith("plot_")]
#: What is drawn of other things than one frame.
GIVEN = {
    "plot_claims": lambda frame: (frame, {"prior": frame}),
    "plot_postprocessing": lambda frame: (frame, frame),
    "plot_tradeoff": lambda frame: ({"curve": frame},),
    "plot_audit": lambda frame: (frame, frame),
}
ASKED = {
    "plot_occupancy_linkage": {"key": "hud", "unique": True},
    "plot_occupancy_counts": {"protection": "none"},
}


@pytest.mark.parametrize("name", FIGURES)
def test_missing_columns_and_rows_are_named(name):
    draw, given, asked = getattr(plotting, name), GIVEN.get(name), ASKED.get(name, {})
    arguments = given or (lambda frame: (frame,))
    with pytest.raises(ArgumentError, match="missing: ") as told:
        draw(*arguments(pd.DataFrame({"x": [1]})), **asked)
    columns = str(told.value).partition("missing: ")[2].split(", ")
    with pytest.raises(ArgumentError, match="at least one row"):
        draw(*arguments(pd.DataFrame(columns=columns)), **asked)


NASTY = ["a $\\bad{$", "$x$", "nul \0 and esc \x1b[31m", "$", "\\$", "_hidden", "line\nbreak"]


def drawn(figure):
    """Return the figure as SVG, its texts as text."""
    file = io.BytesIO()
    figure.savefig(file, format="svg")
    return file.getvalue().decode("utf-8")


def test_statements_and_mechanisms_draw_any_name():
    said = {"target": ["a", "b"], "statement": "is", "status": "proved", "ratio": [1.0, 2.0]}
    named = [pd.DataFrame({"attack": name, "protection": name, **said}) for name in NASTY]
    statements = pd.concat(named, ignore_index=True)
    assert drawn(plotting.plot_statements(statements)[0].figure).startswith("<?xml")
    columns = ("marginal_risk", "marginal_risk_lower", "marginal_risk_upper")
    frame = pd.DataFrame({"protection": [*NASTY, "other"], "prior": 0.1, "target": 0})
    frame = frame.assign(**dict.fromkeys(columns, 1.2), mean_absolute_error=1.0)
    frame["mean_absolute_error_error"] = 0.1
    assert drawn(plotting.plot_mechanisms(frame)[0].figure).startswith("<?xml")


@pytest.mark.parametrize("name", NASTY)
def test_marks_draw_any_name(name):
    figure = Figure()
    axes = figure.subplots()
    assert isinstance(axes, Axes)
    axes.plot([0.1, 1.0], [1, 2], label=as_text(name))
    mark(axes, {name: 0.5})
    legend(np.array([axes], dtype=object).view(Panels))
    shown = [text.get_text() for text in axes.get_legend().get_texts()]
    assert shown == [as_text(name)]
    assert drawn(figure).startswith("<?xml")


def laid_out(layout):
    with style():
        figure = Figure(figsize=(4, 3), layout=layout)
        axes = figure.subplots(1, 2, sharey=True)
        axes[0].plot([1, 2, 3], [0.001, 0.5, 200.0], label="a long name of a line")
        axes[0].set(yscale="log", ylabel="two\nlines", xlabel="x")
        figure.legend(loc="outside lower center" if layout else "lower center")
    return figure


@pytest.mark.parametrize("layout", ["constrained"])
def test_the_picture_is_that_of_savefig(tmp_path, layout):
    stream = io.BytesIO()
    with style():
        laid_out(layout).savefig(stream, dpi=200)
    files = plotting.save_figure(laid_out(layout), tmp_path / "figure")
    assert [file.name for file in files] == ["figure.png", "figure.svg"]
    stream.seek(0)
    assert np.array_equal(imread(files[0]), imread(stream))


@pytest.mark.parametrize("layout", [None, "constrained"])
def test_a_figure_is_as_it_was_and_gives_the_same_picture_again(tmp_path, layout):
    figure = laid_out(layout)
    canvas, dpi = figure.canvas, figure.dpi
    first = plotting.save_figure(figure, tmp_path / "first")[0].read_bytes()
    assert figure.canvas is canvas
    assert figure.dpi == dpi
    assert isinstance(figure.get_layout_engine(), ConstrainedLayoutEngine) == (layout is not None)
    assert plotting.save_figure(figure, tmp_path / "again")[0].read_bytes() == first


@pytest.mark.parametrize("ending", ["", ".png", ".svg"])
def test_an_ending_is_not_written_twice(frame, ending, tmp_path):
    files = plotting.save_figure(plotting.plot_risk(frame), tmp_path / f"figure.1{ending}")
    assert [file.name for file in files] == ["figure.1.png", "figure.1.svg"]


@pytest.mark.parametrize("layout", [None, "constrained"])
def test_the_legend_of_given_panels_hides_nothing_and_is_whole(layout):
    figure = Figure(figsize=(6.4, 3.6), layout=layout)
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], label="a protection with a name")
    group = np.array([axes], dtype=object).view(Panels)
    legend_outside(group, *axes.get_legend_handles_labels())
    FigureCanvasAgg(figure).draw()
    box, panel = axes.get_legend().get_window_extent(), axes.get_window_extent()
    assert panel.x1 <= box.x0 < box.x1 <= figure.bbox.x1
