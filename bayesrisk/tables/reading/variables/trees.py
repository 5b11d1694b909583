"""Trees among labels that may overlap: each tree is treated separately, with its sums.

*All* = *first* + *second* says nothing of *cured*. The labels of such a variable become its trees,
and a variable of parts distinguishes the counts of one tree.
"""

from collections.abc import Mapping

import pandas as pd

from bayesrisk.tables.likelihoods import TrueCounts
from bayesrisk.tables.reading.cells import Cell
from bayesrisk.tables.reading.counts.values import Value
from bayesrisk.tables.reading.variables.variable import TableVariable
from bayesrisk.tables.sheets.texts import key

IN_NO_SUM = "in no sum"  # the part of a label that is in no tree


def take_trees(
    cells: list[Cell], meanings: list[Value], variables_: Mapping[str, TableVariable]
) -> dict[str, TableVariable]:
    """Return variables with those of the parts of trees; adapt cells and values to them.

    Cells of no file say that a tree lacks the parts of other trees.
    """
    results = dict(variables_)
    titles = {name: parts_title(name) for name, one in variables_.items() if one.wholes}
    for name, title in titles.items():
        results[title] = _parts(variables_[name])
    places = dict[tuple[str, ...], dict[str, str]]()
    for i, cell in enumerate(cells if titles else ()):
        labels = dict(cell.labels)
        for name in titles.keys() & labels.keys():
            one, k = variables_[name], key(labels[name])
            if (whole := one.wholes.get(k, k)) != k:
                labels |= {titles[name]: labels[name], name: one.first[whole]}
        cells[i] = cell._replace(labels=labels)
        place = {n: x for n, x in labels.items() if n in results and results[n].separate}
        places.setdefault((*place, *map(key, place.values())), place)
    for place in places.values():
        for name in titles.keys() & place.keys():
            one = variables_[name]
            rest = _rest(one, one.wholes.get(key(place[name]), ""))
            cells.append(Cell("", 0, "", place | {titles[name]: rest}, "0"))
            meanings.append(Value(TrueCounts(), 0, kind="exact"))
    return results


def parts_title(name: str) -> str:
    """Return the name of the variable of the parts of trees."""
    return f"parts of {name}"


def tree_parts(variables_: Mapping[str, TableVariable]) -> dict[str, dict[str, str]]:
    """Return the label of the tree of each part, for variables with trees."""
    return {
        name: {one.labels[i]: one.first[w] for k, w in one.wholes.items() for i in one.groups[k]}
        | {one.first[k]: one.first[w] for k, w in one.wholes.items() if k != w and k in one.first}
        for name, one in variables_.items() if one.wholes
    }  # fmt: skip


def published_labels(frame: pd.DataFrame, trees: Mapping[str, Mapping[str, str]]) -> pd.DataFrame:
    """Return rows with labels as in the files: a part in place of its tree.

    Impossible rows, of a tree and a part of another one, are left out.
    """
    for name, whole_by_part in trees.items():
        whole, part = frame[name], frame[parts_title(name)]
        tree = part.map(whole_by_part)
        wrong = tree.notna() & (tree != whole) & (whole != "all")
        wrong |= (part == IN_NO_SUM) & whole.isin({*whole_by_part.values()})
        frame = frame.assign(**{name: whole.where(tree.isna(), part)})[~wrong]
    return frame.drop(columns=[*map(parts_title, trees)])


def _rest(one: TableVariable, whole: str) -> str:
    """Return the label of all parts outside a tree."""
    return f"none of the parts of {one.first[whole]}" if whole else "in a sum"


def _parts(one: TableVariable) -> TableVariable:
    """Return the variable of the parts of all trees, and of labels in none."""
    codes = sorted({i for k in one.wholes for i in one.groups[k]})
    inner = TableVariable([*(one.labels[i] for i in codes), IN_NO_SUM], {}, {}, ())
    size, position = len(inner.labels), {i: j for j, i in enumerate(codes)}
    groups = {k: tuple(position[i] for i in one.groups[k]) for k in one.wholes}
    wholes = {k: groups[k] for k in one.wholes.values()} | {"": (size - 1,)}
    rests = {
        _rest(one, k): tuple(i for i in range(size) if i not in {*group})
        for k, group in wholes.items()
    }
    inner.names |= {g: text for text, g in rests.items() if len(g) > 1}
    inner.names |= {groups[k]: one.first[k] for k in reversed(groups) if k in one.first}
    inner.groups |= groups | {key(text): group for text, group in rests.items()}
    inner.first |= {k: one.first[k] for k in groups if k in one.first}
    return inner
