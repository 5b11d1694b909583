"""Names of the previous version: those that moved to the census wing, or left the front.

An old dotted name works for one version, without a warning, so that programs and notebooks keep
working. *Migration* lists the new names.
"""

import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType

#: Modules below ``bayesrisk``, old and new; the public names of the first two stand in the wing.
MODULES = {
    "readers": "census",
    "population": "census",
    "reconstruction.occupancy": "census.occupancy",
    "risk.occupancy": "census.studies.occupancy_risk",
    "experiments.measurement_counts": "census.studies.measurement_counts",
    "experiments.measurement_risk": "census.studies.measurement_risk",
    "experiments.occupancy_study": "census.studies.occupancy",
    "experiments.published_attack": "census.studies.occupancy_attack",
    "experiments.reidentification": "census.studies.reidentification",
}
#: Modules below one of these, whose folder kept its name.
_FOLDERS = {"readers": "census.readers", "population": "census.population"}
#: Public names of the wing, by the module that had them.
NAMES = {
    "bayesrisk": ("population", "readers"),
    # Modules of the two packages whose public names stand together in the wing.
    "bayesrisk.census": (
        *("simulate", "spec", "summary", "years"),
        *("geocodes", "hud", "ipums", "nmf", "ppmf", "record_form", "summary_files", "text"),
    ),
    "bayesrisk.experiments": (
        "MeasurementCountsStudy",
        "MeasurementsStudy",
        "OccupancyAttackStudy",
        "OccupancyStudy",
        "measurement_posterior",
    ),
    "bayesrisk.experiments.audit": ("SimulatedPopulation",),
    "bayesrisk.experiments.audit.populations": ("SimulatedPopulation",),
    "bayesrisk.experiments.by_place": ("NationStudy",),
    "bayesrisk.reconstruction": (
        "HouseholdLaw",
        "detect_occupancy",
        "occupancy_statistics",
        "occupancy_variability",
        "reconstruct_occupancy",
    ),
    "bayesrisk.tables.schema": ("household_cells", "household_valid"),
    "bayesrisk.risk": ("occupancy_block_risk", "occupancy_linkage"),
}
#: Names that ``bayesrisk`` itself had, by the module one dot deeper that has them.
FRONT = {
    "Belief": "answers",
    "BottomUp": "mechanisms",
    "Estimate": "answers",
    "FiniteLaw": "distributions",
    "Identity": "mechanisms",
    "MechanismQuestion": "risk",
    "MechanismSpec": "release",
    "Microdata": "tables",
    "NoiseSpec": "release",
    "TableReading": "tables",
    "TopDown": "mechanisms",
    "answers": "answers",
    "bayes_decision": "inference",
    "compare_mechanisms": "risk",
    "decision_accuracy": "risk",
    "epsilon_to_rho": "accounting",
    "exceptions": "exceptions",
    "interfaces": "interfaces",
    "reidentify": "risk",
    "sample_tree": "inference",
    "statements_about_people": "risk",
}


def moves(package: str, name: str) -> bool:
    """Return True if a package listed a name in the previous version, and no longer does."""
    return name in NAMES.get(package, ()) or (package == "bayesrisk" and name in FRONT)


def moved(package: str, name: str) -> object:
    """Return the object that a package listed under a name in the previous version."""
    if not moves(package, name):
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    if package == "bayesrisk" and name in FRONT:
        module = importlib.import_module(f"bayesrisk.{FRONT[name]}")
        return module if name == FRONT[name] else getattr(module, name)
    if package == "bayesrisk.census":
        home = "population" if name in NAMES[package][:4] else "readers"
        return importlib.import_module(f"bayesrisk.census.{home}.{name}")
    wing = importlib.import_module("bayesrisk.census")
    return wing if package == "bayesrisk" else getattr(wing, name)


def _new_name(name: str) -> str | None:
    module = name.removeprefix("bayesrisk.")
    if module in MODULES:
        return f"bayesrisk.{MODULES[module]}"
    for old, new in (MODULES | _FOLDERS).items():
        if module.startswith(f"{old}."):
            return f"bayesrisk.{new}{module.removeprefix(old)}"
    return None


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Find a module by its old dotted name: it is the module itself, not a copy."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        new = _new_name(name) if name.startswith("bayesrisk.") else None
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if new else None

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        sys.modules[name] = importlib.import_module(str(_new_name(name)))


def find_old_names() -> None:
    """Let imports find modules by their old names.

    It comes first: the folder of a moved module would be imported a second time.
    """
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
