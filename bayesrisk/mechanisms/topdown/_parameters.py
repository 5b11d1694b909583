"""Parameters of the TopDown-like mechanism, checked and put into one form."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError
from bayesrisk.tables import Workload

Key = tuple[str, str]


def workload_of(value: Any) -> Workload | None:
    if value is None or isinstance(value, Workload):
        return value
    if isinstance(value, Mapping):
        return Workload.from_dict(value)
    raise ArgumentTypeError(f"measurements must be a Workload or its dict, got {shown(value)}")


def level_tables(value: Any) -> tuple[Key, ...]:
    """Return pairs of level and table."""
    good = isinstance(value, Sequence) and not isinstance(value, (str, bytes))
    pairs = [tuple(k) if isinstance(k, (list, tuple)) else () for k in value] if good else [()]
    if any(len(p) != 2 or not all(isinstance(n, str) for n in p) for p in pairs):
        raise ArgumentTypeError(f"invariants must be pairs (level, table), got {shown(value)}")
    return tuple((p[0], p[1]) for p in pairs)


def table_names(value: Any) -> tuple[str, ...] | None:
    if value is None:
        return None
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ArgumentTypeError(f"rounding must be names of tables, got {shown(value)}")
    if not all(isinstance(name, str) for name in value):
        raise ArgumentTypeError(f"rounding must be names of tables, got {shown(value)}")
    return tuple(value)


def zero_codes(value: Any) -> dict[str, tuple[int, ...]]:
    """Return codes by attribute, each once."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ArgumentTypeError(f"zero_patterns must map attributes to codes, got {shown(value)}")
    return {
        str(name): tuple(np.unique(check.count_array(codes, f"zero_patterns[{name!r}]")).tolist())
        for name, codes in value.items()
    }


def facility_codes(
    value: Any, patterns: Mapping[str, tuple[int, ...]]
) -> dict[str, dict[str, tuple[int, ...]]]:
    """Return codes by attribute and place, all of them codes of the zero patterns."""
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(t, Mapping) for t in value.values()):
        raise ArgumentTypeError(
            f"facilities must map attributes to places to codes, got {shown(value)}"
        )
    found: dict[str, dict[str, tuple[int, ...]]] = {}
    for name, table in value.items():
        if name not in patterns:
            raise ArgumentError(f"facilities[{name!r}] must have codes in zero_patterns, got none")
        found[name] = {}
        for place, codes in table.items():
            where = f"facilities[{name!r}][{place!r}]"
            own = (
                tuple(check.count_array(codes, where).reshape(-1).tolist())
                if np.size(codes)
                else ()
            )
            for code in own:
                if code not in patterns[name]:
                    raise ArgumentError(f"{where} must be codes of zero_patterns, got {code}")
            found[name][str(place)] = own
    return found


def check_codes(workload: Workload, patterns: Mapping[str, tuple[int, ...]]) -> None:
    for name, codes in patterns.items():
        about = workload.schema.attribute(name)
        for code in codes:
            if not about.first <= code <= about.last:
                raise ArgumentError(
                    f"zero_patterns[{name!r}] must be in [{about.first}, {about.last}], got {code}"
                )
