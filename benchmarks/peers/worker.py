"""A peer that needs a process of its own."""

import contextlib
import subprocess
import weakref
from collections.abc import Sequence


class Worker:
    """A process that is told its problem in one line, and answers each further line with one."""

    def __init__(self, command: Sequence[str], problem: str) -> None:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._process = subprocess.Popen(command, text=True, **pipes)
        weakref.finalize(self, end, self._process)
        self._send(problem)

    def _send(self, line: str) -> None:
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def ask(self, line: str) -> str:
        """Return the answer to a line."""
        self._send(line)
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{self._process.args[0]} ended with {self._process.wait()}")
        return answer


def end(process: subprocess.Popen) -> None:
    """End a process and close its pipes."""
    process.kill()
    process.wait()
    process.stdout.close()
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()
