"""Forty mutations of the mathematical core, and the tests that stand beside and must see each.

``python benchmarks/mutations.py [--only NAME ...] [--workers N]`` copies the tree, runs the tests
that are named here on the copy as it is, and then with one mutation after another.  A mutation is
killed where a test fails.  One that survives says that a promise is not held by any test; one that
is ended by time, or that breaks an import, says nothing.  The status is 1 unless all are killed.
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PACKAGE = "bayesrisk"
#: What the tests need of the tree.
COPIED = (PACKAGE, "benchmarks", "data", "tests", "pyproject.toml")
#: Seconds after which the tests of one mutation are ended.
LIMIT = 300.0


class Mutation(NamedTuple):
    """A change of one file of the package, what it breaks, and tests below ``tests``."""

    name: str
    file: str
    old: str
    new: str
    breaks: str
    tests: tuple[str, ...]


MUTATIONS = (
    # Laws, their sums, and accounting
    Mutation(
        "hockey stick", "distributions/kernels.py",
        "- bound) - bound_error) / (2.0 * sigma2)", "- bound) + bound_error) / (2.0 * sigma2)",
        "the rounding of the largest loss is taken off twice instead of put back",
        ("distributions/test_kernels.py", "accounting/test_conversion.py"),
    ),
    Mutation(
        "envelope of the sampler", "distributions/kernels.py",
        "ceiling = 0.125 / sigma", "ceiling = 0.1 / sigma",
        "rejection from an envelope that is lower than the law in places",
        ("distributions/test_kernels_sampling.py",),
    ),
    Mutation(
        "reach of a ripple", "distributions/kernels.py",
        "(REACH - left.min() - right.min()) / rate", "REACH / rate",
        "the sum over one variable ends where the ripples still lift its terms",
        ("distributions/test_sums_gaussian.py",),
    ),
    Mutation(
        "rounding of a convolution", "distributions/sums.py",
        "        bound += 0.5 * (min(p.size, q.size) + 1) * 2.0**-53", "        bound += 0.0",
        "the error bound of a direct convolution has no term for rounding",
        ("distributions/test_sums.py",),
    ),
    Mutation(
        "rounding of a transform", "distributions/sums.py",
        "bound += 0.5 * size * error", "bound += 0.5 * error",
        "the error bound of a convolution by FFT is that of one entry",
        ("distributions/test_sums.py",),
    ),
    Mutation(
        "error of a distance", "distributions/sums.py",
        "a.error_bound + b.error_bound + x.size", "a.error_bound + x.size",
        "the error of a total-variation distance leaves out that of the second law",
        ("distributions/test_sums.py",),
    ),
    Mutation(
        "rho is rounded up", "accounting/conversion.py",
        "slack - _ROUND * (budget + magnitude)", "slack + _ROUND * (budget + magnitude)",
        "epsilon_to_rho rounds to the unsafe side",
        ("accounting/test_conversion.py",),
    ),
    Mutation(
        "delta is rounded down", "accounting/conversion.py",
        "_up(exponent + _ROUND *", "_up(exponent - _ROUND *",
        "the tight rho_to_delta rounds to the unsafe side",
        ("accounting/test_conversion.py",),
    ),
    # One count, two levels, and trees of counts
    Mutation(
        "tie of a decision", "inference/count/posterior.py",
        "(2.0 * offset - 1.0) < 0.0", "(2.0 * offset - 1.0) <= 0.0",
        "a posterior of exactly one half is decided against the target",
        ("inference/count/test_posterior_decision.py",),
    ),
    Mutation(
        "flow by logarithms", "inference/two_levels/_kernels.py",
        "else (-1.0, log_1)", "else (1.0, log_1)",
        "where flows underflow both of them go the same way",
        ("inference/two_levels/test_kernels.py", "inference/two_levels/test_posterior.py"),
    ),
    Mutation(
        "correlation over a short window", "inference/tree/_sum_product.py",
        "for y in range(max(0, -shift), min(u.size, v.size - shift)):",
        "for y in range(max(0, -shift), min(u.size, v.size - shift - 1)):",
        "an outside message misses the last count where the sibling's window is the longer one",
        ("inference/tree/test_posterior.py", "inference/tree/test_posterior_bounds.py"),
    ),
    Mutation(
        "cut of a message", "inference/tree/_sum_product.py",
        "lost[s, 0] = (lost_mass + (lower + upper)) / remaining",
        "lost[s, 0] = lost_mass / remaining",
        "what is cut off a message is not in the bound of the error",
        ("inference/tree/test_posterior_result.py", "inference/tree/test_posterior.py"),
    ),
    Mutation(
        "rounding of transformed messages", "inference/tree/_sum_product.py",
        "rounded * scale / remaining", "rounded / remaining",
        "the rounding of transforms is not scaled with the message",
        ("inference/tree/test_posterior_result.py", "inference/tree/test_posterior.py"),
    ),
    Mutation(
        "nobody in a leaf", "inference/tree/_kernels.py",
        "lower = max(lower, log_zero) + math.log(2.0)", "lower = lower + math.log(2.0)",
        "the bound of what lies below a leaf's window leaves out the count 0",
        ("inference/tree/test_posterior.py", "inference/tree/test_plan_leaf_prior.py"),
    ),
    # Microdata: exact laws and chains
    Mutation(
        "sums that can still end", "inference/microdata/contraction.py",
        "s + rows.rest[r] < rows.low[r]", "s + rows.rest[r] <= rows.low[r]",
        "states whose sum ends exactly at the least published one are dropped",
        ("inference/microdata/test_contraction.py",),
    ),
    Mutation(
        "units of a box", "inference/microdata/boxes.py",
        "_close(plan, boxes, rows, join, units[p], box, part, slope)",
        "_close(plan, boxes, rows, join, 1.0, box, part, slope)",
        "derivatives are not divided by what the weights of a part were divided by",
        ("inference/microdata/test_contraction.py",),
    ),
    Mutation(
        "pairs of two sides", "inference/microdata/exact.py",
        "_log_choose(n - y, z - x) - _log_choose(n, z)", "_log_choose(n - y, z - x)",
        "records of both sides are paired without the number of all pairings",
        ("inference/microdata/test_exact_sides.py",),
    ),
    Mutation(
        "shares of separators", "inference/microdata/exact.py",
        "(gammaln(n + 1.0) - n * np.log(self._mass))", "(gammaln(n + 1.0))",
        "the share of a separator counts twice, once with either side",
        ("inference/microdata/test_exact_sides.py",),
    ),
    Mutation(
        "noise that is left out", "inference/microdata/exact.py",
        "every + most + _LEFT_OUT - contraction.log_weight", "every + most + _LEFT_OUT",
        "what is left out of the noise is compared with all points, not with those that fit",
        ("inference/microdata/test_posterior.py",),
    ),
    Mutation(
        "way back of a move", "inference/microdata/people_moves.py",
        "math.log((m + 1) * (room + 1) / (n * free))", "math.log((m + 1) * room / (n * free))",
        "the slot that a person left is not among those that the way back may end in",
        ("inference/microdata/test_people_moves.py",),
    ),
    Mutation(
        "way back of a leap", "inference/microdata/people_moves.py",
        "math.log(max(state.people[part], state.people[part] + sign))",
        "math.log(state.people[part])",
        "the factor n + i of a leap upwards is one step late",
        ("inference/microdata/test_people_moves.py",),
    ),
    # Likelihoods, statements, intervals, audits
    Mutation(
        "rows of larger counts", "tables/likelihoods.py",
        "(true - last - 1) % self.repeat", "(true - last) % self.repeat",
        "counts beyond a perturbation table are served by the row after theirs",
        ("mechanisms/test_cell_key.py",),
    ),
    Mutation(
        "multiples of a base", "tables/likelihoods.py",
        "-(-high // base) + 1, dtype", "high // base + 1, dtype",
        "the multiple above the largest count is missing from what may be published",
        ("mechanisms/test_coarsening_rounding.py", "release/test_release.py"),
    ),
    Mutation(
        "both tails of an interval", "answers.py",
        "inv_cdf(0.5 + 0.5 * level)", "inv_cdf(level)",
        "the interval of an estimate has the confidence of one end",
        ("test_answers.py",),
    ),
    Mutation(
        "few blocks", "risk/intervals.py",
        "effective = np.minimum(share * (1.0 - share) / variance * few, size)",
        "effective = np.minimum(share * (1.0 - share) / variance, size)",
        "the interval of a share takes the spread of a few blocks for known",
        ("risk/test_intervals.py",),
    ),
    Mutation(
        "blocks that were not sampled", "risk/intervals.py",
        "part = rest * g**2", "part = g**2",
        "the variance of a stratum is not reduced by the share that was sampled",
        ("risk/test_intervals.py",),
    ),
    Mutation(
        "everywhere but the target", "risk/statements/records.py",
        "everywhere, np.float64) - 1.0) / max(total - 1, 1)",
        "everywhere, np.float64)) / max(total, 1)",
        "the prior of a statement is taken from records that hold the target's",
        ("risk/statements/test_statements.py",),
    ),
    Mutation(
        "ends of the residual risk", "risk/statements/residual.py",
        "_residual(s_low, c_high), _residual(s_high, c_low)",
        "_residual(s_low, c_low), _residual(s_high, c_high)",
        "the interval of a difference takes like ends of both",
        ("risk/statements/test_statements_residual.py",),
    ),
    Mutation(
        "belief by weights", "risk/audit/adversaries.py",
        "x / (mass + x - 1.0)", "x / (mass + x)",
        "draws with the record are weighed as if it were not one of them",
        ("risk/audit/test_adversaries.py::test_weights_give_what_the_law_of_the_others_gives",),
    ),
    Mutation(
        "one more person", "risk/audit/spot_checks.py",
        "size[1:] * (m + 1.0) / (mass.sum() + m)", "size[1:] / (mass.sum() + m)",
        "the belief without the record leaves out how many people it may be of",
        ("risk/audit/test_spot_checks.py",),
    ),
    # Proofs: hidden counts, records, claims
    Mutation(
        "what has no end", "constraints/certificates.py",
        "if model.closed or not _endless(rest, bounds.low, bounds.high).any():", "if True:",
        "what dual values leave over of a count without a largest one is taken for bounded",
        ("constraints/test_certificates.py",),
    ),
    Mutation(
        "weighted cells", "constraints/propagation.py",
        "return -(-needed // a), room // a",
        "return needed // a, room // a",
        "the least number of a weighted cell is rounded down",
        ("constraints/test_propagation_narrow.py", "reconstruction/records/test_kernels.py"),
    ),
    Mutation(
        "cells that no row bounds", "reconstruction/records/kernels.py",
        "top = max(top, -(-row_low[cell_row[k]] // cell_coef[k]))",
        "top = max(top, row_low[cell_row[k]] // cell_coef[k])",
        "the largest number that a row can need of a cell is rounded down",
        ("reconstruction/records/test_bounds.py",),
    ),
    Mutation(
        "endless cells", "reconstruction/records/bounds.py",
        "masks[b] = (limited == 0) & (top == UNBOUNDED)", "masks[b] = limited == 0",
        "cells that a larger place bounds are said to hold any number",
        (
            "reconstruction/records/test_reconstruction_coupling.py",
            "reconstruction/records/test_bounds.py",
        ),
    ),
    Mutation(
        "claims with fewer records", "reconstruction/claims/search/decide.py",
        "sides = ((any_match[0].astype(np.int64), 1), (-all_match[0].astype(np.int64), -1))",
        "sides = ((any_match[0].astype(np.int64), 1),)",
        "solutions with fewer records than a claim says are not looked for",
        ("reconstruction/claims/test_result.py",),
    ),
    Mutation(
        "classes that hold nobody", "reconstruction/claims/search/decide.py",
        "return covered if bound < 1 else every", "return covered if bound < 2 else every",
        "a bound that leaves room for one record is taken for a proof of none",
        ("reconstruction/claims/test_result.py",),
    ),
    Mutation(
        "a bound that reaches the least", "constraints/search.py",
        "proved &= bound < least", "proved &= bound <= least",
        "a bound that leaves room for one solution is taken for a proof of none",
        ("constraints/test_solvers.py",),
    ),
    Mutation(
        "an infeasible combination", "constraints/certificates.py",
        "one.total < 0\n        for sign", "one.total <= 0\n        for sign",
        "rows that can just be met are called infeasible",
        ("constraints/test_solvers.py",),
    ),
    Mutation(
        "a double that is rounded", "constraints/certificates.py",
        "bound = float(np.nextafter(bound, np.inf))", "bound = float(np.nextafter(bound, -np.inf))",
        "a large bound is rounded to the unsafe side",
        ("constraints/test_solvers.py",),
    ),
    Mutation(
        "ends that may be lower", "constraints/propagation.py",
        "                high[row] -= 1\n",
        "                high[row] -= 2\n",
        "an end that no solution reaches is lowered by two",
        ("constraints/test_propagation.py",),
    ),
)  # fmt: skip


class Outcome(NamedTuple):
    """What became of a mutation: how it ended, after how many seconds, and the test that failed."""

    finding: str
    seconds: float
    by: str


def copy_tree(folder: Path) -> Path:
    """Copy what the tests need; return the root of the copy."""
    tree = folder / "tree"
    tree.mkdir()
    skipped = shutil.ignore_patterns("__pycache__", "*.pyc")
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tree / name, ignore=skipped)
        else:
            shutil.copy(ROOT / name, tree)
    return tree


def run_tests(tree: Path, cache: Path, tests: list[str], limit: float | None) -> Outcome:
    """Run tests of a copy, kernels kept in ``cache``, up to the first one that fails."""
    cache.mkdir(mode=0o700, exist_ok=True)
    # Bytecode is told from its source by the second and the size, which a mutation may leave.
    more = {"NUMBA_CACHE_DIR": str(cache), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(tree)}
    options = ["-x", "-q", "-m", "not slow", "-p", "no:benchmark", "-p", "no:cacheprovider"]
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", *options, *(f"tests/{test}" for test in tests)],
        cwd=tree, env={**os.environ, **more}, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        printed = process.communicate(timeout=limit)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return Outcome("ended by time", time.perf_counter() - start, "")
    seconds = time.perf_counter() - start
    failed = re.search(r"^FAILED tests/(.+?)(?: - .*)?$", printed, re.MULTILINE)
    if process.returncode == 0:
        return Outcome("survived", seconds, "")
    if process.returncode == 1 and failed:
        return Outcome("killed", seconds, failed[1])
    return Outcome("error", seconds, printed[-2000:])


def run_share(mutations: tuple[Mutation, ...]) -> list[Outcome]:
    """Run some mutations in a copy of their own, after all their tests on the copy as it is."""
    with tempfile.TemporaryDirectory(prefix="mutations-") as name:
        folder = Path(name).resolve()
        tree, cache = copy_tree(folder), folder / "numba"
        tests = list(dict.fromkeys(test for one in mutations for test in one.tests))
        control = run_tests(tree, cache, tests, None)
        if control.finding != "survived":
            sys.exit(f"the tests fail without a mutation: {control.by}")
        print(f"without a mutation: no test fails in {control.seconds:.0f} s", flush=True)
        return [run_mutation(tree, cache, one) for one in mutations]


def run_mutation(tree: Path, cache: Path, mutation: Mutation) -> Outcome:
    """Run the tests of a mutation, and take it back."""
    file = tree / PACKAGE / mutation.file
    source = file.read_text(encoding="utf-8")
    if source.count(mutation.old) != 1:
        sys.exit(f"{mutation.name}: {mutation.file} must have the old text once")
    file.write_text(source.replace(mutation.old, mutation.new), encoding="utf-8")
    # Kernels that changed are compiled anew, and kept apart: the next mutation has the others.
    own = cache.with_name("numba-mutated")
    shutil.copytree(cache, own, copy_function=os.link)
    try:
        outcome = run_tests(tree, own, list(mutation.tests), LIMIT)
    finally:
        shutil.rmtree(own)
        file.write_text(source, encoding="utf-8")
    print(f"{mutation.name}: {outcome.finding} after {outcome.seconds:.0f} s", flush=True)
    return outcome


def main() -> int:
    """Run the mutations that are asked for, print a table; return 1 unless all are killed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    names = [one.name for one in MUTATIONS]
    parser.add_argument(
        "--only", action="append", choices=names, metavar="NAME", help="one mutation; repeat it"
    )
    parser.add_argument(
        "--workers", type=int, default=1, choices=range(1, 65), metavar="N", help="at one time"
    )
    options = parser.parse_args()
    chosen = tuple(one for one in MUTATIONS if one.name in (options.only or names))
    # Neighbours share their tests, and kernels.
    size = -(-len(chosen) // options.workers)
    shares = [chosen[start : start + size] for start in range(0, len(chosen), size)]
    with ThreadPoolExecutor(options.workers) as pool:
        outcomes = [outcome for part in pool.map(run_share, shares) for outcome in part]
    print()
    for mutation, outcome in zip(chosen, outcomes, strict=True):
        print(
            f"{outcome.finding:<13} {outcome.seconds:4.0f} s  {mutation.name}: {mutation.breaks}"
            f"\n{'':21}{mutation.file}{' by ' if outcome.by else ''}{outcome.by}"
        )
    killed = sum(outcome.finding == "killed" for outcome in outcomes)
    print(f"\n{killed} of {len(chosen)} mutations are killed.")
    return int(killed < len(chosen))


if __name__ == "__main__":
    sys.exit(main())
