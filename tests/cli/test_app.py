"""The command as a user runs it: output, exit status, nothing half-written."""

import html
import json
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import bayesrisk
from bayesrisk.cli.app import main
from bayesrisk.experiments.pages import fragment

pytestmark = pytest.mark.usefixtures("quick_figures")

CONFIG = """
settings_per_shard = 1
[grid]
rho = [{ log = [0.01, 1.0], points = 3 }, { name = "mine", value = "1/20" }]
prior = ["1/2", "1/10"]
"""


@pytest.fixture
def config(tmp_path):
    file = tmp_path / "sweep.toml"
    file.write_text(CONFIG, encoding="utf-8")
    return file


def test_risk_json_holds_the_exact_numbers(run):
    status, out, _ = run("risk", "3", "--rho", "0.0992264", "--prior", "1/864", "--json")
    document = json.loads(out)
    (row,) = document["rows"]
    assert status == 0
    assert row["posterior"] == bayesrisk.posterior_probability(3, rho=0.0992264, prior=1 / 864)
    assert row["correct_decision_probability"] == bayesrisk.correct_decision_probability(
        rho=0.0992264, prior=1 / 864
    )
    assert document["status"] == "exact"


def test_risk_table(run):
    _, out, _ = run("risk", "1", "5", "--rho", "0.0992264", "--prior", "0.5", "--prior", "1/10")
    lines = [line.split() for line in out.splitlines()]
    assert ["5", "0", "0.1", "0.213461", "2.13461", "0"] in lines
    assert ["0.5", "1", "0.523666", "1.04733", "0.58886"] in lines
    assert "found if in cell" in out
    assert "correct decision" not in out
    # prior, right without a release, right with it
    assert ["0.5", "0.5", "0.58886"] in lines
    assert ["0.1", "0.9", "0.9"] in lines


def test_risk_of_a_negative_count_and_options(run):
    options = ("--sigma2", "10", "--known-count", "4", "--scenario", "membership", "--json")
    status, out, _ = run("risk", "--prior", ".2", *options, "--", "-7")
    (row,) = json.loads(out)["rows"]
    assert status == 0
    assert row["posterior"] == bayesrisk.posterior_probability(
        -7, sigma2=10, prior=0.2, known_count=4
    )
    _, out, _ = run("risk", "1", "--prior", ".2", "--rho", ".1", "--sensitivity", "change-one")
    assert "sigma2 = 10)" in out


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--rho", "2.56", "--delta", "1e-10"), {"epsilon": 17.158308712}),
        (("--rho", "0.0992", "--epsilon", "1"), {"delta": 0.008691569467328}),
        (("--sigma2", "5"), {"rho": 0.1}),
        (("--rho", "0.1", "--sensitivity", "change-one"), {"sigma2": 10.0}),
        (("--epsilon", "17.158308712104745", "--delta", "1e-10"), {"rho": 2.56}),
        (
            ("--max-risk", "1.5", "--prior", "1/10", "--delta", "1e-10"),
            {
                "rho": 0.27949084646,
                "sigma2": 1.78896735379,
                "rho_add_remove": 0.27949084646,
                "rho_change_one": 0.55898169292,
                "epsilon": 4.98752818319,
            },
        ),
        (
            ("--max-risk", "1.5", "--prior", "1/10", "--sensitivity", "change-one"),
            {"rho": 0.55898169292, "sigma2": 1.78896735379, "rho_add_remove": 0.27949084646},
        ),
        (
            ("--max-risk", "3", "--prior", "1/10", "--probability", "0.99"),
            {"rho": 0.12272061063},
        ),
    ],
)
def test_convert(run, options, expected):
    status, out, _ = run("convert", *options, "--json")
    document = json.loads(out)
    assert status == 0
    for name, value in expected.items():
        assert document[name] == pytest.approx(value, rel=1e-9)


