"""A noise law behind SciPy's ``rv_discrete`` interface, for code that insists on it."""

from typing import Any

import numpy as np

from bayesrisk import _validation as check
from bayesrisk.distributions._base import CountLaw, single_law


class _Hooks:
    """SciPy's hooks, forwarded to a law, so that nothing is summed by SciPy's generic code."""

    _law: CountLaw

    def _pmf(self, x: Any) -> Any:
        return np.asarray(self._law.pmf(x))

    def _logpmf(self, x: Any) -> Any:
        return np.asarray(self._law.logpmf(x))

    def _cdf(self, x: Any) -> Any:
        return np.asarray(self._law.cdf(x))

    def _logcdf(self, x: Any) -> Any:
        return np.asarray(self._law.logcdf(x))

    def _sf(self, x: Any) -> Any:
        return np.asarray(self._law.sf(x))

    def _logsf(self, x: Any) -> Any:
        return np.asarray(self._law.logsf(x))

    def _ppf(self, q: Any) -> Any:
        return np.asarray(self._law.ppf(q))

    def _isf(self, q: Any) -> Any:
        return np.asarray(self._law.isf(q))

    def _entropy(self) -> Any:
        return self._law.entropy()

    def _rvs(self, size: Any = None, random_state: Any = None) -> Any:
        # SciPy hands over a legacy RandomState unless it is given a Generator.
        if not isinstance(random_state, np.random.Generator):
            random_state = int(random_state.randint(2**31 - 1))
        return self._law.rvs(size, random_state)

    def _stats(self) -> tuple[Any, Any, None, None]:
        return self._law.mean(), self._law.var(), None, None


def as_rv_discrete(law: CountLaw, name: str = "count_law") -> Any:
    """Return a law as a ``scipy.stats.rv_discrete`` instance.

    Parameters
    ----------
    law : CountLaw
        A single law.
    name : str, default "count_law"
        Name that SciPy shows.

    Returns
    -------
    scipy.stats.rv_discrete
        Its ``loc`` argument shifts the law; there are no shape parameters.

    Raises
    ------
    ArgumentError
        If its parameters are arrays.

    Examples
    --------
    >>> from bayesrisk.distributions import DiscreteGaussian
    >>> frozen = as_rv_discrete(DiscreteGaussian(4.0))
    >>> round(float(frozen.cdf(0)), 6)
    0.599736
    """
    single_law(law)
    check.text(name, "name")
    from scipy import stats  # slow to import, seldom needed

    # SciPy rebuilds a distribution from its class when it freezes it, so the class holds the law.
    adapter = type("LawAdapter", (_Hooks, stats.rv_discrete), {"_law": law})
    low, high = law.support()
    return adapter(a=float(low), b=float(high), name=name)
