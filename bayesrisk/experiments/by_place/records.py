"""Microdata by place as studies read them: a part at a time, and the same ones all along."""

import functools
import hashlib
import json
from pathlib import Path

from bayesrisk import _validation as check
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.tables import Microdata, Workload
from bayesrisk.tables.exchange.partitions import Partitions


def open_index(records: str | Path) -> Partitions:
    """Return the index of microdata by place; that of the last ones is kept.

    Raises
    ------
    DataError
        If it is damaged, or the microdata are not by place.
    """
    source = Path(records)
    if not Partitions.there(source):
        raise DataError(f"{source}: must be microdata by place, which has _partitions.json")
    return _index(str(source))


def forget_index() -> None:
    """Forget what this process keeps of microdata."""
    _index.cache_clear()


def level_of_parts(index: Partitions, workload: Workload) -> str:
    """Return the level of the parts, which a workload must have tables inside of."""
    geography = workload.schema.geography
    level = check.choice(index.level, "level of the parts", geography.levels)
    if geography.rank(workload.levels[-1]) <= geography.rank(level):
        raise ArgumentError(
            f"workload must have tables of a level inside a {level}, which the parts are, "
            f"got {', '.join(workload.levels)}"
        )
    return level


def read_place(records: str | Path, shard: int, digest: str) -> tuple[str, Microdata]:
    """Return code and microdata of a part.

    Raises
    ------
    DataError
        If the microdata are damaged, or others than when the study began.
    """
    index = open_index(records)
    if index.digest != digest:
        raise DataError(f"{records}: must not change while it is read")
    code = index.codes[shard]
    return code, Microdata.read(index.checked(code))


def workload_digest(workload: Workload) -> str:
    """Return what tells a workload from others."""
    text = json.dumps(workload.to_dict(), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


@functools.lru_cache(maxsize=1)
def _index(folder: str) -> Partitions:
    return Partitions.read(Path(folder), "microdata")
