"""Public names of the figures, and types of what they draw in."""

import bayesrisk.plotting._canvas as _canvas

from ._canvas import parent_figure as parent_figure, save_figure as save_figure
from .attacks import (
    plot_claims as plot_claims,
    plot_majority as plot_majority,
    plot_occupancy_blocks as plot_occupancy_blocks,
    plot_occupancy_counts as plot_occupancy_counts,
    plot_occupancy_linkage as plot_occupancy_linkage,
    plot_occupancy_variability as plot_occupancy_variability,
    plot_reidentification as plot_reidentification,
    plot_variability as plot_variability,
)
from .audit import (
    plot_audit as plot_audit,
    plot_beliefs as plot_beliefs,
    plot_plan as plot_plan,
    plot_statements as plot_statements,
    plot_tradeoff as plot_tradeoff,
)
from .counts import (
    plot_correct_decision as plot_correct_decision,
    plot_decision_accuracy as plot_decision_accuracy,
    plot_decision_map as plot_decision_map,
    plot_group as plot_group,
    plot_mechanisms as plot_mechanisms,
    plot_noisy_measurements as plot_noisy_measurements,
    plot_postprocessing as plot_postprocessing,
    plot_privacy_loss as plot_privacy_loss,
    plot_risk as plot_risk,
)

Axes = _canvas.Axes
Panels = _canvas.Panels
Where = _canvas.Where
