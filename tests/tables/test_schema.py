import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from oracles.tables import every_record
from table_strategies import schemas

from bayesrisk.exceptions import ArgumentError, DataError, ShapeError
from bayesrisk.tables import Attribute, Geography, Records, Schema

CENSUS = Schema.named("sf1-person").geography
UNITS = Schema.named("pl94-units")
LARGE = tuple(Attribute(name, 2**31 - 1) for name in "abc")


@given(schemas())
def test_cells_are_numbered_as_records_are_listed(document):
    about = Schema.from_dict(document)
    everybody = list(every_record(document))
    assert about.size == len(everybody)
    columns = {name: [record[name] for record in everybody] for name in about.names}
    assert about.cell_index(columns).tolist() == list(range(about.size))
    back = about.codes(np.arange(about.size))
    assert {name: codes.tolist() for name, codes in back.items()} == columns
    assert Schema.from_dict(about.to_dict()) == about


@pytest.mark.parametrize(
    ("name", "shape", "finest"),
    [
        ("sf1-person", (2, 111, 63, 2), "block"),
        ("pl94", (8, 2, 2, 63), "block"),
        ("pl94-units", (2,), "block"),
        ("sf1-cells", (77, 209), "block"),
        ("census-1940", (8, 2, 6, 9), "enumdist"),
        ("household-dhc", (5, 8, 8, 8, 13, 3, 3, 3, 10, 8), "block"),
        ("household-occupancy", (7, 14, 7, 4, 2), "block"),
    ],
)
def test_built_in_schemas(name, shape, finest):
    about = Schema.named(name)
    assert about.shape == shape
    assert about.geography.finest == finest
    assert name in Schema.available()
    assert Schema.from_dict(about.to_dict()) == about


def test_the_detail_histograms_have_the_published_sizes():
    assert Schema.named("pl94").size == 2016
    assert Schema.named("census-1940").size == 864
    pl94 = Schema.named("pl94")
    for h, v, i, c in [(0, 1, 0, 2), (7, 1, 1, 62), (3, 0, 1, 40)]:
        cell = pl94.cell_index({"hhgq": h, "votingage": v, "hispanic": i, "cenrace": c})
        assert cell == ((h * 2 + v) * 2 + i) * 63 + c


def test_geographies():
    assert CENSUS.width("county") == 5
    assert Schema.named("pl94", geography="spine-2020").geography.widths == (0, 3, 9, 13, 15, 31)
    assert Schema.named("census-1940").geography.widths == (0, 2, 6, 9, 13)
    blocks = ["010730051031000", "500010101002001"]
    assert CENSUS.ancestors(blocks, "tract").tolist() == ["01073005103", "50001010100"]
    assert CENSUS.ancestors(blocks, "nation").tolist() == ["", ""]
    assert CENSUS.ancestors(blocks, "block").tolist() == blocks
    assert CENSUS.ancestors(np.zeros(0, dtype="U15"), "state").tolist() == []


@given(st.lists(st.text("0123456789", min_size=15, max_size=15), min_size=1))
def test_ancestors_are_prefixes(blocks):
    for level, width in zip(CENSUS.levels, CENSUS.widths, strict=True):
        assert CENSUS.ancestors(blocks, level).tolist() == [block[:width] for block in blocks]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Attribute("a", 0), ArgumentError, "size of 'a' must be >= 1"),
        (lambda: Attribute("a", 2, labels=("x",)), ShapeError, "one for each of 2 codes, got 1"),
        (lambda: Geography("g", (), ()), ShapeError, "at least one"),
        (
            lambda: Geography("g", ("a", "a"), (1, 2)),
            ArgumentError,
            "levels must give each once, got 'a'",
        ),
        (lambda: Geography("g", ("a", "b"), (2, 2)), ArgumentError, "widths must increase"),
        (
            lambda: Schema("s", (Attribute("block", 2),), CENSUS),
            ArgumentError,
            "places .* got 'block' more",
        ),
        (lambda: Schema("s", LARGE, CENSUS), ArgumentError, r"fewer than 2\*\*62"),
        (lambda: Schema.named("pl94", geography="moon"), ArgumentError, "geography must be one"),
        (lambda: CENSUS.ancestors(["01"], "tract"), ArgumentError, "at least 11 digits"),
        (lambda: UNITS.cell_index({}), ArgumentError, "codes must be of h1"),
        (lambda: UNITS.cell_index({"h1": [0, 2]}), ArgumentError, "h1 must be <= 1, .* index 1"),
        (lambda: Schema.from_dict({}), ArgumentError, "schema must hold"),
    ],
)
def test_bad_arguments(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_groups_of_numbers_and_yes_or_no():
    """What pandas.cut makes are labels, in order, also read back from a CSV file."""
    frame = pd.DataFrame(
        {"age": pd.cut([70, 3, 30], [0, 18, 40, 120], right=False), "smoker": [True, False, True]}
    )
    schema = Schema.from_frame(frame)
    assert schema.attribute("age").labels == ("[0, 18)", "[18, 40)", "[40, 120)")
    assert schema.attribute("smoker").labels == ("False", "True")
    records = Records.from_frame(frame, schema=schema)
    assert records.codes("age").tolist() == [2, 0, 1]
    assert records.codes("smoker").tolist() == [1, 0, 1]


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", None])
def test_dates_are_refused_and_their_years_are_codes(form):
    """Each became a category of its own."""
    days = pd.date_range("2021-01-01", periods=60, freq="11D")
    texts = days if form is None else days.strftime(form)
    frame = pd.DataFrame({"joined": [*texts, *texts], "sex": ["f", "m"] * 60})
    with pytest.raises(DataError, match=r"'joined': must hold no dates, .* years"):
        Schema.from_frame(frame)
    few = frame.assign(joined=frame["joined"].iloc[:2].tolist() * 60)
    if form is not None:
        assert Schema.from_frame(few).attribute("joined").size == 2
    years = Schema.from_frame(frame.assign(joined=[*days.year, *days.year]))
    assert years.attribute("joined").first == 2021
    assert years.attribute("joined").size == 2
