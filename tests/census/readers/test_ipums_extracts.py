"""Any extract of IPUMS by its codebook: positions, labels, decimals, households with persons."""

import gzip

import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from bayesrisk import ArgumentError, DataError, Records, Schema
from bayesrisk.census import iter_ipums_1940, read_ipums, read_ipums_1940
from bayesrisk.exceptions import DataWarning

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
    with pytest.raises(DataError, match="of persons, of kind P, got kinds H"):
        read_ipums(file, ddi=book)


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


def survey(kinds, titles=(), keys="SERIAL"):
    """Return the codebook of a survey with lines for households, persons and what else there is."""
    groups = "".join(
        f'<recGrp recidvar="RECTYPE" rectype="{kind}"{key}>{f"<labl>{title}</labl>" * bool(title)}'
        "</recGrp>"
        for kind, title, key in zip(
            kinds, titles or [""] * len(kinds), ["", *[f' keyvar="{keys}"'] * 9], strict=False
        )
    )
    about = [("RECTYPE", 1, 1, kinds), ("YEAR", 2, 2, kinds), ("SERIAL", 3, 4, kinds)]
    names = ["STATE", "AGE", "ACT", "CAR", "FAMILY"]
    about += [(name, 5, 6, kind) for name, kind in zip(names, kinds, strict=False)]
    variables = "".join(
        f'<var name="{name}" rectype="{" ".join(has)}">'
        f'<location StartPos="{a}" EndPos="{b}"/></var>'
        for name, a, b, has in about
    )
    return (
        f'<codeBook><fileDscr><fileTxt><fileStrc type="hierarchical">{groups}</fileStrc></fileTxt>'
        f"</fileDscr><dataDscr>{variables}</dataDscr></codeBook>"
    )


def written(folder, book, lines):
    (folder / "tus.xml").write_text(book)
    (folder / "tus.dat").write_text("".join(f"{line}\n" for line in lines))
    return folder / "tus.dat", folder / "tus.xml"


def read_with_warning(file, book, left, **options):
    with pytest.warns(DataWarning, match=rf"left out, with {left}$"):
        return read_ipums(file, ddi=book, **options)


HOUSEHOLDS = st.lists(
    st.lists(st.lists(st.integers(0, 99), max_size=3), max_size=3), min_size=1, max_size=6
)


@given(HOUSEHOLDS, st.sampled_from(["HPA", "123", "XYZ"]), st.booleans())
def test_what_one_person_did_is_never_of_another(tmp_path_factory, households, kinds, titled):
    """Persons with their activities: the rows are those that were written, without activities."""
    lines, rows = [], []
    for serial, people in enumerate(households):
        lines.append(f"{kinds[0]}0{serial:02d}{serial + 10}")
        for age, acts in enumerate(people):
            rows.append((serial + 10, age))
            lines.append(f"{kinds[1]}0{serial:02d}{age:02d}")
            lines += [f"{kinds[2]}0{serial:02d}{act:02d}" for act in acts]
    titles = ["Household Record", "Person Record", "Activity Record"] if titled else ()
    file, book = written(tmp_path_factory.mktemp("tus"), survey(kinds, titles), lines)
    if not rows:
        with pytest.raises(DataError, match=rf"of kind {kinds[1]}, got kinds {kinds[0]}"):
            read_ipums(file, ddi=book)
        return
    found = read_with_warning(file, book, "ACT")
    assert list(zip(found["STATE"], found["AGE"], strict=True)) == rows
    assert "ACT" not in found
    text = pd.DataFrame(
        [[a[0], a[1], a[2:4], *(a[4:6] if a[0] == kind else "" for kind in kinds)] for a in lines],
        columns=["RECTYPE", "YEAR", "SERIAL", "STATE", "AGE", "ACT"],
    )
    text.to_csv(file.with_suffix(".csv"), index=False)
    pd.testing.assert_frame_equal(
        read_with_warning(file.with_suffix(".csv"), book, "ACT"), found, check_dtype=False
    )


