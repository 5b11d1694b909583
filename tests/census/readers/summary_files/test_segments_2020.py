"""The 2020 redistricting file and DHC: by hand, there and back, and from tables to an attack."""

import zipfile

import numpy as np
import pytest
from agency_forms import write_dhc, write_pl94, write_sf1
from oracles import readers as oracle
from scipy import sparse

from bayesrisk import DataError, reconstruct
from bayesrisk.census import iter_dhc, iter_pl94, read_dhc, read_pl94, read_sf1
from bayesrisk.exceptions import DataWarning
from bayesrisk.reconstruction import find_claims, record_form
from bayesrisk.tables import PublishedTables, Records, Workload, tabulate

PL = Workload.named("pl94-tables")
UNITS = Workload.named("pl94-unit-tables")
DHC = Workload.named("dhc-block").union(Workload.named("dhc-tract"))


def places(seed, n):
    rng = np.random.default_rng(seed)
    return [f"50001000{t}00{b}" for t, b in zip(
        rng.integers(1, 3, n), rng.integers(1000, 1004, n), strict=True
    )]  # fmt: skip


def voters(seed, n):
    return oracle.pl94_records(np.random.default_rng(seed), n).replace(block=places(seed, n))


def people(seed, n):
    return oracle.person_records(np.random.default_rng(seed), n).replace(block=places(seed, n))


def geo(record, level, place, *, variant="00", component="00", names=97):
    """Return a line of a geographic header by the numbers of its fields, from 1."""
    fields = [""] * names
    for number, text in (
        (1, "PLST"), (2, "VT"), (3, level), (4, variant), (5, component), (6, "000"), (7, "00"),
        (8, f"{record:07d}"), (9, f"{level}0000US{place}"), (10, place), (13, place[:2]),
        (15, place[2:5]), (33, place[5:11]), (34, place[11:12]),
        (35, place[11:15] if len(place) == 15 else ""), (88, "Caf\xe9 \"Block"),
    ):  # fmt: skip
        fields[number - 1] = text
    return "|".join(fields) + "\r\n"


def by_hand(folder, *, total=8, leaf=5, block="500010001001000"):
    """Write a county and two blocks; P1 and P2 fill segment 1 (fields 6 to 76 and 77 to 149)."""
    folder.mkdir(exist_ok=True)
    lines = [
        geo(1, "050", "50001"),
        geo(2, "050", "50001", variant="01"),
        geo(3, "750", block),
        geo(4, "750", "500010001001001"),
    ]
    (folder / "vtgeo2020.pl").write_bytes("".join(lines).encode("latin-1"))
    rows = []
    for record in range(1, 5):
        row = ["PLST", "VT", "000", "01", f"{record:07d}", *["0"] * 144]
        if record == 3:
            # P1: total, population of one race, White alone ..., White and Black is cell 11.
            row[5], row[6], row[7], row[5 + 10] = str(total), "5", str(leaf), "3"
            # P2: total, Hispanic, not Hispanic, one race, White alone; White and Black is cell 13.
            row[76], row[77], row[78], row[80], row[76 + 12] = "8", "2", "6", "4", "2"
        rows.append("|".join(row) + "\r\n")
    (folder / "vt000012020.pl").write_text("".join(rows), newline="")
    return folder


FIRST = PL.select(tables=["P1", "P2"])


def test_redistricting_file_by_hand(tmp_path):
    tables = read_pl94(by_hand(tmp_path / "vt"), workload=FIRST)
    assert tables.geoids["block"].tolist() == ["500010001001000", "500010001001001"]
    race = tables.count("block", "P1", "500010001001000")
    assert (race[0], race[6], race.sum()) == (5, 3, 8)  # White; White and Black, first of pairs
    origin = tables.count("block", "P2", "500010001001000")
    assert (origin[0], origin[1], origin[7], origin.sum()) == (2, 4, 2, 8)
    assert tables.count("block", "P1", "500010001001001").sum() == 0
    county = read_pl94(tmp_path / "vt", workload=Workload.named("pl94-tables", levels=["county"])
                       .select(tables=["P1"]))  # fmt: skip
    assert county.geoids["county"].tolist() == ["50001"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"total": 9}, r"vt000012020.pl: row 3, column '6': must be the sum of the cells of P1, "),
        ({"block": "500010001001001"}, r"vtgeo2020.pl: row 4, column 'BLOCK': .*that of row 3 ag"),
        ({"block": "010010001001000"}, r"vtgeo2020.pl: row 3, column 'STATE': must be in state 50"),
    ],
)
def test_bad_redistricting_files(options, message, tmp_path):
    with pytest.raises(DataError, match=message):
        read_pl94(by_hand(tmp_path / "vt", **options), workload=FIRST)


