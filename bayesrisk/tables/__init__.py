"""Schemas, records, workloads and published tables.  Knows no mechanism, no adversary, no risk.

Code of the adversary may import schemas, workloads and published tables, never what holds
records.
"""

from bayesrisk.tables._grammar import Table
from bayesrisk.tables.change import PopulationChange
from bayesrisk.tables.linked import HouseholdLink
from bayesrisk.tables.microdata import Microdata
from bayesrisk.tables.published import Histogram, PublishedTables, tabulate
from bayesrisk.tables.records import Records, iter_records
from bayesrisk.tables.schema import Attribute, Geography, Schema
from bayesrisk.tables.workload import Workload

__all__ = [
    "Attribute",
    "Geography",
    "Histogram",
    "HouseholdLink",
    "Microdata",
    "PopulationChange",
    "PublishedTables",
    "Records",
    "Schema",
    "Table",
    "Workload",
    "iter_records",
    "tabulate",
]
