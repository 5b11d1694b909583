"""Small calls of each zone that between them use every compiled kernel of the package."""

import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any


def _distributions() -> None:
    from bayesrisk.accounting import discrete_gaussian_delta
    from bayesrisk.distributions import DiscreteGaussian, DiscreteLaplace

    law = DiscreteGaussian(5.0)
    law.rvs(10, 1)
    law.logsf([0, 1, 9])
    DiscreteLaplace(2.0).rvs(10, 1)
    discrete_gaussian_delta(1.0, sigma2=5.0)


def _counts() -> None:
    import numpy as np

    from bayesrisk.distributions import Noise
    from bayesrisk.inference import postprocessed_posterior
    from bayesrisk.inference.count.measurements import MeasurementTables
    from bayesrisk.risk import (
        block_risk,
        compare_postprocessing,
        multilevel_decision_accuracy,
        rho_for_risk,
    )

    rho_for_risk(1.5, prior=0.1)
    block_risk([[3], [-1]], rho=0.1, prior=[0.1, 0.2])
    noise = Noise(rho=0.1)
    postprocessed_posterior([0, 1, 2], group_count=2, n_siblings=1, noise=noise, prior=0.5)
    noise, exact = Noise(rho=[0.1, 5.0]), "exact"
    compare_postprocessing(group_count=9, n_siblings=2, noise=noise, prior=0.5, sibling_noise=exact)
    MeasurementTables(0.1, 0).look_up(np.array([[1, 2]]), np.array([5.0]))
    multilevel_decision_accuracy(noise=Noise(rho=[0.1, 0.25]), prior=0.1)


def _two_levels() -> None:
    from bayesrisk.exceptions import IncompatibleConditionalsWarning
    from bayesrisk.inference import hierarchical_posterior
    from bayesrisk.risk import TwoLevels

    counts: dict[str, Any] = {"n_siblings": 2, "rho_block": 5.0, "rho_group": 0.25, "prior": 0.5}
    question = TwoLevels(**counts, sibling_noise="exact")
    str(hierarchical_posterior(2, 1, -1, **counts).group_pmf)  # made when it is asked for
    question.posterior(2, 1, -1)
    question.average(group_count=10)
    question.distribution(group_count=10)
    TwoLevels(**counts).accuracy(group_count=[1, 10])
    TwoLevels(**counts).sample(2, 1, -1, draws=4, warmup=1, chains=2, rng=1)
    with warnings.catch_warnings():  # the decision of the paper needs kernels of its own
        warnings.simplefilter("ignore", IncompatibleConditionalsWarning)
        published = TwoLevels(**counts, conditionals="as-published")
        published.posterior(2, 1, -1)
        published.correct_decision(group_count=10)


def _trees() -> None:
    import numpy as np
    import pandas as pd

    from bayesrisk.distributions import FiniteLaw
    from bayesrisk.inference import (
        Tree,
        sample_tree,
        target_posteriors,
        tree_posterior,
    )

    path = Tree.path([2, 1], [-1], n_siblings=27, rho=[0.1, 0.25], prior=0.5)
    tree_posterior(path, leaf_prior="flat")
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
    tree = Tree.from_frame(frame)
    target_posteriors(tree, leaf_prior="flat")
    all_or_none = FiniteLaw(0, np.array([0.5, *[0.0] * 29, 0.5]))  # at odds with what is released
    parents = [None, "root", "root", "left", "left", "right", "right"]
    frame = pd.DataFrame({"node": ["root", "left", "right", *"abcd"], "parent": parents})
    at_odds = Tree.from_frame(frame.assign(noisy_count=[30, *[0] * 6], rho=1.0))
    tree_posterior(at_odds, leaf_prior=all_or_none)
    tree_posterior(tree, leaf_prior="flat").quantile(0.9)
    sample_tree(tree, leaf_prior="flat", draws=4, warmup=1, chains=2, rng=1)


def _records() -> None:
    import numpy as np
    import pandas as pd

    from bayesrisk.inference import RecordPrior, RecordQuestion, microdata_posterior
    from bayesrisk.inference.microdata.chains import PeopleChain
    from bayesrisk.inference.microdata.people_model import people_model
    from bayesrisk.inference.microdata.system import system_of
    from bayesrisk.release import MechanismSpec, NoiseSpec, Release, TrueCounts
    from bayesrisk.tables import (
        Attribute,
        Geography,
        Records,
        Schema,
        Table,
        Workload,
        tabulate,
    )

    schema = Schema(
        "town",
        (Attribute("sex", 2), Attribute("age", 2)),
        Geography("blocks", ("block",), (1,)),
    )
    one_way = {
        ("block", a): Table(a, ("0", "1"), {a: np.eye(2, dtype=np.int64)}) for a in ("sex", "age")
    }
    people = pd.DataFrame({"block": list("77777"), "sex": [0, 0, 0, 1, 1], "age": [0, 0, 1, 0, 0]})
    tables = tabulate(Records.from_frame(people, schema=schema), Workload(schema, one_way))
    young = RecordQuestion({"age": [0]}, among={"sex": [1]})
    exact: Any = TrueCounts()
    noisy: Any = NoiseSpec("discrete-gaussian", Fraction(5))
    about: Any = {"level": "block", "place": "7", "prior": RecordPrior.uniform_data_sets(schema)}
    for others, engine in ((exact, "exact"), (exact, "lattice"), (noisy, "people")):
        release = Release(MechanismSpec("example", others=others), tables)
        microdata_posterior(
            release,
            [young],
            **about,
            engine=engine,
            rng=1,
            draws=4,
            chains=2,
            doublings=0,
        )
    # What is done where draws are short for a rare group, which takes many draws to happen.
    chain = PeopleChain.begin(
        people_model(system_of(release, **about)), np.random.default_rng(1), 1
    )
    chain.advance_parts(np.array([0]), 1)


def _reconstruction() -> None:
    from bayesrisk.population import population_spec, simulate_population
    from bayesrisk.reconstruction import match_records, solution_variability
    from bayesrisk.tables import Workload, tabulate

    people = simulate_population(population_spec("tract", n_blocks=4), rng=1)
    work = Workload.named("sf1-block").union(Workload.named("sf1-tract"))
    solution_variability(tabulate(people, work), scope="tract-joint")
    sides = {"block": [1, 1, 2], "age": [30, 31, 40]}
    match_records(sides, sides, keys=[("block", "age"), ("block",)], rng=1)


def _claims() -> None:
    from bayesrisk.population import population_spec, simulate_population
    from bayesrisk.reconstruction import find_claims
    from bayesrisk.risk import claim_precision
    from bayesrisk.tables import Workload, tabulate

    people: Any = simulate_population(population_spec("tract", n_blocks=4), rng=1)
    found = find_claims(tabulate(people, Workload.named("household-dhc")), max_columns=3)
    claim_precision(found, people.households)


#: What the calls are about, and a function that makes them.
EXAMPLES: dict[str, Callable[[], None]] = {
    "noise": _distributions,
    "one count": _counts,
    "two levels": _two_levels,
    "trees": _trees,
    "records": _records,
    "reconstruction": _reconstruction,
    "claims": _claims,
}
