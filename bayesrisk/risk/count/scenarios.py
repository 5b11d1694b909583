"""Attacks that one formula answers: only the meaning of the prior changes (S1.2)."""

from dataclasses import dataclass

from bayesrisk import _validation as check


@dataclass(frozen=True)
class Scenario:
    """What the adversary wants to know, and what the numbers then mean.

    Attributes
    ----------
    name : str
        Name to choose it by.
    statement : str
        The true statement whose probability is the prior, the posterior and so on.
    alternative : str
        What the adversary holds possible instead.
    knowledge : str
        What the adversary knows before the release.
    """

    name: str
    statement: str
    alternative: str
    knowledge: str

    @classmethod
    def named(cls, name: str) -> "Scenario":
        """Return the scenario of a name.

        Parameters
        ----------
        name : {"characteristics", "membership", "truthfulness", "unknown-attribute"}
            Its name.

        Returns
        -------
        Scenario
            What the prior and the posterior are about.

        Examples
        --------
        >>> Scenario.named("membership").statement
        'the target responded to the census'
        """
        check.choice(name, "name of the scenario", tuple(SCENARIOS))
        return SCENARIOS[name]


SCENARIOS: dict[str, Scenario] = {
    item.name: item
    for item in (
        Scenario(
            "characteristics",
            "the target has the characteristics that the cell counts",
            "the target has other characteristics",
            "the complete records of everyone in the area of the count but the target",
        ),
        Scenario(
            "membership",
            "the target responded to the census",
            "the target did not respond",
            "the complete records of everyone in the area of the count, the target's included, and "
            "that all others responded correctly",
        ),
        Scenario(
            "truthfulness",
            "the target reported the correct characteristics",
            "the target reported other characteristics",
            "the true characteristics of everyone in the area of the count, and that all others "
            "reported them correctly",
        ),
        Scenario(
            "unknown-attribute",
            "the target's unknown attribute has the value that the cell counts",
            "the target's unknown attribute has another value",
            "the complete records of everyone in the area of the count, but for one attribute of "
            "the target",
        ),
    )
}
