"""Files that users hold, read in pieces: microdata, published tables, noisy measurements."""

from bayesrisk.readers.geocodes import (
    SPINE_WIDTHS,
    WATER_BLOCKS_2020,
    block_geocode,
    block_geoid,
    is_tribal,
    spine_ancestor,
)
from bayesrisk.readers.hud import iter_hud, read_hud, write_hud
from bayesrisk.readers.ipums import iter_ipums_1940, read_ipums_1940
from bayesrisk.readers.ipums_write import write_ipums_1940
from bayesrisk.readers.nhgis import iter_nhgis, read_nhgis
from bayesrisk.readers.nhgis_write import write_nhgis
from bayesrisk.readers.nmf import NoisyMeasurements
from bayesrisk.readers.nmf_batches import ConstraintBatch, MeasurementBatch
from bayesrisk.readers.nmf_noise import sigma2_from_variance
from bayesrisk.readers.nmf_write import SyntheticMeasurements, write_nmf
from bayesrisk.readers.ppmf import iter_ppmf, read_ppmf, write_ppmf
from bayesrisk.readers.ppmf_units import iter_ppmf_units, read_ppmf_units, write_ppmf_units
from bayesrisk.readers.record_form import iter_record_form, read_record_form, write_record_form
from bayesrisk.readers.sf1 import iter_sf1, read_sf1
from bayesrisk.readers.sf1_write import write_sf1

__all__ = [
    "SPINE_WIDTHS",
    "WATER_BLOCKS_2020",
    "ConstraintBatch",
    "MeasurementBatch",
    "NoisyMeasurements",
    "SyntheticMeasurements",
    "block_geocode",
    "block_geoid",
    "is_tribal",
    "iter_hud",
    "iter_ipums_1940",
    "iter_nhgis",
    "iter_ppmf",
    "iter_ppmf_units",
    "iter_record_form",
    "iter_sf1",
    "read_hud",
    "read_ipums_1940",
    "read_nhgis",
    "read_ppmf",
    "read_ppmf_units",
    "read_record_form",
    "read_sf1",
    "sigma2_from_variance",
    "spine_ancestor",
    "write_hud",
    "write_ipums_1940",
    "write_nhgis",
    "write_nmf",
    "write_ppmf",
    "write_ppmf_units",
    "write_record_form",
    "write_sf1",
]
