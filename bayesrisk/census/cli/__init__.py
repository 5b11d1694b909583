"""Commands of the wing, each with an example of its arguments, by the panel of the help."""

from collections.abc import Callable

from bayesrisk.census.cli import convert_file, measurements, occupancy, reidentify, simulate

Commands = dict[Callable[..., None], str]
COMMANDS: dict[str, Commands] = {
    "Risk": {
        measurements.measurements: "sample:noisy-measurements -o risk --prior 1/10 --exceeds 2",
    },
    "Attack": {
        reidentify.reidentify: "records -o links --attacker known.csv --truth truth.csv "
        "--dialect schema",
    },
    "Data": {
        simulate.simulate: "-o population --preset tract --seed 1",
        convert_file.convert_file: "ppmf.csv --from ppmf -o persons.parquet",
    },
}
#: Groups of commands: panel, help and commands.
GROUPS: dict[str, tuple[str, str, Commands]] = {
    "occupancy": (
        "Attack",
        "Blocks with subsidised households above the occupancy limit (study, attack).",
        {
            occupancy.study: "-o study --seeds 2 --protection das",
            occupancy.attack: "tables -o attack",
        },
    ),
}
