"""How far the answers of an audit can be trusted, by many audits of the made-up small town.

Everybody of the town is asked about under many releases, by exact beliefs.  Their long-run mean is
the truth that intervals of audits of a few releases each must cover, and by which verdicts between
settings are right or false.  ``python benchmarks/audit_accuracy.py`` writes the table that the
documentation shows; it takes some minutes.
"""

import argparse
import itertools
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

from bayesrisk import datasets
from bayesrisk.experiments import AuditStudy, Protection, run
from bayesrisk.experiments.audit import ProtectionGoal
from bayesrisk.experiments.audit.populations import PopulationInParts
from bayesrisk.risk.audit import Adversary, AuditQuestion, audit_measures, audit_targets, compare
from bayesrisk.tables import Workload

TABLE = Path(__file__).parents[1] / "docs/explanation/attacks/audit-accuracy.csv"
TOWN = datasets.path("small-town")
TABLES = Workload.read(TOWN / "tables.toml")
LINKER = Adversary.named("linker", known=["sex", "age"])
SETTINGS = {"no protection": None, "noise, rho 1": "1", "noise, rho 0.0992": "0.0992264"}
RELEASES = 8  # of an audit
#: Rules each of which is made from the one before.
LADDERS = {
    "ranges": [("identity",), *(("ranges", {"edges": edges}) for edges in (
        [0, 1, 2, 3, 4, 6, 10, 20, 50], [0, 1, 3, 6, 10, 20, 50], [0, 1, 6, 20, 50], [0, 6, 50]))],
    "thresholds": [("identity",), *(("threshold", {"least": n}) for n in (3, 5, 10))],
    "multiples": [("identity",), *(
        ("rounding", {"base": base, "method": "nearest"}) for base in (3, 9))],
}  # fmt: skip
QUANTILE, RATIO = 0.99, 2.5


def protection(name: str, rho: str | None) -> Protection:
    if rho is None:
        return Protection(name, "identity")
    return Protection(name, "discrete-gaussian", {"rho": rho})


def asked(releases: int) -> dict[str, pd.DataFrame]:
    """Return what the linker believes of everybody under many releases of each setting."""
    question = AuditQuestion(TABLES, ("race",), (LINKER,))
    town = PopulationInParts(TOWN / "records.csv", question, TABLES.schema, seed=1, targets=None)
    targets = {}
    for name, rho in SETTINGS.items():
        numbers = range(1 if rho is None else releases)
        frame = town.statements(protection(name, rho), numbers, town.survey.targets)
        targets[name] = audit_targets(frame)
    return targets


def audits(targets: dict[str, pd.DataFrame], number: int) -> Iterator[pd.DataFrame]:
    """Yield the targets of audits of eight releases each, none of which is in two of them."""
    for first in range(0, number * RELEASES, RELEASES):
        parts = []
        for frame in targets.values():
            random = bool(frame["randomised"].iloc[0])
            some = frame[frame["release"].between(first, first + RELEASES - 1)] if random else frame
            parts.append(some.assign(release=some["release"] - (first if random else 0)))
        yield pd.concat(parts, ignore_index=True)


def coverage(targets: dict[str, pd.DataFrame], number: int) -> Iterator[tuple[str, int, int]]:
    """Yield how many intervals of this population hold the long-run answers, of how many."""
    long_run = {n: np.exp(-np.log(f["truth_posterior"]).mean()) for n, f in targets.items()}
    hits = dict.fromkeys(targets, 0)
    for audit in audits(targets, number):
        rows = audit_measures(audit).query("group == 'everybody'").set_index("protection")
        for name, truth in long_run.items():
            row = rows.loc[name]
            low, high = row["answers_posterior_lower"], row["answers_posterior_upper"]
            hits[name] += low - 1e-12 <= truth <= high + 1e-12
    for name in targets:
        if name != "no protection":  # exact
            text = "intervals of remaining answers that hold their long-run value"
            yield f"{text}: {name}", hits[name], number


