"""Errors of bayesrisk, one tree.

::

    BayesRiskError
    ├── ArgumentError (ValueError)          a value outside its range, named with its bound
    │   ├── ArgumentTypeError (TypeError)   a value of the wrong type
    │   └── ShapeError                      arrays that are empty or do not broadcast
    ├── ConfigError (ValueError)            a sweep configuration: file, key, bound, value
    ├── OutputError (OSError)               an output folder that cannot be used as asked
    │   └── PartFileError                   a result part that is truncated or foreign
    ├── DataError (ValueError)              an input table: file, row, column
    ├── MissingDependencyError (ImportError)  an optional extra is not installed
    ├── PluginError (RuntimeError)          a plug-in failed, or returned what it may not
    ├── ShardError (RuntimeError)           shards of a run that failed while the others went on
    └── WorkerError (RuntimeError)          a worker process that ended before its work was done

    BayesRiskWarning (UserWarning)
    ├── ConvergenceWarning                  a number of chains that have not converged
    ├── DataWarning                         a file with odd columns or values, kept or missing
    ├── IncompatibleConditionalsWarning     conditionals that belong to no joint distribution
    └── SampleWarning                       a sample without any block of a size of its frame

Every message names the argument (or file, row and column), the bound it broke and the value
it had.  Catch ``BayesRiskError`` to catch them all; the second base is there so that code
which already catches ``ValueError`` or ``TypeError`` keeps working.
"""

__all__ = [
    "ArgumentError",
    "ArgumentTypeError",
    "BayesRiskError",
    "BayesRiskWarning",
    "ConfigError",
    "ConvergenceWarning",
    "DataError",
    "DataWarning",
    "IncompatibleConditionalsWarning",
    "MissingDependencyError",
    "OutputError",
    "PartFileError",
    "PluginError",
    "SampleWarning",
    "ShapeError",
    "ShardError",
    "WorkerError",
]


class BayesRiskError(Exception):
    """Base of every error raised by bayesrisk itself."""


class ArgumentError(BayesRiskError, ValueError):
    """An argument outside its range; the message names it, the bound and the value."""


class ArgumentTypeError(ArgumentError, TypeError):
    """An argument of a type that cannot be used."""


class ShapeError(ArgumentError):
    """Arrays that are empty, or whose shapes do not broadcast."""


class ConfigError(BayesRiskError, ValueError):
    """A configuration whose key is unknown, missing or out of range."""


class OutputError(BayesRiskError, OSError):
    """An output folder that cannot be used as asked; nothing in it was changed."""


class PartFileError(OutputError):
    """A result part that is truncated, altered or of another run."""


class DataError(BayesRiskError, ValueError):
    """An input table that breaks its format; the message names file, row and column."""


class MissingDependencyError(BayesRiskError, ImportError):
    """A feature that needs an extra which is not installed."""


class PluginError(BayesRiskError, RuntimeError):
    """A plug-in of another package failed; the message names it, its package and its error."""


class ShardError(BayesRiskError, RuntimeError):
    """Some shards of a run failed and were set aside; the others are finished.

    Its cause is the error of the first of them.
    """


class WorkerError(BayesRiskError, RuntimeError):
    """A worker process that ended before its work was done: killed, or out of memory."""


class BayesRiskWarning(UserWarning):
    """Base of every warning issued by bayesrisk itself."""


class DataWarning(BayesRiskWarning):
    """A file with columns that are not known, or values that cannot be right.

    Parameters
    ----------
    text : str
        The message.
    missing : dict of (str, str) to int, optional
        How many values are missing because they cannot be, by column and reason.
    """

    def __init__(self, text: str, missing: dict[tuple[str, str], int] | None = None) -> None:
        super().__init__(text)
        self.missing = dict(missing or {})


class IncompatibleConditionalsWarning(BayesRiskWarning):
    """Two conditionals that belong to no joint law are used, to reproduce published numbers."""


class ConvergenceWarning(BayesRiskWarning):
    """A number is read from chains that have not converged, as far as their draws can tell."""


class SampleWarning(BayesRiskWarning):
    """A sample of blocks without any of a size that its frame has: nothing is known of these."""


_QUOTED = 200  # characters of a value that a message quotes


def quote(value: object) -> str:
    """Return a value as a message quotes it: all of it, or its beginning."""
    try:
        text = repr(value)
    except Exception:  # lists that are too deep, whole numbers of too many digits, foreign objects
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= _QUOTED else f"{text[:_QUOTED]}… ({len(text)} characters)"


def error_line(error: BaseException) -> str:
    """Return the type and the message of a foreign exception, in one line that is printable."""
    try:
        text = " ".join(str(error).split())[:_QUOTED]
    except Exception:  # a foreign message may fail, too
        text = ""
    printable = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return f"{type(error).__name__}: {printable}"
