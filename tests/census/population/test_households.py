import numpy as np

from bayesrisk.census import household_cells, household_valid
from bayesrisk.tables import Schema, Workload

ABOUT = Schema.named("household-dhc")
CELLS = household_cells()


def people(size, kind, detail, under_18, over_65, age):
    """Return whether a household can be filled with people, one by one (the rules in words)."""
    child, senior, own = under_18 == 2, over_65 == 2, age >= 7
    kinds = {
        (1, 1), (1, 2), (2, 3), (2, 4), (2, 10), (2, 11), (3, 3), (3, 4), (3, 6), (3, 7),
        (4, 9), (5, 4), (5, 12), (6, 5), (7, 4), (7, 8),
    }  # fmt: skip
    if (kind, detail) not in kinds:
        return False
    # Whoever must be there besides the householder: (may be under 18, may be 65 or over).
    others = []
    if detail in (1, 2, 3, 4):
        others.append((False, True))
    if detail in (1, 3, 6, 10):
        others.append((True, False))
    if detail in (7, 8, 11, 12):
        others.append((True, True))
    if detail == 4 and kind in (2, 3):
        others.append((True, True))
    alone = detail in (5, 9)
    if alone:
        return size == 1 and not child and senior == own
    for room in range(len(others), 7):
        members = others + [(True, True)] * (room - len(others))
        if min(room + 1, 7) != size:
            continue
        if _fits(members, child, senior, own, detail):
            return True
    return False


def _fits(members, child, senior, own, detail):
    """Return whether ages can be given to the members so that the two indicators hold."""
    if own and not senior:
        return False
    if detail in (1, 3, 6, 10) and not child:
        return False  # an own child is under 18
    need = []
    if child:
        need.append(0)
    if senior and not own:
        need.append(1)
    # Match each indicator that is still open to a different member.
    if not need:
        return True
    options = [[i for i, m in enumerate(members) if m[k]] for k in need]
    if len(need) == 1:
        return bool(options[0])
    return any(a != b for a in options[0] for b in options[1])


def test_the_number_of_structural_cells():
    assert len(CELLS) == 106_519 == 1_902 * 56 + 7
    assert np.all(np.diff(CELLS) > 0)
    codes = ABOUT.codes(CELLS)
    names = ("size", "type", "detailed_type", "under_18", "over_65", "hhage")
    combinations = np.stack([codes[name] for name in names])
    occupied = codes["vacancy"] == 0
    assert np.unique(combinations[:, occupied], axis=1).shape[1] == 1_902
    assert (~occupied).sum() == 7


def test_every_combination_against_filling_with_people():
    grid = np.stack(
        np.meshgrid(*(np.arange(1, n) for n in (8, 8, 13, 3, 3, 10)), indexing="ij"), axis=-1
    ).reshape(-1, 6)
    size, kind, detail, under, over, age = grid.T
    valid = household_valid(
        {"tenure": 1, "vacancy": 0, "hispanic": 1, "race": 1, "size": size, "type": kind,
         "detailed_type": detail, "under_18": under, "over_65": over, "hhage": age}
    )  # fmt: skip
    assert valid.tolist() == [people(*row) for row in grid.tolist()]
    assert valid.sum() == 1_902


def test_valid_cells_are_those_listed():
    assert household_valid(ABOUT.codes(CELLS)).all()
    others = np.setdiff1d(np.random.default_rng(4).integers(0, ABOUT.size, 300_000), CELLS)
    assert not household_valid(ABOUT.codes(others)).any()


def test_a_vacant_unit_has_no_household():
    unit = dict.fromkeys(ABOUT.names, 0)
    assert not household_valid(unit)
    assert household_valid({**unit, "vacancy": 3})
    assert not household_valid({**unit, "vacancy": 3, "race": 1})


def test_rank_and_partition_of_the_tables():
    """The paper's system: rank 391; each table counts a valid unit at most once."""
    made = Workload.named("household-dhc")
    matrix = made.incidence(CELLS, level="block")
    assert matrix.shape == (626, 106_519)
    gram = (matrix @ matrix.T).toarray().astype(float)
    assert np.linalg.matrix_rank(gram) == 391
    tables = [made.tables["block", name] for name in made.at("block")]
    ends = np.cumsum([0, *(len(table.cells) for table in tables)])
    once_by_table = {}
    for table, start, end in zip(tables, ends, ends[1:], strict=False):
        once = np.asarray(matrix[start:end].sum(axis=0)).ravel()
        once_by_table[table.name] = once
        assert once.max() == 1
        assert set(np.unique(once)) <= {0, 1}
    # Every occupied unit is in a cell of each of these, every vacant one in none.
    occupied = ABOUT.codes(CELLS)["vacancy"] == 0
    for name in ("P16", "P19", "P20", "P21", "H4", "H6", "H7", "H9", "H10", "H11", "H12", "H13",
                 "H14", "H15"):  # fmt: skip
        assert (once_by_table[name] == occupied).all()
