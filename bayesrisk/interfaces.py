"""Protocols of the plug-ins: what laws, mechanisms and attacks must offer, no more."""

from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from bayesrisk.distributions.base import NoiseLaw

if TYPE_CHECKING:
    from bayesrisk.release import MechanismSpec, Release
    from bayesrisk.tables import Microdata, Records, Workload

__all__ = ["Attack", "Mechanism", "NoiseLaw"]


@runtime_checkable
class Mechanism(Protocol):
    """Turns confidential records into a release.

    ``spec`` says what it does, apart from the code that draws: public, frozen, and complete
    enough to write the likelihood where there is a closed form.  The spec of a release may say
    more than the mechanism's own, never something else: it knows which tables were asked for.

    It may also have ``prepare(microdata, workload=...)``, which returns an object whose
    ``draw(rng)`` is ``release(microdata, workload=..., rng=rng)``: wherever many releases of one
    truth are drawn, what does not depend on chance is then made once.

    One that has a method ``acts_within`` besides, as
    :class:`~bayesrisk.mechanisms.BaseMechanism` has, may be used place by place.
    """

    @property
    def spec(self) -> "MechanismSpec":
        """Return the specification of the mechanism."""

    def release(
        self,
        microdata: "Microdata | Records",
        *,
        workload: "Workload",
        rng: np.random.Generator | int | None = None,
    ) -> "Release":
        """Return the tables of the workload, protected.

        Without ``rng`` the draws come from entropy of the operating system that is kept nowhere,
        and the release is made with ``simulation=False``. A seed or a generator is for simulation:
        the same seed gives the same tables, and the release says ``simulation=True``.

        The places that are published are the ``blocks`` of microdata.  One that also takes
        ``places`` is given it, as ``"occupied"``, only where its user says so.
        """


@runtime_checkable
class Attack(Protocol):
    """Reads a release, and nothing else, and says what it concludes.

    What ``run`` returns depends on the attack (a :class:`Reconstruction`, say); the risk layer
    turns it into statements with a prior and a posterior.
    """

    name: str

    def run(self, release: "Release") -> object:
        """Return the conclusions from a release; the same release gives the same answer."""
