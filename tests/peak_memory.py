"""The largest memory of a process of its own.

On Linux ``ru_maxrss`` of a new process starts at what its parent held, which in a long test run
is more than what is measured; the peak of its own address space is in ``/proc``.
"""

import subprocess
import sys

_PEAK = """
def peak_kilobytes():
    try:
        with open("/proc/self/status", encoding="ascii") as status:
            return int(next(line for line in status if line.startswith("VmHWM")).split()[1])
    except OSError:
        import resource
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
"""


def run_and_measure(code, *arguments, timeout=600):
    """Return the whole number that ``code`` leaves in ``answer``, and the peak in kilobytes."""
    whole = f"import sys\n{_PEAK}\n{code}\nprint(answer, peak_kilobytes())\n"
    command = [sys.executable, "-c", whole, *map(str, arguments)]
    run = subprocess.run(command, check=True, capture_output=True, text=True, timeout=timeout)
    answer, kilobytes = map(int, run.stdout.split())
    return answer, kilobytes
