"""The ``bayesrisk`` command: thin wrappers, no mathematics of their own."""

import dataclasses
import json
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk._version import __version__
from bayesrisk.cli._progress import progress as _progress
from bayesrisk.cli.claims import claims
from bayesrisk.cli.convert_file import convert_file
from bayesrisk.cli.hierarchy import hierarchy, number, sensitivity_of
from bayesrisk.cli.nmf import measurement_risk, refuse_options
from bayesrisk.cli.occupancy import occupancy
from bayesrisk.cli.reconstruct import reconstruct
from bayesrisk.cli.reidentify import reidentify
from bayesrisk.cli.release import release
from bayesrisk.cli.simulate import simulate
from bayesrisk.cli.tables import tabulate
from bayesrisk.exceptions import ArgumentError, BayesRiskError


class _Commands(TyperGroup):
    """The commands: Ctrl-C ends each with a line of ours, and the status that shells know."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            typer.echo("bayesrisk: interrupted", err=True)
            raise typer.Exit(130) from None


app = typer.Typer(
    name="bayesrisk",
    cls=_Commands,
    help="Bayesian disclosure risk of published statistics.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress.")]


class Method(StrEnum):
    """Conversions between zCDP and approximate differential privacy."""

    TIGHT = "tight"
    BUN_STEINKE = "bun-steinke"


def _number(text: str | None, name: str) -> float | None:
    return None if text is None else number(text, name)


SensitivityOption = Annotated[
    str,
    typer.Option(
        help="L2 sensitivity that rho refers to: a number, add-remove (1) or change-one "
        "(the square root of 2)."
    ),
]


def _print_json(document: Any) -> None:
    typer.echo(json.dumps(document, indent=2, allow_nan=False))


def _print_table(rows: list[dict[str, Any]], title: str) -> None:
    """Print aligned columns, the same on a terminal and in a pipe."""
    texts = [[f"{v:.6g}" if isinstance(v, float) else str(v) for v in r.values()] for r in rows]
    lines = [[name.replace("_", " ") for name in rows[0]], *texts]
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    typer.echo(title)
    for line in lines:
        cells = (text.rjust(width) for text, width in zip(line, widths, strict=True))
        typer.echo("  " + "  ".join(cells))


def _show_version(value: bool) -> None:
    if value:
        typer.echo(f"bayesrisk {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Bayesian disclosure risk of published statistics."""


