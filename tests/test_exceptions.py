"""One tree of errors, each of which is also the built-in error that callers already catch."""

import inspect

import pytest

from bayesrisk import exceptions

BUILT_IN = {
    "ArgumentError": ValueError,
    "ArgumentTypeError": TypeError,
    "ShapeError": ValueError,
    "ConfigError": ValueError,
    "OutputError": OSError,
    "PartFileError": OSError,
    "DataError": ValueError,
    "MissingDependencyError": ImportError,
    "BayesRiskWarning": UserWarning,
}


@pytest.mark.parametrize("name", exceptions.__all__)
def test_the_tree(name):
    error = getattr(exceptions, name)
    root = exceptions.BayesRiskWarning if name.endswith("Warning") else exceptions.BayesRiskError
    assert issubclass(error, root)
    assert issubclass(error, BUILT_IN.get(name, Exception))
    with pytest.raises(root, match="what happened"):
        raise error("what happened")


def test_every_error_is_listed():
    defined = {n for n, _ in inspect.getmembers(exceptions, inspect.isclass)}
    assert defined == set(exceptions.__all__)
    assert issubclass(exceptions.PartFileError, exceptions.OutputError)
    assert not issubclass(exceptions.ConfigError, exceptions.ArgumentError)
