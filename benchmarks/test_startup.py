"""Time to import, and time to compile the kernels against loading them from the cache."""

import os
import statistics
import subprocess
import sys
import time

import numpy as np
from targets import lasting

_FIRST_USE = """
import time
start = time.perf_counter()
import bayesrisk
bayesrisk.marginal_posterior(rho=0.1, prior=0.5)
bayesrisk.DiscreteGaussian(5.0).rvs(10, 1)
bayesrisk.accounting.discrete_gaussian_delta(1.0, sigma2=5.0)
print(time.perf_counter() - start)
"""


def _python(code, **environment):
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, check=True, capture_output=True, text=True, env={**os.environ, **environment}
    ).stdout


def test_import(benchmark, measured):
    """Aim: 0.05 s, less than NumPy, pandas or Numba takes, which are loaded at a first use."""
    heavy = "print({'numpy', 'pandas', 'numba', 'scipy'} & set(sys.modules))"
    assert _python(f"import sys, bayesrisk; {heavy}").strip() == "set()"
    benchmark.pedantic(lambda: _python("import bayesrisk"), rounds=7, warmup_rounds=1)
    if benchmark.disabled:
        return
    timed = "import time; s = time.process_time(); import bayesrisk; print(time.process_time() - s)"
    seconds = statistics.median(float(_python(timed)) for _ in range(7))
    measured("import bayesrisk", lasting(0.05, "of processor"), seconds)


def test_first_use(benchmark, tmp_path):
    """Everything up to first results: from the kernel cache, and compiling anew."""
    start = time.perf_counter()
    compiled = float(_python(_FIRST_USE, NUMBA_CACHE_DIR=str(tmp_path)))
    cached = benchmark.pedantic(
        lambda: float(_python(_FIRST_USE, NUMBA_CACHE_DIR=str(tmp_path))), rounds=5
    )
    assert time.perf_counter() - start > compiled > 0.0
    print(f"\n  first results: {cached:.2f} s with the kernel cache, {compiled:.2f} s compiling")


def _processor(*words):
    """Return the seconds of processor of a command, with what it starts."""
    command = [sys.executable, "-m", "bayesrisk", *words]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return used.ru_utime + used.ru_stime


def _wide_table(file):
    """Write the people of 6,976 areas by single years of age, of one sex: 641,792 counts."""
    ages = np.random.default_rng(1).poisson(8, (6976, 91))
    heads = ["area code", "all ages", *map(str, range(90)), "90 and over"]
    rows = [[f"S{i:08d}", n.sum(), *n] for i, n in enumerate(ages, 1)]
    file.write_text("\n".join(",".join(map(str, row)) for row in [heads, *rows]))
    return str(file)


def test_commands(benchmark, measured, tmp_path):
    """Of the processor: the seconds that pass are as many more as the machine has other work."""
    wide = _wide_table(tmp_path / "wide.csv")
    risk = ("risk", "--rho", "0.1", "--prior", "0.1", "3")
    benchmark.pedantic(lambda: _processor(*risk), rounds=1, warmup_rounds=1)
    if benchmark.disabled:
        return
    for what, words, most in (
        ("bayesrisk attack --help", ("attack", "--help"), 0.3),
        ("bayesrisk risk, to its first number", risk, 1.5),
    ):
        seconds = statistics.median(_processor(*words) for _ in range(5))
        measured(what, lasting(most, "of processor"), seconds)
    seconds = _processor("attack", wide, "--save-assumptions", str(tmp_path / "reading.toml"))
    what = "bayesrisk attack of 641,792 counts in 92 columns, to its screen"
    measured(what, lasting(12, "of processor"), seconds)
