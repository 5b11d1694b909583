"""A headless Chromium for tests of pages, spoken to in its own protocol over a pipe."""

import functools
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_SECONDS = 60.0


@functools.cache
def program() -> str | None:
    """Return the path of the browser; None where there is none."""
    return next((found for name in _NAMES if (found := shutil.which(name))), None)


#: Width of a page, images without an alternative text, images that were not found, and tables
#: whose heads do not repeat on the next sheet of paper.
_LOOK = """(() => {
  const images = [...document.images];
  const heads = [...document.querySelectorAll('table thead')];
  return {
    width: document.scrollingElement.scrollWidth,
    silent: images.filter(i => !(i.getAttribute('alt') || '').trim()).map(i => i.src),
    broken: images.filter(i => i.complete && !i.naturalWidth).map(i => i.src),
    heads: heads.filter(h => getComputedStyle(h).display !== 'table-header-group').length,
  }
})()"""
FINE = {"silent": [], "broken": [], "heads": 0}

needs_browser = pytest.mark.skipif(
    program() is None, reason=f"no browser: none of {', '.join(_NAMES)} is on the PATH"
)


class Browser:
    """One page of a browser; what goes wrong in it is kept in ``faults``."""

    def __init__(self, profile: Path) -> None:
        read_by_it, self._write = os.pipe()
        self._read, written_by_it = os.pipe()
        # The shell moves the pipes to the numbers that the browser knows: 3 and 4.
        command = f'exec "$@" 3<&{read_by_it} 4>&{written_by_it}'
        words = [
            *(str(program()), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"),
            *("--disable-dev-shm-usage", "--remote-debugging-pipe", f"--user-data-dir={profile}"),
            *("--host-resolver-rules=MAP * ~NOTFOUND", "about:blank"),
        ]
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", command, "browser", *words],
            pass_fds=(read_by_it, written_by_it),
            stderr=subprocess.DEVNULL,
        )
        os.close(read_by_it)
        os.close(written_by_it)
        self._rest, self._number, self._session = b"", 0, ""
        self.faults: list[str] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        found = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = found["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.ask(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait(timeout=_SECONDS)
        os.close(self._write)
        os.close(self._read)

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Return what the browser answers to a command of its protocol."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            told = self._next()
            if told.get("id") == self._number:
                if "error" in told:
                    raise RuntimeError(f"{method}: {told['error']}")
                result: dict[str, Any] = told["result"]
                return result

    def _next(self) -> dict[str, Any]:
        """Return the next message, after noting whether it tells of a fault of the page."""
        end = time.monotonic() + _SECONDS
        while b"\0" not in self._rest:
            if not select.select([self._read], [], [], max(end - time.monotonic(), 0.0))[0]:
                raise TimeoutError("the browser does not answer")
            if not (more := os.read(self._read, 2**20)):
                raise EOFError("the browser has ended")
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\0")
        told: dict[str, Any] = json.loads(line)
        if told.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
            self.faults.append(json.dumps(told["params"]))
        if told.get("method") == "Runtime.consoleAPICalled":
            self.faults.append(json.dumps(told["params"]))
        return told

    def open(self, page: Path, *, width: int = 1000, scripts: bool = True) -> None:
        """Load a file into a window of a width in pixels."""
        self.ask("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=800, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip
        self.ask("Page.navigate", url=page.resolve().as_uri())
        while self._next().get("method") != "Page.loadEventFired":
            pass

    def run(self, script: str) -> Any:
        """Return the value of an expression in the page."""
        found = self.ask("Runtime.evaluate", expression=script, returnByValue=True)
        if "exceptionDetails" in found:
            raise RuntimeError(json.dumps(found["exceptionDetails"]))
        return found["result"].get("value")

    def look(self) -> tuple[int, dict[str, Any]]:
        """Return the width of the page, and what is wrong with images and heads of tables."""
        found: dict[str, Any] = self.run(_LOOK)
        return found.pop("width"), found

    def wait_until(self, done: Callable[[], Any]) -> None:
        """Wait until something is so."""
        end = time.monotonic() + _SECONDS
        while not done():
            if time.monotonic() > end:
                raise TimeoutError("the browser has not done it")
            time.sleep(0.05)
