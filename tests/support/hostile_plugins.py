"""Plug-ins that do what they may not, and how each is named; workers import them, too."""

import os
import sys
from dataclasses import replace

from bayesrisk.mechanisms import BaseMechanism, Protected, make_mechanism
from bayesrisk.mechanisms.base import BasePrepared, PreparingMechanism, TableMechanism
from bayesrisk.release import MechanismSpec, TrueCounts
from bayesrisk.tables import tabulate


class Based(BaseMechanism):
    """A mechanism by the base class; what it does wrong is ``act``."""

    def __init__(self):
        super().__init__(MechanismSpec("based", others=TrueCounts()))

    def act(self, microdata, workload):
        return Protected(tabulate(microdata, workload))

    def _protect(self, microdata, workload, rng):
        return self.act(microdata, workload)


class Stop(KeyboardInterrupt):
    pass


class Gone(BaseException):
    pass


class MuteError(Exception):
    def __str__(self):
        raise ValueError("no message")


def raising(error):
    def act(*_):
        raise error

    return type("Raising", (Based,), {"act": act, "__module__": __name__})


def returning(value):
    return type("Returning", (Based,), {"act": lambda *_: value, "__module__": __name__})


class Praises(Based):
    def act(self, microdata, workload):
        raise RuntimeError("boom\n\x1b[31m")


class Deep(Based):
    def act(self, microdata, workload):
        return self.act(microdata, workload)


class Begins(Based):
    def __init__(self):
        raise KeyError("nothing")


class NoSpec(Based):
    @property
    def spec(self):
        raise RuntimeError("no spec")


class LessTables(Based):
    def act(self, microdata, workload):
        tables = tabulate(microdata, workload)
        counts = dict(tables.counts)
        counts.popitem()
        return Protected(replace(tables, counts=counts))


class NoTables(Based):
    def act(self, microdata, workload):
        return Protected({})


class Late(TableMechanism):
    """One that fails when a release is drawn of what was prepared."""

    def __init__(self):
        super().__init__(MechanismSpec("late", others=TrueCounts()))

    def _protect_tables(self, tables, rng):
        raise RuntimeError("late")


class Drawn(BasePrepared):
    spec = MechanismSpec("drawn", others=TrueCounts())

    def _draw(self, rng):
        raise RuntimeError("drawn")


class LateToo(PreparingMechanism):
    def __init__(self):
        super().__init__(Drawn.spec)

    def prepare(self, microdata, *, workload, places=None):
        return Drawn()

    def _prepare(self, microdata, workload):
        return Drawn()


class Alone:
    """A mechanism by the protocol alone, which returns tables instead of a release."""

    spec = MechanismSpec("alone", others=TrueCounts())

    def release(self, microdata, *, workload, rng=None):
        return tabulate(microdata, workload)


class Forks(Based):
    """A mechanism that returns from both processes."""

    def act(self, microdata, workload):
        self.child = os.fork()
        return super().act(microdata, workload)


class ForksAndRaises(Based):
    def act(self, microdata, workload):
        self.child = os.fork()
        if not self.child:
            raise RuntimeError("child")
        return super().act(microdata, workload)


#: By name the factory and what a message says of it.
FAILING = {
    "praises": (Praises, "RuntimeError: boom \N{REPLACEMENT CHARACTER}[31m"),
    "exits": (raising(SystemExit(0)), "SystemExit: 0"), "stops": (raising(Stop()), "Stop"),
    "gone": (raising(Gone("away")), "Gone: away"), "mute": (raising(MuteError()), "MuteError"),
    "exhausted": (raising(StopIteration(3)), "StopIteration: 3"),
    "closed": (raising(GeneratorExit()), "GeneratorExit"), "deep": (Deep, "RecursionError"),
    "begins": (Begins, "KeyError: 'nothing'"), "no-spec": (NoSpec, "RuntimeError: no spec"),
    "dictionary": (returning({}), "must return a Protected, not one of dict"),
    "nothing": (returning(None), "must return a Protected, not one of NoneType"),
    "alone": (Alone, "must return a Release, not one of PublishedTables"),
    "late": (Late, "RuntimeError: late"), "late-too": (LateToo, "RuntimeError: drawn"),
    "module": (lambda: sys, "must have spec and release"),
    "no-tables": (NoTables, "tables must be a PublishedTables"),
    "less-tables": (LessTables, "counts must be of every table"),
}  # fmt: skip


def released(mechanism, records, workload):
    """Return a release, drawn of what was prepared where that can be."""
    if hasattr(mechanism, "prepare"):
        return mechanism.prepare(records, workload=workload).draw(1)
    return mechanism.release(records, workload=workload, rng=1)


def own():
    """Return one of the package's own: a plug-in may be a recipe."""
    return make_mechanism("identity")
