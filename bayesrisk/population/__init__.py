"""Synthetic people, households and subsidised housing: the custodian's data, made up.

Rule of this layer: it draws records from published totals and stated shapes; it reads nobody's
records, and nothing of the adversary or the auditor is known here.
"""

from bayesrisk.population.simulate import Nation, simulate_population
from bayesrisk.population.spec import (
    PopulationSpec,
    draw_bedrooms,
    occupancy_violation,
    population_presets,
    population_spec,
)
from bayesrisk.population.summary import PopulationSummary, population_summary

__all__ = [
    "Nation",
    "PopulationSpec",
    "PopulationSummary",
    "draw_bedrooms",
    "occupancy_violation",
    "population_presets",
    "population_spec",
    "population_summary",
    "simulate_population",
]
