"""Commands and options of the version before, and what to write now."""

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


def check_command(name: str) -> None:
    """Refuse a command of the version before, with what to write now."""
    if name in COMMANDS:
        raise ArgumentError(f"`bayesrisk {name}` is now `bayesrisk {COMMANDS[name]}`")


def check_option(command: str, name: str) -> None:
    """Refuse an option of the version before, with what to write now."""
    now = OPTIONS.get(command, {}).get(name)
    if now is not None:
        raise ArgumentError(f"`{name}` of `bayesrisk {command}` is now `{now}`")
