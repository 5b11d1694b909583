"""Reports whose figures are not drawn, for tests that look at something else."""

import contextlib
import unittest.mock

from matplotlib.figure import Figure


@contextlib.contextmanager
def quick_figures():
    """Figures come out as a few bytes: to draw them takes nearly all of the time of a command."""

    def savefig(figure, stream, *, format, **_):
        stream.write(f"{len(figure.axes)} panels as {format}".encode())

    with unittest.mock.patch.object(Figure, "savefig", savefig):
        yield
