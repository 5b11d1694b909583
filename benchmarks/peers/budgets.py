"""From rho to epsilon at a delta, and the exact epsilon of one count."""

import functools

import numpy as np
from peers.comparison import Case, Comparison

from bayesrisk import DiscreteGaussian, accounting
from bayesrisk.accounting.privacy_loss import Ends

DELTA = 1e-10
RHO = np.geomspace(0.01, 10.0, 1000)


def bound(order: np.ndarray, rho: float) -> np.ndarray:
    """Return what one Renyi order promises."""
    gain = (np.log(1 / DELTA) - np.log(order)) / (order - 1) + np.log1p(-1 / order)
    return order * rho + gain


def epsilon_dp_accounting() -> Case:
    import dp_accounting
    from dp_accounting import rdp

    orders = 1.0 + np.geomspace(0.05, 1000.0, 200)

    def theirs(rho: float) -> float:
        accountant = rdp.RdpAccountant(orders=orders)
        accountant.compose(dp_accounting.ZCDpEvent(rho))
        return accountant.get_epsilon(DELTA)

    ours = accounting.rho_to_epsilon(RHO, DELTA)
    for i in range(0, RHO.size, 100):
        # Theirs is the best of its orders; ours the best of all.
        peer = theirs(RHO[i])
        np.testing.assert_allclose(peer, bound(orders, RHO[i]).min(), rtol=1e-12)
        assert ours[i] <= peer
        # On a grid of log(order - 1) the least value is within half a step of the best, where the
        # second derivative is below epsilon + log(1 / delta) + 2.
        step = np.log(1e6) / 2e6
        gap = bound(1.0 + 1e-3 * np.exp(step * np.arange(2e6)), RHO[i]).min() - ours[i]
        assert abs(gap) <= step**2 / 8 * (ours[i] + np.log(1 / DELTA) + 2.0) + 1e-13 * ours[i]
    return Case(
        lambda: accounting.rho_to_epsilon(RHO, DELTA),
        lambda: [theirs(rho) for rho in RHO[::20]],
        RHO.size,
        RHO[::20].size,
    )


def profile_opendp(rho: float):
    """Return the epsilon of OpenDP at a delta, as a function."""
    import opendp.prelude as opendp

    opendp.enable_features("contrib")
    space = opendp.atom_domain(T=int), opendp.absolute_distance(T=int)
    measured = opendp.m.make_gaussian(*space, scale=(0.5 / rho) ** 0.5)
    return opendp.c.make_zCDP_to_approxDP(measured).map(1).epsilon


def assert_opendp_agrees() -> None:
    for rho in RHO[::100]:
        # OpenDP rounds up at every step; sqrt and square of the scale lose two roundings.
        peer, ours = profile_opendp(rho)(delta=DELTA), accounting.rho_to_epsilon(rho, DELTA)
        np.testing.assert_allclose(peer, ours, rtol=1e-12)


def epsilon_opendp() -> Case:
    assert_opendp_agrees()
    some = [profile_opendp(rho) for rho in RHO[::20]]
    return Case(
        lambda: accounting.rho_to_epsilon(RHO, DELTA),
        lambda: [profile(delta=DELTA) for profile in some],
        RHO.size,
        len(some),
    )


def one_epsilon_opendp() -> Case:
    assert_opendp_agrees()
    profiles = [profile_opendp(rho) for rho in RHO[::20]]
    return Case(
        lambda: [accounting.rho_to_epsilon(rho, DELTA) for rho in RHO[::20]],
        lambda: [profile(delta=DELTA) for profile in profiles],
    )


def exact_epsilon_dp_accounting() -> Case:
    from dp_accounting import pld

    delta = np.geomspace(1e-12, 1e-3, 200)

    def theirs() -> list[float]:
        make = pld.privacy_loss_distribution.from_discrete_gaussian_mechanism
        law = make(sigma=2.0)
        return [law.get_epsilon_for_delta(d) for d in delta]

    def ours() -> np.ndarray:
        return accounting.discrete_gaussian_epsilon(delta, sigma2=4.0)

    # Losses are rounded up to a grid of 1e-4; ours are rounded up by about 1e-12 of them.
    gap = np.array(theirs()) - ours()
    assert gap.min() > -1e-11
    assert gap.max() < 1e-4
    return Case(ours, theirs)


