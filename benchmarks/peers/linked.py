"""Three tables that share their margins, protected by tau-Argus and here, and attacked together."""

import contextlib
import itertools
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp

import bayesrisk as br
from bayesrisk.mechanisms import make_mechanism
from bayesrisk.reconstruction import count_bounds
from bayesrisk.release import SuppressedCounts
from bayesrisk.tables import PublishedTables, Records, Workload

HEADER = (
    "Protected by", "Counts withheld", "Come back", "of data sets",
    "Come back to who knows that zeros are published", "of data sets",
)  # fmt: skip
RULE = "FREQ(3,30)"  # counts below 3, each to be hidden by 30 % at least
RESAMPLES = 20
FOLDER = br.datasets.path("hospital")
SCHEMA = br.Schema.read(FOLDER / "schema.toml")
NAMES = SCHEMA.names
PAIRS = tuple(itertools.combinations(NAMES, 2))
WORK = Workload.of(SCHEMA, [(), *((name,) for name in NAMES), *PAIRS])
LEVEL = WORK.levels[-1]


def data_sets():
    """Yield the patients of the hospital, then as many drawn from them with replacement."""
    records = Records.read(FOLDER / "records.csv", schema=SCHEMA)
    every = np.stack([records.codes(name) for name in NAMES], axis=1)
    yield every
    for seed in range(1, RESAMPLES + 1):
        yield every[np.random.default_rng(seed).integers(len(every), size=len(every))]


def people(codes):
    """Return patients as theirs takes them."""
    columns = {name: [f"{code:02d}" for code in codes[:, i]] for i, name in enumerate(NAMES)}
    return columns | {"one": [1.0] * len(codes)}


def withheld(rows, names):
    """Return which cells of a table are withheld, its totals first."""
    found = np.zeros([SCHEMA.attribute(name).size + 1 for name in names], bool)
    for row in rows:
        cell = tuple(int(row[name]) + 1 if row[name].isdecimal() else 0 for name in names)
        found[cell] = row["status"] in ("U", "M")
    return found


def each(codes, folder, marked=()):
    """Return what theirs withholds in each table, where some margins are marked as unsafe."""
    from pytauargus import protect
    from pytauargus.engine import run_batch
    from pytauargus.result import TableResult

    made = protect(people(codes), [list(pair) for pair in PAIRS], response="one",
                   safety_rules=RULE, suppress="OPT(1)", workdir=folder, run=False)  # fmt: skip
    batch, lines = Path(made.files["arb"]), []
    for line in batch.read_text().splitlines():
        if line.startswith("<SUPPRESS>"):
            number = int(line.split("(")[1].split(",")[0].rstrip(")"))
            file, pair = Path(folder) / f"{number}.hst", PAIRS[number - 1]
            mine = [dict(cell) for cell in marked if {name for name, _ in cell} <= {*pair}]
            text = [";".join(f"{m[n]:02d}" if n in m else "" for n in pair) + ";U" for m in mine]
            file.write_text("\n".join(text))
            lines += [f'<APRIORI> "{file}",{number},";"'] * bool(text)
        lines.append(line)
    batch.write_text("\n".join(lines) + "\n")
    engine = run_batch(str(batch))
    files = [made.files[f"tab{number + 1}"] for number in range(len(PAIRS))]
    tables = [
        TableResult(path=file, exp_vars=list(pair), response="one").rows
        for file, pair in zip(files, PAIRS, strict=True)
    ]
    return engine, {pair: withheld(rows, pair) for pair, rows in zip(PAIRS, tables, strict=True)}


def shared(masks):
    """Return the margins that some table withholds, as pairs of attribute and code."""
    found = set()
    for pair, mask in masks.items():
        for cell in zip(*np.nonzero(mask), strict=True):
            if 0 in cell:
                found.add(tuple((n, int(c) - 1) for n, c in zip(pair, cell, strict=True) if c))
    return found


def one_by_one(codes, folder):
    return each(codes, folder)[1]


def passed_on(codes, folder):
    """Protect the tables again, with margins of each as unsafe in the others, until none is new."""
    marked, masks = set(), each(codes, folder)[1]
    while not shared(masks) <= marked:  # ends: there are so many margins
        marked |= shared(masks)
        masks = each(codes, folder, sorted(marked))[1]
    return masks


