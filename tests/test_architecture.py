"""Imports run one way: laws, accounting, adversary, auditor, experiments, command line.

The zones stand in the order in which they may know each other.  A module may import what is
strictly to its left, and its own package; a helper shared by everybody is furthest left.
"""

import ast
import functools
from pathlib import Path

import house
import near
import pytest

import bayesrisk
from bayesrisk._base.compiling import uncollected
from bayesrisk.mechanisms.registry import REGISTRY as MECHANISMS

ROOT = Path(bayesrisk.__file__).parent
ZONES = [
    {"_version", "exceptions"},
    {"_base"},
    {"answers"},
    {"distributions"},
    {"accounting"},
    {"tables"},
    {"release"},
    {"interfaces"},
    {"constraints"},
    {"mechanisms"},
    {"inference"},
    {"reconstruction"},
    {"plotting"},
    {"risk"},
    {"datasets"},
    {"experiments"},
    {"verbs"},
    # The wing of census bureaus: nothing before it knows it.
    {"census.readers"},
    {"census.population"},
    {"census.occupancy"},
    {"census.studies"},
    {"census"},
    {"cli"},
    {"census.cli"},
]
# The order of the rooms, files or folders, inside a zone: each may know those before it.  A star
# stands for all rooms that are not named, so that another mechanism needs no line here.
ROOMS = {
    "_base": (
        "calls frames interrupts old_names wings | compiling disk display randomness | validation"
        " | doors lazy plugins"
    ),
    "census.cli": "*",
    "census.occupancy": "household_law statistics | programs | solutions | detection variability",
    "census.population": (
        "figures households | spec | race_ethnicity | subsidies | simulate | nation summary years"
    ),
    "census.readers": "geocodes text | *",
    "census.studies": (
        "linkage_words linked_counties measurement_counts nation_attack"
        " | measurement_evidence occupancy_risk occupancy_results"
        " | measurement_risk occupancy_attack occupancy_beliefs reidentification"
        " | measurement_unit occupancy"
    ),
    "accounting": "budget | conversion loss_parts | loss_sums | privacy_loss",
    "cli": (
        "former_names | command printing recipes | options | data | sources | first_look | * | app"
    ),
    "cli.protect": "tabulation | *",
    "constraints": (
        "implied | model | solvers certificates | propagation search"
        " | highs _pulp | refutation | ends"
    ),
    "distributions": "base | kernels | discrete_gaussian | discrete_laplace sums",
    "experiments": (
        "runs pages clock | place_bounds | by_place sweep table_reports"
        " | reconstruction sweep_document sweep_report | folder_attack | audit *"
    ),
    "inference": "count simulated | tree two_levels | sampling | microdata",
    "mechanisms": "samplers | base | registry coarsening | * | rules",
    "plotting": "_canvas | attacks audit counts ",
    "reconstruction": (
        "check_proof matching persons registry | linkage | records | claims | prover | *"
    ),
    "release": "specification | release",
    "risk": (
        "count intervals mechanism | microdata | linkage membership two_levels"
        " | statements | audit | planning"
    ),
    "tables": (
        "_documents likelihoods | schema | _grammar records | cells |"
        " workload sheets | exchange reading linked change | microdata published | tabulation"
    ),
}
RANK = {name: rank for rank, zone in enumerate(ZONES) for name in zone}
# Code of the adversary, and what it must not know: who holds records, who draws, who judges.
ADVERSARY = {"constraints", "census.occupancy", "inference", "reconstruction"}
CUSTODIAN = {
    "census",
    "census.population",
    "census.readers",
    "census.studies",
    "datasets",
    "experiments",
    "mechanisms",
    "plotting",
    "risk",
}
MICRODATA = {
    f"tables.{name}"
    for name in (
        "Histogram",
        "Microdata",
        "Records",
        "as_microdata",
        "iter_records",
        "microdata",
        "records",
        "tabulate",
        "tabulation",
    )
}
# The last zone starts programs; the package root only lists names.
ROOT_MODULES = {"", "__main__"}
# Calls of eval, exec, a shell or a pickle are refused by the rules S of ruff.
FORBIDDEN_MODULES = {"pickle", "cPickle", "dill", "shelve", "marshal", "cloudpickle", "joblib"}


