"""Ways to break an audit of the made-up small town, and how often its checks see each.

``python benchmarks/breakages.py [AUDITS [VALID]]`` writes the tables of the documentation: by
default of 16 audits with each breakage and 200 valid ones, on two cores,
and what each check of a valid one would have seen.
"""

import csv
import dataclasses
import functools
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp

from bayesrisk import datasets
from bayesrisk.inference import RecordPrior
from bayesrisk.mechanisms import make_mechanism
from bayesrisk.risk.audit import (
    Adversary,
    AuditedPopulation,
    AuditQuestion,
    audit_checks,
    release_differences,
    spot_comparisons,
)
from bayesrisk.risk.audit.checks import CHECKS
from bayesrisk.risk.audit.reading import Reading
from bayesrisk.tables import Records, Schema, Workload

TABLE = Path(__file__).parents[1] / "docs/explanation/attacks/breakages.csv"
POWERS = TABLE.with_name("checks-power.csv")
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
SPECS = {"none": NONE.spec, "noise": NOISE.spec}
RELEASES = 8  # of noise, whose counts are held against their law
READ = 2  # of them those that are read
#: What is drawn in place of the noise that is stated.
DRAWN = {
    "noise at 4 times its variance": gaussian("1/4"), "noise at a quarter": gaussian(4),
    "no noise at all": NONE, "noise at 1.3 of its variance": gaussian("10/13"),
    "noise at .77 of its variance": gaussian("100/77"),
}  # fmt: skip


def true_block(noise):
    """Let one block of 16 have no noise."""
    noise[5] = 0


def true_cells(noise):
    """Let every tenth cell have no noise."""
    noise.flat[::10] = 0


