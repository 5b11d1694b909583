"""Risk of counts: ``bayesrisk risk``, ``convert``, ``sweep`` and ``report``."""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

import bayesrisk as br
from bayesrisk._base import disk
from bayesrisk._version import __version__
from bayesrisk.cli.command import renamed
from bayesrisk.cli.counts import two_levels
from bayesrisk.cli.data import SWEEPS, data_path
from bayesrisk.cli.options import (
    SEED,
    FragmentOption,
    JsonOption,
    OutputOption,
    QuietOption,
    RunOptions,
    SensitivityOption,
    optional_number,
    parse_count,
    parse_number,
    parse_sensitivity,
)
from bayesrisk.cli.printing import print_answer, progress, shard_lines, table_lines, write_fragment
from bayesrisk.exceptions import ArgumentError, did_you_mean

_HEADS = {
    "correct_decision_probability": "found_if_in_cell",
    "decision_baseline": "without_release",
    "decision_accuracy": "with_release",
}
#: Title and columns of each table; the first has a row for each count, the others for each prior.
_TABLES = {
    "": ("noisy_count", "known_count", "prior", "posterior", "risk_ratio", "decision"),
    "On average over all releases that the noise could have produced, if it is true:": (
        "prior",
        "decision_threshold",
        "marginal_posterior",
        "marginal_risk",
        "correct_decision_probability",
    ),
    "How often the best guess is right, whether it is true or not:": (
        "prior",
        "decision_baseline",
        "decision_accuracy",
    ),
}


def risk(
    prior: Annotated[list[str], "Prior of the truth, 0.2 or 1/864; may be repeated."],
    noisy_count: Annotated[
        list[str] | None, typer.Argument(help="Released counts (-- before negatives).")
    ] = None,
    release: Annotated[
        str | None, "Folder of a release, or pl94, dhc: the risk of all its counts together."
    ] = None,
    hierarchy: Annotated[
        str | None,
        "Noisy counts of a block, its group and its siblings: a .toml file, or "
        "block=2,group=1,siblings=-1,n_siblings=27,rho_block=1/10,rho_group=1/4.",
    ] = None,
    rho: Annotated[str | None, "zCDP budget of the count."] = None,
    sigma2: Annotated[str | None, "Scale of the noise, instead of rho."] = None,
    sensitivity: SensitivityOption = "1",
    known_count: Annotated[int, "Others known to be in the cell."] = 0,
    scenario: Annotated[str, "What the adversary wants to know."] = "characteristics",
    as_json: JsonOption = False,
) -> None:
    """Say how much a released count, or a release, raises a belief."""
    questions = {"released counts": noisy_count, "--release": release, "--hierarchy": hierarchy}
    subjects = [name for name, value in questions.items() if value]
    if len(subjects) != 1:
        more = f": leave out {subjects[-1]}" if subjects else ", such as 3 --rho 0.1"
        raise ArgumentError(f"give one of {', '.join(questions)}{more}")
    priors = [parse_number(p, "prior") for p in prior]
    if not noisy_count and (rho, sigma2) != (None, None):
        subject = "a release" if release else "a hierarchy"
        raise ArgumentError(f"{subject} states its noise: leave out --rho and --sigma2")
    if hierarchy is not None:
        two_levels.answer(
            hierarchy,
            priors,
            known_count=known_count,
            sensitivity=parse_sensitivity(sensitivity),
            as_json=as_json,
        )
        return
    if release is not None:
        whole, lines_of_release = _answer_of_release(
            release, epsilon=None, delta=None, priors=priors
        )
        print_answer(whole, lines_of_release, as_json=as_json)
        return
    if (rho is None) == (sigma2 is None):
        to_rho = "`bayesrisk convert --epsilon 1 --delta 1e-10` gives the rho of an epsilon"
        advice = "not both" if rho else f"such as --rho 0.1; {to_rho}"
        raise ArgumentError(f"give exactly one of --rho and --sigma2, {advice}")
    with renamed({"scenario_name": "--scenario"}):
        result = br.block_risk(
            [[parse_count(count, "noisy_count")] for count in noisy_count or ()],
            rho=optional_number(rho, "rho"),
            sigma2=optional_number(sigma2, "sigma2"),
            prior=priors,
            sensitivity=parse_sensitivity(sensitivity),
            known_count=known_count,
            scenario_name=scenario,
        )
    rows = result.to_rows()
    scenario_fields = dataclasses.asdict(result.scenario)
    document = {
        "scenario": scenario_fields,
        "version": __version__,
        "status": "exact",
        "rows": rows,
    }
    sigma = f"sigma2 = {rows[0]['sigma2']:.6g}"
    first = f"Probability that {result.scenario.statement}, after each release ({sigma}):"
    distinct = list({row["prior"]: row for row in rows}.values())
    lines: list[str] = []
    for title, columns in _TABLES.items():
        chosen = distinct if title else rows
        table = [{_HEADS.get(name, name): row[name] for name in columns} for row in chosen]
        lines += table_lines(table, title or first)
    print_answer(document, lines, as_json=as_json)


