"""Reports whose figures are not drawn, for tests that look at something else."""

import contextlib
import unittest.mock

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG

from bayesrisk.plotting import _canvas, attacks


@contextlib.contextmanager
def quick_figures():
    """Figures come out as a few bytes: to draw them takes nearly all of the time of a command."""

    def written(form):
        def write(canvas, stream, **_):
            stream.write(f"{len(canvas.figure.axes)} panels as {form}".encode())

        return write

    # They are not laid out either, which measures every letter.
    with (
        unittest.mock.patch.object(FigureCanvasAgg, "print_png", written("png")),
        unittest.mock.patch.object(FigureCanvasSVG, "print_svg", written("svg")),
        unittest.mock.patch.object(_canvas, "_laid_out", contextlib.nullcontext),
        # And drawn once, not once more for a phone.
        unittest.mock.patch.object(attacks, "phone_png", return_value=(b"a phone's", 4.0)),
    ):
        yield
