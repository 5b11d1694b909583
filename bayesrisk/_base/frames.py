"""Pandas, loaded when the first frame is made: loading takes longer than a short command."""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pandas
else:

    class _Later(ModuleType):
        def __getattr__(self, name: str) -> object:
            return getattr(import_module("pandas"), name)

    pandas = _Later("pandas")