def test_files_that_are_not_there(tmp_path):
    folder = by_hand(tmp_path / "vt")
    with pytest.raises(DataError, match=r"exactly one vt000022020.pl, which the tables asked for"):
        read_pl94(folder, workload=PL)
    with pytest.raises(DataError, match=r"one geographic header \(<st>geo2020.dhc\), got 0"):
        read_dhc(folder, workload=DHC)
    with pytest.raises(DataError, match=r"level 'tract' \(summary level 140\), got none"):
        read_pl94(folder, workload=Workload.named("pl94-tables", levels=["tract"]))
    header = folder / "vtgeo2020.pl"
    header.write_bytes(b"|".join(header.read_bytes().split(b"|")[:20]) + b"\n")
    with pytest.raises(DataError, match=r"must have 35 to .* columns between '\|', got 20"):
        read_pl94(folder, workload=FIRST)


def test_there_and_back(tmp_path):
    seed, n, chunk, folder = 5, 40, 7, tmp_path
    units = oracle.records("pl94-units", {
        "block": places(seed, n), "h1": np.random.default_rng(seed).integers(0, 2, n),
    })  # fmt: skip
    for tables, write, read, pieces, name in (
        (tabulate(voters(seed, n), PL), write_pl94, read_pl94, iter_pl94, "vt2020.pl.zip"),
        (tabulate(units, UNITS), write_pl94, read_pl94, iter_pl94, "units2020.pl.zip"),
        (tabulate(people(seed, n), DHC), write_dhc, read_dhc, iter_dhc, "vt2020.dhc.zip"),
    ):
        write(tables, folder / name)
        assert read(folder / name, workload=tables.workload) == tables
        assert sum(
            len(p.geoids["block"]) for p in pieces(folder / name, workload=tables.workload,
                                                   chunk=chunk)
        ) == len(tables.geoids["block"])  # fmt: skip
        with zipfile.ZipFile(folder / name) as archive:
            archive.extractall(folder / name.replace(".zip", ""))
        assert read(folder / name.replace(".zip", ""), workload=tables.workload) == tables


def test_where_the_tables_of_the_dhc_stand(tmp_path):
    """Segment and first field of tables by the published layout, and their cells in order."""
    published = {
        "P1": (5, 6), "P3": (5, 11), "P8": (5, 61), "P9": (5, 132), "P10": (6, 6), "P11": (6, 77),
        "P12": (6, 150), "P12A": (6, 199), "P12B": (8, 153), "P12C": (8, 202), "P12D": (9, 6),
        "P12H": (9, 202), "P12I": (10, 6), "P14": (13, 183), "PCT12": (21, 6), "PCT12E": (26, 6),
        "PCT12F": (27, 6), "PCT12O": (36, 6),
    }  # fmt: skip
    tables = tabulate(people(1, 200), DHC)
    write_dhc(tables, tmp_path / "vt2020.dhc.zip")
    with zipfile.ZipFile(tmp_path / "vt2020.dhc.zip") as archive:
        text = {n: archive.read(n).decode().splitlines() for n in archive.namelist()}
    header = [line.split("|") for line in text["vtgeo2020.dhc"]]
    assert {len(fields) for fields in header} == {97}
    for name, (segment, first) in published.items():
        level = "tract" if name.startswith("PCT") else "block"
        code = "140" if level == "tract" else "100"
        rows = {line.split("|")[4]: line.split("|") for line in text[f"vt000{segment:02d}2020.dhc"]}
        for fields in header:
            if fields[2] != code:
                continue
            place = fields[12] + fields[14] + fields[32] + fields[34]
            table = tables.workload.at(level)[name]
            for cell, count in zip(table.cells, tables.count(level, name, place), strict=True):
                number = int(cell[-3:])
                assert rows[fields[7]][first - 1 + number - 1] == str(count)


