"""Public names of the figures, and types of what they draw in."""

import bayesrisk.plotting._canvas as _canvas

from ._canvas import figure_of as figure_of
from ._canvas import save_figure as save_figure
from .attacks import plot_claims as plot_claims
from .attacks import plot_majority as plot_majority
from .attacks import plot_occupancy_blocks as plot_occupancy_blocks
from .attacks import plot_occupancy_counts as plot_occupancy_counts
from .attacks import plot_occupancy_linkage as plot_occupancy_linkage
from .attacks import plot_occupancy_variability as plot_occupancy_variability
from .attacks import plot_reidentification as plot_reidentification
from .attacks import plot_variability as plot_variability
from .audit import plot_audit as plot_audit
from .audit import plot_beliefs as plot_beliefs
from .audit import plot_statements as plot_statements
from .audit import plot_tradeoff as plot_tradeoff
from .counts import plot_correct_decision as plot_correct_decision
from .counts import plot_decision_accuracy as plot_decision_accuracy
from .counts import plot_decision_map as plot_decision_map
from .counts import plot_group as plot_group
from .counts import plot_mechanisms as plot_mechanisms
from .counts import plot_noisy_measurements as plot_noisy_measurements
from .counts import plot_postprocessing as plot_postprocessing
from .counts import plot_risk as plot_risk

Axes = _canvas.Axes
Panels = _canvas.Panels
Where = _canvas.Where
