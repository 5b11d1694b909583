"""Errors and warnings of bayesrisk, in one hierarchy.

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

Every message names the argument (or file, row and column), the bound it broke and its value. Catch
``BayesRiskError`` to catch them all. The second base keeps code working that catches ``ValueError``
or ``TypeError``.
"""

import re
from collections import abc
from difflib import get_close_matches

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
    """Base of every error raised by bayesrisk itself.

    ``advice`` is the end of the message: what to do, with its punctuation in front. A caller may
    replace it by advice that fits its own user.
    """

    def __init__(self, sentence: str = "", *, advice: str = "") -> None:
        self.sentence, self.advice = sentence, advice
        super().__init__(f"{sentence}{advice}")

    def advised(self, advice: str) -> "BayesRiskError":
        """Return the same error with new advice."""
        return type(self)(self.sentence, advice=advice)


_UNSAID = object()
_PERCENT = re.compile(r"\s*([0-9]{1,9}(?:[.,][0-9]{1,9})?)\s*(?:%|per ?cent|pct)\s*", re.IGNORECASE)
_COMMA = re.compile(r"\s*([+-]?[0-9]{0,9}),([0-9]{1,9})\s*")
_THOUSANDS = re.compile(r"\s*[+-]?[0-9]{1,3}(?:[,_ ][0-9]{3}){1,4}\s*")
_DECIMAL = re.compile(r"\s*([+-]?[0-9]{1,15})\.([0-9]{1,15})\s*")
_POINT = re.compile(r"\s*([+-]?)\.([0-9]{1,18})\s*")
_SEVERAL = re.compile(r"\s*[-+.\d][^\s,;]{0,20}(?:[\s,;]+[-+.\d][^\s,;]{0,20}){1,20}\s*")
_ONE = re.compile(r"(?!-?\d+$)[^\d.,]{0,20}([0-9]{1,9})[^\d.,]{0,20}")
_SHARE = re.compile(r"< ?1|<= ?1|[,(\[] ?(?:0, )?1[\])]|in \[0, 1\]|in \(0, 1\)")


def number_advice(value: object, rule: str) -> str:
    """Return advice for a text in place of a number, such as one with a percent sign or commas."""
    from decimal import Decimal, InvalidOperation

    if "whole" in rule and (part := _DECIMAL.fullmatch(str(value))) and part[2].strip("0"):
        ends = sorted((int(part[1]), int(part[1]) + (-1 if part[1].startswith("-") else 1)))
        return f": write {ends[0]} or {ends[1]}"
    if isinstance(value, str) and "whole" in rule:
        if _THOUSANDS.fullmatch(value):
            return f": write {re.sub('[,_ ]', '', value.strip())}"
        if _PERCENT.fullmatch(value):
            return ": write how many, not a share"
        if part := _COMMA.fullmatch(value) or _ONE.fullmatch(value):
            return f": write a whole number, such as {part[1] or 0}"
    if isinstance(value, str):
        if part := _PERCENT.fullmatch(value):
            return f": write {Decimal(part[1].replace(',', '.')) / 100}"
        if part := _COMMA.fullmatch(value):
            return f": write {part[1] or 0}.{part[2]}, with a point"
        if "number" in rule and (part := _POINT.fullmatch(value)):
            return f": write {part[1]}0.{part[2]}"
        if "number" in rule and _SEVERAL.fullmatch(value):
            words = re.split(r"[\s,;]+", value.strip())
            one = f"one number, such as {words[0]}"
            return f": write {words if 'array' in rule else one}".replace("'", "")
    short = len(value) <= 20 if isinstance(value, str) else isinstance(value, (int, float))
    if not short or (isinstance(value, (int, float)) and not abs(value) <= 100):
        return ""
    try:
        share = Decimal(str(value)) / 100
    except InvalidOperation:
        return ""
    if _SHARE.search(rule) and Decimal("0.01") < share <= 1:
        return f": {value} % is {share}"
    return ""


class ArgumentError(BayesRiskError, ValueError):
    """An argument outside its range; the message names the argument, the bound and the value.

    The message is ``{argument} {rule}, got {got}{advice}``. Each part is an attribute, which is
    empty if ``argument`` is a whole sentence.

    Parameters
    ----------
    argument : str
        Name of the argument, such as ``rho``; without a rule, the whole sentence.
    rule : str
        What the value must be, such as ``must be > 0``.
    got : object
        The value, quoted in the message.
    shown : object
        Words that replace the quoted value, such as ``shape (0,)``.
    advice : str
        Further words with their punctuation, such as ``; leave it at 1``.

    Examples
    --------
    >>> error = ArgumentError("rho", "must be > 0", got=-1)
    >>> print(error, "-", error.renamed("--rho"))
    rho must be > 0, got -1 - --rho must be > 0, got -1
    """

    def __init__(
        self,
        argument: str,
        rule: str = "",
        *,
        got: object = _UNSAID,
        shown: object = "",
        advice: str = "",
    ) -> None:
        rule = str(rule)
        self.argument, self.rule = (argument, rule) if rule else ("", "")
        self.got = str(shown) if got is _UNSAID else quote(got)
        if got is not _UNSAID and not advice:
            advice = number_advice(got, rule)
        value = f", got {self.got}" if self.got else ""
        super().__init__(f"{argument} {rule}{value}" if rule else argument, advice=advice)

    def renamed(self, argument: str) -> "ArgumentError":
        """Return the same error with another argument's name, such as that of an option."""
        return type(self)(argument, self.rule, shown=self.got, advice=self.advice)

    def advised(self, advice: str) -> "ArgumentError":
        """Return the same error with new advice."""
        first = self.argument or self.sentence
        return type(self)(first, self.rule, shown=self.got, advice=advice)