def test_from_people_to_an_attack_on_their_redistricting_tables(tmp_path):
    """Simulated persons, their tables as segments, read again, and records that explain them."""
    # One block has one person, the others several.
    blocks = ["500010001001000", *places(4, 39)]
    blocks[1:] = [b if b != blocks[0] else "500010001001001" for b in blocks[1:]]
    truth = voters(4, 40).replace(block=blocks)
    tables = tabulate(truth, PL)
    write_pl94(tables, tmp_path / "vt2020.pl.zip")
    read = read_pl94(tmp_path / "vt2020.pl.zip", workload=PL)
    assert read == tables
    made = Records.from_frame(record_form(reconstruct(read, scope="block")), schema=truth.schema)
    assert tabulate(made, PL, geoids=tables.geoids["block"]) == tables
    assert len(made) == len(truth)
    # What every data set of a block with one person must hold: their race, age group and origin.
    claims = find_claims(read, columns=["cenrace"]).to_frame()
    alone = [b for b in tables.geoids["block"] if tables.count("block", "P1", b).sum() == 1]
    assert alone
    assert set(alone) <= set(claims["block"])


def test_every_table_of_counts_of_2010(tmp_path):
    """All 77, cell by cell with their totals, written and read."""
    rng = np.random.default_rng(5)
    work = Workload.named("sf1-tables").union(Workload.named("sf1-tract-tables"))
    assert len(work.tables) == 77
    geoids = {"block": np.unique(places(1, 20)), "tract": ["50001000100", "50001000200"]}
    counts = {
        key: sparse.csr_array(rng.integers(0, 99, (len(geoids[key[0]]), len(table.cells))))
        for key, table in work.tables.items()
    }
    tables = PublishedTables(work, geoids, counts)
    write_sf1(tables, tmp_path / "vt2010.sf1.zip")
    assert read_sf1(tmp_path / "vt2010.sf1.zip", workload=work) == tables
    leaves = Workload.named("sf1-block").select(tables=["P14"])
    same = read_sf1(tmp_path / "vt2010.sf1.zip", workload=leaves)
    place = tables.geoids["block"][0]
    assert same.count("block", "P14", place).tolist() == (
        tables.count("block", "P14", place)[1:].tolist()
    )


def test_a_header_in_another_order_than_the_segments(tmp_path):
    folder = by_hand(tmp_path / "vt")
    straight = read_pl94(folder, workload=FIRST)
    header, segment = folder / "vtgeo2020.pl", folder / "vt000012020.pl"
    header.write_bytes(b"".join(reversed(header.read_bytes().splitlines(keepends=True))))
    assert read_pl94(folder, workload=FIRST) == straight
    segment.write_bytes(b"".join(reversed(segment.read_bytes().splitlines(keepends=True))))
    rule = "column 'LOGRECNO': must be larger than in the row above; sort the lines of the segment"
    with pytest.raises(DataError, match=rule):
        read_pl94(folder, workload=FIRST)


def test_a_count_that_is_not_published_is_suppressed_where_it_is_said(tmp_path):
    folder = by_hand(tmp_path / "vt", leaf=".")
    first = PL.select(tables=["P1"])
    with pytest.raises(DataError, match=r"column .8.: must be a count: .\.. says"):
        read_pl94(folder, workload=first)
    with pytest.warns(DataWarning) as caught:
        tables = read_pl94(folder, workload=first, on_error="missing")
    assert [(column, n) for (column, _), n in caught[0].message.missing.items()] == [("8", 1)]
    assert tables.hidden("block", "P1").sum() == 1
    assert tables.count("block", "P1", "500010001001000").sum() == 3