def test_sweep_and_report(run, config, tmp_path):
    out_folder = tmp_path / "out"
    status, out, err = run("sweep", config, "-o", out_folder)
    assert status == 0
    assert "4 of 4 parts done (0 were already there)" in out
    lead = re.search(r'class="lead">(.*?)</p>', (out_folder / "report.html").read_text("utf-8"))
    assert html.unescape(lead[1]) == out.splitlines()[0]  # the answer comes first
    assert "of 4 shards" in err  # plain log lines, as this is no terminal
    assert (out_folder / "report.html").exists()
    status, out, err = run("sweep", config, "-o", out_folder)
    assert status == 2
    assert "add --resume" in err
    status, out, err = run("sweep", config, "-o", out_folder, "--resume", "--quiet", "--json")
    assert (status, err) == (0, "")
    summary = json.loads(out)
    assert (summary["computed"], summary["resumed"], summary["complete"]) == (0, 4, True)
    status, out, _ = run("report", out_folder, "--json", "--fragment")
    assert json.loads(out)["report"] == str(out_folder / "report.html")
    page, part = (out_folder / f"{name}.html" for name in ("report", "fragment"))
    assert fragment(page.read_text("utf-8")) == part.read_text("utf-8")


def test_sweep_in_two_shards(run, config, tmp_path):
    _, out, _ = run("sweep", config, "-o", tmp_path / "out", "--shard", "1/2", "--quiet")
    assert "shards of other runs are missing" in out
    _, out, _ = run("sweep", config, "-o", tmp_path / "out", "--shard", "2/2", "--quiet")
    assert "report: " in out


def test_negative_counts_need_two_dashes(run):
    status, out, err = run("risk", "-3", "--rho", ".1", "--prior", "1/10")
    assert (status, out) == (2, "")
    assert "put -- before negative counts" in " ".join(err.split())
    assert "-3" in err
    status, _, err = run("risk", "--nonsense")
    assert status == 2
    assert "negative" not in err


def test_a_defect_is_one_line_that_says_where_to_report(run, monkeypatch):
    def crash(*args, **kwargs):
        raise IndexError("list index\nout of range")

    monkeypatch.setattr("bayesrisk.census.population_spec", crash)
    status, out, err = run("census", "simulate", "-o", "nowhere", "--seed", "1")
    assert (status, out) == (1, "")
    assert err.startswith(
        "bayesrisk: internal error: IndexError: list index out of range at census/cli/"
    )
    assert "please report" in err
    assert err.count("\n") == 1


PRINTING = ["risk --rho 0.1 --prior 1/10 -- 3 -1", "--help"]


@pytest.mark.parametrize("arguments", PRINTING)
def test_output_that_cannot_be_written_is_one_line(arguments):
    """A full disk, and a standard output that is closed: status 1 and what happened."""
    command = [sys.executable, "-m", "bayesrisk", *arguments.split()]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    told = "bayesrisk: standard output could not be written: "
    assert done.stderr == f"{told}No space left on device\n"
    closed = ["sh", "-c", 'exec "$@" >&-', "sh", *command]
    done = subprocess.run(closed, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, f"{told}it is closed\n")


