"""Schemas: which attributes a record has, with which codes, and in which places it can lie."""

from bayesrisk.tables.schema.attribute import Attribute
from bayesrisk.tables.schema.geography import Geography
from bayesrisk.tables.schema.schema import Schema

__all__ = ["Attribute", "Geography", "Schema"]