def few_epsilons_dp_accounting() -> Case:
    from dp_accounting import pld

    deltas = [1e-5, 1e-8, 1e-10]

    def theirs() -> list[float]:
        law = pld.privacy_loss_distribution.from_discrete_gaussian_mechanism(sigma=2.0)
        return [law.get_epsilon_for_delta(delta) for delta in deltas]

    def ours() -> Ends:
        return accounting.PrivacyLoss.of(DiscreteGaussian(4.0)).epsilon(deltas)

    ends, peer = ours(), np.array(theirs())
    assert np.all(ends.width < 1e-10)
    # Losses are rounded up to a grid of 1e-4.
    assert np.all((peer > ends.lower - 1e-11) & (peer < ends.upper + 1e-4))
    return Case(ours, theirs)


def release_dp_accounting() -> Case:
    from dp_accounting import pld

    budget = accounting.census_2020_budget("pl94")

    def theirs(pessimistic: bool = True) -> float:
        make = pld.privacy_loss_distribution.from_discrete_gaussian_mechanism
        parts = [
            make(sigma=sigma2**0.5, pessimistic_estimate=pessimistic).self_compose(2)
            for sigma2 in budget["sigma2"]
        ]
        return functools.reduce(lambda a, b: a.compose(b), parts).get_epsilon_for_delta(DELTA)

    def ours() -> Ends:
        return accounting.PrivacyLoss.of(budget).epsilon(DELTA)

    ends = ours()
    assert ends.width < 1e-6
    assert theirs(pessimistic=False) <= ends.lower <= ends.upper <= theirs()
    return Case(ours, theirs, rounds=3)


ASKED = "ε of ρ at δ = 1e-10"
ALL = [
    Comparison(
        f"{ASKED}, many ρ",
        "accounting.rho_to_epsilon",
        "dp-accounting, Rényi accountant, 200 orders",
        ("dp-accounting",),
        "theirs is the best of its orders to 1e-12; ours the best of all orders, never above it",
        "an accountant composes many kinds of events; ours converts one number, in arrays",
        epsilon_dp_accounting,
    ),
    Comparison(
        f"{ASKED}, many ρ",
        "accounting.rho_to_epsilon",
        "OpenDP, `make_zCDP_to_approxDP`",
        ("opendp",),
        "to 1e-12, relative",
        "ours takes all ρ in one array; OpenDP converts one measurement, and proves it",
        epsilon_opendp,
    ),
    Comparison(
        f"{ASKED}, one ρ at a time",
        "accounting.rho_to_epsilon",
        "OpenDP, `make_zCDP_to_approxDP`",
        ("opendp",),
        "to 1e-12, relative",
        "one number for each call: a loop is not what ours is made for",
        one_epsilon_opendp,
    ),
    Comparison(
        "exact ε of one count, 200 values of δ",
        "accounting.discrete_gaussian_epsilon",
        "dp-accounting, privacy loss distribution",
        ("dp-accounting",),
        "theirs is above ours by at most its grid",
        "a privacy loss distribution can be composed with others; ours is for one count",
        exact_epsilon_dp_accounting,
    ),
    Comparison(
        "ε of one count at three δ",
        "accounting.PrivacyLoss",
        "dp-accounting, privacy loss distribution",
        ("dp-accounting",),
        "theirs is above ours by at most its grid of 1e-4",
        "ours has two ends, within 1e-10",
        few_epsilons_dp_accounting,
    ),
    Comparison(
        "ε of the redistricting data of 2020, 130 counts",
        "accounting.PrivacyLoss",
        "dp-accounting, privacy loss distributions composed",
        ("dp-accounting",),
        "between its estimates from below and from above",
        "ours has two ends, within 1e-6; theirs are those of a grid of 1e-4",
        release_dp_accounting,
    ),
]
