"""Figures drawn from result frames; only ``_canvas`` imports matplotlib.

Every function takes a data frame with named columns: from :meth:`BlockRisk.to_frame`, from a sweep,
or your own. It returns the Matplotlib Axes, or for several panels an array of them in reading
order. A notebook shows the whole figure.

Two arguments have the same meaning everywhere. ``ax`` gives the Axes to draw in, one for each
panel; by default a new figure. ``budgets`` are marked by named vertical lines if an axis shows
budgets.

The public names are those of ``__init__.pyi``, loaded on first use: nothing imports matplotlib
before it draws.
"""

from bayesrisk._base.lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__, __file__)
