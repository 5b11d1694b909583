"""Compiled kernels where no folder for their cache can be written, or others can write in it."""

import contextlib
import importlib
import os
import subprocess
import sys

import numba
import pytest

from bayesrisk._base import compiling
from bayesrisk.exceptions import ConfigError


def test_a_full_disk_does_not_end_the_command(tmp_path):
    """A limit on the size of files stands for the disk: writing fails in the same way."""
    code = """
import resource, warnings
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
warnings.simplefilter("always")
with warnings.catch_warnings(record=True) as caught:
    from bayesrisk._base.compiling import elementwise, kernel

    @kernel
    def twice(x):
        return 2 * x

    @elementwise("float64(float64)")
    def half(x):
        return x / 2

    assert twice(3) == 6 and twice(1.5) == 3.0 and half(3.0) == 1.5
print([str(w.message) for w in caught])
"""
    script = tmp_path / "kernels.py"  # Numba caches by file
    script.write_text(code, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("compiled kernels cannot be written to disk") == 1


POSIX = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="owners and modes of POSIX systems")
ROOT = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away"
)
KERNELS = """
from bayesrisk._base.compiling import elementwise, kernel

@kernel
def twice(x):
    return 2 * x

@elementwise("float64(float64)")
def half(x):
    return x / 2

print({})
"""


@POSIX
def test_what_others_can_write_is_never_run(tmp_path):
    """An index of compiled code is a pickle: here one that makes a folder when it is read."""
    script, cache, made = tmp_path / "kernels.py", tmp_path / "cache", tmp_path / "made"
    script.write_text(KERNELS.format("twice(3), half(3.0)"), encoding="utf-8")

    def run():
        return subprocess.run(
            [sys.executable, str(script)],
            env={**os.environ, "NUMBA_CACHE_DIR": str(cache)},
            capture_output=True,
            text=True,
        )

    assert run().returncode == 0
    indices = list(cache.rglob("*.nbi"))
    assert indices
    for index in indices:
        index.write_bytes(f"cos\nmkdir\n(V{made}\ntR.".encode())
        index.parent.chmod(0o777)
    done = run()
    assert not made.exists()
    assert done.returncode == 1
    for said in ("ConfigError: NUMBA_CACHE_DIR", f"user {os.geteuid()} ", "mode 0777"):
        assert said in done.stderr


def checked(folder, source, explicit, monkeypatch):
    """Return whether a folder of compiled code is used."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(folder) if explicit else "")
    compiling._check_folder.cache_clear()
    with contextlib.suppress(ConfigError if explicit else PermissionError):
        compiling._check_folder(str(folder), str(source))
        return True
    return False


@pytest.fixture
def places(tmp_path):
    """A package with a folder beside its code, and a folder elsewhere, each with a kernel."""
    for folder in ("package/__pycache__", "above/cache"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "kernel.nbi").touch()
    (tmp_path / "package" / "code.py").touch()
    return tmp_path


@POSIX
@pytest.mark.parametrize(
    ("name", "mode", "used"),
    [
        ("above/cache", 0o700, True),
        ("above/cache", 0o757, False),
        ("above/cache", 0o1777, False),  # others can still put files there
        ("above/cache/kernel.nbi", 0o646, False),
        ("above", 0o777, False),  # others can rename what is in it
        ("above", 0o1777, True),
    ],
)
def test_folders_that_others_can_write_in(name, mode, used, places, monkeypatch):
    (places / name).chmod(mode)
    for explicit in (True, False):
        source = places / "package" / "code.py"
        assert checked(places / "above" / "cache", source, explicit, monkeypatch) is used


@POSIX
def test_a_folder_beside_the_code_may_be_as_open_as_the_code(places, monkeypatch):
    inside, source = places / "package" / "__pycache__", places / "package" / "code.py"
    assert checked(inside, source, False, monkeypatch)
    inside.chmod(0o777)
    assert not checked(inside, source, False, monkeypatch)
    (places / "package").chmod(0o777)
    assert checked(inside, source, False, monkeypatch)


@POSIX
@pytest.mark.parametrize("members", [[], ["other"]])
def test_a_private_group_may_write(members, places, monkeypatch):
    """Where every user has a group of the same name, folders are made with mode 0775."""
    import grp
    import pwd

    inside, source = places / "above" / "cache", places / "package" / "code.py"
    inside.chmod(0o775)
    names = {"gr_name": "me", "gr_mem": members}
    monkeypatch.setattr(grp, "getgrgid", lambda _: type("Group", (), names))
    monkeypatch.setattr(pwd, "getpwuid", lambda _: type("User", (), {"pw_name": "me"}))
    assert checked(inside, source, True, monkeypatch) is (not members)


@ROOT
@pytest.mark.parametrize("name", ["above", "above/cache", "above/cache/kernel.nbi"])
def test_folders_of_other_users(name, places, monkeypatch):
    inside, source = places / "above" / "cache", places / "package" / "code.py"
    os.chown(places / name, 12345, 12345)
    assert not checked(inside, source, True, monkeypatch)
    assert not checked(inside, source, False, monkeypatch)
    os.chown(source.parent, 12345, 12345)  # whoever owns the code is trusted anyway
    assert checked(inside, source, True, monkeypatch)


def test_systems_without_owners(places, monkeypatch):
    (places / "above" / "cache").chmod(0o777)
    monkeypatch.delattr(os, "geteuid", raising=False)
    source = places / "package" / "code.py"
    assert checked(places / "above" / "cache", source, True, monkeypatch)


MODULE = """
from typing import NamedTuple
import numpy as np
from bayesrisk._base.compiling import kernel