parsed = house.parsed


@functools.cache
def nodes(source, *kinds):
    """Return the nodes of a source of some kinds, in the order of ``ast.walk``."""
    if not kinds:
        return tuple(ast.walk(parsed(source)))
    return tuple(node for node in nodes(source) if isinstance(node, kinds))


def modules():
    """Return every module of the package as (dotted name below bayesrisk, source)."""
    found = {}
    for file in sorted(ROOT.rglob("*.py")):
        parts = file.relative_to(ROOT).with_suffix("").parts
        found[".".join(p for p in parts if p != "__init__")] = file.read_text(encoding="utf-8")
    return found


MODULES = modules()


@pytest.fixture(scope="module", autouse=True)
def forgotten():
    """Let nobody look through the trees, a million objects, for what can go; then forget them."""
    with uncollected():
        yield
    nodes.cache_clear()
    parsed.cache_clear()


def zone_of(name):
    """Return the zone of a dotted name: its first room, in the wing of censuses its first two."""
    first, *rest = name.split(".")
    inner = ".".join([first, *rest[:1]])
    return inner if inner in RANK else first


@functools.cache
def imported(source):
    """Return the dotted names that a module imports, anywhere in it but for type checkers."""
    typing = {
        id(part)
        for node in nodes(source, ast.If)
        if getattr(node.test, "id", "") == "TYPE_CHECKING"
        for part in node.body
    }
    names = set()
    for node in nodes(source, ast.Import, ast.ImportFrom):
        if id(node) in typing:
            continue
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
            found.add(zone if rest and (zone := zone_of(".".join(rest))) in RANK else "")
    return found


def violations(name, source):
    """Return the zones that a module imports though they are not to the left of its own.

    Commands come last, and call the package by its public names as users do.
    """
    zone = zone_of(name)
    found = own_zones(source) - ({""} if zone in ("cli", "census.cli") else set())
    return {other for other in found if not other or (other != zone and RANK[other] >= RANK[zone])}


def truth_seen(source):
    """Return what a module imports that holds, or is made from, confidential records."""
    own = {n.removeprefix("bayesrisk.") for n in imported(source) if n.startswith("bayesrisk.")}
    parts = {".".join(name.split(".")[:2]) for name in own}
    parts |= {f"tables.{n.split('.')[-1]}" for n in own if n.startswith("tables.")}
    return {n for n in parts if n in MICRODATA} | {z for z in own_zones(source) if z in CUSTODIAN}


def outsiders(source):
    """Return the top-level packages that a module imports."""
    return {name.split(".")[0] for name in imported(source)}


def dangers(source):
    """Return imports and arguments by which foreign bytes run."""
    arguments = {keyword.arg for node in nodes(source, ast.Call) for keyword in node.keywords}
    return (outsiders(source) & FORBIDDEN_MODULES) | (arguments & {"allow_pickle"})


def test_every_module_has_a_zone():
    assert {zone_of(name) for name in MODULES} - ROOT_MODULES <= set(RANK)
    assert {"distributions.sums", "risk.count.averages", "inference.count.posterior"} <= set(
        MODULES
    )


def faults(rule, names):
    """Return what breaks a rule, by module."""
    return {name: broken for name in sorted(names) if (broken := rule(name))}


def test_imports_run_one_way():
    assert faults(lambda n: violations(n, MODULES[n]), set(MODULES) - ROOT_MODULES) == {}


def steps(zone):
    """Return the number of every room in the order of a zone."""
    order = ROOMS[zone]
    order = order.replace("*", " ".join(rooms(zone) - set(order.split())))
    return {room: step for step, part in enumerate(order.split(" | ")) for room in part.split()}


def backwards(name, source):
    """Return the rooms of its own zone that a module imports though they do not come before."""
    zone = zone_of(name)
    room = room_of(name, zone)
    rank = steps(zone)
    found = set()
    for imported_name in imported(source):
        other = room_of(imported_name.removeprefix("bayesrisk."), zone)
        if imported_name.startswith(f"bayesrisk.{zone}.") and other in rank:
            found |= {other} if other != room and rank[other] >= rank[room] else set()
    return found


