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
class Sampler(Protocol):
    """Draws discrete noise for protected releases from entropy that cannot be repeated.

    ``version`` is that of the library that draws; a release states it beside the sampler's name.
    Whether a sampler is vetted, only its author can say.  The package checks that its law is of the
    kind that is asked for and no narrower, and that draws are whole numbers.  It refuses draws that
    the law gives with probability below 1e-12, such as zeros alone.
    """

    version: str

    def law(self, wanted: "NoiseSpec") -> "NoiseSpec":
        """Return the law that is drawn when ``wanted`` is requested: at least as wide."""

    def draw(self, law: "NoiseSpec", size: int) -> "IntArray":
        """Return ``size`` independent draws from a law of :meth:`law`, as a flat integer array."""


@runtime_checkable
class Attack(Protocol):
    """Draws conclusions from a release and nothing else.

    The result of ``run`` depends on the attack (a :class:`Reconstruction`, say).  If it is an
    :class:`AttackResult`, statements with a prior and a posterior can be made from it.
    """

    name: str

    def run(self, release: "Release") -> object:
        """Return the conclusions from a release; the same release gives the same answer."""


@runtime_checkable
class PopulationSource(Protocol):
    """A population for an audit that is generated or fetched wherever its records are needed.

    The object is small and is sent to workers; each call of ``microdata`` returns the same people.
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

    Its class attribute ``stated_by`` names, as ``module:function``, the auditor's function that
    makes its statements: an ``AttackStatements``, as in ``bayesrisk.risk.statements.results``.
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
        """Return statements with the belief before, without the person's own record, and after.

        Parameters
        ----------
        release : Release
            What was attacked.
        prior : RecordPrior or Records
            What the adversary believes of the records of a place before the release, of the schema
            of its tables: a law, or the records of a larger place or a sample, each place having
            their composition.
        truth : Microdata or Records, optional
            The confidential records, for ``correct`` and ``without`` and nothing else.
        without : bool, default True
            Whether the attack is run again without the target's record, wherever there is a truth.
        mechanism, rng : Mechanism and int, optional
            The mechanism and the seed of the release, which is made again without each record.
            Needed for ``without`` where published counts are neither true nor true plus noise.
        **options : object
            Reconstructions: ``stated``, the attributes that are stated, ``known``, those that are
            known of the target (none by default), and ``attack``.  Claims: ``readable``, as for
            :meth:`Claims.to_frame`.  Majority inference: ``name`` of the release among its own and
            ``level`` of its places.  Occupancy: ``attack``.  An ``attack`` is the one that found
            the result, by default one with the usual settings.

        Returns
        -------
        Statements
            With column ``baseline``, the name of the prior.

        Notes
        -----
        The posterior is the belief of somebody who takes the attack at its word (``believed``), or
        ``proved`` where published counts are true ones and nothing else fits.  Where the attack
        says nothing the prior stands (``unstated``).

        - *Reconstruction.*  The target is a person of a place with what is ``known`` (adversary
          ``linker``), the statement values of what is ``stated`` that a reconstructed record has.
          The posterior is the share of the reconstructed records of the kind with these values.
        - *Claims.*  The target is a record that the claim describes, the statement the claim: so
          many records of the place are like that. The prior is the law of that number. ``without``
          is the probability that the target is the one that was missing, where the release without
          it proves how many of the others there are.
        - *Majority.*  The target is a person of a place, the statement the race and Hispanic origin
          most people there have by the published counts; the posterior is their share.
        - *Occupancy.*  The target is a subsidised household of a block, the statement that it is
          over the occupancy limit; the posterior knows that at least one there is, where that was
          found.

        ``without`` is a mean over the people of the truth whom the statement may be about:
        each time the same attack, on a release of everybody else.  If published counts are true
        ones, or true ones plus independent noise, that is the release less the record.
        ``correct`` is missing where the statement is true of some of these people and false of
        others, and where there is none.
        """
        make = cast("Callable[..., Statements]", _MAKER.load())
        inputs = {"release": release, "prior": prior, "truth": truth, "without": without}
        return make(self, **inputs, mechanism=mechanism, rng=rng, options=options)
