"""Every notebook runs from top to bottom; the numbers in it are asserted in its own cells."""

from pathlib import Path

import nbformat
import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


def test_there_are_notebooks():
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_stored_without_output_and_assert(path):
    notebook = nbformat.read(path, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code)
    assert sum("assert" in cell.source for cell in code) >= 3


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # Jupyter's own
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run(path):
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
    assert all(cell.execution_count for cell in notebook.cells if cell.cell_type == "code")


# Kernels that pages run in: each is a process of its own, though they are forked from one.


@pytest.fixture
def page(monkeypatch):
    """Return a function that runs cells in a forked kernel and gives what the last one shows."""
    monkeypatch.syspath_prepend(NOTEBOOKS[0].parents[1] / "docs")
    import kernels
    from jupyter_client.provisioning.factory import KernelProvisionerFactory

    usual = KernelProvisionerFactory.instance().default_provisioner_name
    kernels.install()

    from nbclient import NotebookClient

    def run(*cells, folder="."):
        notebook = nbformat.v4.new_notebook(cells=[*map(nbformat.v4.new_code_cell, cells)])
        NotebookClient(
            notebook, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
        ).execute()
        return notebook.cells[-1].outputs[0]["data"]["text/plain"]

    yield run
    kernels.SERVER.close()
    KernelProvisionerFactory.instance().default_provisioner_name = usual


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_pages_see_nothing_of_each_other(page, tmp_path):
    (tmp_path / "here").write_text("")
    name = "import bayesrisk as br, os, sys"
    one = page(name, "br.left = mine = 1; os.chdir('/')", "br.left, mine, os.getpid()")
    shown = "sys.modules['bayesrisk'] is br, hasattr(br, 'left'), 'mine' in globals()"
    other = page(name, f"({shown}, os.listdir(), os.getpid())", folder=tmp_path)
    assert one.startswith("(1, 1, ")
    assert other.startswith("(True, False, False, ['here'], ")
    assert one.split()[-1] != other.split()[-1]


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_a_kernel_that_dies_is_told_and_the_next_one_lives(page):
    from nbclient.exceptions import DeadKernelError

    with pytest.raises(DeadKernelError):
        page("import os; os._exit(1)")
    assert page("1 + 1") == "2"
