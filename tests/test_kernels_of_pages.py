"""Kernels that pages run in: each is a process of its own, though they are forked from one."""

import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import DeadKernelError

sys.path.append(str(Path(__file__).parents[1] / "docs"))

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]  # Jupyter's own


@pytest.fixture
def page(monkeypatch):
    """Return a function that runs cells in a forked kernel and gives what the last one shows."""
    import kernels
    from jupyter_client.provisioning.factory import KernelProvisionerFactory

    usual = KernelProvisionerFactory.instance().default_provisioner_name
    kernels.install()

    def run(*cells, folder="."):
        notebook = nbformat.v4.new_notebook(cells=[*map(nbformat.v4.new_code_cell, cells)])
        NotebookClient(
            notebook, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
        ).execute()
        return notebook.cells[-1].outputs[0]["data"]["text/plain"]

    yield run
    kernels.SERVER.close()
    KernelProvisionerFactory.instance().default_provisioner_name = usual


def test_pages_see_nothing_of_each_other(page, tmp_path):
    (tmp_path / "here").write_text("")
    name = "import bayesrisk as br, os, sys"
    one = page(name, "br.left = mine = 1; os.chdir('/')", "br.left, mine, os.getpid()")
    shown = "sys.modules['bayesrisk'] is br, hasattr(br, 'left'), 'mine' in globals()"
    other = page(name, f"({shown}, os.listdir(), os.getpid())", folder=tmp_path)
    assert one.startswith("(1, 1, ")
    assert other.startswith("(True, False, False, ['here'], ")
    assert one.split()[-1] != other.split()[-1]


def test_a_kernel_that_dies_is_told_and_the_next_one_lives(page):
    with pytest.raises(DeadKernelError):
        page("import os; os._exit(1)")
    assert page("1 + 1") == "2"
