"""Households of a study by place: a part at a time, each protected and attacked by itself."""

from pathlib import Path

import numpy as np
import pandas as pd

from bayesrisk.exceptions import DataError
from bayesrisk.experiments.by_place.reach import check_reach
from bayesrisk.experiments.by_place.records import level_of_parts, open_index, read_place
from bayesrisk.experiments.occupancy.config import OccupancyConfig
from bayesrisk.experiments.occupancy.study import SCHEMA, StudyPart, true_households
from bayesrisk.tables import Records, Workload

_INSTEAD = "make larger parts, or give all households in one file"


def check_protections(config: OccupancyConfig, folder: str | Path) -> None:
    """Refuse protections that need more than the households of a part.

    Raises
    ------
    ArgumentError
        If there is one.
    """
    workload = Workload.named(SCHEMA)
    level = level_of_parts(open_index(folder), workload)
    for name in config.protections:
        check_reach(config.mechanism(name), workload, level, whole=_INSTEAD)


def part_households(folder: str | Path, part: int, digest: str) -> tuple[str, Records]:
    """Return code and households of a part.

    Raises
    ------
    DataError
        If it is damaged, holds none, or others than when the study began.
    """
    code, data = read_place(folder, part, digest)
    if data.households is None:
        raise DataError(f"{folder}: part {code} must hold households, got persons only")
    return code, data.households


def all_truth(config: OccupancyConfig, seed: int, folder: str | Path) -> pd.DataFrame:
    """Return the households of the blocks that are looked at, of all parts in order.

    Raises
    ------
    DataError
        If there are no such blocks, or a part is damaged.
    """
    index = open_index(folder)
    parts = (part_households(folder, n, index.digest)[1] for n in range(len(index.codes)))
    truths = (true_households(config, seed, homes)[2] for homes in parts)
    found = [truth for truth in truths if len(truth)]
    if not found:
        raise DataError(f"{folder}: must hold subsidised households, got none")
    return pd.concat(found, ignore_index=True)


def joined_parts(parts: list[StudyPart]) -> StudyPart:
    """Return what one protection gives of all places, from what it gives of each.

    The rate of swaps is that of all households of the parts that have blocks to look at.
    """
    held = [part for part in parts if len(part.blocks)]
    if len(held) > 1:
        rates = [float(part.blocks["realised_rate"].iloc[0]) for part in held]
        homes = [int(part.blocks["protected"].iloc[0]) for part in held]
        rate = float(np.average(rates, weights=homes))
        held = [part._replace(blocks=part.blocks.assign(realised_rate=rate)) for part in held]
    blocks, rankings, variability = (
        pd.concat(frames, ignore_index=True) if len(held) > 1 else frames[0]
        for frames in zip(*held, strict=True)
    )
    return StudyPart(blocks.drop(columns="protected"), rankings, variability)
