"""Kernels of pages, forked from one process that has loaded what they import and have compiled.

Each page runs in a process of its own, which sees nothing of other pages.  Imports and compiled
functions take some four seconds of a processor: they are loaded once, and not for every page.
"""

import importlib
import json
import os
import pkgutil
import signal
import subprocess
import sys
import warnings
from contextlib import suppress
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import IO, Any, NoReturn, cast

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.provisioning.factory import KernelProvisionerFactory
from jupyter_client.provisioning.local_provisioner import LocalProvisioner

NAME = "forked"
_SLOW = {"reconstruction", "claims", "plans"}  # examples that take longer than loading saves


class Forked:
    """A forked kernel, with the part of ``subprocess.Popen`` that a provisioner asks for."""

    stdin = stdout = stderr = None

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def poll(self) -> int | None:
        """Return None while the kernel runs, and 0 once the server has waited for its end."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return 0
        return None

    def wait(self) -> int:
        """Return the status after the end, which a provisioner has seen."""
        return 0

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the kernel has ended."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End the kernel at once."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Ask the kernel to end."""
        self.send_signal(signal.SIGTERM)


class Server:
    """The process that kernels are forked from, begun with the first of them."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def fork(self, order: dict[str, Any]) -> Forked:
        """Return a new kernel with the arguments, environment and folder of an order."""
        if self._process is None:
            self._process = subprocess.Popen(  # noqa: S603
                [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        print(json.dumps(order), file=self._process.stdin, flush=True)
        return Forked(int(cast(IO[str], self._process.stdout).readline()))

    def close(self, *_: object) -> None:
        """End the server, and every kernel that is left."""
        if self._process is not None:
            self._process.communicate()
            self._process = None


SERVER = Server()


class ForkedProvisioner(LocalProvisioner):
    """Starts a kernel by a fork of the server."""

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
        """Start a kernel with the arguments that a command has behind its module."""
        arguments = cmd[cmd.index("ipykernel_launcher") + 1 :]
        folder, environment = kwargs.get("cwd") or Path.cwd(), kwargs.get("env") or os.environ
        order = {"arguments": arguments, "folder": str(folder), "environment": dict(environment)}
        process: Any = SERVER.fork(order)
        self.process, self.pid, self.pgid, self.cwd = process, process.pid, process.pid, folder
        return self.connection_info


def install() -> None:
    """Let notebooks run in forked kernels."""
    entry = EntryPoint(NAME, f"{__name__}:ForkedProvisioner", KernelProvisionerFactory.GROUP_NAME)
    factory = KernelProvisionerFactory.instance()
    factory.provisioners[NAME] = entry
    factory.default_provisioner_name = NAME


# What follows runs in the server.


def load() -> None:
    """Import the package with all its modules, and load functions that are compiled."""
    # Read at import: where kernels draw, and the process with which they end.
    os.environ.update(MPLBACKEND="module://matplotlib_inline.backend_inline")
    os.environ.update(JPY_PARENT_PID=str(os.getpid()))
    package = importlib.import_module("bayesrisk")
    modules = pkgutil.walk_packages(package.__path__, "bayesrisk.")
    others = "IPython.core.completer", "ipykernel.kernelapp", "matplotlib.pyplot"
    for name in [*others, *(m.name for m in modules if not m.name.endswith("__main__"))]:
        importlib.import_module(name)
    from bayesrisk.cli.setup import EXAMPLES

    with warnings.catch_warnings():  # a page shall see its own
        warnings.simplefilter("ignore")
        for name in EXAMPLES.keys() - _SLOW:
            EXAMPLES[name]()


def begin(order: dict[str, Any]) -> NoReturn:
    """Run a kernel in this process, which was forked for it."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # the server answers there
    os.environ.clear()
    os.environ.update(order["environment"])
    os.chdir(order["folder"])
    sys.argv = ["ipykernel_launcher", *order["arguments"]]
    status = 1
    try:
        from ipykernel.kernelapp import launch_new_instance

        launch_new_instance()
        status = 0
    finally:
        for stream in filter(None, (sys.__stdout__, sys.__stderr__)):
            stream.flush()
        os._exit(status)


def serve() -> None:
    """Fork a kernel for every order that is read; with the last line all of them end."""
    kernels = set[int]()

    def ended(*_: object) -> None:
        with suppress(ChildProcessError):
            while pid := os.waitpid(-1, os.WNOHANG)[0]:
                kernels.discard(pid)

    load()
    signal.signal(signal.SIGCHLD, ended)
    for line in iter(sys.stdin.readline, ""):
        pid = os.fork()
        if not pid:
            os.setsid()
            begin(json.loads(line))
        kernels.add(pid)
        print(pid, flush=True)
    for pid in [*kernels]:
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)


if __name__ == "__main__":
    serve()
