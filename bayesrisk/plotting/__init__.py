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
    Point,
    figure_points,
    plot_audit,
    plot_beliefs,
    plot_statements,
    plot_tradeoff,
)
from bayesrisk.plotting.counts import (
    plot_correct_decision,
    plot_decision_accuracy,
    plot_levels,
    plot_marginal_risk,
    plot_mechanisms,
    plot_postprocessing,
    plot_released_count,
    plot_risk_distribution,
)
from bayesrisk.plotting.hierarchy import (
    plot_autocorr,
    plot_decision_map,
    plot_group_budget,
    plot_group_count,
    plot_noise_sum,
    plot_noisy_measurements,
    plot_posterior,
    plot_rank,
    plot_trace,
    plot_variance_ratio,
)

__all__ = [
    "Point",
    "figure_of",
    "figure_points",
    "plot_audit",
    "plot_autocorr",
    "plot_beliefs",
    "plot_claims",
    "plot_correct_decision",
    "plot_decision_accuracy",
    "plot_decision_map",
    "plot_group_budget",
    "plot_group_count",
    "plot_levels",
    "plot_majority",
    "plot_marginal_risk",
    "plot_mechanisms",
    "plot_noise_sum",
    "plot_noisy_measurements",
    "plot_occupancy_blocks",
    "plot_occupancy_counts",
    "plot_occupancy_linkage",
    "plot_occupancy_variability",
    "plot_posterior",
    "plot_postprocessing",
    "plot_rank",
    "plot_reidentification",
    "plot_released_count",
    "plot_risk_distribution",
    "plot_statements",
    "plot_trace",
    "plot_tradeoff",
    "plot_variability",
    "plot_variance_ratio",
    "save_figure",
]