def room_of(name, zone):
    """Return the room of a module in its zone: a file, or a folder."""
    return name.removeprefix(f"{zone}.").split(".")[0]


def rooms(zone):
    return {room_of(name, zone) for name in MODULES if zone_of(name) == zone and name != zone}


@pytest.mark.parametrize("zone", sorted(z for z in RANK if rooms(z)))
def test_every_room_has_its_place(zone):
    assert set(steps(zone)) == rooms(zone)
    assert len(rooms(zone)) <= 15


def test_rooms_stand_in_order():
    inside = [name for name in MODULES if name not in RANK and name not in ROOT_MODULES]
    assert faults(lambda n: backwards(n, MODULES[n]), inside) == {}


def test_the_order_of_rooms_can_be_broken():
    source = "from bayesrisk.risk.membership import rho_for_advantage"
    assert backwards("risk.count.averages", source) == {"membership"}
    assert backwards("risk.statements.claims", source) == set()
    source = "from bayesrisk.mechanisms.coarsening import Rounding"
    assert backwards("mechanisms.base", source) == {"coarsening"}


def targets(name):
    """Return the modules that a module imports, by type checkers too."""
    found = set()
    for node in nodes(MODULES[name], ast.ImportFrom):
        own = (node.module or "").removeprefix("bayesrisk").removeprefix(".")
        if (node.module or "").split(".")[0] == "bayesrisk":
            for alias in node.names:
                full = f"{own}.{alias.name}".removeprefix(".")
                found.add(full if full in MODULES else own)
    return found


def circles(arrows):
    """Return the modules that can be reached from themselves."""
    reached = {name: set(others) for name, others in arrows.items()}
    for middle in reached:
        for others in reached.values():
            if middle in others:
                others |= reached[middle]
    return {name for name, others in reached.items() if name in others}


def test_no_module_imports_itself_by_way_of_others():
    assert circles({name: targets(name) & set(MODULES) for name in MODULES}) == set()


def test_circles_are_seen():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == {"a", "b", "c"}


def private_doors(name, source):
    """Return what a module takes from underscored modules, or underscored names, of others."""
    here = name.rpartition(".")[0] if name in MODULES and not is_folder(name) else name
    found = set()
    aliases = {}
    for node in nodes(source):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bayesrisk"):
            own = node.module.removeprefix("bayesrisk").removeprefix(".")
            for alias in node.names:
                path = f"{own}.{alias.name}".removeprefix(".").split(".")
                if ".".join(path) in MODULES:
                    aliases[alias.asname or alias.name] = ".".join(path)
                for i, part in enumerate(path):
                    owner = ".".join(path[:i])
                    if owner in MODULES and not is_folder(owner):
                        owner = owner.rpartition(".")[0]  # a name of a file
                    private = part.startswith("_") and not part.startswith("__")
                    # The floor that all stand on, and the module's own folder, are no other's.
                    if private and owner not in ("", here) and not here.startswith(f"{owner}."):
                        found.add(".".join(path))
    for node in nodes(source):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            home = aliases.get(node.value.id, "")
            private = node.attr.startswith("_") and not node.attr.startswith("__")
            if home and private and home.rpartition(".")[0] != here:
                found.add(f"{home}.{node.attr}")
    return found


def is_folder(name):
    return (ROOT / name.replace(".", "/")).is_dir()


def test_private_names_stay_in_their_folder():
    assert faults(lambda n: private_doors(n, MODULES[n]), MODULES) == {}


def test_private_doors_are_seen():
    source = "from bayesrisk.inference.tree._sum_product import Plan"
    assert private_doors("risk.count.averages", source) == {"inference.tree._sum_product.Plan"}
    assert private_doors("inference.tree.posterior", source) == set()
    source = "from bayesrisk.inference.tree import posterior\nposterior._read()"
    assert private_doors("inference.sampling.tree", source) == {"inference.tree.posterior._read"}
    assert private_doors("inference.tree.posterior", source) == set()