def test_what_stands_above_several_persons_is_theirs_alone(tmp_path):
    """A car is of one household, a family of the persons below it; of two cars neither is."""
    kinds = "HPACF"
    lines = ["H00106", "C00177", "F00101", "P00135", "A00111", "P00108", "F00102", "P00170",
             "H00236", "F00203", "P00220"]  # fmt: skip
    file, book = written(tmp_path, survey(kinds), lines)
    found = read_with_warning(file, book, "ACT")
    assert found["AGE"].tolist() == [35, 8, 70, 20]
    assert found["STATE"].tolist() == [6, 6, 6, 36]
    assert found["FAMILY"].tolist() == [1, 1, 2, 3]
    assert found["CAR"].fillna(0).tolist() == [77, 77, 77, 0]
    file.write_text("".join(f"{line}\n" for line in [lines[0], "C00178", *lines[1:]]))
    found = read_with_warning(file, book, "ACT, CAR")
    assert found["FAMILY"].tolist() == [1, 1, 2, 3]


def test_persons_without_households(tmp_path):
    """As in the medical panel: what belongs to a person stands below, and nothing above."""
    file, book = written(tmp_path, survey("1P3"), ["P00135", "300111", "P00108", "P00170"])
    found = read_with_warning(file, book, "STATE, ACT")
    assert found["AGE"].tolist() == [35, 8, 70]
    file.write_text("300111\n" + file.read_text())
    with pytest.raises(DataError, match="line 3, column 'SERIAL': must be another"):
        read_ipums(file, ddi=book)


def test_lines_without_a_key_belong_to_those_before(tmp_path):
    """Activities, and in the second file all lines, do not say of which household they are."""
    lines = ["H00106", "P00135", "A00111", "P00108", "A00112", "H00236", "P00270"]
    about = survey("HPA")
    hidden = about.replace('name="SERIAL" rectype="H P A"', 'name="SERIAL" rectype="H P"')
    assert hidden != about
    for book in (hidden, about.replace('keyvar="SERIAL"', "").replace("SERIAL", "NUMBER")):
        found = read_with_warning(*written(tmp_path, book, lines), "ACT")
        assert found["AGE"].tolist() == [35, 8, 70]
        assert found["STATE"].tolist() == [6, 6, 36]


def test_keys_of_several_variables(tmp_path):
    """Two years number their households alike; a person of another year is a stranger."""
    lines = ["H00106", "P00135", "H10136", "P10170"]
    file, book = written(tmp_path, survey("HP", keys="YEAR SERIAL"), lines)
    found = read_ipums(file, ddi=book)
    assert found["STATE"].tolist() == [6, 36]
    file.write_text("H00106\nP00135\nP10170\n")
    with pytest.raises(DataError, match="line 3, column 'YEAR': must be that of the household"):
        read_ipums(file, ddi=book)
    file.write_text("H00106\nP00135\nH00236\nQ00270\n")
    with pytest.raises(DataError, match="line 4, column 'RECTYPE': must be one of H, P, got 'Q'"):
        read_ipums(file, ddi=book)


def test_the_kind_of_persons_is_asked_where_it_cannot_be_told(tmp_path):
    same = survey("123", ["Dwelling", "Member", "Trip"]).replace('name="AGE"', 'name="YEARS"')
    file, book = written(tmp_path, same, ["100106", "200135", "300111", "200170"])
    listed = r"one of 1 \(Dwelling\), 2 \(Member\), 3 \(Trip\)"
    with pytest.raises(ArgumentError, match=f"{listed}.*cannot be told"):
        read_ipums(file, ddi=book)
    found = read_with_warning(file, book, "ACT", person_kind="2")
    assert found["YEARS"].tolist() == [35, 70]
    assert found["STATE"].tolist() == [6, 6]
    with pytest.raises(ArgumentError, match=f"{listed}.*got '4'"):
        read_ipums(file, ddi=book, person_kind="4")
    plain = codebook({"SEX": (1, 1, 0, "", {})}, "rectangular")
    book.write_text(plain)
    with pytest.raises(ArgumentError, match="rectangular file, got 2"):
        read_ipums(file, ddi=book, person_kind="2")


