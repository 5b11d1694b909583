"""The shipped allocations against the tables of the shared data folder, row by row."""

import csv
from fractions import Fraction
from pathlib import Path

import pytest

from bayesrisk.accounting import census_2020_budget

FORMATS = Path(__file__).parents[3] / "shared" / "data" / "formats"

pytestmark = pytest.mark.skipif(
    not FORMATS.is_dir(), reason=f"needs the shared data folder, {FORMATS} is absent"
)


def published(name):
    """Return {(region, universe): {(level, query): (rho, sigma2)}}."""
    tables = {}
    with (FORMATS / name).open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            if "rho_num" in row:
                rho = Fraction(int(row["rho_num"]), int(row["rho_den"]))
            else:
                rho = Fraction(int(row["rho_over_10000"]), 10_000)
            table = tables.setdefault((row["region"], row["universe"]), {})
            table[row["level"], row["query"]] = (rho, float(row["sigma2"]))
    return tables


@pytest.mark.parametrize("product", ["pl94", "dhc"])
def test_every_row(product):
    tables = published(f"{product}_2020_budget.csv")
    for (region, universe), expected in tables.items():
        frame = census_2020_budget(product, region=region, universe=universe)
        ours = {(row.level, row.query): row for row in frame.itertuples()}
        assert ours.keys() == expected.keys()
        for key, (rho, sigma2) in expected.items():
            assert ours[key].rho == rho
            assert ours[key].sigma2 == pytest.approx(sigma2, rel=1e-15)
            if product == "pl94":
                total = sum(r for r, _ in expected.values())
                assert ours[key].level_share * ours[key].query_share * total == rho
    assert len(tables) == {"pl94": 4, "dhc": 6}[product]
