"""Commands about an installation: ``bayesrisk warmup`` compiles, ``list`` says what it has."""

import gc
import inspect
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from importlib import import_module
from typing import Annotated, Any

import typer

import bayesrisk as br
from bayesrisk.cli.options import JsonOption, QuietOption
from bayesrisk.cli.printing import counter, print_answer, progress, warnings_as_lines
from bayesrisk.exceptions import ArgumentError

# Small calls of each zone that between them use every compiled kernel.


def _distributions() -> None:
    law = br.DiscreteGaussian(5.0)
    law.rvs(10, 1)
    law.logsf([0, 1, 9])
    br.DiscreteLaplace(2.0).rvs(10, 1)
    br.accounting.discrete_gaussian_delta(1.0, sigma2=5.0)
    for counts in ([br.DiscreteLaplace(2.0), br.DiscreteGaussian(5.0)], "pl94"):
        br.accounting.PrivacyLoss.of(counts).epsilon(1e-6)


def _counts() -> None:
    import numpy as np

    from bayesrisk.inference.count.measurements import MeasurementTables

    br.risk.rho_for_risk(1.5, prior=0.1)
    br.block_risk([[3], [-1]], rho=0.1, prior=[0.1, 0.2])
    noise = br.Noise(rho=0.1)
    br.inference.postprocessed_posterior(
        [0, 1, 2], group_count=2, n_siblings=1, noise=noise, prior=0.5
    )
    noise, exact = br.Noise(rho=[0.1, 5.0]), "exact"
    br.risk.compare_postprocessing(
        group_count=9, n_siblings=2, noise=noise, prior=0.5, sibling_noise=exact
    )
    MeasurementTables(0.1, 0).look_up(np.array([[1, 2]]), np.array([5.0]))
    br.risk.multilevel_decision_accuracy(noise=br.Noise(rho=[0.1, 0.25]), prior=0.1)


def _two_levels() -> None:
    from bayesrisk.exceptions import IncompatibleConditionalsWarning

    counts: dict[str, Any] = {"n_siblings": 2, "rho_block": 5.0, "rho_group": 0.25, "prior": 0.5}
    question = br.TwoLevels(**counts, sibling_noise="exact")
    str(br.hierarchical_posterior(2, 1, -1, **counts).group_pmf)  # made when it is asked for
    question.posterior(2, 1, -1)
    question.average(group_count=10)
    question.distribution(group_count=10)
    br.TwoLevels(**counts).accuracy(group_count=[1, 10])
    br.TwoLevels(**counts).sample(2, 1, -1, draws=4, warmup=1, chains=2, rng=1)
    with warnings.catch_warnings():  # the decision of the paper needs kernels of its own
        warnings.simplefilter("ignore", IncompatibleConditionalsWarning)
        published = br.TwoLevels(**counts, conditionals="as-published")
        published.posterior(2, 1, -1)
        published.correct_decision(group_count=10)


def _trees() -> None:
    import numpy as np
    import pandas as pd

    path = br.Tree.path([2, 1], [-1], n_siblings=27, rho=[0.1, 0.25], prior=0.5)
    br.tree_posterior(path, leaf_prior="flat")
    frame = pd.DataFrame(
        {
            "node": ["group", "a", "b"],
            "parent": [None, "group", "group"],
            "noisy_count": [1, 2, -1],
            "rho": [0.25, 0.1, 0.1],
            "known_count": [None, 0, 0],
            "prior": [None, 0.5, 0.5],
        }
    )
    tree = br.Tree.from_frame(frame)
    br.inference.target_posteriors(tree, leaf_prior="flat")
    all_or_none = br.distributions.FiniteLaw(
        0, np.array([0.5, *[0.0] * 29, 0.5])
    )  # at odds with what is released
    parents = [None, "root", "root", "left", "left", "right", "right"]
    frame = pd.DataFrame({"node": ["root", "left", "right", *"abcd"], "parent": parents})
    contradiction = br.Tree.from_frame(frame.assign(noisy_count=[30, *[0] * 6], rho=1.0))
    br.tree_posterior(contradiction, leaf_prior=all_or_none)
    br.tree_posterior(tree, leaf_prior="flat").quantile(0.9)
    br.inference.sample_tree(tree, leaf_prior="flat", draws=4, warmup=1, chains=2, rng=1)


