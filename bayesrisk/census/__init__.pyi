"""Public names of the wing of census bureaus."""

from .occupancy.detection import detect_occupancy as detect_occupancy
from .occupancy.household_law import HouseholdLaw as HouseholdLaw
from .occupancy.solutions import reconstruct_occupancy as reconstruct_occupancy
from .occupancy.statistics import occupancy_statistics as occupancy_statistics
from .occupancy.variability import occupancy_variability as occupancy_variability
from .population.households import (
    household_cells as household_cells,
    household_valid as household_valid,
)
from .population.nation import SimulatedPopulation as SimulatedPopulation
from .population.simulate import simulate_population as simulate_population
from .population.spec import PopulationSpec as PopulationSpec, population_spec as population_spec
from .population.subsidies import occupancy_violation as occupancy_violation
from .population.summary import population_summary as population_summary
from .population.years import simulate_later as simulate_later, stylised_change as stylised_change
from .readers.geocodes import block_geoid as block_geoid, is_tribal as is_tribal
from .readers.hud import iter_hud as iter_hud, read_hud as read_hud
from .readers.ipums import (
    iter_ipums_1940 as iter_ipums_1940,
    read_ipums as read_ipums,
    read_ipums_1940 as read_ipums_1940,
)
from .readers.nmf.reader import NoisyMeasurements as NoisyMeasurements
from .readers.nmf.rows import query_cells as query_cells
from .readers.nmf.writer import write_nmf as write_nmf
from .readers.ppmf import (
    iter_ppmf as iter_ppmf,
    iter_ppmf_units as iter_ppmf_units,
    read_ppmf as read_ppmf,
    read_ppmf_units as read_ppmf_units,
    write_ppmf as write_ppmf,
    write_ppmf_units as write_ppmf_units,
)
from .readers.record_form import (
    iter_record_form as iter_record_form,
    read_record_form as read_record_form,
    write_record_form as write_record_form,
)
from .readers.summary_files.nhgis import iter_nhgis as iter_nhgis, read_nhgis as read_nhgis
from .readers.summary_files.segments import (
    iter_dhc as iter_dhc,
    iter_pl94 as iter_pl94,
    iter_sf1 as iter_sf1,
    read_dhc as read_dhc,
    read_pl94 as read_pl94,
    read_sf1 as read_sf1,
)
from .studies.measurement_counts import (
    MeasurementCountsStudy as MeasurementCountsStudy,
    measurement_posterior as measurement_posterior,
)
from .studies.measurement_risk import MeasurementsStudy as MeasurementsStudy
from .studies.measurement_unit import (
    UnitMeasurements as UnitMeasurements,
    unit_measurements as unit_measurements,
)
from .studies.nation_attack import NationStudy as NationStudy
from .studies.occupancy import OccupancyStudy as OccupancyStudy
from .studies.occupancy_attack import OccupancyAttackStudy as OccupancyAttackStudy
from .studies.occupancy_risk import (
    occupancy_block_risk as occupancy_block_risk,
    occupancy_linkage as occupancy_linkage,
)