def test_the_adversary_never_sees_the_truth():
    for name, source in MODULES.items():
        if zone_of(name) in ADVERSARY:
            assert truth_seen(source) == set()


@functools.cache
def listed_names(face):
    """Return the module of each public name that a face lists."""
    listing = (ROOT / face.replace(".", "/")).joinpath("__init__.pyi")
    if not listing.is_file():
        return {}
    lines = [n for n in ast.walk(ast.parse(listing.read_text())) if isinstance(n, ast.ImportFrom)]
    below = f"{face}." if face else ""
    return {alias.name: f"{below}{line.module}" for line in lines for alias in line.names}


def neighbours(name):
    """Return the modules that a module imports; of a public name, the one that defines it."""
    found = set()
    for dotted in imported(MODULES[name]):
        if dotted.startswith("bayesrisk."):
            module = dotted.removeprefix("bayesrisk.")
            face, _, last = module.rpartition(".")
            module = listed_names(face).get(last, module) if module not in MODULES else module
            found.add(module if module in MODULES else module.rpartition(".")[0])
    return found & MODULES.keys()


def reached(name):
    """Return the modules that a module imports, or that those import, and so on."""
    found, left = set(), {name}
    while left:
        module = left.pop()
        found.add(module)
        left |= neighbours(module) - found
    return found


def truth_reached(name):
    """Return what a module imports, through others too, that holds or makes records."""
    return {m for m in reached(name) if m in MICRODATA or zone_of(m) in CUSTODIAN}


def test_the_adversary_reaches_no_truth_through_others():
    for name in MODULES:
        if zone_of(name) in ADVERSARY:
            assert truth_reached(name) == set(), name


def test_truth_that_is_reached_through_others_is_seen():
    assert "tables.records" in truth_reached("tables.tabulation")
    assert "tables.records" in truth_reached("experiments.by_place")
    assert "tables.workload" in reached("inference.microdata.posterior")
    assert "tables.published" in reached("reconstruction.records.bounds")


@pytest.mark.parametrize(
    ("source", "seen"),
    [
        ("from bayesrisk.tables.records import Records", {"tables.records", "tables.Records"}),
        ("from bayesrisk.tables import Microdata, Workload", {"tables.Microdata"}),
        ("import bayesrisk.tables.tabulation", {"tables.tabulation"}),
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
        (
            "inference.count.posterior",
            "from bayesrisk.risk.count.averages import marginal_risk",
            {"risk"},
        ),
        ("inference.count.posterior", "def f():\n    import bayesrisk.risk", {"risk"}),
        ("inference.count.posterior", "from bayesrisk import risk", {"risk"}),
        ("distributions.sums", "from bayesrisk.accounting import split_rho", {"accounting"}),
        ("datasets", "import bayesrisk.experiments", {"experiments"}),
        ("risk.count.averages", "from bayesrisk import marginal_risk", {""}),
        ("risk.count.averages", "import bayesrisk", {""}),
        ("risk.count.averages", "from bayesrisk._base import validation as check", set()),
        ("risk.count.averages", "from bayesrisk.risk.count import kernels\nimport numpy", set()),
        (
            "risk.count.averages",
            "if TYPE_CHECKING:\n    from bayesrisk.experiments import SweepStudy",
            set(),
        ),
    ],
)
def test_the_check_sees_violations(name, source, caught):
    assert violations(name, source) == caught


HOMES = {"numba": {"_base"}, "matplotlib": {"plotting"}}


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
    others = {user for user in users if not user.startswith(("cli", "census.cli", "__main__"))}
    assert len(others) <= 1
    assert {zone_of(user) for user in others} <= {"experiments"}


def test_nothing_runs_foreign_bytes():
    assert faults(lambda n: dangers(MODULES[n]), MODULES) == {}


@pytest.mark.parametrize(
    ("source", "caught"),
    [
        ("import pickle", {"pickle"}),
        ("from pickle import loads", {"pickle"}),
        ("np.load(f, allow_pickle=True)", {"allow_pickle"}),
        ("subprocess.run(['ls'])\nre.compile('pickle')", set()),
    ],
)
def test_the_danger_check_sees_dangers(source, caught):
    assert dangers(source) == caught


