"""What an audit is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from bayesrisk._files.limits import Bound, Count, Positive, Seed, refuse
from bayesrisk._version import __version__
from bayesrisk.experiments.runs.config import RunSettings

_DIGESTS = "a digest, or digests by names of populations"


def _digests(value: Any) -> Any:
    several = value if isinstance(value, dict) else {"": value}
    if not several or not all(isinstance(text, str) for text in (*several, *several.values())):
        raise refuse(_DIGESTS)
    return value


_Digests = Annotated[
    str | dict[str, str],
    Bound(
        _DIGESTS,
        _digests,
        {"type": ["string", "object"], "additionalProperties": {"type": "string"}},
    ),
]


@dataclass(frozen=True)
class AuditConfig(RunSettings):
    """What a run does, and to which population.

    Attributes
    ----------
    population : str or dict of str to str
        Digest of the file or folder of records; of several populations, by their names.
    workload : str
        Digest of the published tables' definition.
    stated : tuple of str
        Attributes that statements give.
    protections : tuple of dict
        ``name``, ``mechanism`` and ``parameters`` of each.
    adversaries : tuple of dict
        ``name``, ``known`` and ``neighbours`` of each.
    targets : int or None
        Number of targets; None for everybody.
    concentration : float or None
        Of the prior; None where it is fitted.
    methods : tuple of str
        How adversaries conclude.
    seed : int
        Of releases, targets and chains.
    targets_per_shard : int
        About so many targets are one shard.
    target_ratio, quantile : float or None
        What settings shall keep to; None where all are stated.
    against : str or None
        Adversary for whom; None for the worst.
    steps : int or None
        Bisections of every range.
    shards : int
        Number of shards.
    version : str
        Version of bayesrisk.
    """

    population: _Digests
    workload: str
    stated: tuple[str, ...]
    protections: tuple[dict[str, Any], ...]
    adversaries: tuple[dict[str, Any], ...]
    targets: Count | None
    concentration: Positive | None
    methods: tuple[str, ...]
    seed: Seed
    targets_per_shard: Count
    target_ratio: Positive | None
    quantile: Positive | None
    against: str | None
    steps: Seed | None
    shards: Count
    version: str = __version__
