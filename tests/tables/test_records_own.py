"""Records without a schema: groups of numbers, names of places, missing values, the file again."""

import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from bayesrisk import DataError, Records, Schema, Workload, tabulate
from bayesrisk.tables import Attribute

NUMBERS = st.lists(
    st.floats(-1e9, 1e9).map(lambda x: round(x, 3)), min_size=1, max_size=60
) | st.lists(st.integers(-(10**9), 10**9), min_size=1, max_size=60)


def step_of(cuts):
    """Return the step between cuts as a digit and a power of ten."""
    step = cuts[1] - cuts[0]
    power = math.floor(math.log10(step) + 1e-9)
    return round(step / 10**power)


@given(NUMBERS)
def test_numbers_are_cut_where_the_rule_says(values):
    about = Schema.from_frame(pd.DataFrame({"x": values}), columns=["x"]).attributes[0]
    array = np.array(values, dtype=float)
    whole = isinstance(values[0], int)
    few = whole and len(set(values)) <= 20 and max(values) - min(values) < 100
    assert bool(about.cuts) == (not few)
    if few:
        assert (about.first, about.size) == (min(values), max(values) - min(values) + 1)
        return
    assert len(about.labels) == len(set(about.labels)) == len(about.cuts) + 1
    low, high = np.quantile(array, [0.05, 0.95])
    if low == high:
        low, high = array.min(), array.max()
    if len(about.cuts) > 2:
        assert step_of(about.cuts) in (1, 2, 5, 10)
        step = about.cuts[1] - about.cuts[0]
        assert (high - low) / step <= 9 * (1 + 1e-9)
        assert all(abs(cut / step - round(cut / step)) < 1e-6 for cut in about.cuts)
    records = Records.from_frame(pd.DataFrame({"x": values}), schema=Schema("s", (about,)))
    wanted = [sum(cut <= value for cut in about.cuts) for value in values]
    assert records.codes("x").tolist() == wanted


TEXT = st.sampled_from(["a", "b b", "Ünal", "x-1"])
ROWS = st.lists(
    st.tuples(
        st.sampled_from(["North End", "12", "7", "St Mary", "1"]),
        st.one_of(st.none(), st.integers(0, 99)),
        st.one_of(st.none(), st.integers(0, 3)),
        st.one_of(st.none(), TEXT),
        st.floats(0, 1e6).map(lambda x: round(x, 2)),
    ),
    min_size=1,
    max_size=40,
)


@settings(max_examples=15, deadline=None)
@given(ROWS)
def test_the_schema_reads_the_file_that_it_is_of(tmp_path_factory, rows):
    """CSV and Parquet of others, files of ours, and frames there and back: the same records."""
    folder = tmp_path_factory.mktemp("own")
    frame = pd.DataFrame(rows, columns=["clinic", "age", "kids", "kind", "cost"])
    frame["kind"] = frame["kind"].astype("string")
    columns = ["age", "kids", "kind", "cost"]
    filled = [c for c in columns if frame[c].notna().any()]
    cuts = {"age": [18, 65]} if "age" in filled else {}
    about = Schema.from_frame(frame, columns=filled, place="clinic", cuts=cuts)
    assert Schema.from_dict(about.to_dict()) == about
    made = Records.from_frame(frame, schema=about)
    frame.to_csv(folder / "r.csv", index=False)
    frame.to_parquet(folder / "r.parquet", index=False)
    made.write(folder / "own.parquet")
    again = [Records.read(folder / n, schema=about) for n in ("r.csv", "r.parquet", "own.parquet")]
    again.append(Records.from_frame(made.to_frame(), schema=about))
    for other in again:
        assert other.cells().tolist() == made.cells().tolist()
        assert other.geoids.tolist() == made.geoids.tolist()
    assert about.geography.named(made.geoids.tolist()) == frame["clinic"].tolist()
    if "kind" in filled:
        labels = about.attribute("kind").labels
        told = [labels[code] for code in made.codes("kind")]
        assert told == frame["kind"].fillna("missing").tolist()


def test_the_usual_tables_are_the_counts_of_the_frame():
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "patient": [f"P{i}" for i in range(80)],
            "clinic": rng.choice(["B", "A"], 80),
            "age": rng.integers(0, 95, 80),
            "sex": rng.choice(["M", "F"], 80),
            "ill": rng.choice(["x", "y", "z"], 80),
        }
    )
    about = Schema.from_frame(frame, place="clinic")
    assert about.names == ("age", "sex", "ill")  # patients are left out
    tables = tabulate(Records.from_frame(frame, schema=about), Workload.of(about))
    assert [n for _, n in tables.workload.tables] == [
        "total", "age", "sex", "ill", "age * sex", "age * ill", "sex * ill",
    ]  # fmt: skip
    found = tables.to_frame()
    crossed = found[found["table"] == "sex * ill"]
    by_cell = crossed.set_index(["geoid", "cell"])["count"]
    for (clinic, sex, ill), rows in frame.groupby(["clinic", "sex", "ill"]):
        assert by_cell[clinic, f"{sex}, {ill}"] == len(rows)
    young = found.query("table == 'age' and cell == 'under 10'")["count"].sum()
    assert young == (frame["age"] < 10).sum()


def test_places_in_places_have_codes_that_contain_each_other():
    names = [(f"R{i % 3}", f"town {i}") for i in range(30)]
    frame = pd.DataFrame(names, columns=["region", "town"]).assign(x="a")
    about = Schema.from_frame(frame, columns=["x"], place=["region", "town"])
    assert about.geography.levels == ("all", "region", "town")
    codes = Records.from_frame(frame, schema=about).geoids
    inside = about.geography.named(about.geography.ancestors(codes, "region").tolist())
    assert inside == frame["region"].tolist()
    other = frame.assign(town="Atlantis")
    with pytest.raises(DataError, match=r"row 1, column 'town': must be one of 30 places"):
        Records.from_frame(other, schema=about)


@pytest.mark.parametrize("text", ["n/a", "1e400", "12 000", "0x10"])
def test_what_is_no_number_is_refused(tmp_path, text):
    schema = Schema("s", (Attribute("age", 2, labels=("under 18", "18 and over"), cuts=(18,)),))
    (tmp_path / "r.csv").write_text(f"age\n17\n18 and over\n18.0\n{text}\n")
    with pytest.raises(DataError, match=r"row 4, column 'age': must be a number or one of"):
        Records.read(tmp_path / "r.csv", schema=schema)
    (tmp_path / "r.csv").write_text("age\n17\n18 and over\n18.0\n")
    assert Records.read(tmp_path / "r.csv", schema=schema).codes("age").tolist() == [0, 1, 1]


def test_codes_of_groups_are_not_numbers(tmp_path):
    """A file of ours says that it holds codes; the same numbers of others are numbers."""
    schema = Schema("s", (Attribute("age", 2, labels=("under 18", "18 and over"), cuts=(18,)),))
    made = Records(schema, pa.table({"age": [1, 0]}))
    made.write(tmp_path / "ours.parquet")
    pd.DataFrame({"age": [1, 0]}).to_parquet(tmp_path / "others.parquet")
    assert Records.read(tmp_path / "ours.parquet", schema=schema).codes("age").tolist() == [1, 0]
    assert Records.read(tmp_path / "others.parquet", schema=schema).codes("age").tolist() == [0, 0]
    assert made.to_frame()["age"].tolist() == ["18 and over", "under 18"]