COMPILED = {"kernel", "lean_kernel", "elementwise", "step", "lean_step"}


def declared(source, kinds):
    """Return the functions that are declared as kernels of some kinds, or as their steps."""
    return [
        node
        for node in nodes(source, ast.FunctionDef)
        if {ast.unparse(d).partition("(")[0] for d in node.decorator_list} & kinds
    ]


def bound(source, kinds, package):
    """Return the names by which a module knows of what is declared as some kinds."""
    names = {node.name: node.name for node in declared(source, kinds)}
    for node in nodes(source, ast.ImportFrom):
        home = (node.module or "").removeprefix("bayesrisk").removeprefix(".")
        for alias in node.names:
            name, module = alias.asname or alias.name, f"{home}.{alias.name}".removeprefix(".")
            if alias.name in {part.name for part in declared(package.get(home, ""), kinds)}:
                names[name] = alias.name
            for part in declared(package.get(module, ""), kinds):
                names[f"{name}.{part.name}"] = part.name
    return names


def used(source, inside, names):
    """Return those of some names that are used in some functions."""
    parts = [
        n for node in inside for n in ast.walk(node) if isinstance(n, ast.Name | ast.Attribute)
    ]
    return [(n, names[text]) for n in parts if (text := ast.unparse(n)) in names]


def steps_run_by_python(source, package=MODULES):
    """Return the steps of kernels that code which is not compiled knows of: it would be slow."""
    names = bound(source, {"step", "lean_step"}, package)
    compiled = {id(n) for n, _ in used(source, declared(source, COMPILED), names)}
    return {name for n, name in used(source, [parsed(source)], names) if id(n) not in compiled}


def counted_references(source, package=MODULES):
    """Return kernels and steps that make arrays, and are called by lean ones."""
    names = bound(source, {"kernel", "step"}, package)
    lean = declared(source, {"lean_kernel", "lean_step"})
    return {name for _, name in used(source, lean, names)}


def test_lean_kernels_call_lean_ones_alone():
    assert faults(lambda n: counted_references(MODULES[n]), MODULES) == {}
    source = "@step\ndef f(x): return x\n@lean_kernel\ndef g(x): return f(x)"
    assert counted_references(source) == {"f"}


def test_steps_are_run_by_kernels_alone():
    assert faults(lambda n: steps_run_by_python(MODULES[n]), MODULES) == {}
    steps_known = (declared(source, {"step", "lean_step"}) for source in MODULES.values())
    assert sum(map(len, steps_known)) > 50


STEP = "@lean_step\ndef part(x): return x\n"


@pytest.mark.parametrize(
    ("source", "seen"),
    [
        (f"{STEP}@kernel\ndef whole(x): return part(x)", set()),
        (f"{STEP}def caller(x): return part(x)", {"part"}),
        ("from bayesrisk.room import part as p\nrun(p)", {"part"}),
        ("from bayesrisk.room import part\n@elementwise('d(d)')\ndef f(x): return part(x)", set()),
        ("from bayesrisk import room\nroom.part(3)", {"part"}),
        ("from bayesrisk import other\nother.part(3)", set()),
    ],
)
def test_a_step_that_python_runs_is_seen(source, seen):
    assert steps_run_by_python(source, {"room": STEP}) == seen


# Names of protections that a study of a paper compares, chosen from its own list.
STUDIES = {
    "census.studies.nation_attack", "census.studies.occupancy", "census.studies.occupancy_results",
    "plotting.attacks",
}  # fmt: skip
# Names of laws of noise, too, which everybody may know.
MECHANISM_NAMES = set(MECHANISMS.builtin) - {"discrete-gaussian", "discrete-laplace"}
MECHANISM_NAMES -= {"ranges", "threshold", "none"}  # words of parameters and columns, too


