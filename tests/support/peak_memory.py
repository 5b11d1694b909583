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


def run_and_time(prepare, code, *arguments, timeout=3600):
    """Return the same, and the seconds of processor that ``code`` took after ``prepare``."""
    whole = (
        f"import sys, time\n{_PEAK}\n{prepare}\nstart = time.process_time()\n{code}\n"
        "print(answer, peak_kilobytes(), time.process_time() - start)\n"
    )
    answer, kilobytes, seconds = _run(whole, arguments, timeout).split()
    return int(answer), int(kilobytes), float(seconds)


def run_and_measure(code, *arguments, timeout=600):
    """Return the whole number that ``code`` leaves in ``answer``, and the peak in kilobytes."""
    whole = f"import sys\n{_PEAK}\n{code}\nprint(answer, peak_kilobytes())\n"
    answer, kilobytes = map(int, _run(whole, arguments, timeout).split())
    return answer, kilobytes


def _run(code, arguments, timeout):
    command = [sys.executable, "-X", "faulthandler", "-c", code, *map(str, arguments)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    assert run.returncode == 0, run.stderr  # all of it: a crash says where
    return run.stdout