class {name}(NamedTuple):
    values: np.ndarray

@kernel
def total(leaves):
    return leaves.values.sum()

print(total({name}(np.arange(4.0))), sum(total.stats.cache_hits.values()))
"""


def test_a_cache_with_types_that_are_gone_is_made_anew(tmp_path):
    """After an update a kernel's file may name a class that another version had."""
    (tmp_path / "cache").mkdir(mode=0o700)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    printed = []
    for name in ("Leaves", "LeafArrays", "LeafArrays"):
        (tmp_path / "later.py").write_text(MODULE.format(name=name))
        command = [
            sys.executable,
            "-c",
            f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import later",
        ]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        printed.append(done.stdout.split())
    assert [value for value, _ in printed] == ["6.0"] * 3
    assert [int(hits) for _, hits in printed] == [0, 0, 1]


STEP = "from bayesrisk._base.compiling import step\n\n@step\ndef shifted(x):\n    return x + {}\n"
KERNEL = (
    "from bayesrisk._base.compiling import kernel\n\n@kernel\ndef shifted(x):\n    return x + {}\n"
)
CALLER = """
from bayesrisk._base.compiling import elementwise, kernel
from workshop import constants, steps

@kernel
def here(x):
    return constants.FACTOR * steps.shifted(x)

@elementwise("int64(int64)")
def everywhere(x):
    return constants.FACTOR * steps.shifted(x)

def answer():
    return here(1), int(everywhere(1)), sum(here.stats.cache_hits.values())
"""


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
@pytest.mark.parametrize("called", [STEP, KERNEL])
def test_a_change_in_another_file_is_compiled(called, tmp_path, monkeypatch):
    """A kernel holds the code of its steps, and constants, which other files may be about."""
    shop = tmp_path / "workshop"
    for folder in (shop, tmp_path / "cache"):
        folder.mkdir(mode=0o700)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(tmp_path)
    (shop / "kernels.py").write_text(CALLER)
    found = []
    for added, factor in ((1, 10), (1, 10), (2, 10), (2, 30), (2, 30)):
        (shop / "steps.py").write_text(called.format(added))
        (shop / "constants.py").write_text(f"FACTOR = {factor}\n")
        found.append(answer_anew(monkeypatch))
    values = [20, 20, 30, 90, 90]
    assert found == [(v, v, hits) for v, hits in zip(values, [0, 1, 0, 0, 1], strict=True)]


def answer_anew(monkeypatch):
    """Return the answer of kernels that are loaded as a new process loads them."""
    with monkeypatch.context() as patch:
        patch.setattr(compiling, "DECLARED", [])
        compiling._digest.cache_clear()
        importlib.invalidate_caches()
        answer = importlib.import_module("workshop.kernels").answer()
    for name in [name for name in sys.modules if name.partition(".")[0] == "workshop"]:
        del sys.modules[name]
    return answer


def doubled(x):
    return 2 * x


def doubled_twice(x):
    return step_here(step_here(x))  # noqa: F821 - set by the test


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_a_step_runs_from_python_and_is_no_kernel_of_its_own(monkeypatch, tmp_path):
    (tmp_path / "cache").mkdir(mode=0o700)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(compiling, "DECLARED", [])
    assert compiling.step(doubled) is doubled
    monkeypatch.setitem(globals(), "step_here", doubled)
    whole = compiling.kernel(doubled_twice)
    assert (doubled(3), whole(3)) == (6, 12)
    assert [whole] == compiling.DECLARED
    assert list(compiling.parts(whole)) == [whole, doubled]
    assert len(list(tmp_path.rglob("*.nbc"))) == 1
