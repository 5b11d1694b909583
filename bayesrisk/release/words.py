"""Releases in words: laws of published counts, and where the list of places comes from."""

from bayesrisk.tables.likelihoods import (
    CellKeySpec,
    Likelihood,
    NoiseSpec,
    RangeSpec,
    RoundingSpec,
    SimulationOnly,
    SuppressedCounts,
)

#: Where the list of published places comes from, by the word for it in a spec.
PLACES = {
    "public": "from a public list, the same whoever lives where",
    "occupied": "those with a record, a fact about the records",
    None: "where the list comes from is not said",
}


def law_words(law: Likelihood, withheld: int | None = None) -> str:
    """Return the law of a published count given the true one; so many of the table are withheld."""
    if isinstance(law, NoiseSpec):
        scale = "sigma^2" if law.law == "discrete-gaussian" else "scale"
        name = "discrete Gaussian" if scale == "sigma^2" else "discrete Laplace"
        return f"the true count plus {name} noise of {scale} {float(law.scale):.6g} in every cell"
    if isinstance(law, RoundingSpec):
        method = "at random, up or down" if law.method == "random" else "the nearest, halves up"
        return f"the true count rounded to a multiple of {law.base}, {method}"
    if isinstance(law, RangeSpec):
        ends = zip(law.edges, [*law.edges[1:], None], strict=True)
        stated = [f"{a}" if b == a + 1 else f"{a} to {b - 1}" for a, b in ends if b is not None]
        last = f"{law.edges[-1]} and more"
        if law.step is not None:
            last += " as they are" if law.step == 1 else f" in ranges of {law.step}"
        return f"the range of the true count: {', '.join([*stated, last])}"
    if isinstance(law, CellKeySpec):
        low, high = (f(d for row in law.shares for d, _ in row) for f in (min, max))
        return (
            f"the true count changed by {low} to {high}, as a table says for the count and the key "
            "of its records: the same people change alike in every table"
        )
    if isinstance(law, SuppressedCounts):
        low, high = law.withheld
        bounds = f" of {low} to {high}" if law.high is not None else ""
        rule = "by this rule" if bounds else "which ones, depends on the records"
        number = "some" if withheld is None else f"{withheld}"
        return f"true counts, but {number}{bounds} are withheld; {rule}"
    if isinstance(law, SimulationOnly):
        return "a law without closed form, known by running the mechanism"
    return "true counts"
