"""Public names of the readers."""

from .geocodes import block_geoid as block_geoid
from .geocodes import is_tribal as is_tribal
from .hud import iter_hud as iter_hud
from .hud import read_hud as read_hud
from .ipums import iter_ipums_1940 as iter_ipums_1940
from .ipums import read_ipums as read_ipums
from .ipums import read_ipums_1940 as read_ipums_1940
from .nmf.reader import NoisyMeasurements as NoisyMeasurements
from .nmf.writer import write_nmf as write_nmf
from .ppmf import iter_ppmf as iter_ppmf
from .ppmf import iter_ppmf_units as iter_ppmf_units
from .ppmf import read_ppmf as read_ppmf
from .ppmf import read_ppmf_units as read_ppmf_units
from .ppmf import write_ppmf as write_ppmf
from .ppmf import write_ppmf_units as write_ppmf_units
from .record_form import iter_record_form as iter_record_form
from .record_form import read_record_form as read_record_form
from .record_form import write_record_form as write_record_form
from .summary_files.nhgis import iter_nhgis as iter_nhgis
from .summary_files.nhgis import read_nhgis as read_nhgis
from .summary_files.segments import iter_dhc as iter_dhc
from .summary_files.segments import iter_pl94 as iter_pl94
from .summary_files.segments import iter_sf1 as iter_sf1
from .summary_files.segments import read_dhc as read_dhc
from .summary_files.segments import read_pl94 as read_pl94
from .summary_files.segments import read_sf1 as read_sf1
