"""Random small schemas, workloads in the grammar, and records."""

from hypothesis import strategies as st

GEOGRAPHY = {"name": "toy", "levels": ["all", "town", "street"], "widths": [0, 1, 3]}


@st.composite
def schemas(draw, largest=4):
    sizes = draw(st.lists(st.integers(1, largest), min_size=1, max_size=3))
    attributes = [
        {"name": "abc"[i], "size": size, "first": draw(st.integers(0, 2))}
        for i, size in enumerate(sizes)
    ]
    return {"name": "toy", "attributes": attributes, "geography": GEOGRAPHY}


@st.composite
def group(draw, attribute):
    span = range(attribute["first"], attribute["first"] + attribute["size"])
    chosen = draw(st.sets(st.sampled_from(list(span)), min_size=1))
    return ",".join(map(str, sorted(chosen)))


@st.composite
def part(draw, attributes, stem):
    entry = {"cross": [], "where": {}, "weight": {}}
    count = 1
    for attribute in draw(st.permutations(attributes)):
        if draw(st.booleans()):
            if draw(st.booleans()):
                entry["cross"].append(attribute["name"])
                count *= attribute["size"]
            else:
                recode = draw(st.lists(group(attribute), min_size=1, max_size=3))
                entry["cross"].append([attribute["name"], recode])
                count *= len(recode)
        if draw(st.booleans()):
            entry["where"][attribute["name"]] = draw(group(attribute))
        if draw(st.integers(0, 3)) == 0:
            numbers = st.lists(
                st.integers(0, 3), min_size=attribute["size"], max_size=attribute["size"]
            )
            entry["weight"][attribute["name"]] = draw(st.one_of(st.just("code"), numbers))
    entry["cells"] = f"{stem}{{000-{count - 1:03d}}}"
    return entry


@st.composite
def documents(draw, largest=4, tables=3):
    schema = draw(schemas(largest))
    entries = []
    for i in range(draw(st.integers(1, tables))):
        levels = draw(st.sets(st.sampled_from(GEOGRAPHY["levels"]), min_size=1))
        parts = [
            draw(part(schema["attributes"], f"T{i}{stem}"))
            for stem in "xy"[: draw(st.integers(1, 2))]
        ]
        entries.append({"name": f"T{i}", "levels": sorted(levels), "parts": parts})
    return {"schema": schema, "tables": entries}


def records(schema):
    columns = {
        a["name"]: st.integers(a["first"], a["first"] + a["size"] - 1) for a in schema["attributes"]
    }
    columns["street"] = st.sampled_from(["000", "001", "010", "110", "999"])
    return st.lists(st.fixed_dictionaries(columns), max_size=12)
