"""A function that asks a question shows the arguments of the question, and takes no others."""

import inspect
from dataclasses import dataclass, field

import pytest

from bayesrisk._base.doors import door


@dataclass(kw_only=True)
class Sum:
    first: int
    second: int = 2
    _total: int = field(init=False)

    def __post_init__(self):
        self._total = self.first + self.second

    def times(self, factor):
        return factor * self._total


@door(Sum)
def times(factor: int, **question: int) -> int:
    return Sum(**question).times(factor)


def test_the_signature_shows_what_a_call_takes():
    signature = inspect.signature(times)
    assert list(signature.parameters) == ["factor", "first", "second"]
    kinds = [p.kind.name for p in signature.parameters.values()]
    assert kinds == ["POSITIONAL_OR_KEYWORD", "KEYWORD_ONLY", "KEYWORD_ONLY"]
    assert signature.parameters["first"].default is inspect.Parameter.empty
    assert signature.parameters["second"].default == 2
    assert signature.return_annotation is int
    assert times(3, first=4) == 18
    assert times(3, first=4, second=0) == 12


def test_other_arguments_are_refused_by_name():
    with pytest.raises(TypeError, match="third"):
        times(3, first=4, third=1)
    with pytest.raises(TypeError, match="first"):
        times(3)