def true_totals(noise):
    """Take the sum of a block's noise off its cells, in parts that are as equal as can be."""
    total, cells = noise.sum(axis=1), noise.shape[1]
    noise -= (total // cells)[:, None] + (np.arange(cells) < (total % cells)[:, None])


#: What is done to the noise.
CHANGED = {
    "one block of 16 without noise": true_block, "every tenth cell without noise": true_cells,
    "true totals of blocks kept": true_totals,
}  # fmt: skip


def with_noise(release, truth, change):
    """Return a release whose noise is changed."""
    counts = {}
    for key, part in release.tables.counts.items():
        noise = (part - truth.counts[key]).toarray()
        change(noise)
        counts[key] = sp.csr_array(truth.counts[key].toarray() + noise)
    return dataclasses.replace(release, tables=dataclasses.replace(release.tables, counts=counts))


class OwnPeople(AuditedPopulation):
    """A population whose priors contain the place's own people."""

    def prior(self, place):
        own = RecordPrior.composition(self.question.workload.schema, self.composition, more=1.0)
        return dataclasses.replace(super().prior(place), shares=own.shares)


class KnownSizes(AuditedPopulation):
    """A population whose priors know the size of the place."""

    def prior(self, place):
        size = np.zeros(self.largest + 1)
        size[self.rows(place).size] = 1.0
        return dataclasses.replace(super().prior(place), size=size)


class LooseConcentration(AuditedPopulation):
    """A population whose concentration is a hundred times the fitted one."""

    @functools.cached_property
    def concentration(self):
        return 100.0 * super().concentration


#: What is done to the prior.
PRIORS = {
    "prior with the place's own people": OwnPeople, "prior that knows the size": KnownSizes,
    "concentration a hundred times too large": LooseConcentration,
}  # fmt: skip


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


def without_gainers(said, rng):
    """Leave the ten undecided whose own records tell most."""
    gain = (said["posterior"] - said["without"])[said["correct"]]
    ten = said["target"].isin(said.loc[gain.nlargest(10).index, "target"])
    three = ["without", "posterior", "without_error", "posterior_error", "lower", "upper"]
    said = said.assign(status=said["status"].mask(ten, "undecided"))
    said.loc[ten, three] = np.nan
    return said


#: What is done to statements.
SAID = {
    "posterior sharpened by the power 1.3": sharper,
    "truth leaked into a tenth of the posteriors": leaking,
    "without = posterior": lambda said, rng: said.assign(without=said["posterior"]),
    "without = prior": lambda said, rng: said.assign(without=said["prior"]),
    "without of another target": of_another_target,
    "posterior = without": lambda said, rng: said.assign(posterior=said["without"]),
    "the ten who gain most left undecided": without_gainers,
}
BREAKAGES = ("tables of another block", *DRAWN, *CHANGED, *PRIORS, *SAID)


class BreakableAudit:
    """An audit of no protection beside noise, valid until it is broken.

    Where noise is not as stated, beliefs are those of the valid audit.
    """

    def __init__(self, seed, targets=100):
        people, self.question = town()
        self.seed = seed
        self.population = functools.cache(
            lambda broken: PRIORS.get(broken, AuditedPopulation)(people, self.question, seed=seed)
        )
        self.rows = self.population(None).targets(targets)
        self.said = functools.cache(self._said)
        self.release = functools.cache(self._release)
        self.told = functools.cache(self._told)
        self.spots = functools.cache(self._spots)
        self.differences = functools.cache(self._differences)

    def _release(self, name, number, broken=None, row=None):
        """Return a release."""
        mechanism, drawn = (NONE if name == "none" else NOISE), DRAWN.get(broken)
        if name == "noise" and drawn is not None:
            mechanism = Misstated(drawn, NOISE.spec)
        release = self.population(None).release(name, number, mechanism, without_row=row)
        if name == "noise" and broken in CHANGED:
            release = with_noise(release, self.population(None).truth, CHANGED[broken])
        return release

    def _said(self, name, number, broken):
        """Return the statements about all targets."""
        release = self.release(name, number)
        read = of_another_block(release) if broken == "tables of another block" else release
        mechanism = NONE if name == "none" else NOISE
        population = self.population(broken)
        return population.statements(name, name, number, mechanism, read, self.rows)

    def _told(self, name, broken):
        """Return the statements under releases that are read, broken or not."""
        read = broken if broken not in SAID else None
        said = [self.said(name, number, read) for number in range(1 if name == "none" else READ)]
        rng = np.random.default_rng(self.seed)
        return [SAID[broken](one, rng) for one in said] if broken in SAID else said

    def _spots(self, name, broken):
        """Return spot checks of the first release."""
        population = self.population(broken if broken in PRIORS else None)
        return spot_comparisons(
            population, self.told(name, broken)[0], Reading("likelihood", self.release(name, 0)),
            lambda row: Reading("likelihood", self.release(name, 0, None, row)),
        )  # fmt: skip

    def _differences(self, broken=None):
        """Return published less true counts of all releases."""
        truth = self.population(None).truth
        parts = [
            release_differences(self.release(name, number, broken), truth).assign(protection=name)
            for name, releases in (("none", 1), ("noise", RELEASES)) for number in range(releases)
        ]  # fmt: skip
        return pd.concat(parts, ignore_index=True)

    def checks(self, broken=None):
        """Return the checks of the audit, broken in one way."""
        of_noise = broken if broken in DRAWN or broken in CHANGED else None
        of_beliefs = broken if of_noise is None else None
        statements = [one for name in ("none", "noise") for one in self.told(name, of_beliefs)]
        spots = [self.spots(name, of_beliefs) for name in ("none", "noise")]
        return audit_checks(
            pd.concat(statements, ignore_index=True),
            question=self.question,
            specs=SPECS,
            differences=self.differences(of_noise),
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


def results(audits, valid_audits):
    """Return the checks that fail in valid audits, and by breakage in broken ones."""
    with ProcessPoolExecutor(2) as pool:
        clean = list(pool.map(valid, range(1, valid_audits + 1)))
        return clean, list(pool.map(seen, range(1, audits + 1)))


def rows(clean, broken):
    """Yield for each breakage the number of audits, in how many it is seen, and by which checks."""
    found = {"none": clean} | {name: [one[name] for one in broken] for name in BREAKAGES}
    for name, kinds in found.items():
        by = [f"{kind} {sum(kind in one for one in kinds)}" for kind in CHECKS]
        seen_by = ", ".join(b for b in by if b[-2:] != " 0")
        yield name, len(kinds), sum(map(bool, kinds)), seen_by or "none"


def powers(checks):
    """Yield each check of an audit with its verdict and what it would have seen."""
    for row in checks.dropna(subset="power").itertuples():
        belief = f" ({row.belief})" if isinstance(row.belief, str) else ""
        yield (row.check, row.protection, row.against + belief, row.compared, row.verdict,
               f"{row.power:.3g}", row.power_unit)  # fmt: skip


def write(file, head, lines):
    """Write a table."""
    with file.open("w", newline="", encoding="utf-8") as text:
        csv.writer(text, lineterminator="\n").writerows([head, *lines])


def main():
    """Write the tables."""
    audits, valid_audits = [*map(int, sys.argv[1:]), *(16, 200)[len(sys.argv) - 1 :]]
    head = ["Breakage", "Audits", "Alarm", "By which checks, in how many audits"]
    write(TABLE, head, rows(*results(audits, valid_audits)))
    head = ["Check", "Protection", "Against", "Compared", "Verdict", "Power", "Unit"]
    write(POWERS, head, powers(BreakableAudit(1).checks()))


if __name__ == "__main__":
    main()
