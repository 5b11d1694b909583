"""Studies run into folders in one call: options of the study and of the run side by side."""

from bayesrisk.census import MeasurementCountsStudy, MeasurementsStudy
from bayesrisk.census.studies.occupancy_attack import OccupancyAttackStudy
from bayesrisk.experiments import run
from bayesrisk.experiments.reconstruction import ClaimsStudy, ReconstructionStudy

_RUN = ("workers", "executor", "shard", "resume", "progress")


def _into(study, given, folder, options):
    how = {name: options.pop(name) for name in _RUN if name in options}
    return run(study(given, **options), folder, **how)


def contents(folder, *, but=()):
    """Return the bytes of every file in a folder, by name."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not any(word in path.name for word in but)
    }


def run_sweep(config, folder, **options):
    return run(config, folder, **options)


def run_reconstruction(tables, folder, **options):
    return _into(ReconstructionStudy, tables, folder, options)


def run_claims(tables, folder, **options):
    return _into(ClaimsStudy, tables, folder, options)


def run_measurements(measurements, folder, **options):
    return _into(MeasurementsStudy, measurements, folder, options)


def run_measurement_counts(measurements, folder, **options):
    return _into(MeasurementCountsStudy, measurements, folder, options)


def run_occupancy_attack(blocks, folder, **options):
    return _into(OccupancyAttackStudy, blocks, folder, options)


def run_occupancy(study, folder=None, **options):
    return study.in_memory() if folder is None else run(study, folder, **options).results