def _records() -> None:
    import numpy as np
    import pandas as pd

    from bayesrisk.inference.microdata.chains import PeopleChain
    from bayesrisk.inference.microdata.contraction import Contraction, weighed_model
    from bayesrisk.inference.microdata.people_model import people_model
    from bayesrisk.inference.microdata.posterior import record_law
    from bayesrisk.inference.microdata.system import make_system
    from bayesrisk.release import MechanismSpec, NoiseSpec, TrueCounts

    people = pd.DataFrame({"sex": [0, 0, 0, 1, 1], "age": [0, 0, 1, 0, 2]})
    schema = br.Schema.from_frame(people)
    work = br.Workload.of(schema, ["sex", "age"])
    tables = br.tabulate(br.Records.from_frame(people, schema=schema), work)
    young = br.inference.RecordQuestion({"age": [0]}, among={"sex": [1]})
    exact: Any = TrueCounts()
    noisy: Any = NoiseSpec("discrete-gaussian", Fraction(5))
    block: Any = {
        "level": "all",
        "place": "",
        "prior": br.inference.RecordPrior.uniform_data_sets(schema),
    }
    few: Any = {"rng": 1, "draws": 4, "chains": 2, "doublings": 0}
    for law, engine in ((exact, "exact"), (exact, "lattice"), (noisy, "people")):
        release = br.Release(MechanismSpec("example", others=law), tables)
        br.inference.microdata_posterior(release, [young], **block, engine=engine, **few)
    counted = br.inference.RecordPrior.uniform_data_sets(schema, size=np.full(9, 1 / 9))
    record_law(make_system(release, level="all", place="", prior=counted))
    # Two unknowns that their open sums identify, when they are joined.
    sums = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]])
    priors, weights = [np.zeros(2)] * 3, [np.zeros(3)] * 3
    Contraction(weighed_model(sums, np.zeros(3, np.int64), weights, priors), 100)
    # What is done where draws are short for a rare group, which takes many draws to happen.
    chain = PeopleChain.begin(
        people_model(make_system(release, **block)), np.random.default_rng(1), 1
    )
    chain.advance_parts(np.array([0]), 1)


def _people() -> "br.tables.Microdata":
    """Return the people and households of a few blocks of a sample."""
    import numpy as np

    data = br.datasets.load_microdata("synthetic-county")
    blocks = np.asarray(data.geoids())[:4]
    units = {
        name: unit.take(np.isin(unit.geoids, blocks))
        for name in ("persons", "households")
        if (unit := getattr(data, name)) is not None
    }
    return br.tables.Microdata(**units, blocks=None).with_places(blocks)


def _reconstruction() -> None:
    people = _people()
    small = br.Workload.named("sf1-block")
    rounded = br.make_mechanism("rounding", base=3).release(people, workload=small, rng=1)
    br.reconstruct(rounded.tables, scope="block")
    br.count_bounds(rounded.tables)
    work = small.union(br.Workload.named("sf1-tract"))
    br.solution_variability(br.tabulate(people, work), scope="tract-joint")
    sides = {"block": [1, 1, 2], "age": [30, 31, 40]}
    br.reconstruction.match_records(sides, sides, keys=[("block", "age"), ("block",)], rng=1)


def _claims() -> None:
    people: Any = _people()
    claims = br.reconstruction.find_claims(
        br.tabulate(people, br.Workload.named("household-dhc")), max_columns=3
    )
    br.risk.claim_precision(claims, people.households)


def _plans() -> None:
    import pandas as pd

    people = pd.DataFrame({"sex": [0, 0, 1, 1, 1], "age": [0, 1, 0, 1, 1]})
    schema = br.Schema.from_frame(people)
    work = br.Workload.of(schema, ["sex", "age", ["sex", "age"]])
    records = br.Records.from_frame(people, schema=schema)
    br.plan(records, work, limits={"proved": 0, "recovered": 0})


