"""Files that users hold, read in pieces: microdata, published tables, noisy measurements."""

from bayesrisk.readers.geocodes import block_geoid, is_tribal, spine_ancestor
from bayesrisk.readers.hud import iter_hud, read_hud
from bayesrisk.readers.ipums import iter_ipums_1940, read_ipums, read_ipums_1940
from bayesrisk.readers.nmf.reader import NoisyMeasurements
from bayesrisk.readers.nmf.writer import write_nmf
from bayesrisk.readers.ppmf import (
    iter_ppmf,
    iter_ppmf_units,
    read_ppmf,
    read_ppmf_units,
    write_ppmf,
    write_ppmf_units,
)
from bayesrisk.readers.record_form import iter_record_form, read_record_form, write_record_form
from bayesrisk.readers.summary_files.nhgis import iter_nhgis, read_nhgis
from bayesrisk.readers.summary_files.segments import (
    iter_dhc,
    iter_pl94,
    iter_sf1,
    read_dhc,
    read_pl94,
    read_sf1,
)

__all__ = [
    "NoisyMeasurements",
    "block_geoid",
    "is_tribal",
    "iter_dhc",
    "iter_hud",
    "iter_ipums_1940",
    "iter_nhgis",
    "iter_pl94",
    "iter_ppmf",
    "iter_ppmf_units",
    "iter_record_form",
    "iter_sf1",
    "read_dhc",
    "read_hud",
    "read_ipums",
    "read_ipums_1940",
    "read_nhgis",
    "read_pl94",
    "read_ppmf",
    "read_ppmf_units",
    "read_record_form",
    "read_sf1",
    "spine_ancestor",
    "write_nmf",
    "write_ppmf",
    "write_ppmf_units",
    "write_record_form",
]
