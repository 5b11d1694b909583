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


@pytest.mark.parametrize(
    ("value", "rule", "advice"),
    [
        ("3.5", "must be a whole number", ": write 3 or 4"),
        (-3.5, "must be a whole number", ": write -4 or -3"),
        ("3.0", "must be a whole number", ""),
        ("1,234", "must be a whole number", ": write 1234"),
        ("1,234", "must be a number", ": write 1.234, with a point"),
        ("1,5", "must be a whole number", ": write a whole number, such as 1"),
        ("10%", "must be a whole number", ": write how many, not a share"),
        ("<5", "must be a whole number", ": write a whole number, such as 5"),
        ("3 weeks", "must be a whole number", ": write a whole number, such as 3"),
        ("many", "must be a whole number", ""),
        ("3 4", "must be a whole number", ": write one number, such as 3"),
        ("1,3,5", "must be a number", ": write one number, such as 1"),
        ("1,3,5", "must be a number or an array of them", ": write [1, 3, 5]"),
        (".5", "must be a number", ": write 0.5"),
        (".5", "must be one of low, high", ""),
        ("Ward A", "must be a number", ""),
        (10, "must be a number in (0, 1)", ": 10 % is 0.1"),
    ],
)
def test_a_number_in_another_form_is_written_anew(value, rule, advice):
    assert exceptions.number_advice(value, rule) == advice


def test_many_names_are_listed_in_part():
    few, many = ["a" * 10] * 5, [f"column {n}" for n in range(500)]
    assert exceptions.name_list(few) == ", ".join(few)
    assert exceptions.name_list(many).startswith("500 names such as column 0, column 1,")
    assert len(exceptions.name_list(many)) < 200
    assert exceptions.name_list(many, ". Did you mean 'column 7'?") == "500 names"
    assert "each apart" in exceptions.did_you_mean("sex;age", ["age", "sex", "race"])
    assert "each apart" not in exceptions.did_you_mean("sex;wage", ["age", "sex", "race"])


def test_a_folder_in_use_asks_for_another():
    used = exceptions.OutputError("out: holds tables; nothing was changed")
    assert str(used).endswith("nothing was changed: choose another folder")
    said = exceptions.OutputError("out: choose a new folder; nothing was changed")
    assert str(said).endswith("nothing was changed")
    assert str(pickle.loads(pickle.dumps(used))) == str(used)  # noqa: S301
