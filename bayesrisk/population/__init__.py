"""Synthetic people, households and subsidised housing: the custodian's data, made up.

Rule of this layer: it draws records from published totals and stated shapes; it reads nobody's
records, and nothing of the adversary or the auditor is known here.
"""

from bayesrisk.population.simulate import simulate_population
from bayesrisk.population.spec import PopulationSpec, occupancy_violation, population_spec
from bayesrisk.population.summary import population_summary
from bayesrisk.population.years import simulate_later, stylised_change

__all__ = [
    "PopulationSpec",
    "occupancy_violation",
    "population_spec",
    "population_summary",
    "simulate_later",
    "simulate_population",
    "stylised_change",
]