def test_a_reader_that_went_away_ends_the_command_silently():
    """With the status that shells give to a program which a broken pipe ended."""
    command = [sys.executable, "-m", "bayesrisk", *PRINTING[0].split()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141


@pytest.mark.parametrize(
    ("arguments", "unit"),
    [
        (
            "release {pop} -o {out} --protection identity --tables pl94 --simulation-seed 1",
            "3 of 3 steps",
        ),
        ("release --protection none {pop} -o {out} --tables pl94", "records"),
    ],
)
def test_progress_and_quiet(run, population, tmp_path, arguments, unit, monkeypatch):
    """A run that takes a while says how far it is; here every run takes one."""
    monkeypatch.setattr("bayesrisk.cli.printing._SECONDS", 0.0)
    for i, more in enumerate(((), ("-q",), ("--json",))):
        words = arguments.format(pop=population, out=tmp_path / str(i)).split()
        status, out, err = run(*words, *more)
        assert status == 0
        assert out
        assert (unit in err) == (not more)


@pytest.fixture(scope="module")
def population(tmp_path_factory):
    folder = tmp_path_factory.mktemp("people") / "pop"
    bayesrisk.simulate_population("tract", rng=1).write(folder)
    return folder


HEAVY = {"numba", "numpy", "pandas", "pyarrow", "scipy", "matplotlib", "pydantic", "jinja2"}
if tuple(map(int, version("typer").split(".")[:2])) >= (0, 25):
    HEAVY |= {"rich"}  # older ones load it themselves


@pytest.mark.parametrize("words", [("attack", "--only", "claims", "--help"), ("--version",)])
def test_help_loads_nothing_heavy(words):
    code = (
        "import sys\n"
        "from bayesrisk.cli.app import main\n"
        "try:\n"
        "    main()\n"
        "finally:\n"
        "    print(*sorted({name.split('.')[0] for name in sys.modules}), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=True
    )
    assert HEAVY.isdisjoint(done.stderr.split())
    assert "typer" in done.stderr.split()


def commands():
    """Return every command, by the words that call it."""
    from typer.main import get_command

    from bayesrisk.cli.app import app

    def below(group, path):
        for name, command in group.commands.items():
            if hasattr(command, "commands"):
                yield from below(command, f"{path}{name} ")
            else:
                yield f"{path}{name}", command

    return dict(below(get_command(app), ""))


def test_commands_are_grouped_and_show_an_example(run):
    assert run("--version")[1] == f"bayesrisk {bayesrisk.__version__}\n"
    _, out, _ = run("--help")
    order = [line for line in out.splitlines() if line.endswith(":") and line[0] != " "]
    assert order == ["Options:", "Attack:", "Protect:", "Risk:", "Data:", "Setup:"]
    for words, command in commands().items():
        status, out, _ = run(*words.split(), "--help")
        assert status == 0
        title = "Further options:"
        shown = out.partition(title)[0].partition("Options:")[2]
        assert len(re.findall(r"^  -", shown, re.M)) == 8 if title in out else len(shown) > 0, words
        assert "[default" not in out
        if any(p.required for p in command.params):
            assert out.index("[required]") < out.find(title) % 10**6
        assert f"Example: bayesrisk {words}" in " ".join(out.split())


def test_one_screen_of_commands_whose_summaries_are_whole(run, monkeypatch):
    """At most twelve commands, each with its summary on one line of a terminal of 80 columns."""
    from typer.main import get_command

    from bayesrisk.cli.app import app

    monkeypatch.setenv("COLUMNS", "80")
    groups = [(), ("census",), ("census", "occupancy")]
    for words in groups:
        group = get_command(app)
        for word in words:
            group = group.commands[word]
        out = run(*words, "--help")[1].splitlines()
        for name, command in group.commands.items():
            summary = (command.help or "").partition("\n")[0]
            assert any(line.split(None, 1) == [name, summary] for line in out), name
        assert len(group.commands) <= 12
    assert len(run("--help")[1].splitlines()) <= 40


def test_every_name_of_before_says_what_to_write_now(run):
    """Every command of 0.2, with and without words after it: one sentence, and status 2."""
    before = "bounds reconstruct claims reidentify first-look tabulate verify-release hierarchy "
    before += "convert-file measurements occupancy simulate"
    found = commands()
    for name in before.split():
        for more in ((), ("--help",), ("x", "-o", "y")):
            status, out, err = run(name, *more)
            assert (status, out, err.count("\n")) == (2, "", 1)
            words = re.fullmatch(rf"bayesrisk: `bayesrisk {name}` is now `bayesrisk (.*)`\n", err)[
                1
            ]
            assert any(words.startswith(one) for one in found), words
    for words, option, now in (
        ("release x", "--mechanism", "--protection"),
        ("release x", "--levels", "--level"),
        ("audit x", "--attack", "--adversary"),
        ("audit x", "--keys", "--known"),
        ("audit x", "--sensitive", "--stated"),
        ("attack x", "--attacker", "--adversary"),
        ("census occupancy study", "--swap-rate", "--protection swapping:rate=RATE"),
    ):
        status, out, err = run(*words.split(), option, "y")
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert err.endswith(f"is now `{now}`\n")


def test_examples_are_command_lines_that_can_be_read():
    for words, command in commands().items():
        example = command.epilog.removeprefix("Example: bayesrisk ").split()[len(words.split()) :]
        assert command.make_context(words, example).params


RUNS = ("workers", "executor", "scheduler", "shard", "resume")


def options_of(command):
    return {p.name: p for p in command.params if p.param_type_name == "option"}


def test_options_mean_the_same_everywhere():
    """One name has one spelling and one sentence of help; those of runs also one default."""
    seen = {}
    for words, command in commands().items():
        options = options_of(command)
        assert "as_json" in options
        # Places of a plan are threads of one process, which cannot be shards of a cluster.
        runs = set(RUNS) - ({"workers", "resume"} if words.split()[-1] == "plan" else set())
        assert runs <= set(options) or not options.keys() & runs, words
        for name in {*RUNS, "as_json", "quiet", "seed"} & set(options):
            # Where a seed must be given, or which it is else, differs.
            own = (options[name].opts, options[name].help.partition(" [")[0].rstrip("."))
            own += () if name == "seed" else (options[name].default,)
            assert seen.setdefault(name, own) == own, words
    assert set(seen) == {*RUNS, "as_json", "quiet", "seed"}


def test_an_interrupt_of_any_command_is_one_line(run, monkeypatch):
    def stop(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("bayesrisk.census.population_spec", stop)
    status, out, err = run(
        "census", "simulate", "--preset", "tract", "-o", "nowhere", "--seed", "1"
    )
    assert (status, out, err) == (130, "", "bayesrisk: interrupted\n")


def test_the_first_number_loads_only_what_it_needs():
    code = (
        "import sys; sys.argv = ['bayesrisk', 'risk', '--rho', '0.1', '--prior', '0.1', '3']\n"
        "import scipy.linalg; before = set(sys.modules)\n"  # older ones load scipy.sparse with it
        "from bayesrisk.cli.app import app\n"
        "app(standalone_mode=False)\n"
        "heavy = {'pandas', 'pyarrow', 'scipy.stats', 'scipy.optimize', 'scipy.sparse'}\n"
        "print(sorted(heavy & (set(sys.modules) - before)), 'numba' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[] True"


LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv.pop(1)) << 20, resource.RLIM_INFINITY))
from bayesrisk.__main__ import main
main()
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="a limit of addresses that Linux keeps")
@pytest.mark.parametrize("megabytes", [200, 400, 600])
def test_what_cannot_be_loaded_within_a_limit_of_memory_is_no_defect(megabytes, tmp_path):
    (tmp_path / "r.csv").write_text("block,sex\n" + "1,F\n2,M\n" * 9)
    line = ["release", "r.csv", "--protection", "identity", "-o", "out"]
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(megabytes), *line],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stdout == ""
    last = done.stderr.splitlines()[-1]
    assert f"limited to {megabytes} MB" in last
    assert "defect" not in done.stderr
    assert "Traceback" not in done.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["r.csv"]


@pytest.mark.parametrize(
    ("error", "defect"),
    [
        (MemoryError(), False),
        (ImportError("no name", name="bayesrisk.cli"), True),
        (ImportError("no library", name="numpy"), True),  # nothing was being loaded
        (OSError("no such file"), True),
    ],
)
def test_what_this_machine_lacks_is_told_from_a_defect(error, defect, monkeypatch, capsys):
    def fails():
        raise error

    monkeypatch.setattr("bayesrisk.cli.app.app", fails)
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 1
    assert ("this is a defect of bayesrisk" in capsys.readouterr().err) == defect


def test_a_number_that_is_none_is_named():
    command = [sys.executable, "-m", "bayesrisk", "audit", "x.csv", "--targets", "ten"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--targets must be a whole number, got 'ten'" in done.stderr