def mechanisms_known(source):
    """Return names of mechanisms that code compares or lists, and comparisons of ``.mechanism``."""
    found = set()
    for node in nodes(source):
        parts = []
        if isinstance(node, ast.Compare):
            parts = [node.left, *node.comparators]
            found |= {".mechanism" for p in parts if getattr(p, "attr", "") == "mechanism"}
        elif isinstance(node, (ast.Set, ast.List, ast.Tuple)):
            parts = node.elts
        elif isinstance(node, ast.Dict):
            parts = node.keys
        elif isinstance(node, ast.MatchValue):
            parts = [node.value]
        elif isinstance(node, ast.Subscript):
            parts = [node.slice]
        constants = {part.value for part in parts if isinstance(part, ast.Constant)}
        found |= constants & MECHANISM_NAMES
    return found


def test_a_mechanism_is_known_by_its_spec_and_not_by_its_name():
    others = {name for name in MODULES if zone_of(name) != "mechanisms"} - STUDIES
    assert faults(lambda n: mechanisms_known(MODULES[n]), others) == {}


@pytest.mark.parametrize(
    ("source", "caught"),
    [
        ("if spec.mechanism == 'rounding': pass", {"rounding", ".mechanism"}),
        ("proved = spec.mechanism in TRUE", {".mechanism"}),
        ("TRUE = ('recode', 'suppression')", {"recode", "suppression"}),
        ("words = {'topdown': 1}", {"topdown"}),
        ("match name:\n    case 'swapping': pass", {"swapping"}),
        ("base = known['bottom-up']", {"bottom-up"}),
        ("'rounding'\nmake_mechanism('rounding')\nname = spec.mechanism", set()),
        ("law == 'discrete-gaussian'", set()),
    ],
)
def test_names_of_mechanisms_are_seen(source, caught):
    assert mechanisms_known(source) == caught


def test_imports_are_absolute():
    with pytest.raises(AssertionError, match="absolute"):
        imported("from . import risk")


# A file is a chapter, a folder is a shelf, and a name of a class is one thing.
LONGEST = 800
FACES = {"", "answers", "datasets", "exceptions", "interfaces", "verbs"}


def test_a_file_is_a_chapter():
    assert {n: lines for n, s in MODULES.items() if (lines := s.count("\n")) > LONGEST} == {}


def test_two_rulers_are_two_files():
    assert house.ruled_files() == []


def test_a_folder_is_a_shelf():
    folders = [folder for folder in ROOT.rglob("*") if any(folder.glob("*.py"))]
    assert [f.name for f in [ROOT, *folders] if len(list(f.glob("*.py"))) > 16] == []


def lists_names(source):
    """Return whether a module says what is public in it."""
    return any(
        "__all__" in ast.unparse(n) for n in parsed(source).body if isinstance(n, ast.Assign)
    )


def test_names_are_listed_where_a_folder_says_what_is_public():
    assert {n for n, s in MODULES.items() if lists_names(s) and not is_folder(n)} <= FACES


def first_line(node):
    return (ast.get_docstring(node) or "").partition("\n")[0]


def test_a_docstring_says_what_comes_out():
    """In the words of the field: nobody is looked for who knows, nothing is what something is."""
    begins = {
        f"{name}.{getattr(node, 'name', '')}": first_line(node)
        for name, source in MODULES.items()
        for node in nodes(source, ast.Module, ast.ClassDef, ast.FunctionDef)
    }
    wrong = ("What ", "Whoever ", "Return what ", "Return how ", "Yield what ", "Yield how ")
    assert {n: line for n, line in begins.items() if line.startswith(wrong)} == {}


def test_a_name_of_a_class_is_one_thing():
    homes = {}
    for name, source in MODULES.items():
        for node in nodes(source, ast.ClassDef):
            homes.setdefault(node.name, []).append(name)
    assert {kind: found for kind, found in homes.items() if len(found) > 1} == {}


