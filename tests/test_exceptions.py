"""One tree of errors, each of which is also the built-in error that callers already catch."""

import inspect
import pickle

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


def test_an_error_about_an_argument_is_made_of_fields():
    """The sentence is that of the fields, and another name of the argument changes nothing else."""
    error = exceptions.ShapeError("rho", "must be > 0", got=[-1, "x"], advice="; leave it out")
    assert str(error) == "rho must be > 0, got [-1, 'x']; leave it out"
    assert (error.argument, error.rule, error.got) == ("rho", "must be > 0", "[-1, 'x']")
    renamed = error.renamed("--rho")
    assert type(renamed) is exceptions.ShapeError
    assert str(renamed) == "--rho must be > 0, got [-1, 'x']; leave it out"
    assert renamed.argument == "--rho"


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"got": None}, "a must be b, got None"),
        ({"got": ""}, "a must be b, got ''"),
        ({"shown": "shape (0,)"}, "a must be b, got shape (0,)"),
        ({"shown": 0}, "a must be b, got 0"),
        ({}, "a must be b"),
        ({"advice": ": c"}, "a must be b: c"),
    ],
)
def test_values_are_quoted_or_shown(fields, sentence):
    assert str(exceptions.ArgumentError("a", "must be b", **fields)) == sentence


def test_a_sentence_names_no_argument():
    error = exceptions.ArgumentError("give a or b, got none")
    assert (str(error), error.argument, error.rule) == ("give a or b, got none", "", "")
    assert str(error.advised("; give a")) == "give a or b, got none; give a"


@pytest.mark.parametrize("name", [n for n in exceptions.__all__ if n.endswith("Error")])
def test_errors_reach_another_process_as_they_are(name):
    kind = getattr(exceptions, name)
    errors = [kind("what happened", advice=": what to do")]
    if issubclass(kind, exceptions.ArgumentError):
        errors.append(kind("a", "must be b", got=3))
    for error in errors:
        again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
        assert (type(again), str(again), vars(again)) == (kind, str(error), vars(error))
    better = errors[0].advised("; what is better")
    assert (type(better), str(better)) == (kind, "what happened; what is better")
