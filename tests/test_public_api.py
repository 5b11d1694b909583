"""The public names: listed, importable, documented, with examples that run, and cheap to import."""

import ast
import doctest
import enum
import functools
import importlib
import importlib.util
import inspect
import json
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpydoc.docscrape
import pytest

import bayesrisk
from bayesrisk._base import old_names as moves
from bayesrisk._base.lazy import public_places
from bayesrisk.constraints import solvers
from bayesrisk.experiments.runs import executors
from bayesrisk.experiments.runs.engine import Study
from bayesrisk.mechanisms import registry as mechanisms
from bayesrisk.reconstruction import registry as attacks

PACKAGES = [
    "accounting",
    "census",
    "distributions",
    "inference",
    "mechanisms",
    "reconstruction",
    "risk",
    "tables",
]
HEAVY = [
    "arviz",
    "dask",
    "highspy",
    "matplotlib",
    "numba",
    "pulp",
    "pydantic",
    "rich",
    "scipy",
    "typer",
]


def stub():
    """Return the names of the stub file with the module that each is taken from."""
    tree = ast.parse(Path(bayesrisk.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    return {a.asname: (node.module, a.name) for node in imports for a in node.names}


def test_names_are_sorted_and_those_of_the_stub():
    assert bayesrisk.__all__ == sorted(set(bayesrisk.__all__))
    assert set(bayesrisk.__all__) == set(stub()) <= set(dir(bayesrisk))


@pytest.mark.parametrize("package", PACKAGES)
def test_names_of_the_packages(package):
    module = importlib.import_module(f"bayesrisk.{package}")
    # Ruff puts constants first, lazy-loader does not.
    constants_first = sorted(module.__all__, key=lambda n: (not n.isupper(), n))
    assert module.__all__ in (constants_first, sorted(module.__all__))
    assert all(hasattr(module, name) for name in module.__all__)


def test_the_front_door_is_small():
    assert len(bayesrisk.__all__) <= 60
    assert alike(bayesrisk.__all__) == [["Release", "release"]]  # the thing and the verb


def test_a_name_one_dot_deeper_is_named_with_its_place():
    for package, name, place in (
        ("bayesrisk", "rho_to_delta", "bayesrisk.accounting.rho_to_delta"),
        ("bayesrisk", "AuditStudy", "bayesrisk.experiments.AuditStudy"),
        ("bayesrisk", "Attack", "bayesrisk.interfaces.Attack"),
        ("bayesrisk.risk", "solve", None),
        ("bayesrisk.risk", "microdata_posterior", "bayesrisk.inference.microdata_posterior"),
    ):
        with pytest.raises(AttributeError) as refused:
            getattr(importlib.import_module(package), name)
        found = re.search(r": it is (\S+)$", str(refused.value))
        assert (found and found[1]) == place
        assert place is None or exists(place.removeprefix("bayesrisk."))


def test_every_public_name_has_the_place_that_the_hint_says():
    places = public_places()
    assert len(places) > 250
    for name, modules in places.items():
        for module in modules:
            assert module.startswith("bayesrisk.cli") or hasattr(
                importlib.import_module(module), name
            )


def test_names_come_from_where_the_stub_says():
    for name, (module, original) in stub().items():
        home = importlib.import_module(f"bayesrisk.{module or original}")
        assert name == original
        thing = getattr(bayesrisk, name)
        if module and inspect.ismodule(thing):
            thing = thing.__wrapped__  # a verb that is a room, which is called
        assert thing is (getattr(home, name) if module else home)
        assert module is None or name in getattr(home, "__all__", [name])


def public():
    """Return every public function and class, and the constructors and methods documented apart."""
    files = ["answers", "exceptions", "interfaces", "datasets", "verbs"]
    for package in [*PACKAGES, *files, "plotting"]:
        module = importlib.import_module(f"bayesrisk.{package}")
        for name in module.__all__:
            thing = getattr(module, name)
            if callable(thing):
                yield f"{package}.{name}", thing
            if inspect.isclass(thing):
                for method in ("from_rho", "from_epsilon", "rvs", "to_frame"):
                    if method in vars(thing) and not inspect.isabstract(thing):
                        yield f"{package}.{name}.{method}", getattr(thing, method)


PUBLIC = dict(public())


def sections(thing):
    kind = numpydoc.docscrape.ClassDoc if inspect.isclass(thing) else None
    doc = inspect.getdoc(thing)
    return kind(thing) if kind else numpydoc.docscrape.NumpyDocString(doc)


def parameters(thing):
    """Return the names in the signature but for self."""
    return [n for n in inspect.signature(thing).parameters if n not in ("self", "cls")]


def documented(doc):
    """Return the names in the Parameters section, stars and shared lines taken apart."""
    return [n.strip().lstrip("*") for p in doc["Parameters"] for n in p.name.split(",")]


def is_plain_class(thing):
    """Return whether a class is documented by its methods or members, not by parameters."""
    return inspect.isclass(thing) and (
        issubclass(thing, Exception | enum.Enum | np.ndarray)
        or inspect.isabstract(thing)
        or getattr(thing, "_is_protocol", False)
        or hasattr(thing, "__dataclass_fields__")
    )


def asked(thing):
    """Return the public class and the method that a function asks and points to, or None."""
    if not inspect.isfunction(thing) or not hasattr(thing, "__signature__"):
        return None
    named = re.search(r":meth:`(?:bayesrisk\.)?(\w+)\.(\w+)`\.$", inspect.getdoc(thing))
    (question,) = {t for n, t in PUBLIC.items() if n.endswith(f".{named[1]}")}
    return question, named[2]


@pytest.mark.parametrize("name", PUBLIC)
def test_documentation(name):
    thing = PUBLIC[name]
    lines = inspect.getdoc(thing).splitlines()
    assert lines[0].endswith("."), "a first line that is a sentence"
    assert len(lines) == 1 or lines[1] == ""
    if is_plain_class(thing):
        return
    if door := asked(thing):
        question, method = door
        own = parameters(getattr(question, method))
        assert parameters(thing) == [*own, *parameters(question)]
        text = inspect.getdoc(question) + inspect.getdoc(getattr(question, method))
        assert [name for name in own if f"``{name}``" not in text] == []
        return
    doc = sections(thing)
    assert documented(doc) == parameters(thing)
    assert all(p.type or "," in p.name for p in doc["Parameters"])
    if not inspect.isclass(thing):
        nothing = inspect.signature(thing).return_annotation in (None, "None")
        said = doc["Returns"] or doc["Yields"] or lines[0].startswith(("Return ", "Yield "))
        assert nothing or said, "a Returns or Yields section, or a first line that says it"
        assert not (nothing and doc["Returns"]), "a Returns section that says nothing"
    for entry in doc["Raises"]:
        assert not " ".join(entry.desc).startswith(("Never", "Nothing")), "a Raises that never is"


@pytest.mark.parametrize(
    "name",
    [
        n
        for n, t in PUBLIC.items()
        # The fields of a study are what it is made from, documented as its parameters.
        if hasattr(t, "__dataclass_fields__") and not issubclass(t, Study)
    ],
)
def test_documentation_of_records(name):
    thing = PUBLIC[name]
    attributes = [n.strip() for p in sections(thing)["Attributes"] for n in p.name.split(",")]
    assert attributes == [name for name in thing.__dataclass_fields__ if name[0] != "_"]


@pytest.mark.parametrize(
    "name", [n for n, t in PUBLIC.items() if inspect.isclass(t) and issubclass(t, enum.Enum)]
)
def test_documentation_of_members(name):
    thing = PUBLIC[name]
    assert set(re.findall(r"``([A-Z_]+)``", inspect.getdoc(thing))) == set(thing.__members__)


def test_signatures_can_be_read():
    """Annotations are names as they were written, not the unions that they stand for."""
    for name, thing in PUBLIC.items():
        if inspect.isfunction(thing):
            text = str(inspect.signature(thing)).replace("pandas.core.frame.", "pandas.")
            # Functions with ten or more parameters may take as much room for each as the others.
            assert len(text) <= max(400, 40 * len(parameters(thing))), name
            assert "_Buffer" not in text, name
            assert "Union[" not in text, name


def test_the_documentation_check_can_fail():
    def wrong(a, b):
        """Do something.

        Parameters
        ----------
        a : int
            One.
        """

    assert documented(sections(wrong)) != parameters(wrong)
    assert not sections(wrong)["Returns"]


@functools.cache
def walk():
    found = pkgutil.walk_packages(bayesrisk.__path__, "bayesrisk.")
    return sorted(m.name for m in found if not m.name.endswith("__main__"))


@pytest.mark.parametrize("name", walk())
def test_examples_run(name, monkeypatch):
    for registry in REGISTRIES:  # what an example registers is not there for the next test
        monkeypatch.setattr(registry, "_registered", dict(registry._registered))
    module = importlib.import_module(name)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for example in doctest.DocTestFinder().find(module):
        runner.run(example, clear_globs=False)
        results = [thing for key, thing in example.globs.items() if not key.startswith("__")]
        for thing in results:
            if type(thing).__module__.startswith("bayesrisk") and not inspect.isclass(thing):
                assert_short(thing)
        example.globs.clear()
    assert runner.failures == 0


REGISTRIES = (attacks.REGISTRY, executors.REGISTRY, mechanisms.REGISTRY, solvers.REGISTRY)


def assert_short(thing):
    """Every result prints at most ten lines of a hundred letters, and no address."""
    text = repr(thing)
    assert len(text.splitlines()) <= 10, text[:300]
    assert len(text) <= 1100, text[:300]
    if hasattr(thing, "_repr_html_"):
        assert " object at 0x" not in text
        assert len(thing._repr_html_()) < 20_000


def test_functions_have_an_example():
    own = {n: t for n, t in PUBLIC.items() if inspect.isfunction(t) and n.split(".")[0] in PACKAGES}
    # What reads a piece at a time is shown by what reads all.
    shown = {n: own.get(n.replace("census.iter_", "census.read_"), t) for n, t in own.items()}
    doors = {n: door for n, t in shown.items() if (door := asked(t))}
    shown = {n: t for n, t in shown.items() if n.count(".") == 1 and n not in doors}
    assert [n for n, t in shown.items() if not sections(t)["Examples"]] == []
    for question, method in doors.values():  # their questions show them
        assert f".{method}(" in "\n".join(sections(question)["Examples"])
    assert len(doors) == 12
    assert len(own) > 80, "nothing was counted"


def test_importing_the_package_is_cheap():
    loaded = {name.split(".")[0] for name in modules_after("import bayesrisk")}
    assert "bayesrisk" in loaded
    assert loaded.isdisjoint(HEAVY)


def modules_after(code):
    """Names of the modules that a new process has loaded."""
    code += "; import sys, json; print(json.dumps(sorted(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(run.stdout))


def test_zones_load_nothing_until_a_name_is_used():
    zones = ("census", "distributions", "experiments", "inference", "plotting", "risk", "tables")
    loaded = modules_after("; ".join(f"import bayesrisk.{zone}" for zone in zones))
    assert loaded.isdisjoint({"numba", "pandas", "scipy", "numpy"})


def test_the_risk_of_a_count_loads_what_it_needs():
    loaded = modules_after("from bayesrisk.risk import block_risk")
    assert "numba" in loaded
    assert loaded.isdisjoint({"scipy.stats", "scipy.signal", "pyarrow.dataset"})
    assert "bayesrisk.inference.tree.posterior" not in loaded


def test_laws_of_scipy_are_loaded_only_where_one_is_needed():
    """They take longer to load than a short command takes; ``scipy.signal`` loads them too."""
    zones = ("risk", "mechanisms", "experiments")  # what a command loads before it begins
    loaded = modules_after("; ".join(map(every_name_of, zones)))
    assert "scipy.special" in loaded
    assert loaded.isdisjoint({"scipy.stats", "scipy.signal"})


def every_name_of(zone):
    return f"import bayesrisk.{zone} as zone; _ = [getattr(zone, n) for n in zone.__all__]"


def test_the_numerical_core_draws_nothing():
    loaded = {name.split(".")[0] for name in modules_after(every_name_of("risk"))}
    assert "numba" in loaded
    assert loaded.isdisjoint({"matplotlib", "arviz", "pulp", "highspy", "dask", "typer", "rich"})


def everything():
    """Return every public name with the zone that lists it."""
    zones = [*PACKAGES, "datasets", "exceptions", "experiments", "interfaces", "plotting"]
    modules = {zone: importlib.import_module(f"bayesrisk.{zone}") for zone in zones}
    return [(zone, name) for zone, module in modules.items() for name in module.__all__]


def alike(names):
    """Return the groups of names that differ in nothing but the case of their letters."""
    groups = {}
    for name in names:
        groups.setdefault(name.lower(), set()).add(name)
    return [sorted(group) for group in groups.values() if len(group) > 1]


def shadows(thing):
    """Return whether a function has the name of a module of its package, so that it hides it."""
    if not inspect.isfunction(thing):
        return False
    *package, own = thing.__module__.split(".")
    if own == thing.__name__:
        return True
    parents = [".".join(package[:end]) for end in range(2, len(package) + 1)]
    return any(f"{parent}.{thing.__name__}" in walk() for parent in parents)


def test_no_two_names_differ_in_case_only():
    # Namespaces apart: `reconstruction` holds `Reconstruction`.
    top = [name for name in bayesrisk.__all__ if not inspect.ismodule(getattr(bayesrisk, name))]
    # The verb of a command, and the protocol that plug-ins keep.
    assert alike([*top, *(name for _, name in everything())]) == [["Attack", "attack"]]
    assert alike(["Claims", "claims", "Claim"]) == [["Claims", "claims"]]


def test_no_function_hides_a_module():
    for zone, name in everything():
        assert not shadows(getattr(importlib.import_module(f"bayesrisk.{zone}"), name)), name

    def claims():
        """Do nothing."""

    claims.__module__ = "bayesrisk.reconstruction.claims.result"
    assert shadows(claims)
    claims.__module__ = "bayesrisk.reconstruction.claims"
    assert shadows(claims)


def functions():
    """Return every public function, and the public methods and properties of public classes."""
    experiments = importlib.import_module("bayesrisk.experiments")
    runs = {f"experiments.{name}": getattr(experiments, name) for name in experiments.__all__}
    for name, thing in (PUBLIC | runs).items():
        if inspect.isfunction(thing):
            yield name, thing
        elif inspect.isclass(thing):
            for method, value in vars(thing).items():
                inner = getattr(value, "fget", None) or getattr(value, "__func__", value)
                if inspect.isfunction(inner) and not method.startswith("_"):
                    yield f"{name}.{method}", inner


FUNCTIONS = dict(functions())
# Ten parameters or more need a reason: questions are objects elsewhere.
LONG = {
    "experiments.attack": "a file in one call: how it is read, how long, and who is told",
    "inference.hierarchical_posterior": "one release in one call; TwoLevels is the object",
    "inference.microdata_posterior": "what is asked, where, and how chains run: seven are optional",
    "risk.plan": "what is planned, who may learn how much, and how it runs: ten are optional",
    "inference.Tree.path": "a release of a whole path in one call",
    "census.reconstruct_occupancy": "limits of the search are part of what is claimed",
}
# What no type can say: objects of libraries that may be missing, and answers of plug-ins.
UNTYPED = {
    "accounting.split_rho": "overloaded: a dict for a mapping, else a list",
    "inference.to_arviz": "InferenceData of ArviZ 0.x or a DataTree of 1.x",
}


def test_long_lists_of_parameters_have_a_reason():
    long = {name for name, thing in FUNCTIONS.items() if len(parameters(thing)) >= 10}
    assert long <= set(LONG)
    assert len(long) > 3, "nothing was counted"
    assert len(LONG) <= 8


def test_answers_have_types():
    untyped = {
        name
        for name, thing in FUNCTIONS.items()
        if thing.__annotations__.get("return") in (Any, tuple[Any, Any])
    }
    assert untyped <= set(UNTYPED)
    assert len(FUNCTIONS) > 300, "nothing was counted"
    assert len(UNTYPED) <= 10


def moved():
    """Return the rows of the migration page's table of names: before and now, as written."""
    page = Path(__file__).parents[1] / "docs" / "reference" / "migration.md"
    text = page.read_text(encoding="utf-8")
    table = text.partition("| before | now |\n|---|---|\n")[2].partition("\n\n")[0]
    return [tuple(line.strip("| ").split(" | ", 1)) for line in table.splitlines()]


def dotted(cell):
    """Return the name that a cell of the table begins with; None if it is more than a name."""
    found = re.match(r"`([A-Za-z_][\w.]*)`", cell)
    return found and found[1]


def exists(name):
    home = "concurrent.futures" if name.startswith("concurrent.") else "bayesrisk"
    thing = importlib.import_module(home)
    for part in name.removeprefix(f"{home}.").split("."):
        if hasattr(thing, "__path__") and importlib.util.find_spec(f"{thing.__name__}.{part}"):
            thing = importlib.import_module(f"{thing.__name__}.{part}")
        else:
            thing = getattr(thing, part, None)
    return thing is not None


def test_names_that_moved_are_where_the_migration_page_says():
    rows = moved()
    named = {dotted(now) for _, now in rows} - {None}
    assert [name for name in sorted(named) if not exists(name)] == []
    assert not exists("risk.nothing")
    assert len(named) > 10
    gone = [before.strip("`") for before, _ in rows if re.fullmatch(r"`\w+`", before)]
    assert len(gone) == len(set(gone)) > 2
    assert set(gone).isdisjoint(bayesrisk.__all__)


def old_names():
    """Return the names of the version before that the wing of censuses took, and their objects."""
    stub = Path(bayesrisk.census.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    files = (names for home, names in moves.NAMES.items() if home.count(".") > 1)
    named = {name for names in files for name in names}
    for node in ast.parse(stub).body:
        if isinstance(node, ast.ImportFrom):
            old = {v.removeprefix("census."): k for k, v in moves.MODULES.items()}
            module = old.get(
                node.module, node.module.replace("occupancy.", "reconstruction.occupancy.")
            )
            for alias in node.names:
                # A study that the version before did not have has no old name.
                if alias.name not in named and not module.startswith("studies."):
                    yield f"bayesrisk.{module}", alias.name


@pytest.mark.parametrize(("module", "name"), sorted(set(old_names())))
def test_what_moved_to_the_wing_is_found_by_its_old_dotted_name(module, name):
    assert getattr(importlib.import_module(module), name) is getattr(bayesrisk.census, name)
    assert importlib.import_module(module).__name__.startswith("bayesrisk.census.")


def test_packages_give_what_they_listed_before():
    for package, names in moves.NAMES.items():
        face = importlib.import_module(package)
        assert set(names).isdisjoint(getattr(face, "__all__", ()))
        for name in names:
            wanted = bayesrisk.census if package == "bayesrisk" else getattr(bayesrisk.census, name)
            assert getattr(face, name) is wanted
    for name, module in moves.FRONT.items():
        home = importlib.import_module(f"bayesrisk.{module}")
        assert name not in bayesrisk.__all__
        assert getattr(bayesrisk, name) is (home if name == module else getattr(home, name))
    with pytest.raises(AttributeError):
        getattr(bayesrisk.reconstruction, "detect")  # noqa: B009
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("bayesrisk.census.readers.nothing")
