"""Public names of the readers."""

from .geocodes import block_geoid as block_geoid, is_tribal as is_tribal
from .hud import iter_hud as iter_hud, read_hud as read_hud
from .ipums import (
    iter_ipums_1940 as iter_ipums_1940,
    read_ipums as read_ipums,
    read_ipums_1940 as read_ipums_1940,
)
from .nmf.reader import NoisyMeasurements as NoisyMeasurements
from .nmf.writer import write_nmf as write_nmf
from .ppmf import (
    iter_ppmf as iter_ppmf,
    iter_ppmf_units as iter_ppmf_units,
    read_ppmf as read_ppmf,
    read_ppmf_units as read_ppmf_units,
    write_ppmf as write_ppmf,
    write_ppmf_units as write_ppmf_units,
)
from .record_form import (
    iter_record_form as iter_record_form,
    read_record_form as read_record_form,
    write_record_form as write_record_form,
)
from .summary_files.nhgis import iter_nhgis as iter_nhgis, read_nhgis as read_nhgis
from .summary_files.segments import (
    iter_dhc as iter_dhc,
    iter_pl94 as iter_pl94,
    iter_sf1 as iter_sf1,
    read_dhc as read_dhc,
    read_pl94 as read_pl94,
    read_sf1 as read_sf1,
)