@dataclass(frozen=True)
class RiskLimit:
    """A limit on the risk ratio that a budget shall keep."""

    max_risk: Annotated[str | None, "Risk ratio that the average release shall keep."] = None
    prior: Annotated[str | None, "With --max-risk or a release: prior of the truth."] = None
    probability: Annotated[
        str | None, "With --max-risk: not the average but this quantile shall keep it."
    ] = None

    def budget(self, sensitivity: float) -> float | None:
        """Return the budget that keeps the limit; None if there is no limit."""
        if self.max_risk is not None and "%" in self.max_risk:
            rule = "must be a ratio > 1"
            advice = ": it is a ratio, such as 1.5 for half as much again"
            raise ArgumentError("--max-risk", rule, got=self.max_risk, advice=advice)
        limit, level = (
            optional_number(self.max_risk, "--max-risk"),
            optional_number(self.probability, "--probability"),
        )
        if limit is None:
            if self.prior is not None or level is not None:
                raise ArgumentError("--prior and --probability belong with --max-risk, got none")
            return None
        if self.prior is None:
            raise ArgumentError("--max-risk needs a --prior, got none")

        with renamed({"limit": "--max-risk"}):
            return br.risk.rho_for_risk(
                limit,
                prior=parse_number(self.prior, "prior"),
                measure="average" if level is None else "quantile",
                probability=level,
                sensitivity=sensitivity,
            )


def convert(
    limit: RiskLimit,
    release: Annotated[
        str | None, typer.Argument(help="Folder of a release, or a budget: pl94, dhc.")
    ] = None,
    rho: Annotated[str | None, "zCDP budget."] = None,
    sigma2: Annotated[str | None, "Scale of discrete Gaussian noise."] = None,
    epsilon: Annotated[str | None, "Budget of approximate DP."] = None,
    delta: Annotated[str | None, "Probability of failure."] = None,
    sensitivity: SensitivityOption = "1",
    method: Annotated[str, "Conversion between zCDP and DP: tight or bun-steinke."] = "tight",
    as_json: JsonOption = False,
) -> None:
    """Convert between rho, sigma2, epsilon and delta, and limits of risk."""
    from bayesrisk._base import validation as check
    from bayesrisk._base.validation import SENSITIVITIES

    change = parse_sensitivity(sensitivity)
    check.choice(method, "method", ("tight", "bun-steinke"))
    if release is not None:
        settings = (rho, sigma2, limit.max_risk, limit.probability)
        if settings != (None,) * 4 or (sensitivity, method) != ("1", "tight"):
            rule = (
                "is taken for a release, which goes with --epsilon or --delta, and --prior, alone"
            )
            raise ArgumentError(release, f"{rule}: leave it out")
        document, lines = _answer_of_release(
            release,
            epsilon=optional_number(epsilon, "epsilon"),
            delta=optional_number(delta, "delta"),
            priors=[] if limit.prior is None else [parse_number(limit.prior, "prior")],
        )
        print_answer(document, lines, as_json=as_json)
        return
    budget, scale = optional_number(rho, "rho"), optional_number(sigma2, "sigma2")
    target, failure = optional_number(epsilon, "epsilon"), optional_number(delta, "delta")
    allowed = limit.max_risk is not None
    if sum([budget is not None, scale is not None, None not in (target, failure), allowed]) != 1:
        rule = "give exactly one of --rho, --sigma2, --max-risk, or both --epsilon and --delta"
        if budget is None and scale is None and not allowed:
            lacks = {"--delta 1e-10": failure, "--epsilon 1": target}
            more = " and ".join(option for option, value in lacks.items() if value is None)
            raise ArgumentError(f"{rule}: add {more}, or --rho 0.1")
        raise ArgumentError(f"{rule}: leave out the others")
    largest = limit.budget(change)
    if scale is not None:
        budget = change**2 / (2.0 * check.scalar(scale, "sigma2", lower=0.0, bounds="()"))
    elif target is not None and failure is not None:
        budget = float(br.accounting.epsilon_to_rho(target, failure, method))
    elif largest is not None:
        budget = largest
    spent = check.scalar(budget, "rho", lower=0.0, bounds="()")
    scale = float(br.accounting.sigma2_from_rho(spent, change))
    if target is None and failure is not None:
        target = float(br.accounting.rho_to_epsilon(spent, failure, method))
    elif failure is None and target is not None:
        failure = float(br.accounting.rho_to_delta(spent, target, method))
    row = {"rho": spent, "sensitivity": change, "sigma2": scale}
    if largest is not None:  # one noise, and what it costs by what a neighbour is
        by_neighbour = {name: 0.5 * delta**2 / scale for name, delta in SENSITIVITIES.items()}
        row |= {f"rho_{name.replace('-', '_')}": cost for name, cost in by_neighbour.items()}
    if target is not None and failure is not None:
        row |= {"epsilon": target, "delta": failure}
    lines = table_lines([row], f"Conversion ({method})")
    print_answer({**row, "method": method}, lines, as_json=as_json)


