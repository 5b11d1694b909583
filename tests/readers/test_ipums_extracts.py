"""Any extract of IPUMS by its codebook: positions, labels, decimals, households with persons."""

import gzip

import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from bayesrisk import ArgumentError, DataError, Records, Schema
from bayesrisk.readers import iter_ipums_1940, read_ipums

#: Variables by name: first and last character from 1, decimals, types of lines, labels.
ACS = {
    "RECTYPE": (1, 1, 0, "H P", {"H": "Household", "P": "Person"}),
    "SERIAL": (2, 7, 0, "H P", {}),
    "STATEFIP": (8, 9, 0, "H", {"06": "California", "36": "New York"}),
    "HHWT": (10, 14, 2, "H", {}),
    "SEX": (8, 8, 0, "P", {"1": "Male", "2": "Female"}),
    "AGE": (9, 11, 0, "P", {"000": "Less than 1 year old", "001": "1", "002": "2"}),
    "INCTOT": (12, 18, 0, "P", {"9999999": "N/A"}),
    "MARST": (19, 19, 0, "P", {"1": "Married", "6": "Never married", "9": "Unknown"}),
}


def codebook(variables, kind):
    """Return a codebook in DDI 2.5, as extracts have it."""
    group = '<recGrp recidvar="RECTYPE" keyvar="SERIAL" rectype="H"/>'
    entries = []
    for name, (first, last, decimals, records, labels) in variables.items():
        told = "".join(
            f"<catgry><catValu>{value}</catValu><labl>{label}</labl></catgry>"
            for value, label in labels.items()
        )
        types = f'rectype="{records}"' if kind == "hierarchical" else ""
        entries.append(
            f'<var ID="{name}" name="{name}" dcml="{decimals}" {types}>'
            f'<location StartPos="{first}" EndPos="{last}"/><labl>{name}</labl>{told}</var>'
        )
    return (
        '<codeBook xmlns="ddi:codebook:2_5"><fileDscr><fileTxt>'
        f'<fileStrc type="{kind}">{group if kind == "hierarchical" else ""}</fileStrc>'
        f"</fileTxt></fileDscr><dataDscr>{''.join(entries)}</dataDscr></codeBook>"
    )


def line(variables, kind, values):
    """Return a line of fixed width."""
    held = [" "] * max(last for _, last, *_ in variables.values())
    for name, text in values.items():
        first, last, _, records, _ = variables[name]
        assert kind in records.split()
        assert len(text) == last - first + 1
        held[first - 1 : last] = list(text)
    return "".join(held) + "\n"


PEOPLE = [
    ("1", "034", "0050000", "1"),
    ("2", "002", "9999999", "6"),
    ("2", "090", "-001200", "9"),
]


def hierarchy(folder):
    """Write two households and three persons; return the file and its codebook."""
    houses = [("000001", "06", "01250"), ("000002", "36", "00099")]
    lines = []
    for serial, state, weight in houses:
        head = {"RECTYPE": "H", "SERIAL": serial, "STATEFIP": state, "HHWT": weight}
        lines.append(line(ACS, "H", head))
        for sex, age, income, marst in PEOPLE[:2] if serial == "000001" else PEOPLE[2:]:
            told = {"SEX": sex, "AGE": age, "INCTOT": income, "MARST": marst}
            lines.append(line(ACS, "P", {"RECTYPE": "P", "SERIAL": serial} | told))
    (folder / "usa.xml").write_text(codebook(ACS, "hierarchical"))
    (folder / "usa.dat").write_text("".join(lines))
    return folder / "usa.dat", folder / "usa.xml", lines


