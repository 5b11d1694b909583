"""Evidence of a whole release about one record, by the law of its privacy loss."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import bayesrisk as br
from bayesrisk.cli.data import data_path
from bayesrisk.cli.printing import table_lines
from bayesrisk.exceptions import ArgumentError

#: Budgets that are known by name.
BUDGETS = ("pl94", "dhc")
_DELTA = 1e-10
_PRIORS = (1 / 2, 1 / 10, 1 / 2016)


def release_law(source: str) -> "br.accounting.PrivacyLoss":
    """Return the law of a budget by name, or of the release in a folder."""
    from bayesrisk.release.release import ReleaseIndex
    from bayesrisk.release.specification import MechanismSpec

    if source in BUDGETS:
        return br.accounting.PrivacyLoss.of(source)
    folder = data_path(Path(source), "a release")
    if ReleaseIndex.exists(folder):
        spec = ReleaseIndex.read(folder).document["spec"]
        return br.accounting.PrivacyLoss.of(MechanismSpec.from_dict(spec))
    return br.accounting.PrivacyLoss.of(br.Release.read(folder))


def answer(
    source: str, *, epsilon: float | None, delta: float | None, priors: Sequence[float]
) -> tuple[dict[str, Any], list[str]]:
    """Return epsilon or delta, and beliefs, of a release: as a document and in lines."""
    import numpy as np

    if epsilon is not None and delta is not None:
        raise ArgumentError("give --epsilon or --delta of a release, not both")
    law = release_law(source)
    counts = sum(part.times for part in law.parts)
    document: dict[str, Any] = {"source": source, "counts": counts}
    if epsilon is not None:
        ends = law.delta(epsilon)
        document |= {"epsilon": epsilon, "delta_lower": ends.lower, "delta_upper": ends.upper}
        first = f"delta is {float(ends):.6g} at epsilon {epsilon:g}"
    else:
        failure = _DELTA if delta is None else delta
        ends = law.epsilon(failure)
        document |= {"delta": failure, "epsilon_lower": ends.lower, "epsilon_upper": ends.upper}
        first = f"epsilon is {float(ends):.6g} at delta {failure:g}"
        if not math.isnan(law.rho):
            tight = float(br.rho_to_epsilon(law.rho, failure))
            document |= {"rho": law.rho, "epsilon_of_rho": tight}
            first += f"; the conversion of its rho, {law.rho:.6g}, gives {tight:.6g}"
    priors = priors or _PRIORS
    beliefs = law.posterior(priors)
    columns = (beliefs.mean, beliefs.ratio, beliefs.decision_error)
    rows = [
        {"prior": p, "posterior": m, "risk_ratio": r, "wrong_guesses": w}
        for p, m, r, w in zip(priors, *(np.ravel(ends.value) for ends in columns), strict=True)
    ]
    document["rows"] = rows
    lines = [
        f"A record moves {counts:,} noisy counts: {first}.",
        "",
        *table_lines(rows, "On average over releases, for somebody who knows all other records:"),
    ]
    return document, lines
