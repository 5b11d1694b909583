"""Public names of tables."""

from ._grammar import Table as Table
from .change import PopulationChange as PopulationChange
from .linked import HouseholdLink as HouseholdLink
from .microdata import (
    Microdata as Microdata,
    link_households as link_households,
    link_years as link_years,
)
from .published import PublishedTables as PublishedTables
from .reading.reading import TableReading as TableReading
from .records import Records as Records, iter_records as iter_records
from .schema import Attribute as Attribute, Geography as Geography, Schema as Schema
from .tabulation import Histogram as Histogram, tabulate as tabulate
from .workload import Workload as Workload