def test_households_and_persons(tmp_path):
    file, book, lines = hierarchy(tmp_path)
    found = read_ipums(file, ddi=book)
    assert found["STATEFIP"].tolist() == ["California", "California", "New York"]
    assert found["HHWT"].tolist() == [12.5, 12.5, 0.99]
    assert found["SEX"].tolist() == ["Male", "Female", "Female"]
    assert found["AGE"].tolist() == [34, 2, 90]
    assert found["INCTOT"].tolist()[::2] == [50000, -1200]
    assert found["INCTOT"].isna().tolist() == [False, True, False]
    assert found["MARST"].tolist() == ["Married", "Never married", "Unknown"]
    packed = tmp_path / "usa.dat.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    pd.testing.assert_frame_equal(read_ipums(packed, ddi=book), found)
    # The same as CSV: columns of the other type of line are empty.
    rows = []
    for text in lines:
        kind = text[0]
        rows.append(
            [
                (text[a - 1 : b].lstrip("0") or "0") if kind in records.split() else ""
                for a, b, _, records, _ in ACS.values()
            ]
        )
        if kind == "H":
            rows[-1][3] = f"{int(text[9:14]) / 100:.2f}"  # points are written in CSV
        elif text[11] == "-":
            rows[-1][6] = "-1200"
    table = pd.DataFrame(rows, columns=list(ACS))
    table.to_csv(tmp_path / "usa.csv", index=False)
    pd.testing.assert_frame_equal(
        read_ipums(tmp_path / "usa.csv", ddi=book), found, check_dtype=False
    )
    schema = Schema.from_frame(found, columns=["SEX", "MARST"], place="STATEFIP")
    records = Records.from_frame(found, schema=schema)
    assert schema.geography.named(records.geoids.tolist()) == found["STATEFIP"].tolist()


@settings(max_examples=20, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("12"), st.integers(0, 99), st.integers(0, 9999)),
        min_size=1,
        max_size=30,
    )
)
def test_rectangular_there_and_back(tmp_path_factory, people):
    folder = tmp_path_factory.mktemp("cps")
    variables = {
        "SEX": (3, 3, 0, "", {"1": "Male", "2": "Female"}),
        "AGE": (5, 6, 0, "", {}),
        "WTFINL": (7, 10, 2, "", {}),
    }
    (folder / "cps.xml").write_text(codebook(variables, "rectangular"))
    lines = [f"  {sex} {age:02d}{weight:04d}\n" for sex, age, weight in people]
    (folder / "cps.dat").write_text("".join(lines))
    found = read_ipums(folder / "cps.dat", ddi=folder / "cps.xml")
    assert found["SEX"].tolist() == [{"1": "Male", "2": "Female"}[sex] for sex, _, _ in people]
    assert found["AGE"].tolist() == [age for _, age, _ in people]
    assert found["WTFINL"].tolist() == pytest.approx([w / 100 for *_, w in people], abs=1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: lines[1:], r"line 1, column 'SERIAL': must be that of the household before"),
        (lambda lines: [*lines[:3], lines[-1]], r"line 4, column 'SERIAL': .* got '000002'"),
        (lambda lines: [lines[0], lines[1][:9] + "\n"], "line 2: must have at least 11 characters"),
    ],
)
def test_damaged_extracts(tmp_path, change, message):
    file, book, lines = hierarchy(tmp_path)
    file.write_text("".join(change(lines)))
    with pytest.raises(DataError, match=message):
        read_ipums(file, ddi=book)


def test_values_that_the_codebook_does_not_name(tmp_path):
    file, book, lines = hierarchy(tmp_path)
    file.write_text("".join([*lines[:2], lines[2][:7] + "7" + lines[2][8:]]))
    assert read_ipums(file, ddi=book)["SEX"].tolist() == ["Male", "code 7"]
    file.write_text(lines[0])
    assert len(read_ipums(file, ddi=book)) == 0


def test_other_codebooks(tmp_path):
    file, book, _ = hierarchy(tmp_path)
    with pytest.raises(DataError, match="must describe a rectangular file"):
        next(iter_ipums_1940(file, ddi=book))
    for kind, wanted in (("relational", "rectangular or a hierarchical"), ("hierarchical", "SERI")):
        fewer = {name: about for name, about in ACS.items() if name != "SERIAL"}
        book.write_text(codebook(fewer, kind))
        with pytest.raises(DataError, match=wanted):
            read_ipums(file, ddi=book)
    with pytest.raises(ArgumentError, match="ddi must be a path"):
        read_ipums(file, ddi=None)