@pytest.mark.parametrize(
    ("instructions", "decimals", "texts", "expected"),
    [
        ("Codes999 = NIU (Not in universe)\n996 = Refused", 0, ["999", "996", "034"], [-1, -1, 34]),
        ("000:\tNot in Universe\n085:\tTop code", 0, ["000", "085", "001"], [-1, 85, 1]),
        ("0 = Unknown.\n99.9 = N.I.U.", 1, ["000", "999", "099"], [-1, -1, 9.9]),
        ("0.0 = Unknown\n999 = NIU", 1, ["000", "999", "123"], [-1, -1, 12.3]),
        ("-7=Not applicable/not asked\n-8=Missing", 0, [" -7", " -8", "  7"], [-1, -1, 7]),
        ("2003-2004:  80 years.\nAt 4:00 it begins", 0, ["003", "004", "080"], [3, 4, 80]),
        ("Codes999 = NIU", 0, ["999", "999", "034"], [-1, -1, 34]),
        ("Codes999 = NIU", 0, ["999", "999", "999"], [-1, -1, -1]),
    ],
)
def test_codes_that_instructions_explain_are_missing(
    instructions, decimals, texts, expected, tmp_path
):
    book, file = tmp_path / "a.xml", tmp_path / "a.dat"
    variable = (
        f'<var name="V" intrvl="contin" dcml="{decimals}"><location StartPos="1" EndPos="3"/>'
    )
    book.write_text(
        f"<codeBook><dataDscr>{variable}<codInstr><![CDATA[{instructions}]]></codInstr></var>"
        "</dataDscr></codeBook>"
    )
    file.write_text("".join(f"{text}\n" for text in texts))
    found = read_ipums(file, ddi=book)["V"]
    assert found.fillna(-1).tolist() == expected
    shown = [f"{int(text) / 10**decimals:.{decimals}f}" for text in texts]
    (tmp_path / "a.csv").write_text("V\n" + "".join(f"{text}\n" for text in shown))
    assert read_ipums(tmp_path / "a.csv", ddi=book)["V"].fillna(-1).tolist() == expected


def test_instructions_name_values_as_categories_do(tmp_path):
    book, file = tmp_path / "a.xml", tmp_path / "a.dat"
    book.write_text(
        '<codeBook><dataDscr><var name="V"><location StartPos="1" EndPos="1"/><codInstr>1 = Yes\n'
        "2 = No\n9 = Unknown</codInstr><catgry><catValu>1</catValu><labl>Indeed</labl></catgry>"
        "</var></dataDscr></codeBook>"
    )
    file.write_text("1\n2\n9\n")
    assert read_ipums(file, ddi=book)["V"].tolist() == ["Indeed", "No", "Unknown"]


@pytest.mark.parametrize(
    "text",
    [
        "<!DOCTYPE html>\n<html><body>a<br>b</body></html>",
        "\ufeff<HTML lang='en'><p>x",
        '<?xml version="1.0"?>\n<!DOCTYPE html PUBLIC "x"><html/>',
        "<html/>",
    ],
)
def test_a_web_page_is_no_codebook(text, tmp_path):
    (tmp_path / "a.xml").write_text(text, encoding="utf-8")
    for read in (read_ipums, read_ipums_1940):
        (tmp_path / "a.dat").write_text("1\n")
        with pytest.raises(DataError, match=r"a\.xml: .* is a web page: save .* ends in \.xml"):
            read(tmp_path / "a.dat", ddi=tmp_path / "a.xml")