def sweep(
    config: Annotated[str, typer.Argument(help="TOML file, or sample:NAME.")],
    output: OutputOption,
    runner: RunOptions,
    seed: Annotated[int | None, SEED] = None,
) -> None:
    """Compute the risk of a count over many budgets, and write a report."""
    from bayesrisk._base import validation as check
    from bayesrisk.experiments.sweep_report import first_sentence

    file = data_path(Path(config), SWEEPS)
    if file.suffix.lower() != ".toml":
        example = "; `bayesrisk sweep sample:dare-county-sweep -o OUT` is one"
        if (file / "report.html").is_file():
            example = f"; of a finished sweep: `bayesrisk report {file}`"
        raise ArgumentError("config", "must be a TOML file of a sweep", got=config, advice=example)
    if seed is not None:
        check.integer(seed, "seed", lower=0)
    study = br.experiments.load_config(config, seed=seed)
    summary = runner.run(study, output, study.title)
    page = str(br.experiments.write_report(output)) if summary.complete else None
    runner.embed(output / "report.html")
    lines = [*shard_lines(summary)]
    if page is not None:
        lines.insert(0, first_sentence(*br.experiments.read_results(output)))
        lines += [f"{summary.rows} rows in {output / 'results.csv'}", f"report: {page}"]
    print_answer({**summary.to_dict(), "report": page}, lines, as_json=runner.as_json)


def report(
    folder: Annotated[Path, typer.Argument(help="Folder of a finished sweep.")],
    fragment: FragmentOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write the figures and the report of a finished sweep again."""
    with progress(quiet=quiet or as_json, title="report", unit="steps", patient=True) as advance:
        page = br.experiments.write_report(folder, progress=advance)
        if fragment:
            write_fragment(page)
    print_answer({"report": str(page)}, [f"report: {page}"], as_json=as_json)


# Evidence of a whole release about one record, by the law of its privacy loss.

#: Budgets that are known by name.
_BUDGETS = ("pl94", "dhc")
_RELEASE_DELTA = 1e-10
_RELEASE_PRIORS = (1 / 2, 1 / 10, 1 / 2016)


def _release_law(source: str) -> "br.accounting.PrivacyLoss":
    """Return the law of a budget by name, or of the release in a folder."""
    from bayesrisk.release.release import ReleaseIndex
    from bayesrisk.release.specification import MechanismSpec

    if source in _BUDGETS:
        return br.accounting.PrivacyLoss.of(source)
    if not Path(source).exists() and not source.startswith("sample:"):
        near = did_you_mean(source, _BUDGETS) or disk.nearby(Path(source))
        rule = "must be the folder of a release, or pl94 or dhc"
        raise ArgumentError("release", rule, got=source, advice=near)
    folder = data_path(Path(source), "a release")
    if ReleaseIndex.exists(folder):
        spec = ReleaseIndex.read(folder).document["spec"]
        return br.accounting.PrivacyLoss.of(MechanismSpec.from_dict(spec))
    return br.accounting.PrivacyLoss.of(br.Release.read(folder))


def _answer_of_release(
    source: str, *, epsilon: float | None, delta: float | None, priors: Sequence[float]
) -> tuple[dict[str, Any], list[str]]:
    """Return epsilon or delta, and beliefs, of a release: as a document and in lines."""
    import numpy as np

    if epsilon is not None and delta is not None:
        raise ArgumentError("give --epsilon or --delta of a release, not both")
    law = _release_law(source)
    counts = sum(part.times for part in law.parts)
    document: dict[str, Any] = {"source": source, "counts": counts}
    if epsilon is not None:
        ends = law.delta(epsilon)
        document |= {"epsilon": epsilon, "delta_lower": ends.lower, "delta_upper": ends.upper}
        first = f"delta is {float(ends):.6g} at epsilon {epsilon:g}"
    else:
        failure = _RELEASE_DELTA if delta is None else delta
        ends = law.epsilon(failure)
        document |= {"delta": failure, "epsilon_lower": ends.lower, "epsilon_upper": ends.upper}
        first = f"epsilon is {float(ends):.6g} at delta {failure:g}"
        if not math.isnan(law.rho):
            tight = float(br.rho_to_epsilon(law.rho, failure))
            document |= {"rho": law.rho, "epsilon_of_rho": tight}
            first += f"; the conversion of its rho, {law.rho:.6g}, gives {tight:.6g}"
    priors = priors or _RELEASE_PRIORS
    beliefs = law.posterior(priors)
    columns = (beliefs.mean, beliefs.ratio, beliefs.decision_error)
    rows = [
        {"prior": p, "posterior": m, "risk_ratio": r, "wrong_guesses": w}
        for p, m, r, w in zip(priors, *(np.ravel(ends.value) for ends in columns), strict=True)
    ]
    document["rows"] = rows
    title = "The belief that a record is there, on average, of somebody who knows all others:"
    lines = [*table_lines(rows, title), f"A record moves {counts:,} noisy counts: {first}."]
    return document, lines