def covered(codes, folder):
    """Protect the table of all three attributes, of which only the margins are published."""
    from pytauargus import protect

    made = protect(people(codes), list(NAMES), response="one", safety_rules=RULE,
                   suppress="OPT(1)", workdir=folder)  # fmt: skip
    whole = withheld(made.tables[0].rows, NAMES)
    axis = {pair: next(i for i, name in enumerate(NAMES) if name not in pair) for pair in PAIRS}
    return {pair: np.take(whole, 0, axis=axis[pair]) for pair in PAIRS}


def tabulated(codes):
    return br.tabulate(records(codes), WORK)


def records(codes):
    return Records.from_frame(pd.DataFrame(dict(zip(NAMES, codes.T, strict=True))), schema=SCHEMA)


def published(codes, masks):
    """Return the tables without what is withheld; what one table shows is no secret in another."""
    truth, counts, hidden = tabulated(codes), {}, {}
    for key, table in WORK.tables.items():
        mine = [m[tuple(slice(1, None) if n in table.factors else 0 for n in pair)]
                for pair, m in masks.items() if {*table.factors} <= {*pair}]  # fmt: skip
        off = np.logical_and.reduce([np.reshape(part, (1, -1)) for part in mine])
        whole = truth.counts[key].toarray()
        assert (whole[off] > 0).all()  # zeros are published
        counts[key], hidden[key] = sp.csr_array(np.where(off, 0, whole)), sp.csr_array(off)
    laws = dict.fromkeys(WORK.tables, SuppressedCounts(1))
    return PublishedTables(WORK, truth.geoids, counts, hidden, laws)


def ours(codes, fewest):
    mechanism = make_mechanism("suppression", threshold=3, fewest=fewest)
    made = mechanism.release(records(codes), workload=WORK, rng=1, places="occupied").tables
    laws = dict.fromkeys(WORK.tables, SuppressedCounts(1))
    return PublishedTables(WORK, made.geoids, made.counts, made.suppressed, laws)


def check_audits():
    """Compare the intervals of each table by itself with those of their audit."""
    codes, checked = next(iter(data_sets())), 0
    truth = tabulated(codes)
    with work_folder() as folder:
        engine, masks = each(codes, folder)
        for number, (pair, mask) in enumerate(masks.items()):
            audited = {row["cell"]: (row["min"], row["max"]) for row in engine.audit(number)}
            work = Workload.of(SCHEMA, [(), *((name,) for name in pair), pair])
            cells = np.arange(mask.size).reshape(mask.shape)
            parts = [(0, 0), (slice(1, None), 0), (0, slice(1, None)), (slice(1, None),) * 2]
            own = [np.reshape(mask[part], (1, -1)) for part in parts]
            seen = [np.where(off, 0, truth.counts[key].toarray())
                    for key, off in zip(work.tables, own, strict=True)]  # fmt: skip
            stored = (dict(zip(work.tables, map(sp.csr_array, side), strict=True))
                      for side in (seen, own))  # fmt: skip
            laws = dict.fromkeys(work.tables, SuppressedCounts())
            found = count_bounds(PublishedTables(work, truth.geoids, *stored, laws)).counts
            at = np.concatenate([np.ravel(cells[part]) for part in parts]).tolist()
            ends = dict(zip(at, zip(found["low"], found["high"], strict=True), strict=True))
            assert all(ends[cell] == interval for cell, interval in audited.items())
            checked += len(audited)
    assert checked > 20


@contextlib.contextmanager
def work_folder():
    """Be in a folder of its own, where theirs may leave files."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        yield folder


WAYS = {
    "tau-Argus, each table by itself (`OPT`)": one_by_one,
    "tau-Argus, withheld margins passed on until none is new": passed_on,
    "tau-Argus, the three-way table, of which these are margins": covered,
    "`suppression` of bayesrisk, all tables together": False,
    "the same with the fewest cells that were found (`fewest=true`)": True,
}


def rows():
    """Return a row of the table for each way, after the intervals of single tables were equal."""
    check_audits()
    lines = []
    for name, way in WAYS.items():
        hidden, found = 0, {True: [], False: []}
        for codes in data_sets():
            if isinstance(way, bool):
                tables = ours(codes, fewest=way)
            else:
                with work_folder() as folder:
                    tables = published(codes, way(codes, folder))
            hidden += sum(part.nnz for part in tables.suppressed.values())
            for known in found:
                facts = count_bounds(tables, known_rule=known).facts
                found[known].append(facts["recovered"])
        line = [name, f"{hidden}"]
        for each_of in (found[False], found[True]):
            line += [f"{sum(each_of)}", f"{np.count_nonzero(each_of)} of {len(each_of)}"]
        lines.append(tuple(line))
    return lines
