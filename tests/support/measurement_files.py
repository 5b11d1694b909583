"""Folders of noisy measurements written row by row, for spines of any widths."""

import pyarrow as pa
from pyarrow import parquet

PERSON = ("hhgq", "votingage", "hispanic", "cenrace")
UNIT = ("h1",)
ALL = {"hhgq": 8, "votingage": 2, "hispanic": 2, "cenrace": 63, "h1": 2}


def row(geocode, query, value, axes, *, sign=None, variance=1.0, **asked):
    """Return a row; ``asked`` says how axes are answered, the others are summed out."""
    answers = {axis: asked.get(axis, "*") for axis in axes}
    sizes = [1 if a == "*" else 1 if a in ("nonvoting", "gqNursingTotal") else ALL[x]
             for x, a in answers.items()]  # fmt: skip
    ending = {"sign": sign} if sign else {}
    name = f"{query}_con" if sign else f"{query}_dpq"
    return {
        "geocode": geocode, "query_name": name, **answers, "query_shape": sizes,
        "value": list(value), "variance": variance, **ending,
    }  # fmt: skip


def write_rows(folder, level, rows):
    """Write the rows of a level, noisy answers and constraints, by state."""
    places = {}
    for one in rows:
        kind = "Constraint" if "sign" in one else "DPQuery"
        state = "" if level == "US" else f"State={one['geocode'][:3]}"
        places.setdefault((kind, state), []).append(one)
    for (kind, state), some in places.items():
        target = folder / f"{level}.parquet" / kind / state
        target.mkdir(parents=True, exist_ok=True)
        columns = {name: [one[name] for one in some] for name in some[0]}
        columns["variance"] = pa.array(columns["variance"], pa.float32())
        parquet.write_table(pa.table(columns), target / "part-0.parquet")
    return folder
