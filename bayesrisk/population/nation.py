"""A synthetic nation, county by county: each drawn by itself, so that none is held but one."""

from dataclasses import dataclass, replace

import numpy as np

from bayesrisk import _validation as check
from bayesrisk.exceptions import ArgumentError
from bayesrisk.population import _national as national
from bayesrisk.population._assemble import NO_HOUSEHOLD, make_arrays
from bayesrisk.population.simulate import as_microdata
from bayesrisk.population.spec import COUNTIES, PopulationSpec, population_spec
from bayesrisk.tables.microdata import Microdata

_FIRST_STATE = 80  # no state or territory has 80 to 99
_STATES = 20
#: Numbers of people and households of one county: beyond those of any.
_NUMBERS = 2**32


@dataclass(frozen=True)
class Nation:
    """A synthetic nation of so many blocks, in counties that are drawn one by one.

    Blocks have the sizes of the published table of the nation's blocks; the counties are all of
    one size but the last.  What a county holds depends on the seed, the settings, the number of
    counties and its own number, on nothing else.

    Attributes
    ----------
    blocks : int
        Blocks, those without people included.
    spec : PopulationSpec
        Settings; its ``n_blocks`` and ``state`` are not used.

    Raises
    ------
    ArgumentError
        If the blocks do not fit into 20 states of 500 counties.

    Examples
    --------
    >>> nation = Nation.of_scale(1e-3)
    >>> nation.blocks, nation.counties, nation.code(0)
    (11078, 4, '80001')
    >>> len(nation.county(3, seed=1).blocks)
    521
    """

    blocks: int
    spec: PopulationSpec

    def __post_init__(self) -> None:
        check.integer(self.blocks, "blocks", lower=1)
        check.instance(self.spec, PopulationSpec, "spec")
        if self.counties > _STATES * COUNTIES:
            raise ArgumentError(
                f"blocks must fit into {_STATES * COUNTIES} counties of {self._size}, "
                f"got {self.blocks}"
            )

    @classmethod
    def of_scale(cls, scale: float, spec: PopulationSpec | None = None) -> "Nation":
        """Return a nation of a share of the 11,078,297 blocks of 2010, at least one."""
        share = check.scalar(scale, "scale", lower=0.0, upper=2.0, bounds="(]")
        settings = population_spec("county") if spec is None else spec
        return cls(max(1, round(share * national.ALL_BLOCKS)), settings)

    @property
    def _size(self) -> int:
        spec = self.spec
        return spec.blocks_per_group * spec.groups_per_tract * spec.tracts_per_county

    @property
    def counties(self) -> int:
        """Number of counties."""
        return -(-self.blocks // self._size)

    def code(self, county: int) -> str:
        """Return the code of a county, two digits of the state and three of its own."""
        state, inside = divmod(self._number(county), COUNTIES)
        return f"{_FIRST_STATE + state}{2 * inside + 1:03}"

    def _number(self, county: int) -> int:
        return check.integer(county, "county", lower=0, upper=self.counties - 1)

    def county(self, county: int, *, seed: int) -> Microdata:
        """Return the people, housing units and blocks of a county.

        Parameters
        ----------
        county : int
            Its number, in [0, counties).
        seed : int
            Seed of the nation.

        Returns
        -------
        Microdata
            As of :func:`simulate_population`; the numbers of people and households are those of
            no other county.
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
                own = columns[name]
                columns[name] = np.where(own == NO_HOUSEHOLD, own, own + number * _NUMBERS)
        return as_microdata(arrays)
