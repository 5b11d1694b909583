"""Imports run one way: laws, accounting, adversary, auditor, experiments, command line.

The zones stand in the order in which they may know each other.  A module may import what is
strictly to its left, and its own package; a helper shared by everybody is furthest left.
"""

import ast
from pathlib import Path

import pytest

import bayesrisk

ROOT = Path(bayesrisk.__file__).parent
ZONES = [
    {"exceptions", "_version"},
    {"_parse"},
    {"_text", "_parquet", "_parquet_footer"},
    {"_files", "_highs", "_validation", "_numba", "_plugins", "_random", "interfaces"},
    {"distributions"},
    {"accounting"},
    {"tables"},
    {"_release_io"},
    {"release"},
    {"readers"},
    {"population"},
    {"mechanisms"},
    {"inference"},
    {"reconstruction"},
    {"risk"},
    {"samples", "plotting"},
    {"experiments"},
    {"cli_data", "cli_progress"},
    {
        "cli_claims",
        "cli_convert_file",
        "cli_hierarchy",
        "cli_nmf",
        "cli_reconstruct",
        "cli_reidentify",
        "cli_release",
        "cli_occupancy",
        "cli_simulate",
        "cli_tables",
    },
    {"cli"},
]
RANK = {name: rank for rank, zone in enumerate(ZONES) for name in zone}
# Code of the adversary, and what it must not know: who holds records, who draws, who judges.
ADVERSARY = {"inference", "reconstruction"}
CUSTODIAN = {"readers", "population", "mechanisms", "risk", "samples", "plotting", "experiments"}
MICRODATA = {
    f"tables.{name}"
    for name in (
        "Histogram",
        "Microdata",
        "Records",
        "as_microdata",
        "histogram",
        "iter_records",
        "microdata",
        "records",
        "tabulate",
        "tabulate_records",
    )
}
# The last zone starts programs; the package root only lists names.
ROOT_MODULES = {"", "__main__"}
FORBIDDEN_CALLS = {"eval", "exec", "os.system", "os.popen", "pickle.load", "pickle.loads"}
FORBIDDEN_MODULES = {"pickle", "cPickle", "dill", "shelve", "marshal", "cloudpickle", "joblib"}


def modules():
    """Return every module of the package as (dotted name below bayesrisk, source)."""
    found = {}
    for file in sorted(ROOT.rglob("*.py")):
        parts = file.relative_to(ROOT).with_suffix("").parts
        found[".".join(p for p in parts if p != "__init__")] = file.read_text(encoding="utf-8")
    return found


MODULES = modules()


def zone_of(name):
    return name.split(".")[0]


def imported(source):
    """Return the dotted names that a module imports, anywhere in it but for type checkers."""
    tree = ast.parse(source)
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def own_zones(source):
    """Return the zones of bayesrisk that a module imports from."""
    found = set()
    for name in imported(source):
        first, *rest = name.split(".")
        if first == "bayesrisk":
            found.add(rest[0] if rest and rest[0] in RANK else "")
    return found


def violations(name, source):
    """Return the zones that a module imports though they are not to the left of its own."""
    zone = zone_of(name)
    return {
        other
        for other in own_zones(source)
        if other == "" or (other != zone and RANK[other] >= RANK[zone])
    }


def truth_seen(source):
    """Return what a module imports that holds, or is made from, confidential records."""
    own = {n.removeprefix("bayesrisk.") for n in imported(source) if n.startswith("bayesrisk.")}
    parts = {".".join(name.split(".")[:2]) for name in own}
    return {n for n in parts if n in MICRODATA} | {z for z in own_zones(source) if z in CUSTODIAN}


def outsiders(source):
    """Return the top-level packages that a module imports."""
    return {name.split(".")[0] for name in imported(source)}


def dangers(source):
    """Return calls and imports that run text, foreign bytes or a shell."""
    found = outsiders(source) & FORBIDDEN_MODULES
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called in FORBIDDEN_CALLS:
                found.add(called)
            for keyword in node.keywords:
                value = ast.unparse(keyword.value)
                if keyword.arg == "shell" and value != "False":
                    found.add("shell")
                if keyword.arg == "allow_pickle" and value != "False":
                    found.add("allow_pickle")
            if called.endswith("read_pickle"):
                found.add(called)
    return found


