"""The report of a release: its tables, their protection, its budget, and exact parts."""

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from bayesrisk._version import __version__
from bayesrisk.experiments.pages import Part, Quotes, drawing, findings, listed, table, what_to_do
from bayesrisk.release import NoiseSpec, RangeSpec, RoundingSpec
from bayesrisk.tables.exchange import MADE_UP, made_up_mark
from bayesrisk.tables.likelihoods import CellKeySpec, Likelihood

Contents = Mapping[str, Any]
_DRAWN = 12  # tables of the figure


def cost(law: Likelihood, withheld: int, words: str = "") -> dict[str, Any]:
    """Return a description of how a law changes counts, and the size of the error.

    ``words`` describe the mechanism, for a law that has no closed form.
    """
    way, off, kind = "changed (by how much, running the mechanism tells)", None, "at most"
    way = f"changed by {words}" if words else way
    if isinstance(law, NoiseSpec):
        way, off, kind = "with noise", mean_error(law), "on average"
    elif isinstance(law, RoundingSpec):
        way = f"rounded to multiples of {law.base}"
        off = law.base - 1 if law.method == "random" else law.base // 2
    elif isinstance(law, RangeSpec):
        way = "as ranges"
    elif isinstance(law, CellKeySpec):
        way = "changed at random"
        off = max(abs(change) for row in law.shares for change, _ in row)
    elif withheld:
        way = "as they are, but for some that are withheld"
    elif law.exact:
        way = "as they are"
    return {"how": way, "off_by": off, "off": kind}


def mean_error(noise: NoiseSpec) -> float:
    """Return the mean absolute value of discrete noise."""
    scale = float(noise.scale)
    if noise.law == "discrete-laplace":  # P(k) is proportional to exp(-|k| / scale)
        return float(1.0 / np.sinh(1.0 / scale)) if scale > 0.0 else 0.0
    if scale > 1e4:  # sigma^2: there the sum is that of the normal law to twelve digits
        return math.sqrt(2.0 * scale / math.pi)
    k = np.arange(1.0, 1300.0)
    weights = np.exp(-(k**2) / (2.0 * scale))
    return float(2.0 * (k @ weights) / (1.0 + 2.0 * weights.sum()))


def release_lead(release: Contents) -> str:
    """Return the opening sentences: number of tables, their protection, and the budget."""
    tables = pd.DataFrame(release["tables"], columns=["level", "table", "how", "off_by", "off"])
    places = [f"{n:,} {_plural('place', n)} ({level})" for level, n in release["places"].items()]
    places = places if len(places) < 3 else [places[-1], "the levels above"]
    ways = []
    for way, rows in tables.groupby("how", sort=False):
        off = [f"{n:.2g}" if n < 10 else f"{n:,.0f}" for n in sorted(rows["off_by"].dropna())]
        error = " to ".join(dict.fromkeys([*off[:1], *off[-1:]]))
        error = f" (a count is off by {error} {rows['off'].iloc[0]})" if error else ""
        number = "" if len(rows) == len(tables) else f"{len(rows):,} "
        ways.append(f"{number}{way}{error}")
    count = len(tables)
    places_text = "" if [*release["places"].values()] == [1] else f" of {listed(places)}"
    text = f"{count:,} {_plural('table', count)}{places_text} {'is' if count == 1 else 'are'}"
    colon = ":" * (len(ways) > 1)
    return " ".join([f"{text} published{colon} {', '.join(ways)}.", *privacy(release)])


def privacy(release: Contents) -> list[str]:
    """Return a sentence on the privacy budget of the whole release, or [] if it has none."""
    rho, epsilon = release["rho"], release["epsilon"]
    budget = "" if rho is None else f"rho {rho:.6g}"
    if epsilon is None:
        return [f"The budget of all noise is {budget}."] if budget else []
    moves = "comes or goes" if release["neighbour"] == "add-remove" else "changes"
    budget = f" ({budget})" if budget else ""
    return [
        f"For one record that {moves}, all noisy counts together have epsilon {epsilon:.6g} at "
        f"delta 1e-10, by the law of their privacy loss{budget}."
    ]


def _plural(noun: str, number: int) -> str:
    return noun if number == 1 else f"{noun}s"


def release_quotes(release: Contents, exact: str) -> Quotes:
    """Return sentences about a release that may be quoted, and that may not."""
    changed = sum(part["cells"] for part in release["tables"] if not part["exact"])
    withheld = sum(part["withheld"] for part in release["tables"])
    may = [release_lead(release), exact]
    if changed or withheld:
        every = sum(part["cells"] for part in release["tables"])
        unsure = changed + withheld
        number = f"Of {every:,} counts {unsure:,} are not stated exactly."
        may.append(number if unsure < every else f"None of {every:,} counts is stated exactly.")
        wrong = {
            "These are the true counts.": "Only what the report calls exact is.",
            "A count of 0, or none, says that nobody is there.": "Protected counts are 0 where "
            "somebody is, too.",
        }
    else:
        may.append("Every count is the true one: nothing was changed.")
        wrong = {
            "These tables are protected.": "Nothing was changed.",
            "A count of 1 is about nobody in particular.": "It is one person of that place.",
        }
    safe = {"Nothing can be learned about a person.": "An audit says what can; this page does not."}
    return Quotes(may, wrong | safe)


def release_advice(release: Contents) -> Part:
    """Return the advice with a release, which says nothing about what can be learned."""
    step = "`bayesrisk attack RELEASE -o NEW` looks for what they give away."
    if release["random"]:
        step = "`bayesrisk audit RECORDS -o NEW --protection RECIPE` measures what is learned."
    if release["simulation"]:
        step = "Draw them again without `--simulation-seed`."
    undecided = "this page says what was changed, not what is learned"
    return what_to_do(
        "this is a simulation" * release["simulation"], undecided=undecided, step=step
    )


def release_page(release: Contents, exactly: Sequence[str]) -> bytes:
    """Return the report of a release; ``exactly`` lists its exact parts in words."""
    from bayesrisk.plotting.attacks import draw_numbers  # slow to import

    tables = pd.DataFrame(release["tables"])
    groups = tables.groupby(["level", "is"], sort=False).agg(
        tables=("table", ", ".join), counts=("cells", "sum"), withheld=("withheld", "sum")
    )
    laws = tables.groupby(["is"], sort=False)["cells"].sum()
    if len(tables) > _DRAWN:
        sizes = tables.groupby("level", sort=False)["cells"].sum().to_dict()
    else:
        names = tables["table"] + " (" + tables["level"] + ")"
        sizes = dict(zip(names, tables["cells"], strict=True))
    numbers = {str(name): int(n) for name, n in sizes.items()}
    draw = functools.partial(draw_numbers, numbers, "counts")
    exact = f"Published exactly: {'; '.join(exactly)}."
    return findings(
        "Release: what is published, and how it is protected",
        [
            release_lead(release),
            exact,
            *(f"{n:,} of the counts: {law}." for law, n in laws.items()),
            *(f"{name.replace('_', ' ')}: {v:.6g}." for name, v in release["diagnostics"].items()),
        ],
        advice=release_advice(release),
        quotes=release_quotes(release, exact),
        source=f"Made by bayesrisk {__version__} from the release alone.",
        settings=made_up_mark(release.get(MADE_UP, False))
        | {name: release[name] for name in ("mechanism", "parameters", "places")},
        figures=[drawing(draw, "Counts that are released.")],
        tables=[table(groups.reset_index().rename(columns={"is": "published"}), "Tables")],
        warning="A simulation: whoever guesses the seed takes the protection off."
        if release["simulation"]
        else "",
    )