def verdicts(targets: dict[str, pd.DataFrame], number: int) -> Iterator[tuple[str, int, int]]:
    """Yield how often weaker or stronger settings are called safer, and equal ones told apart.

    Nothing is known by construction here, so that all of it is measured.
    """
    wrong = right = pairs = 0
    for audit in audits(targets, number):
        found = compare(audit)
        wrong += int((found["verdict"] == "more").any())
        right += int((found["verdict"] == "less").sum())
        pairs += len(found)
    yield "audits in which a weaker setting is called safer", wrong, number
    yield "pairs in which the stronger setting is called safer", right, pairs
    rng, false, both = np.random.default_rng(1), 0, 200
    parts = list(audits({"a": targets["noise, rho 1"]}, number))
    for _ in range(both):
        one, other = rng.choice(number, 2, replace=False)
        pair = parts[one].assign(protection="a"), parts[other].assign(protection="b")
        false += compare(pd.concat(pair))["verdict"].iloc[0] != "cannot tell"
    yield "audits of two equal settings that tell them apart", false, both


def ladders() -> Iterator[tuple[str, int, int]]:
    """Yield in how many pairs of rules, each made from the one before, an order is turned round."""
    question = AuditQuestion(TABLES, ("race",), (LINKER, Adversary.named("outsider")))
    town = PopulationInParts(TOWN / "records.csv", question, TABLES.schema, seed=1, targets=None)
    for what, rules in LADDERS.items():
        frames = [
            town.statements(Protection(str(i), *rule), [0], town.survey.targets)
            for i, rule in enumerate(rules)
        ]
        targets = audit_targets(pd.concat(frames, ignore_index=True))
        told, rows = compare(targets), audit_measures(targets).query("group == 'everybody'")
        less = dict.fromkeys(("gain", "answers"), 0)
        for _, mine in rows.groupby("adversary"):
            gain, answers = mine["gain"].to_numpy(), mine["answers_posterior"].to_numpy()
            for clear, faint in itertools.combinations(range(len(rules)), 2):
                less["gain"] += bool(gain[faint] > gain[clear] + 1e-12)
                less["answers"] += bool(answers[faint] < answers[clear] - 1e-12)
        pairs = len(told)
        yield (
            f"{what}: verdicts that call the coarser less safe",
            (told.verdict == "more").sum(),
            pairs,
        )
        yield f"{what}: pairs whose coarser has fewer remaining answers", less["answers"], pairs
        yield f"{what}: pairs whose coarser has the larger gain", less["gain"], pairs


def choices(seeds: int) -> Iterator[tuple[str, int, int]]:
    """Yield how many of 20 fresh releases keep to the goal under the setting of each seed."""
    for seed in range(1, seeds + 1):
        study = AuditStudy(
            TOWN / "records.csv", TABLES, protections=[Protection("noise", "discrete-gaussian")],
            adversaries=[LINKER], stated=["race"], seed=seed,
            goal=ProtectionGoal(RATIO, QUANTILE, steps=4),
        )  # fmt: skip
        with TemporaryDirectory() as folder:
            run(study, f"{folder}/out")
            row = pd.read_csv(f"{folder}/out/choice.csv").iloc[0]
        if not row["met"]:
            yield f"seed {seed}: no setting", 0, 0
            continue
        question = AuditQuestion(TABLES, ("race",), (LINKER,))
        town = PopulationInParts(
            TOWN / "records.csv", question, TABLES.schema, seed=1000 + seed, targets=None
        )
        one = protection("chosen", str(float(row["value"])))
        targets = audit_targets(town.statements(one, range(20), town.survey.targets))
        ratio = targets["truth_posterior"] / targets["truth_without"]
        worst = ratio.groupby(targets["release"]).quantile(QUANTILE, interpolation="higher")
        name = f"fresh releases that keep to the goal, seed {seed} (rho {row['value']:g})"
        yield name, int((worst <= RATIO).sum()), 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--audits", type=int, default=50)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--to", type=Path, default=TABLE)
    given = parser.parse_args()
    targets = asked(given.audits * RELEASES)
    lines = [*coverage(targets, given.audits), *verdicts(targets, given.audits), *ladders()]
    lines += choices(given.seeds)
    frame = pd.DataFrame(lines, columns=["what", "number", "of"])
    print(frame.to_string(index=False))
    frame.to_csv(given.to, index=False)


if __name__ == "__main__":
    main()
