"""A figure is shown in a fresh notebook, and drawn into Axes of somebody's own."""

import inspect
from pathlib import Path

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bayesrisk import block_risk, plotting
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError

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
        figure = plotting.figure_of(drawn)
        assert [size["width"], size["height"]] == [round(100 * x) for x in figure.get_size_inches()]
        assert not plt.get_fignums()
    assert plotting.plot_risk(frame)[:0]._repr_png_() is None


def test_axes_of_ones_own_are_drawn_in_and_returned(frame):
    figure = Figure()
    one, two, three = figure.subplots(1, 3)
    assert plotting.plot_correct_decision(frame, ax=one) is one
    assert list(plotting.plot_risk(frame, ax=(two, three))) == [two, three]
    assert all(axes.lines for axes in (one, two, three))
    assert plotting.figure_of(plotting.plot_risk(frame, ax=[two, three])) is figure
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


def test_every_figure_takes_axes_and_returns_them():
    for name in plotting.__all__:
        if name.startswith("plot_"):
            signature = inspect.signature(getattr(plotting, name))
            assert signature.parameters["ax"].kind is inspect.Parameter.KEYWORD_ONLY
            assert signature.parameters["ax"].default is None
            assert signature.return_annotation in (Axes, plotting._canvas.Panels)


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
