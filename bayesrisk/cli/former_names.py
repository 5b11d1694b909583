"""Commands and options of the version before, or of other commands, and what to write."""

from collections.abc import Sequence

from bayesrisk.exceptions import ArgumentError

#: Commands, and the command line that does the same.
COMMANDS = {
    "bounds": "attack TABLES -o OUT --only bounds",
    "reconstruct": "attack TABLES -o OUT --only records",
    "claims": "attack TABLES -o OUT --only claims",
    "reidentify": "attack RECORDS -o OUT --only links --adversary KNOWN --truth TRUTH",
    "first-look": "audit RECORDS --known COLUMNS --stated COLUMN",
    "tabulate": "release RECORDS -o OUT --protection none",
    "verify-release": "verify RELEASE",
    "hierarchy": "risk --hierarchy FILE.toml --prior PRIOR",
    "convert-file": "census read FILE --from FORM -o OUT",
    "measurements": "census measurements FOLDER -o OUT",
    "occupancy": "census occupancy study|attack",
    "simulate": "census simulate -o OUT --seed SEED",
}
#: Options, by command.
OPTIONS = {
    "attack": {"--attacker": "--adversary"},
    "audit": {"--attack": "--adversary", "--keys": "--known", "--sensitive": "--stated"},
    "census occupancy study": {
        "--swap-rate": "--protection swapping:rate=RATE",
        "--rho": "--protection uniform:rho=RHO",
    },
    "release": {"--mechanism": "--protection", "--levels": "--level"},
}

_TO_RHO = "`bayesrisk convert --epsilon {} --delta 1e-10` gives the rho of an epsilon"
_SQUARE = "--sigma2 is the variance: write --sigma2 with the square of {}"
_OF_RECIPE = "a budget belongs to a protection: --protection discrete-gaussian:rho={}"
#: Options that other commands have, or recipes, and what to write, with the value in braces.
ELSEWHERE = {
    "risk": {
        "--epsilon": _TO_RHO, "--delta": "`bayesrisk convert --epsilon 1 --delta {}`",
        "--sigma": _SQUARE,
    },
    "convert": {"--sigma": _SQUARE},
    "sweep": {
        "--epsilon": _TO_RHO, "--rho": "rho = [{}] stands in the file, below [grid]",
        "--prior": "prior = [{}] stands in the file, below [grid]",
    },
    **{
        command: {
            "--epsilon": _TO_RHO, "--rho": _OF_RECIPE,
            "--rate": "a rate belongs to a protection: --protection swapping:rate={}",
            "--base": "a base belongs to a protection: --protection rounding:base={}",
        }
        for command in ("release", "audit")
    },
}  # fmt: skip


def check_command(name: str) -> None:
    """Refuse a command of the version before, with what to write now."""
    if name in COMMANDS:
        raise ArgumentError(f"`bayesrisk {name}` is now `bayesrisk {COMMANDS[name]}`")


def check_option(command: str, name: str, words: Sequence[str]) -> None:
    """Refuse an option of the version before, or of another command, with what to write."""
    now = OPTIONS.get(command, {}).get(name)
    if now is not None:
        raise ArgumentError(f"`{name}` of `bayesrisk {command}` is now `{now}`")
    advice = ELSEWHERE.get(command, {}).get(name)
    if advice is not None:
        values = " ".join(words).partition(name)[2].replace("=", " ").split()
        value = values[0] if values else "NUMBER"
        raise ArgumentError(f"`bayesrisk {command}` has no {name}: {advice.format(value)}")
