"""Figures.  They draw frames and recompute nothing; only ``_canvas`` imports matplotlib.

Every function takes a data frame with named columns (from :meth:`BlockRisk.to_frame`, from a
sweep, or your own) and returns a ``matplotlib.figure.Figure``.
"""

from bayesrisk.plotting._canvas import save_figure
from bayesrisk.plotting.block import (
    plot_correct_decision,
    plot_levels,
    plot_marginal_risk,
    plot_released_count,
)

__all__ = [
    "plot_correct_decision",
    "plot_levels",
    "plot_marginal_risk",
    "plot_released_count",
    "save_figure",
]
