"""Ten ways to break an audit of the made-up small town, and how often its checks see each.

``python benchmarks/breakages.py [AUDITS [VALID]]`` writes the table of the documentation: by
default of 16 audits with each breakage and 200 valid ones, on two cores.
"""

import csv
import dataclasses
import functools
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd

from bayesrisk import datasets
from bayesrisk.mechanisms import make_mechanism
from bayesrisk.risk.audit import (
    Adversary,
    AuditedPopulation,
    AuditQuestion,
    audit_checks,
    release_differences,
    spot_comparisons,
)
from bayesrisk.risk.audit.adversaries import Reading
from bayesrisk.risk.audit.checks import CHECKS
from bayesrisk.tables import Records, Schema, Workload

TABLE = Path(__file__).parents[1] / "docs/explanation/attacks/breakages.csv"
SHARES = {
    "sensitivity": "add-remove", "level_shares": {"block": 1},
    "table_shares": {"sex * age": "1/2", "age * race": "1/2"},
}  # fmt: skip


class Misstated:
    """A mechanism that states another one's law."""

    def __init__(self, mechanism, stated):
        self._mechanism, self.spec = mechanism, stated

    def release(self, data, **options):
        return dataclasses.replace(self._mechanism.release(data, **options), spec=self.spec)


def gaussian(rho):
    return make_mechanism("discrete-gaussian", rho=rho, **SHARES)


NONE, NOISE = make_mechanism("identity"), gaussian(1)
#: What is drawn in place of the noise that is stated.
DRAWN = {"noise at 4 times its variance": gaussian("1/4"), "noise at a quarter": gaussian(4),
         "no noise at all": NONE}  # fmt: skip


@functools.cache
def town():
    folder = datasets.path("small-town")
    schema = Schema.read(folder / "schema.toml")
    workload = Workload.read(folder / "tables.toml")
    linker = Adversary.named("linker", known=["sex", "age"])
    return (
        Records.read(folder / "records.csv", schema=schema),
        AuditQuestion(workload, ("race",), (linker,)),
    )


def of_another_block(release):
    """Return a release whose tables are those of the blocks before."""
    tables = release.tables
    counts = {
        key: part[np.roll(np.arange(part.shape[0]), 1)] for key, part in tables.counts.items()
    }
    return dataclasses.replace(release, tables=dataclasses.replace(tables, counts=counts))


def sharper(said, rng):
    """Sharpen posteriors by the power 1.3."""
    power = said["posterior"] ** 1.3
    return said.assign(posterior=power / power.groupby(said["target"]).transform("sum"))


def leaking(said, rng):
    """Let the truth leak into the posteriors about a tenth of the targets."""
    names = said["target"].unique()
    some = said["target"].isin(rng.choice(names, len(names) // 10, replace=False))
    return said.assign(posterior=said["posterior"].where(~some, said["correct"].astype(float)))


def of_another_target(said, rng):
    """Take ``without`` from the next target."""
    by = said.pivot(index="target", columns="statement", values="without").fillna(0.0)
    by = pd.DataFrame(np.roll(by.to_numpy(), 1, axis=0), by.index, by.columns)
    keys = zip(said["target"], said["statement"], strict=True)
    return said.assign(without=[by.loc[key] for key in keys])


#: What is done to statements.
SAID = {
    "posterior sharpened by the power 1.3": sharper,
    "truth leaked into a tenth of the posteriors": leaking,
    "without = posterior": lambda said, rng: said.assign(without=said["posterior"]),
    "without = prior": lambda said, rng: said.assign(without=said["prior"]),
    "without of another target": of_another_target,
    "posterior = without": lambda said, rng: said.assign(posterior=said["without"]),
}
BREAKAGES = ("tables of another block", *DRAWN, *SAID)


class BreakableAudit:
    """An audit of no protection beside noise, valid until it is broken."""

    def __init__(self, seed, targets=100):
        people, question = town()
        self.question, self.seed = question, seed
        self.population = AuditedPopulation(people, question, seed=seed)
        self.rows = self.population.targets(targets)
        self._said = functools.cache(self._asked)
        self.release = functools.cache(self._released)

    def _released(self, name, drawn, row=None):
        """Return a release and its mechanism."""
        mechanism = {"none": NONE, "noise": NOISE}[name]
        if drawn is not None and name == "noise":
            mechanism = Misstated(DRAWN[drawn], NOISE.spec)
        return self.population.release(name, 0, mechanism, without_row=row), mechanism

    def _asked(self, name, drawn, moved):
        """Return the statements about all targets."""
        release, mechanism = self.release(name, drawn)
        read = of_another_block(release) if moved else release
        return self.population.statements(name, name, 0, mechanism, read, self.rows)

    def checks(self, broken=None):
        """Return the checks of the audit, broken in one way."""
        rng = np.random.default_rng(self.seed)
        drawn = broken if broken in DRAWN else None
        statements, differences, spots = [], [], []
        for name in ("none", "noise"):
            release, _ = self.release(name, drawn)
            said = self._said(name, drawn, broken == "tables of another block")
            if broken in SAID:
                said = SAID[broken](said, rng)
            truth = self.population.truth
            differences.append(release_differences(release, truth).assign(protection=name))
            reading = Reading("likelihood", release)
            spots.append(
                spot_comparisons(
                    self.population, said, reading,
                    lambda row, n=name: Reading("likelihood", self.release(n, drawn, row)[0]),
                )
            )  # fmt: skip
            statements.append(said)
        return audit_checks(
            pd.concat(statements, ignore_index=True),
            question=self.question,
            specs={"none": NONE.spec, "noise": NOISE.spec},
            differences=pd.concat(differences, ignore_index=True),
            spots=pd.concat(spots, ignore_index=True),
        )


def alarms(checks):
    """Return the kinds of checks that fail."""
    failed = set(checks.loc[checks["failed"] > 0, "check"])
    return [kind for kind in CHECKS if kind in failed]


def seen(seed):
    """Return by breakage the checks that fail in the audit of a seed."""
    audit = BreakableAudit(seed)
    return {broken: alarms(audit.checks(broken)) for broken in BREAKAGES}


def valid(seed):
    """Return the checks that fail in a valid audit."""
    return alarms(BreakableAudit(seed).checks())


def rows(audits, valid_audits):
    """Yield for each breakage the number of audits, in how many it is seen, and by which checks."""
    with ProcessPoolExecutor(2) as pool:
        clean = list(pool.map(valid, range(1, valid_audits + 1)))
        broken = list(pool.map(seen, range(1, audits + 1)))
    found = {"none": clean} | {name: [one[name] for one in broken] for name in BREAKAGES}
    for name, kinds in found.items():
        by = [f"{kind} {sum(kind in one for one in kinds)}" for kind in CHECKS]
        yield name, len(kinds), sum(map(bool, kinds)), ", ".join(b for b in by if b[-2:] != " 0")


def main():
    """Write the table."""
    audits, valid_audits = [*map(int, sys.argv[1:]), *(16, 200)[len(sys.argv) - 1 :]]
    with TABLE.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["Breakage", "Audits", "Alarm", "By which checks, in how many audits"])
        for name, number, alarm, by in rows(audits, valid_audits):
            table.writerow([name, number, alarm, by or "none"])


if __name__ == "__main__":
    main()
