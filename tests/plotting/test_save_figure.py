"""Files of a figure: laid out once, the picture that savefig makes, and the figure as it was."""

import io

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.layout_engine import ConstrainedLayoutEngine

from bayesrisk.plotting import save_figure
from bayesrisk.plotting._canvas import style


def drawn(layout):
    with style():
        figure = Figure(figsize=(4, 3), layout=layout)
        axes = figure.subplots(1, 2, sharey=True)
        axes[0].plot([1, 2, 3], [0.001, 0.5, 200.0], label="a long name of a line")
        axes[0].set(yscale="log", ylabel="two\nlines", xlabel="x")
        figure.legend(loc="outside lower center" if layout else "lower center")
    return figure


@pytest.mark.parametrize("layout", [None, "constrained"])
def test_the_picture_is_that_of_savefig(tmp_path, layout):
    stream = io.BytesIO()
    with style():
        drawn(layout).savefig(stream, dpi=200)
    files = save_figure(drawn(layout), tmp_path / "figure")
    assert [file.name for file in files] == ["figure.png", "figure.svg"]
    stream.seek(0)
    assert np.array_equal(imread(files[0]), imread(stream))


@pytest.mark.parametrize("layout", [None, "constrained"])
def test_a_figure_is_as_it_was_and_gives_the_same_picture_again(tmp_path, layout):
    figure = drawn(layout)
    canvas, dpi = figure.canvas, figure.dpi
    first = save_figure(figure, tmp_path / "first")[0].read_bytes()
    assert figure.canvas is canvas
    assert figure.dpi == dpi
    assert isinstance(figure.get_layout_engine(), ConstrainedLayoutEngine) == (layout is not None)
    assert save_figure(figure, tmp_path / "again")[0].read_bytes() == first


def test_a_figure_is_drawn_once_for_each_file(tmp_path, monkeypatch):
    real, held = Figure.draw, []
    monkeypatch.setattr(Figure, "draw", lambda self, *more: (held.append(self), real(self, *more)))
    save_figure(drawn("constrained"), tmp_path / "figure")
    assert len(held) == 2