class ArgumentTypeError(ArgumentError, TypeError):
    """An argument of a type that cannot be used."""


class ShapeError(ArgumentError):
    """Arrays that are empty, or whose shapes do not broadcast."""


class ConfigError(BayesRiskError, ValueError):
    """A configuration with a key that is unknown, missing or out of range."""


class OutputError(BayesRiskError, OSError):
    """An output folder that cannot be used as asked; nothing in it was changed."""

    def __init__(self, sentence: str = "", *, advice: str = "") -> None:
        if sentence.endswith("nothing was changed") and "choose" not in sentence:
            advice = advice or ": choose another folder"
        super().__init__(sentence, advice=advice)


class PartFileError(OutputError):
    """A result part that is truncated, altered or of another run."""


class DataError(BayesRiskError, ValueError):
    """An input table that breaks its format; the message names file, row and column."""


class MissingDependencyError(BayesRiskError, ImportError):
    """An optional library that a feature needs is not installed."""


class PluginError(BayesRiskError, RuntimeError):
    """A plug-in of another package failed; the message names it, its package and its error."""


class ShardError(BayesRiskError, RuntimeError):
    """Some shards of a run failed; the others are finished.

    Its cause is the error of the first failed shard.
    """


class WorkerError(BayesRiskError, RuntimeError):
    """A worker process that ended before its work was done: killed or out of memory."""


class BayesRiskWarning(UserWarning):
    """Base of every warning issued by bayesrisk itself."""


class DataWarning(BayesRiskWarning):
    """A file has unknown columns, or values that cannot be right.

    Parameters
    ----------
    text : str
        The message.
    missing : dict of (str, str) to int, optional
        Number of impossible values that were set to missing, by column and reason.
    """

    def __init__(self, text: str, missing: dict[tuple[str, str], int] | None = None) -> None:
        super().__init__(text)
        self.missing = dict(missing or {})


class IncompatibleConditionalsWarning(BayesRiskWarning):
    """Two conditional laws have no joint law; they serve to reproduce published numbers."""


class ConvergenceWarning(BayesRiskWarning):
    """A result rests on Markov chains that have not converged, by their diagnostics."""


class SampleWarning(BayesRiskWarning):
    """A sample has no blocks of some sizes that its frame has, so these stay unknown."""


_QUOTED = 200  # characters of a value that a message quotes


_MAX_NAME = 64  # characters of a name that is compared with those known
_LIKE = 0.8  # share of characters, in order, that two names have in common if one may be meant


#: What some call an option, by its name without hyphens.
_SAME = {
    **dict.fromkeys(("noise", "gaussian", "dp", "zcdp"), ("discrete-gaussian",)),
    **dict.fromkeys(("exact", "nothing", "unprotected", "raw"), ("none",)),
}


def did_you_mean(value: object, options: abc.Iterable[str]) -> str:
    """Return a question that suggests the most similar option, or an empty text if none is near."""
    if not isinstance(value, str) or len(value) > _MAX_NAME:
        return ""
    folded = {_folded(o): o for o in options if isinstance(o, str)}
    word, bare = _folded(value), _folded(value).rstrip("0123456789")
    near = get_close_matches(word, folded, n=1, cutoff=_LIKE)
    if not near and len(word) > 1:  # a part of a name, or more than it
        near = [name for name in folded if word in name or (name in word and len(name) > 1)]
        near = near or [name for name in folded if len(bare) > 1 and bare in name]
    near = near or [name for name in folded if sorted(name) == sorted(word)]  # letters swapped
    near = near or [name for name in map(_folded, _SAME.get(word, ())) if name in folded]
    parts = [_folded(part) for part in re.split(r"[,;|\s]+", value) if part]
    if word not in folded and len(parts) > 1 and {*parts} <= {*folded}:  # several in one
        return f". Did you mean {' and '.join(repr(folded[part]) for part in parts)}, each apart?"
    words = " or ".join(repr(folded[name]) for name in near[:3])
    return f". Did you mean {words}?" if near else ""


_LISTED = 160  # characters of names that a message lists


def name_list(options: abc.Iterable[object], near: str = "") -> str:
    """Return the names to choose from, or their number beside the one that is ``near``."""
    names = [str(option) for option in options]
    text = ", ".join(names)
    if len(text) <= _LISTED:
        return text
    few = "" if near else f" such as {text[:_LISTED].rpartition(', ')[0]}"
    return f"{len(names)} names{few}"


def _folded(name: str) -> str:
    """Return a name in lower case without spaces, hyphens, underscores and dots."""
    return re.sub(r"[-_.\s]", "", name.lower())


def printable(text: str) -> str:
    """Return a line with every control character escaped, so that it cannot steer a terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def quote(value: object) -> str:
    """Return a value as messages quote it, shortened if it is long."""
    if isinstance(value, type):
        return f"the class {value.__name__} itself"
    try:
        text = repr(value)
    except Exception:  # lists that are too deep, whole numbers of too many digits, foreign objects
        return f"a value of type {type(value).__name__}"
    if "\n" in text:  # a frame, say
        size = " x ".join(map(str, getattr(value, "shape", ())))
        return f"a {type(value).__name__}" + f" of {size}" * bool(size)
    return text if len(text) <= _QUOTED else f"{text[:_QUOTED]}… ({len(text)} characters)"


def error_line(error: BaseException) -> str:
    """Return a foreign exception's type and message as one printable line."""
    try:
        text = " ".join(str(error).split())[:_QUOTED]
    except Exception:  # a foreign message may fail, too
        text = ""
    printable = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return f"{type(error).__name__}: {printable}"
