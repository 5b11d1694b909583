"""Figures.  They draw frames and recompute nothing; only ``_canvas`` imports matplotlib.

Every function takes a data frame with named columns (from :meth:`BlockRisk.to_frame`, from a
sweep, or your own) and returns the Matplotlib Axes, or an array of them where there are several
panels, in reading order.  A notebook shows the whole figure.  Pass your own as ``ax``.
"""

from bayesrisk.plotting._canvas import Axes as Axes
from bayesrisk.plotting._canvas import Panels as Panels
from bayesrisk.plotting._canvas import Where as Where
from bayesrisk.plotting._canvas import figure_of, save_figure
from bayesrisk.plotting.attacks import (
    plot_claims,
    plot_majority,
    plot_occupancy_blocks,
    plot_occupancy_counts,
    plot_occupancy_linkage,
    plot_occupancy_variability,
    plot_reidentification,
    plot_variability,
)
from bayesrisk.plotting.audit import (
    plot_audit,
    plot_beliefs,
    plot_statements,
    plot_tradeoff,
)
from bayesrisk.plotting.counts import (
    plot_correct_decision,
    plot_decision_accuracy,
    plot_mechanisms,
    plot_postprocessing,
    plot_risk,
)
from bayesrisk.plotting.hierarchy import (
    plot_decision_map,
    plot_group,
    plot_noisy_measurements,
)

__all__ = [
    "figure_of",
    "plot_audit",
    "plot_beliefs",
    "plot_claims",
    "plot_correct_decision",
    "plot_decision_accuracy",
    "plot_decision_map",
    "plot_group",
    "plot_majority",
    "plot_mechanisms",
    "plot_noisy_measurements",
    "plot_occupancy_blocks",
    "plot_occupancy_counts",
    "plot_occupancy_linkage",
    "plot_occupancy_variability",
    "plot_postprocessing",
    "plot_reidentification",
    "plot_risk",
    "plot_statements",
    "plot_tradeoff",
    "plot_variability",
    "save_figure",
]
