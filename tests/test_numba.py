"""Compiled kernels where no folder for their cache can be written."""

import json
import subprocess
import sys

import pytest

SCRIPT = """
import json, warnings
from numba.core import caching

def refuse(self):
    raise OSError("read-only file system")

caching._CacheLocator.ensure_cache_path = refuse
for name in ("InTreeCacheLocator", "InTreeCacheLocatorFsAgnostic", "UserWideCacheLocator",
             "UserProvidedCacheLocator"):
    if "ensure_cache_path" in vars(getattr(caching, name, object)):
        getattr(caching, name).ensure_cache_path = refuse
with warnings.catch_warnings(record=True) as found:
    warnings.simplefilter("always")
    from bayesrisk import posterior_probability
    from bayesrisk.distributions import DiscreteGaussian
    value = float(posterior_probability(3, rho=0.0992264, prior=0.1))
print(json.dumps([value, [[w.category.__name__, str(w.message)] for w in found]]))
"""


@pytest.mark.slow
def test_kernels_work_without_a_cache_and_say_so_once():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, timeout=300
    )
    value, warned = json.loads(done.stdout)
    # Posterior odds are 1/9 exp((2 * 3 - 1) / (2 sigma2)), sigma2 = 1 / (2 rho): README's number.
    assert value == pytest.approx(0.154, abs=5e-4)
    assert [name for name, _ in warned] == ["BayesRiskWarning"]
    assert "set NUMBA_CACHE_DIR" in warned[0][1]
