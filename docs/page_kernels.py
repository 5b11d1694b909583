"""Kernels of pages, forked from one process that has imported everything once.

Each page has a process of its own, as from Jupyter's own way; what it saves is the start.
"""

import contextlib
import functools
import io
import json
import os
import signal
import subprocess
import sys
from typing import IO, Any


class ForkedKernel:
    """A process forked elsewhere, with the methods of :class:`subprocess.Popen` that are used."""

    stdin = stdout = stderr = None

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def poll(self) -> int | None:
        """Return None while the process runs, else 0: its parent alone is told the status."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return 0
        return None

    wait = poll

    def send_signal(self, number: int) -> None:
        """Send a signal to the process."""
        os.kill(self.pid, number)


@functools.cache
def origin() -> tuple[IO[str], IO[str]]:
    """Return the input and output of the process of all kernels, which ends with its input."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process = subprocess.Popen([sys.executable, __file__], **pipes)  # noqa: S603
    return process.stdin, process.stdout


def launch(command: list[str], *, env: dict[str, str], cwd: str = ".", **_: Any) -> ForkedKernel:
    """Start a kernel; in the place of the function that Jupyter starts its own by."""
    asked, answered = origin()
    print(json.dumps([command[command.index("-f") :], cwd, env]), file=asked, flush=True)
    return ForkedKernel(int(answered.readline()))


def serve() -> None:
    """Fork a kernel for each line of the input, and print its number."""
    # Pyplot looks up this name with the first figure of a page, which is then shown in its cell.
    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
    os.environ["JPY_PARENT_PID"] = str(os.getpid())  # kernels end with this process
    import matplotlib.pyplot  # noqa: F401
    from ipykernel.kernelapp import launch_new_instance
    from matplotlib.figure import Figure

    import bayesrisk

    # A first number starts Numba, and a first figure finds the fonts.
    bayesrisk.risk_curve([0.1, 1], prior=0.1)
    figure = Figure()
    figure.subplots().set(title="x")
    figure.savefig(io.BytesIO())
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no child is waited for
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.setpgid(0, 0)  # what is sent to the kernel's group is for it alone
            arguments, cwd, environment = json.loads(line)
            os.chdir(cwd)
            os.environ.update(environment, JPY_PARENT_PID=os.environ["JPY_PARENT_PID"])
            os.dup2(os.open(os.devnull, os.O_RDWR), 0)
            os.dup2(2, 1)
            sys.argv[1:] = arguments
            sys.path[0] = ""
            launch_new_instance()
            os._exit(0)
        with contextlib.suppress(OSError):  # it may have come first
            os.setpgid(pid, pid)
        print(pid, flush=True)


if __name__ == "__main__":
    serve()
