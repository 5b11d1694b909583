"""Public names of tables."""

from ._grammar import Table as Table
from .change import PopulationChange as PopulationChange
from .linked import HouseholdLink as HouseholdLink
from .microdata import Microdata as Microdata
from .published import Histogram as Histogram
from .published import PublishedTables as PublishedTables
from .published import tabulate as tabulate
from .records import Records as Records
from .records import iter_records as iter_records
from .schema import Attribute as Attribute
from .schema import Geography as Geography
from .schema import Schema as Schema
from .workload import Workload as Workload
