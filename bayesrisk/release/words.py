"""Releases in words: laws of published counts, and the README.txt of a release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from bayesrisk._base.display import several
from bayesrisk.tables.likelihoods import (
    CellKeySpec,
    Likelihood,
    NoiseSpec,
    RangeSpec,
    RoundingSpec,
    SimulationOnly,
    SuppressedCounts,
)

if TYPE_CHECKING:
    from bayesrisk.release.release import Release

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


def chance_words(release: Release) -> str:
    """Return who drew the random numbers of a release."""
    if not any(law.random for law in release.spec.tables.values()):
        return "Nothing is random: the same records would give the same release."
    sampler = release.spec.parameters.get("sampler") or "NumPy"
    if release.simulation:
        return f"{sampler}, from a seed. A simulation: whoever guesses the seed takes it off."
    return f"{sampler}, from entropy of the operating system that is kept nowhere."


def readme(release: Release, files: Mapping[str, str]) -> str:
    """Return the text that lies beside a release; ``files`` has its tables by their files."""
    tables, spec = release.tables, release.spec
    laws: dict[tuple[bool, str], list[str]] = {}
    for key, law in spec.tables.items():
        words = law_words(law, tables.hidden(*key).nnz)
        laws.setdefault((law.exact, words), []).append(" ".join(key))
    exact, other = (
        [f"  {several(names, 20)}: {law}" for (one, law), names in laws.items() if one is wanted]
        for wanted in (True, False)
    )
    places = ", ".join(f"{len(codes):,} at {level}" for level, codes in tables.geoids.items())
    settings = ", ".join(f"{name} {value}" for name, value in spec.parameters.items())
    parts = {
        "A release of protected tables": [
            *["Made up: none of these people exists."] * tables.made_up
        ],
        "The tables": [
            *(f"  {file}: {table}" for file, table in files.items()),
            "A row is a count of a cell at a place. A count of 0 is written as 0, an empty one is",
            "withheld. Tables of more than 131,072 counts at a level leave out counts of 0.",
            "The same counts, for programs: part-*.parquet.",
        ],
        "How they are protected": [f"  {spec.mechanism}: {settings or 'no parameters'}"],
        "What is exact": [f"  the list of places ({places}): {PLACES[spec.places]}", *exact],
        "What is not exact, and its law": other or ["  nothing"],
        "Who drew": [f"  {chance_words(release)}"],
        "How to check it": [
            "  pip install bayesrisk-disclosure, then bayesrisk verify FOLDER: every file must be",
            "  the one that _release.json names, this one too.",
        ],
    }
    blocks = ["\n".join([title, "-" * len(title), *lines]) for title, lines in parts.items()]
    return "\n\n".join(blocks) + "\n"
