"""Protocols of plug-ins: what laws, mechanisms, samplers and attacks must offer."""

from collections.abc import Callable
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Protocol, cast, runtime_checkable

import numpy as np

from bayesrisk.distributions.base import NoiseLaw

if TYPE_CHECKING:
    from bayesrisk._base.validation import IntArray
    from bayesrisk.inference import RecordPrior
    from bayesrisk.release import MechanismSpec, NoiseSpec, Release
    from bayesrisk.risk import Statements
    from bayesrisk.tables import Microdata, Records, Workload

__all__ = ["Attack", "AttackResult", "Mechanism", "NoiseLaw", "PopulationSource", "Sampler"]


@runtime_checkable
class Mechanism(Protocol):
    """Turns confidential records into a release.

    ``spec`` describes the mechanism, without the code that draws. It is public, frozen, and
    complete enough to write the likelihood where it has a closed form. The spec of a release may
    add to the mechanism's own, because it knows the published tables; it never contradicts it.

    A mechanism may also have ``prepare(microdata, workload=...)``. It returns an object whose
    ``draw(rng)`` equals ``release(microdata, workload=..., rng=rng)``. Then work that does not
    depend on chance is done once for many releases of one truth.

    A mechanism that also has a method ``acts_within``, as
    :class:`~bayesrisk.mechanisms.BaseMechanism` has, may be used place by place.
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
        and the release has ``simulation=False``. A seed or a generator is for simulation: the same
        seed gives the same tables, and the release has ``simulation=True``.

        The published places are the ``blocks`` of microdata. A mechanism with an argument
        ``places`` receives it, as ``"occupied"``, only if the user asks for it.
        """


@runtime_checkable
class Sampler(Protocol):
    """Draws discrete noise for protected releases from entropy that cannot be reproduced.

    ``version`` is that of the drawing library; a release states it beside the sampler's name. Only
    the author of a sampler can say that it is vetted. The package checks that its law is of the
    requested kind and no narrower, and that draws are whole numbers. It refuses draws to which the
    law gives probability below 1e-12, such as zeros alone.
    """

    version: str

    def law(self, wanted: "NoiseSpec") -> "NoiseSpec":
        """Return the law that is drawn when ``wanted`` is requested; it is at least as wide."""

    def draw(self, law: "NoiseSpec", size: int) -> "IntArray":
        """Return ``size`` independent draws from a law of :meth:`law`, as a flat integer array."""


@runtime_checkable
class Attack(Protocol):
    """Draws conclusions from a release alone.

    The type of the result depends on the attack; it may be a :class:`Reconstruction`. From an
    :class:`AttackResult`, statements with a prior and a posterior can be made.
    """

    name: str

    def run(self, release: "Release") -> object:
        """Return the conclusions from a release; the same release gives the same answer."""


@runtime_checkable
class PopulationSource(Protocol):
    """A population for an audit that is generated or fetched where its records are needed.

    The small object is sent to workers; each call of ``microdata`` returns the same people.
    """

    @property
    def made_up(self) -> bool:
        """Return whether its people are made up."""

    def microdata(self) -> "Microdata":
        """Return the records."""

    def digest(self) -> str:
        """Return a text unique to this population, such as a SHA-256 of its settings."""


# The auditor's zone makes the statements; whoever only attacks never loads it.
_MAKER = EntryPoint("statements", "bayesrisk.risk.statements.results:result_statements", "")


class AttackResult:
    """Result of an attack that can be compared with other attacks, person by person.

    The class attribute ``stated_by`` names, as ``module:function``, the function that makes the
    statements: an ``AttackStatements``, as in ``bayesrisk.risk.statements.results``.
    """

    stated_by = ""

    def statements(
        self,
        *,
        release: "Release",
        prior: "RecordPrior | Records",
        truth: "Microdata | Records | None" = None,
        without: bool = True,
        mechanism: Mechanism | None = None,
        rng: int | None = None,
        **options: object,
    ) -> "Statements":
        """Return statements with beliefs before, without the person's own record, and after.

        Parameters
        ----------
        release : Release
            The attacked release.
        prior : RecordPrior or Records
            The adversary's prior on the records of a place, in the schema of the tables. It is a
            law; or records of a larger place or a sample, whose composition each place has.
        truth : Microdata or Records, optional
            The confidential records, used for ``correct`` and ``without`` only.
        without : bool, default True
            Whether to repeat the attack without the target's record, if there is a truth.
        mechanism, rng : Mechanism and int, optional
            The release's mechanism and seed, to repeat it without each record. Needed for
            ``without`` unless published counts are true, or true plus noise.
        **options : object
            Reconstructions: ``stated`` and ``known``, the attributes stated and those known of the
            target (by default none), and ``attack``. Claims: ``readable``, as for
            :meth:`Claims.to_frame`. Majority inference: ``name`` of the release in the result, and
            ``level`` of its places. Occupancy: ``attack``. An ``attack`` is the one that produced
            the result, by default one with default settings.

        Returns
        -------
        Statements
            With column ``baseline``, the name of the prior.

        Notes
        -----
        The posterior is the belief of someone who takes the attack at its word (``believed``). It
        is ``proved`` if published counts are true and nothing else fits. If the attack states
        nothing, it is the prior (``unstated``).

        - *Reconstruction.* The target is a person of a place whose ``known`` values are known
          (adversary ``linker``). The statement gives the ``stated`` values of a reconstructed
          record. The posterior is the share of the reconstructed records of that kind with these
          values.
        - *Claims.* The target is a record that the claim describes. The statement is the claim: so
          many records of the place are like it. The prior is the law of that number. ``without`` is
          the probability that the target is the missing record, if the release without it proves
          the number of the others.
        - *Majority.* The target is a person of a place. The statement is the most frequent race and
          Hispanic origin there by the published counts. The posterior is their share.
        - *Occupancy.* The target is a subsidised household of a block. The statement is that it
          exceeds the occupancy limit. The posterior accounts for blocks where at least one such
          household was found.

        ``without`` is a mean over the people whom the statement may be about: each time the same
        attack on a release of everybody else. If published counts are true, or true plus
        independent noise, that is the release less the record. ``correct`` is missing if the
        statement is true of some of these people and false of others, or if there are none.
        """
        make = cast("Callable[..., Statements]", _MAKER.load())
        inputs = {"release": release, "prior": prior, "truth": truth, "without": without}
        return make(self, **inputs, mechanism=mechanism, rng=rng, options=options)
