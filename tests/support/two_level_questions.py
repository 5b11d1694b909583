"""The methods of ``TwoLevels`` as functions of settings and truth together, for tables of cases."""

from dataclasses import fields
from functools import partial

from bayesrisk import TwoLevels

SETTINGS = {field.name for field in fields(TwoLevels)}


def ask(method, /, *release, **keywords):
    """Return what a method answers to the settings and arguments among the keywords."""
    settings = {name: value for name, value in keywords.items() if name in SETTINGS}
    arguments = {name: value for name, value in keywords.items() if name not in SETTINGS}
    return getattr(TwoLevels(**settings), method)(*release, **arguments)


accuracy = partial(ask, "accuracy")
average = partial(ask, "average")
correct_decision = partial(ask, "correct_decision")
gain = partial(ask, "gain")
sample = partial(ask, "sample")