# Names that users give or read, and that stay: arguments, options, keys and columns.
PUBLIC_WORDS = {
    "accounting.privacy_loss": ["of"],
    "cli.audit": ["known"],
    "cli.protect.plan": ["known"],
    "cli.first_look": ["known"],
    "cli.protect.release": ["by"],
    "cli.sources": ["by"],
    "cli.protect.tabulation": ["by"],
    "exceptions": ["shown"],
    "experiments.sweep_document": ["from_", "to"],
    "inference.microdata.prior": ["where"],
    "inference.microdata.posterior": ["known"],
    "inference.microdata.questions": ["where"],
    "inference.sampling.chains": ["of"],
    "inference.simulated": ["seen"],
    "inference.two_levels.posterior": ["group_pmf_of"],
    "mechanisms.swapping.mechanism": ["within"],
    "release.specification": ["others"],
    "risk.audit.adversaries": ["known"],
    "risk.count.blocks": ["found"],
    "risk.count.distribution": ["given", "others"],
    "risk.count.budgets": ["found"],
    "risk.microdata": ["found", "unique_original_found"],
    "risk.planning.ladders": ["within"],
    "risk.statements.results": ["known"],
    "risk.statements.statements": ["of"],
    "tables._documents": ["where"],
    "tables.exchange": ["there"],
    "tables.likelihoods": ["drawn"],
    "tables.linked": ["where"],
    "tables.workload": ["at", "of"],
}


def test_names_are_nouns_and_verbs():
    """No preposition, pronoun, adverb, or participle without its noun, but in words of users."""
    loose = {name: house.loose_names(source) for name, source in MODULES.items()}
    assert {name: words for name, words in loose.items() if words} == PUBLIC_WORDS


def test_loose_names_are_seen():
    source = "def rows_of(at, /):\n    found = self._told = at\n    kept_rows = ratio = found\n"
    assert house.loose_names(source) == ["_told", "at", "found", "rows_of"]


# Test files that mirror no module, and why: whole folders, and files at the top.
MIRROR_NOTHING = {
    "fuzz": "files, calls and commands that are damaged at random, whatever reads them",
    "real": "records and tables that are not shipped, through the whole package",
    "reference": "numbers that papers print, by paper",
    "whole": "several modules together, from end to end",
    "test_architecture.py": "all modules, by their source",
    "test_docs.py": "pages of the documentation",
    "test_limits.py": "a page of the documentation",
    "test_mutations.py": "benchmarks/mutations.py",
    "test_near.py": "benchmarks/near.py",
    "test_notebooks.py": "notebooks",
    "test_oracles.py": "oracles",
    "test_pages.py": "pages of the documentation in a browser",
    "test_peers.py": "benchmarks/peers",
    "test_project.py": "workflows, and the list of changes",
    "test_public_api.py": "all public names",
    "test_r.py": "programs of a page in R",
    "test_readme.py": "README.md",
    "test_targets.py": "benchmarks/targets.py",
    "test_wing.py": "the wing of census bureaus",
}


def without_module(files):
    """Return test files that mirror no module by path and name, and are not listed as such."""
    return {
        file for file in files
        if not near.mirrored(file) and Path(file).parts[1] not in MIRROR_NOTHING
    }  # fmt: skip


def test_each_test_file_mirrors_a_module():
    """Its name is that of a module of the same folder, alone or with a topic: test_MODULE_TOPIC.py.

    Many topics of one module may have a folder of the module's name; a test of a whole folder is
    named after that; tests of several modules go to tests/whole.
    """
    assert without_module(near.test_files()) == set()
    listed = {Path(file).parts[1] for file in near.test_files() if not near.mirrored(file)}
    assert listed == set(MIRROR_NOTHING)


def test_a_test_without_a_module_is_seen():
    files = {
        "tests/risk/test_intervals.py", "tests/risk/test_intervals_of_blocks.py",
        "tests/plotting/test_canvas.py", "tests/inference/tree/test_tree.py",
        "tests/constraints/test_solvers.py",
        "tests/risk/membership/test_any.py", "tests/cli/test_attack.py",
        "tests/risk/test_gone.py", "tests/test_gone.py", "tests/fuzz/test_calls.py",
        "tests/risk/test_interval.py", "tests/intervals/test_risk.py",
    }  # fmt: skip
    assert without_module(files) == {
        "tests/risk/test_gone.py", "tests/test_gone.py", "tests/risk/test_interval.py",
        "tests/intervals/test_risk.py",
    }  # fmt: skip