#: What the calls are about, and a function that makes them.
EXAMPLES: dict[str, Callable[[], None]] = {
    "noise": _distributions,
    "one count": _counts,
    "two levels": _two_levels,
    "trees": _trees,
    "records": _records,
    "reconstruction": _reconstruction,
    "claims": _claims,
    "plans": _plans,
}


def warmup(as_json: JsonOption = False, quiet: QuietOption = False) -> None:
    """Compile all kernels ahead, once, so that no later command waits."""
    from bayesrisk._base import compiling

    clock, start = time.perf_counter(), time.time_ns()
    with (
        warnings_as_lines(),
        progress(quiet=quiet or as_json, title="warmup", unit="groups") as go,
    ):
        step = counter(go, len(EXAMPLES))
        for call in EXAMPLES.values():
            with compiling.uncollected():
                call()
            gc.collect()
            step()
            if compiling.cache_folder() is None:
                break  # the rest would be compiled in vain
    folder, compiled = compiling.cache_folder(), compiling.compiled_since(start)
    summary = {
        "kernels": len(compiling.DECLARED),
        "compiled": compiled,
        "seconds": round(time.perf_counter() - clock, 1),
        "folder": folder,
    }
    text = f"nothing was left to compile: {summary['kernels']} kernels, kept in {folder}"
    if folder is None:
        text = "nothing was compiled ahead: compiled kernels cannot be kept"
    elif compiled:
        text = f"{compiled} versions of {summary['kernels']} kernels compiled in "
        text += f"{summary['seconds']} s, kept in {folder}"
    print_answer(summary, [text], as_json=as_json)


def list_(
    kind: Annotated[
        str | None,
        typer.Argument(help="mechanisms, attacks, methods, samples, workloads or schemas; or all."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List what can be chosen by name, each in a line."""
    from bayesrisk._base import validation as check

    kinds = tuple(_KINDS) if kind is None else (check.choice(kind, "kind", tuple(_KINDS)),)
    entries = {one: _KINDS[one]() for one in kinds}
    lines = []
    for one, named in entries.items():
        indent = "" if kind else "  "
        lines += [] if kind else [f"{one}:"]
        width = max(map(len, named))
        lines += [f"{indent}{name:{width}s}  {line}" for name, line in named.items()]
    print_answer(entries[kind] if kind else entries, lines, as_json=as_json)


def _first_lines(module: str) -> dict[str, str]:
    """Return the first line about each mechanism, attack or method."""
    registry = import_module(f"bayesrisk.{module}").REGISTRY
    texts = {}
    for name in registry.available():
        with suppress(ArgumentError):  # one that cannot be loaded is named in a warning
            texts[name] = inspect.getdoc(registry.factory(name))
    lines = {name: (text or "").partition("\n")[0] for name, text in texts.items()}
    lines = {name: line.removeprefix("Return ") for name, line in lines.items()}
    return {
        n: (x[:1].upper() + x[1:]).replace(":func:", "").replace("`", "") for n, x in lines.items()
    }


def _samples() -> dict[str, str]:
    return {name: br.datasets.source(name).partition(". ")[0] for name in br.datasets.names()}


def _workloads() -> dict[str, str]:
    workloads = {name: br.Workload.named(name) for name in br.Workload.available()}
    return {
        n: f"{len(w.tables)} of {w.schema.name}, {w.n_cells} cells; by {', '.join(w.levels)}"
        for n, w in workloads.items()
    }


def _schemas() -> dict[str, str]:
    schemas = {name: br.Schema.named(name) for name in br.Schema.available()}
    return {n: f"{', '.join(s.names)}; by {s.geography.finest}" for n, s in schemas.items()}


_KINDS: dict[str, Callable[[], dict[str, str]]] = {
    "mechanisms": lambda: _first_lines("mechanisms.registry"),
    "attacks": lambda: _first_lines("reconstruction.registry"),
    "methods": lambda: _first_lines("risk.audit.attacks"),
    "samples": _samples,
    "workloads": _workloads,
    "schemas": _schemas,
}