def test_every_module_has_a_zone():
    assert {zone_of(name) for name in MODULES} - ROOT_MODULES <= set(RANK)
    assert {"distributions.convolution", "risk.block", "inference.posterior"} <= set(MODULES)


@pytest.mark.parametrize("name", sorted(set(MODULES) - ROOT_MODULES))
def test_imports_run_one_way(name):
    assert violations(name, MODULES[name]) == set()


def test_the_adversary_never_sees_the_truth():
    for name, source in MODULES.items():
        if zone_of(name) in ADVERSARY:
            assert truth_seen(source) == set()


@pytest.mark.parametrize(
    ("source", "seen"),
    [
        ("from bayesrisk.tables.records import Records", {"tables.records"}),
        ("from bayesrisk.tables import Microdata, Workload", {"tables.Microdata"}),
        ("from bayesrisk.mechanisms import make_mechanism", {"mechanisms"}),
        ("from bayesrisk.tables import PublishedTables", set()),
        ("from bayesrisk.release import Release", set()),
    ],
)
def test_the_leak_check_sees_leaks(source, seen):
    assert truth_seen(source) == seen


@pytest.mark.parametrize(
    ("name", "source", "caught"),
    [
        ("inference.posterior", "from bayesrisk.risk.block import marginal_risk", {"risk"}),
        ("inference.posterior", "def f():\n    import bayesrisk.risk", {"risk"}),
        ("inference.posterior", "from bayesrisk import risk", {"risk"}),
        ("distributions.finite", "from bayesrisk.accounting import compose_rho", {"accounting"}),
        ("samples", "import bayesrisk.plotting", {"plotting"}),
        ("risk.block", "from bayesrisk import marginal_risk", {""}),
        ("risk.block", "import bayesrisk", {""}),
        ("risk.block", "from bayesrisk import _validation as check", set()),
        ("risk.block", "from bayesrisk.risk import _kernels\nimport numpy", set()),
        (
            "risk.block",
            "if TYPE_CHECKING:\n    from bayesrisk.experiments import SweepConfig",
            set(),
        ),
    ],
)
def test_the_check_sees_violations(name, source, caught):
    assert violations(name, source) == caught


HOMES = {"numba": {"_numba"}, "matplotlib": {"plotting"}}


@pytest.mark.parametrize(
    "package", [*HOMES, "arviz", "clarabel", "pulp", "highspy", "dask", "distributed"]
)
def test_heavy_packages_have_one_home(package):
    users = {name for name, source in MODULES.items() if package in outsiders(source)}
    assert {zone_of(user) for user in users} <= HOMES.get(package, set(RANK))
    assert len(users) <= 1


def test_dask_and_distributed_share_their_home():
    users = {n for n, s in MODULES.items() if outsiders(s) & {"dask", "distributed"}}
    assert len(users) <= 1


@pytest.mark.parametrize("package", ["typer", "rich"])
def test_the_terminal_is_the_business_of_the_command_line(package):
    users = {name for name, source in MODULES.items() if package in outsiders(source)}
    others = {user for user in users if not user.startswith(("cli", "__main__"))}
    assert len(others) <= 1
    assert {zone_of(user) for user in others} <= {"experiments"}


@pytest.mark.parametrize("name", sorted(MODULES))
def test_nothing_runs_text_or_foreign_bytes(name):
    assert dangers(MODULES[name]) == set()


@pytest.mark.parametrize(
    ("source", "caught"),
    [
        ("import pickle", {"pickle"}),
        ("from pickle import loads", {"pickle"}),
        ("eval('1')", {"eval"}),
        ("import os\nos.system('ls')", {"os.system"}),
        ("subprocess.run('ls', shell=True)", {"shell"}),
        ("np.load(f, allow_pickle=True)", {"allow_pickle"}),
        ("pd.read_pickle(f)", {"pd.read_pickle"}),
        ("subprocess.run(['ls'], shell=False)\nre.compile('eval')", set()),
    ],
)
def test_the_danger_check_sees_dangers(source, caught):
    assert dangers(source) == caught


def test_imports_are_absolute():
    with pytest.raises(AssertionError, match="absolute"):
        imported("from . import risk")