@app.command()
def risk(
    prior: Annotated[list[str], typer.Option(help="Prior of the truth, 0.2 or 1/864.")],
    noisy_count: Annotated[
        list[str] | None, typer.Argument(help="Released counts (-- before negatives)")
    ] = None,
    rho: Annotated[str | None, typer.Option(help="zCDP budget of the count.")] = None,
    sigma2: Annotated[str | None, typer.Option(help="Scale of the noise, instead of rho.")] = None,
    sensitivity: SensitivityOption = "1",
    known_count: Annotated[int, typer.Option(help="Others known to be in the cell.")] = 0,
    scenario: Annotated[
        str, typer.Option(help="What the adversary wants to know.")
    ] = "characteristics",
    nmf: Annotated[
        Path | None,
        typer.Option(help="Noisy measurement folder, or sample:NAME, instead of counts."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="With --nmf: Parquet file to make.")
    ] = None,
    level: Annotated[str | None, typer.Option(help="With --nmf: level [Block].")] = None,
    query: Annotated[str | None, typer.Option(help="With --nmf: query [detailed].")] = None,
    exceeds: Annotated[
        list[str] | None, typer.Option(help="With --nmf: count cells above this ratio [1.5].")
    ] = None,
    budget: Annotated[
        str | None, typer.Option(help="With --nmf: exact noise scales, pl94-us or pl94-pr.")
    ] = None,
    figure: Annotated[
        Path | None, typer.Option(help="With --nmf: figure, without ending [beside output].")
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Posterior, risk ratio and averages for released counts, or for a whole folder of them."""
    folder_options = {
        "--output": output,
        "--level": level,
        "--query": query,
        "--exceeds": exceeds,
        "--budget": budget,
        "--figure": figure,
    }
    if nmf is not None:
        others = {
            "NOISY_COUNT": noisy_count,
            "--rho": rho,
            "--sigma2": sigma2,
            "--sensitivity": sensitivity != "1",
            "--scenario": scenario != "characteristics",
        }
        refuse_options(others, "not with --nmf, whose files hold counts and noise")
        measurement_risk(
            nmf,
            output=output,
            prior=prior,
            known_count=known_count,
            level=level,
            query=query,
            exceeds=exceeds or [],
            budget=budget,
            figure=figure,
            as_json=as_json,
            progress=_progress,
            quiet=quiet,
        )
        return
    refuse_options(folder_options, "only with --nmf")
    if not noisy_count:
        raise ArgumentError("give at least one NOISY_COUNT, or --nmf with a folder")
    from bayesrisk.risk import block_risk

    result = block_risk(
        [[number(count, "noisy_count")] for count in noisy_count],
        rho=_number(rho, "rho"),
        sigma2=_number(sigma2, "sigma2"),
        prior=[number(p, "prior") for p in prior],
        sensitivity=sensitivity_of(sensitivity),
        known_count=known_count,
        scenario_name=scenario,
    )
    rows = result.to_frame().to_dict(orient="records")
    if as_json:
        about = dataclasses.asdict(result.scenario)
        _print_json(
            {"scenario": about, "version": result.version, "status": result.status, "rows": rows}
        )
        return
    release = ("noisy_count", "known_count", "prior", "posterior", "risk_ratio", "decision")
    average = (
        "prior",
        "decision_threshold",
        "marginal_posterior",
        "marginal_risk",
        "correct_decision_probability",
    )
    guess = ("prior", "decision_baseline", "decision_accuracy")
    heads = {
        "correct_decision_probability": "found_if_in_cell",
        "decision_baseline": "without_release",
        "decision_accuracy": "with_release",
    }
    sigma = f"sigma2 = {rows[0]['sigma2']:.6g}"
    _print_table(
        [{name: row[name] for name in release} for row in rows],
        f"Probability that {result.scenario.statement}, after each release ({sigma}):",
    )
    distinct = {row["prior"]: row for row in rows}.values()
    _print_table(
        [{heads.get(name, name): row[name] for name in average} for row in distinct],
        "On average over all releases that the noise could have produced, if it is true:",
    )
    _print_table(
        [{heads.get(name, name): row[name] for name in guess} for row in distinct],
        "How often the best guess is right, whether it is true or not:",
    )


@app.command()
def convert(
    rho: Annotated[str | None, typer.Option(help="zCDP budget.")] = None,
    sigma2: Annotated[str | None, typer.Option(help="Scale of discrete Gaussian noise.")] = None,
    epsilon: Annotated[str | None, typer.Option(help="Budget of approximate DP.")] = None,
    delta: Annotated[str | None, typer.Option(help="Probability of failure.")] = None,
    sensitivity: SensitivityOption = "1",
    method: Annotated[Method, typer.Option(help="Conversion between zCDP and DP.")] = Method.TIGHT,
    as_json: JsonOption = False,
) -> None:
    """Convert between rho, sigma2, epsilon and delta: give rho or sigma2, or epsilon and delta."""
    from bayesrisk import accounting

    change = sensitivity_of(sensitivity)
    budget, scale = _number(rho, "rho"), _number(sigma2, "sigma2")
    target, failure = _number(epsilon, "epsilon"), _number(delta, "delta")
    if sum([budget is not None, scale is not None, None not in (target, failure)]) != 1:
        raise ArgumentError(
            "give exactly one of --rho, --sigma2, or both --epsilon and --delta, got "
            f"rho={rho}, sigma2={sigma2}, epsilon={epsilon}, delta={delta}"
        )
    if scale is not None:
        budget = float(accounting.rho_from_sigma2(scale, change))
    elif target is not None and failure is not None:
        budget = float(accounting.epsilon_to_rho(target, failure, method.value))
    spent = check.scalar(budget, "rho", lower=0.0, bounds="()")
    scale = float(accounting.sigma2_from_rho(spent, change))
    if target is None and failure is not None:
        target = float(accounting.rho_to_epsilon(spent, failure, method.value))
    elif failure is None and target is not None:
        failure = float(accounting.rho_to_delta(spent, target, method.value))
    row = {"rho": spent, "sensitivity": change, "sigma2": scale}
    if target is not None and failure is not None:
        row |= {"epsilon": target, "delta": failure}
    if as_json:
        _print_json({**row, "method": method.value})
    else:
        _print_table([row], f"Conversion ({method.value})")


@app.command()
def sweep(
    config: Annotated[str, typer.Argument(help="TOML file, or sample:NAME.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Output folder.")],
    workers: Annotated[int, typer.Option(help="Worker processes.")] = 1,
    resume: Annotated[bool, typer.Option("--resume", help="Keep finished shards.")] = False,
    shard: Annotated[str, typer.Option(help="i/n: only every n-th shard, from the i-th.")] = "1/1",
    seed: Annotated[int | None, typer.Option(help="Seed, instead of the configuration's.")] = None,
    executor: Annotated[
        str | None, typer.Option(help="serial, processes, dask or a plug-in.")
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Run a sweep of disclosure risk over rho, then write its report."""
    from bayesrisk.experiments import load_config, run_sweep, write_report

    settings = load_config(config, seed=seed)
    try:
        with _progress(quiet=quiet or as_json, title=settings.title) as advance:
            summary = run_sweep(
                settings,
                output,
                workers=workers,
                resume=resume,
                shard=_parse_shard(shard),
                executor=executor,
                progress=advance,
            )
    except KeyboardInterrupt:
        typer.echo(
            "bayesrisk: interrupted; finished shards are kept, go on with --resume", err=True
        )
        raise typer.Exit(130) from None
    report = str(write_report(output)) if summary.complete else None
    if as_json:
        _print_json({**dataclasses.asdict(summary), "report": report})
        return
    typer.echo(
        f"{summary.computed + summary.resumed} of {summary.shards} parts done "
        f"({summary.resumed} were already there), in {summary.folder}"
    )
    if report is None:
        typer.echo("shards of other runs are missing: the report is written with the last of them")
    else:
        typer.echo(f"{summary.rows} rows in {output / 'results.csv'}")
        typer.echo(f"report: {report}")


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="Folder of a finished sweep.")],
    as_json: JsonOption = False,
) -> None:
    """Write figures and report.html of a finished sweep again."""
    from bayesrisk.experiments import write_report

    page = write_report(folder)
    if as_json:
        _print_json({"report": str(page)})
    else:
        typer.echo(f"report: {page}")


app.command("convert-file")(convert_file)
app.command()(claims)
app.command()(hierarchy)
app.command()(reconstruct)
app.command()(reidentify)
app.command()(release)
app.command()(occupancy)
app.command()(simulate)
app.command()(tabulate)


def _parse_shard(text: str) -> tuple[int, int]:
    part, _, parts = text.partition("/")
    try:
        return int(part), int(parts)
    except ValueError as error:
        raise ArgumentError(f"shard must be i/n, such as 2/8, got {shown(text)}") from error


@contextmanager
def _stop_on_request() -> Iterator[None]:
    """Handle a request to end (SIGTERM) like Ctrl-C: what is finished is kept, workers end."""

    def stop(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may handle signals
        return
    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def main() -> None:
    """Run the command; errors of bayesrisk become one line and exit status 2."""
    try:
        with _stop_on_request():
            app()
    except BayesRiskError as error:
        typer.echo(f"bayesrisk: {error}", err=True)
        sys.exit(2)
