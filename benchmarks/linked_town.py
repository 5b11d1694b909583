"""What releases of persons, of households and of both give away about the people of a made-up town.

``python benchmarks/linked_town.py`` prints the table of ``docs/explanation/protections/
linked-town.csv``: for each protection the gain from a person's own record, in points, and the
share of people of whom something is proved, in per cent, with 95 % intervals over blocks.
"""

import sys

import numpy as np
import pandas as pd

import bayesrisk as br
from bayesrisk.inference import RecordPrior
from bayesrisk.risk import Adversary, AuditQuestion, statements_about_members
from bayesrisk.tables import Attribute, Geography, HouseholdLink, Records, Schema, Workload

TOWN = Geography("town", ("block",), (2,))
PERSONS = Schema("persons", (Attribute("sex", 2), Attribute("age", 2)), TOWN)
HOMES = Schema("homes", (Attribute("size", 2, 1), Attribute("child", 2)), TOWN)
LINK = HouseholdLink.enumerate(
    PERSONS, HOMES, most=2,
    derived={
        "size": lambda members: members.sum(axis=1),
        "child": lambda members: (members[:, 0] + members[:, 2] > 0) * 1,  # age 0, either sex
    },
)  # fmt: skip
#: Shares of boys, men, girls and women, and of households of one and of two members.
SHARES = LINK.shares([0.12, 0.38, 0.12, 0.38], [0.4, 0.6])
SIZE = np.repeat([0.0, 0.2, 0.0], [3, 5, 3])  # three to seven households of a block
TABLES = {
    "persons": Workload.of(PERSONS, ["sex", "age"]),
    "homes": Workload.of(HOMES, ["size", "child"]),
}
ASKED = AuditQuestion(TABLES["persons"], ("age",), (Adversary.named("linker", known=("sex",)),))
NAMES = {name: [f"{name}: {own}" for _, own in work.tables] for name, work in TABLES.items()}


def rule(kind, name):
    """Return the recipe of a protection of the persons or of the homes."""
    made = {
        "none": {"mechanism": "identity"},
        "rounded": {"mechanism": "rounding", "parameters": {"base": 3, "method": "nearest"}},
        # Of a household of two members left out, a count changes by two.
        "noise": {"mechanism": "discrete-gaussian", "parameters": {
            "budgets": {"block": dict.fromkeys(NAMES[name], "1")},
            "sensitivity": "add-remove", "overlap": 4}},
    }  # fmt: skip
    return {**made[kind], "tables": NAMES[name]}


RULES = {
    "none": ("none", "none"),
    "both rounded to 3": ("rounded", "rounded"),
    "persons rounded to 3, households exact": ("rounded", "none"),
    "noise on both": ("noise", "noise"),
    "noise on persons, households exact": ("noise", "none"),
}


def ratio(part, whole):
    """Return a share over blocks with its interval (linearised), in per cent."""
    share = part.sum() / whole.sum()
    error = np.sqrt(((part - share * whole) ** 2).sum() * len(part) / (len(part) - 1))
    width = 1.96 * error / whole.sum()
    return f"{100 * share:.1f} ({100 * (share - width):.1f} to {100 * (share + width):.1f})"


def main(blocks=40):
    """Print the table."""
    rng = np.random.default_rng(4)
    prior = RecordPrior(LINK.schema, SHARES, None, SIZE)
    town = []
    for block in range(blocks):
        homes = rng.choice(LINK.schema.size, rng.integers(3, 8), p=SHARES)
        frame = pd.DataFrame({"block": f"{block:02d}", "members": homes})
        town.append(Records.from_frame(frame, schema=LINK.schema))
    for name, kinds in RULES.items():
        for chosen in (["persons"], ["homes"], ["persons", "homes"]):
            parts = {n: rule(k, n) for n, k in zip(TABLES, kinds, strict=True) if n in chosen}
            protection = br.make_mechanism("composition", releases=parts)
            work = LINK.workload({n: TABLES[n] for n in chosen})
            sums = []
            for seed, records in enumerate(town):
                found = statements_about_members(
                    protection, records, LINK, ASKED, workload=work, prior=prior, rng=seed
                ).frame
                found = found[found["correct"]]
                gain = found["people"] * (found["posterior"] - found["without"])
                proved = found["people"] * (found["posterior"] > 1 - 1e-9)
                sums.append((gain.sum(), proved.sum(), found["people"].sum()))
            gain, proved, people = np.array(sums).T
            print(
                f"{name}; {' and '.join(chosen)}: gain {ratio(gain, people)}, "
                f"proved {ratio(proved, people)}, {people.sum():.0f} people", flush=True,
            )  # fmt: skip


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
