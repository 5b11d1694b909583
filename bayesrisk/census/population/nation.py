"""A synthetic nation, drawn county by county so that only one is in memory."""

import hashlib
import json
from dataclasses import asdict, dataclass, replace

import numpy as np

from bayesrisk._base import validation as check
from bayesrisk._base.display import displayed
from bayesrisk.census.population import figures, spec as national
from bayesrisk.census.population.simulate import (
    NO_HOUSEHOLD,
    as_microdata,
    make_arrays,
    simulate_population,
)
from bayesrisk.exceptions import ArgumentError
from bayesrisk.tables.microdata import Microdata

_FIRST_STATE = 80  # no state or territory has 80 to 99
_STATES = 20
#: Numbers of people and households of one county: beyond those of any.
_NUMBERS = 2**32


@dataclass(frozen=True)
class Nation:
    """A synthetic nation with a given number of blocks, in counties drawn one by one.

    Blocks have the sizes of the published table of the nation's blocks. All counties but the last
    have one size. A county depends only on the seed, the settings, the number of counties and its
    own number. ``blocks`` include those without people; ``n_blocks`` and ``state`` of the settings
    are not used.

    Examples
    --------
    >>> nation = Nation.scaled(1e-3)
    >>> nation.blocks, nation.counties, nation.code(0)
    (11078, 4, '80001')
    >>> len(nation.county(3, seed=1).blocks)
    521
    """

    blocks: int
    spec: national.PopulationSpec

    def __post_init__(self) -> None:
        check.integer(self.blocks, "blocks", lower=1)
        check.instance(self.spec, national.PopulationSpec, "spec")
        if self.counties > _STATES * national.COUNTIES:
            raise ArgumentError(
                "blocks",
                f"must fit into {_STATES * national.COUNTIES} counties of {self._size}",
                shown=self.blocks,
            )

    @classmethod
    def scaled(cls, scale: float, spec: national.PopulationSpec | None = None) -> "Nation":
        """Return a nation with a share of the 11,078,297 blocks of 2010, at least one block."""
        share = check.scalar(scale, "scale", lower=0.0, upper=2.0, bounds="(]")
        settings = national.population_spec("county") if spec is None else spec
        return cls(max(1, round(share * figures.ALL_BLOCKS)), settings)

    @property
    def _size(self) -> int:
        spec = self.spec
        return spec.blocks_per_group * spec.groups_per_tract * spec.tracts_per_county

    @property
    def counties(self) -> int:
        """Number of counties."""
        return -(-self.blocks // self._size)

    def code(self, county: int) -> str:
        """Return a county's code: two digits for the state and three for the county."""
        state, inside = divmod(self._number(county), national.COUNTIES)
        return f"{_FIRST_STATE + state}{2 * inside + 1:03}"

    def _number(self, county: int) -> int:
        return check.integer(county, "county", lower=0, upper=self.counties - 1)

    def county(self, county: int, *, seed: int) -> Microdata:
        """Return the people, housing units and blocks of a county.

        ``county`` is its number in [0, counties); ``seed`` is that of the nation.
        """
        number = self._number(county)
        source = np.random.SeedSequence(check.integer(seed, "seed", lower=0), spawn_key=(number,))
        spec = replace(
            self.spec,
            n_blocks=min(self._size, self.blocks - number * self._size),
            state=self.code(number)[:2],
        )
        arrays = make_arrays(spec, np.random.default_rng(source), number, self.counties)
        for columns in (arrays.people, arrays.units):
            for name in {"household", "person"} & set(columns):
                ids = columns[name]
                columns[name] = np.where(ids == NO_HOUSEHOLD, ids, ids + number * _NUMBERS)
        return as_microdata(arrays)


@displayed
@dataclass(frozen=True)
class SimulatedPopulation:
    """A synthetic population of an audit, generated from its seed where it is needed.

    Attributes
    ----------
    spec : PopulationSpec or str
        Settings, or the name of a preset, as for :func:`~bayesrisk.simulate_population`.
    seed : int
        The same seed gives the same population; >= 0.
    """

    spec: national.PopulationSpec | str
    seed: int
    made_up = True

    def __post_init__(self) -> None:
        spec = self.spec
        if isinstance(spec, str):
            object.__setattr__(self, "spec", national.population_spec(spec))
        else:
            check.instance(spec, national.PopulationSpec, "spec")
        check.integer(self.seed, "seed", lower=0)

    def microdata(self) -> Microdata:
        """Return the population."""
        return simulate_population(self.spec, rng=self.seed)

    def digest(self) -> str:
        """Return the SHA-256 of the settings and the seed."""
        text = json.dumps(asdict(self), sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()


def seeded_population(
    simulate: str, *, seed: int, blocks: int | None = None
) -> SimulatedPopulation:
    """Return the population that an audit's settings name, such as ``simulate = "tract"``."""
    changes = {} if blocks is None else {"n_blocks": blocks}
    return SimulatedPopulation(national.population_spec(simulate, **changes), seed)
