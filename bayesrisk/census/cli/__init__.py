"""Commands of the census wing by panel of the help, each with an example and main options."""

from typing import Any

from bayesrisk.census.cli import measurements, nation, occupancy, read, simulate

COMMANDS: dict[str, dict[Any, tuple[str, Any]]] = {
    "Data": {
        "census": (
            "Files, noisy counts, housing and made-up people of a census.",
            {
                read.read: ("ppmf.csv --from ppmf -o persons.parquet", "form output"),
                measurements.measurements: (
                    "sample:noisy-measurements -o risk --prior 1/10 --exceeds 2",
                    "output prior posterior level query exceeds known_count workers",
                ),
                "occupancy": (
                    "Find subsidised households above the occupancy limit.",
                    {
                        occupancy.study: (
                            "-o study --seeds 2 --protection das",
                            "output protection seeds n_blocks sample solutions time_limit workers",
                        ),
                        occupancy.attack: (
                            "tables -o attack",
                            "output level sample solutions hud error time_limit workers",
                        ),
                    },
                ),
                simulate.simulate: (
                    "-o population --preset tract --seed 1",
                    "output seed preset blocks nation scale years workers",
                ),
                nation.nation: (
                    "-o nation --seed 1 --scale 1/2000",
                    "output seed scale every protection share workers executor",
                ),
            },
        )
    }
}
