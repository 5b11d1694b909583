"""Settings of the generator, and named sets of them."""

from dataclasses import dataclass, fields, replace
from typing import Any

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk.exceptions import ArgumentError
from bayesrisk.population import _national as national

#: Counties of a state, at most: their numbers are odd and have three digits.
COUNTIES = 500
_COUNTS = {
    "n_blocks": (1, 10**8),
    "blocks_per_group": (1, 1000),
    "groups_per_tract": (1, 9),
    "tracts_per_county": (1, 9999),
}
_SHARES = (
    "occupied_blocks",
    "quarters_blocks",
    "household_homogeneity",
    "tenure_correlation",
    "subsidised_blocks",
    "subsidised_share",
)
_POSITIVE = ("tract_mixing", "block_mixing", "bedroom_mixing")


@dataclass(frozen=True)
class PopulationSpec:
    """Everything that a synthetic population is made from, but for its seed.

    National laws (household size by type by age, race by ethnicity, group quarters, tenure,
    vacancy, block sizes) are fixed at the figures of the 2010 Census and not part of it.

    Attributes
    ----------
    n_blocks : int
        Blocks in all, those without people included; at least 1.
    blocks_per_group, groups_per_tract, tracts_per_county : int
        How blocks nest: at most 1,000, 9 and 9,999.
    state : str
        Two digits that every geographic code begins with; no state has 99.
    occupied_blocks : float
        Probability that a block has people, in [0, 1].
    quarters_blocks : float
        Probability that a block with people has group quarters; on average half of its people
        then live in them.
    tract_mixing : float
        Concentration of the Dirichlet law of a tract's mix of 14 groups of race and ethnicity
        around the nation's, in (0, 1e6]: the smaller, the more alike the people of a tract.
    block_mixing, block_mixing_growth : float
        Concentration of the Dirichlet law of a block's mix around its tract's, for a block of one
        person, in (0, 1e6], and the power of the block's population by which it grows, in [0, 1]:
        large blocks are more mixed.
    household_homogeneity : float
        Probability that a spouse, partner or other relative has the householder's group whatever
        the block's mix, in [0, 1].
    tenure_correlation : float
        Correlation between households of one block of the Gaussian score that decides owning or
        renting, in [0, 1].
    subsidised_blocks : float
        Probability that a block without group quarters and with 11 households or more holds a
        subsidised property.
    subsidised_share : float
        Expected share of subsidised households in such a block, before at least 11 are taken.
    bedroom_mixing : float
        Concentration of the law of a property's shares of units by bedrooms around the nation's,
        in (0, 1e6]: the smaller, the more often all units are alike.
    alpha : float
        Weight of a placement that violates the occupancy limit against one that does not, in
        (0, 1].
    """

    n_blocks: int
    blocks_per_group: int
    groups_per_tract: int
    tracts_per_county: int
    state: str
    occupied_blocks: float
    quarters_blocks: float
    tract_mixing: float
    block_mixing: float
    block_mixing_growth: float
    household_homogeneity: float
    tenure_correlation: float
    subsidised_blocks: float
    subsidised_share: float
    bedroom_mixing: float
    alpha: float

    def __post_init__(self) -> None:
        """Check every setting."""
        plain: dict[str, float] = {}
        for name, (low, high) in _COUNTS.items():
            plain[name] = check.integer(getattr(self, name), name, lower=low, upper=high)
        for name in _SHARES:
            plain[name] = check.scalar(getattr(self, name), name, lower=0.0, upper=1.0)
        for name in _POSITIVE:
            plain[name] = check.scalar(getattr(self, name), name, lower=0.0, upper=1e6, bounds="(]")
        growth = check.scalar(self.block_mixing_growth, "block_mixing_growth", lower=0.0, upper=1.0)
        plain["block_mixing_growth"] = growth
        plain["alpha"] = check.scalar(self.alpha, "alpha", lower=0.0, upper=1.0, bounds="(]")
        for name, value in plain.items():
            object.__setattr__(self, name, value)
        text = self.state
        if not (isinstance(text, str) and len(text) == 2 and text.isascii() and text.isdigit()):
            raise ArgumentError(f"state must be two digits, got {shown(text)}")
        blocks = self.blocks_per_group * self.groups_per_tract * self.tracts_per_county
        if -(-self.n_blocks // blocks) > COUNTIES:
            raise ArgumentError(
                f"n_blocks must fit into {COUNTIES} counties of {blocks} blocks, "
                f"got {self.n_blocks}"
            )


# Shapes of geography: 11,078,297 blocks, 217,740 block groups, 73,057 tracts and 3,143 counties in
# 2010.  The four settings of group effects are fitted to Table S6 (see the page on populations).
_NATION = PopulationSpec(
    n_blocks=1000,
    blocks_per_group=51,
    groups_per_tract=3,
    tracts_per_county=23,
    state="99",
    occupied_blocks=sum(national.CLASS_BLOCKS) / national.ALL_BLOCKS,
    quarters_blocks=2 * sum(national.GROUP_QUARTERS) / national.PEOPLE,
    tract_mixing=8.0,
    block_mixing=0.07,
    block_mixing_growth=0.7,
    household_homogeneity=0.7,
    tenure_correlation=0.3,
    subsidised_blocks=0.1,
    subsidised_share=0.47,
    bedroom_mixing=4.0,
    alpha=1e-4,
)
_BLOCKS = {"tract": 153, "county": 1000, "state": 20_000}


def population_presets() -> list[str]:
    """Return the names of the ready settings.

    Returns
    -------
    list of str
        ``"tract"`` (153 blocks), ``"county"`` (1,000 blocks) and ``"state"`` (20,000 blocks in 6
        counties); they differ in ``n_blocks`` only.

    Examples
    --------
    >>> population_presets()
    ['tract', 'county', 'state']
    """
    return list(_BLOCKS)


def population_spec(name: str, **changes: Any) -> PopulationSpec:
    """Return ready settings, with the changes asked for.

    Parameters
    ----------
    name : str
        One of :func:`population_presets`.
    **changes : int, float or str
        Fields of :class:`PopulationSpec` to set instead.

    Returns
    -------
    PopulationSpec
        The settings.

    Examples
    --------
    >>> population_spec("county", n_blocks=200).n_blocks
    200
    """
    return replace(named_spec(name, "name"), **_known(changes))


def named_spec(name: str, argument: str) -> PopulationSpec:
    """Return ready settings by their name."""
    check.choice(name, argument, tuple(_BLOCKS))
    return replace(_NATION, n_blocks=_BLOCKS[name])


def _known(changes: dict[str, Any]) -> dict[str, Any]:
    """Refuse changes of what is no setting."""
    known = tuple(f.name for f in fields(PopulationSpec))
    for key in changes:
        check.choice(key, "field", known)
    return changes
