"""The tree of releases: order of nodes, and tables that are refused."""

import numpy as np
import pandas as pd
import pytest

from bayesrisk import ArgumentError, DataError, Tree
from bayesrisk.exceptions import ArgumentTypeError

GOOD = pd.DataFrame(
    {
        "node": ["a", "group", "b", "c"],
        "parent": ["group", None, "group", "b"],
        "noisy_count": [2, 3, None, -1],
        "rho": [0.1, 0.25, 0.1, 0.0],
    }
)


def test_nodes_stand_breadth_first():
    tree = Tree.from_frame(GOOD)
    assert tree.names.tolist() == ["group", "a", "b", "c"]
    assert tree.parent.tolist() == [-1, 0, 0, 2]
    assert tree.depth.tolist() == [0, 1, 1, 2]
    assert tree.first_child.tolist() == [0, 2, 2, 3, 3]
    assert tree.children.tolist() == [1, 2, 3]
    assert tree.leaves.tolist() == [1, 3]
    assert tree.index("c") == 3
    assert len(tree) == tree.n_nodes == 4
    assert repr(tree) == "Tree(nodes=4, leaves=2, levels=3, releases=2)"


def test_a_missing_count_or_budget_is_no_release():
    tree = Tree.from_frame(GOOD)
    assert tree.precision.tolist() == [0.25, 0.1, 0.0, 0.0]
    assert tree.noisy.tolist() == [3, 2, 0, 0]
    missing = Tree.from_frame(GOOD.assign(rho=[0.1, np.nan, 0.1, np.nan]))
    assert missing.precision.tolist() == [0.0, 0.1, 0.0, 0.0]


def test_sensitivity_and_sigma2_give_one_precision():
    by_rho = Tree.from_frame(GOOD, sensitivity=np.sqrt(2.0))
    sigma2 = [10.0, 4.0, 10.0, np.nan]
    by_scale = Tree.from_frame(GOOD.drop(columns="rho").assign(sigma2=sigma2))
    np.testing.assert_allclose(by_rho.precision, by_scale.precision, rtol=1e-15)
    with pytest.raises(ArgumentError, match="sensitivity belongs with rho"):
        Tree.from_frame(GOOD.drop(columns="rho").assign(sigma2=sigma2), sensitivity=2.0)


def test_names_may_be_numbers_and_the_root_an_empty_string():
    frame = pd.DataFrame(
        {"node": [7, 8, 9], "parent": [None, 7, 7], "noisy_count": [1, 0, 1], "rho": 0.1}
    )
    assert Tree.from_frame(frame).parent.tolist() == [-1, 0, 0]
    nullable = frame.assign(parent=pd.array([None, 7, 7], dtype="Int64"))
    assert Tree.from_frame(nullable).parent.tolist() == [-1, 0, 0]
    text = frame.assign(node=["7", "8", "9"], parent=["", "7", "7"])
    assert Tree.from_frame(text).parent.tolist() == [-1, 0, 0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"parent": ["z", None, "group", "b"]}, "row 0: node 'a' has the unknown parent 'z'"),
        ({"node": ["a", "group", "a", "c"]}, "row 2: node 'a' is listed twice"),
        ({"node": ["a", "group", None, "c"]}, "row 2: node has no name"),
        ({"parent": ["group", None, "b", "b"]}, "row 2: node 'b' is its own parent"),
        ({"parent": ["group", None, "c", "b"]}, "is its own ancestor"),
        ({"parent": ["group", "a", "group", "b"]}, "is its own ancestor"),
        ({"parent": ["group", None, None, "b"]}, "row 2: the tree must have one root, got 2"),
        ({"noisy_count": [1.5, 2, 3, 4]}, "row 0, node 'a': noisy_count must be a whole number"),
        ({"noisy_count": [1, 2, 3, np.inf]}, "row 3, node 'c': noisy_count must be finite"),
        ({"noisy_count": [1, 2, 3, 1e16]}, "row 3, node 'c': noisy_count must be <="),
        ({"noisy_count": [1, "x", 3, 4]}, "column 'noisy_count' must hold numbers"),
        ({"rho": [0.1, -0.1, 0.1, 0.1]}, "row 1, node 'group': rho must be >= 0, got -0.1"),
        ({"known_count": 0}, "both or neither"),
        ({"known_count": [0, None, None, -1], "prior": 0.5}, "row 3, node 'c': known_count"),
        ({"known_count": [0, None, None, 1], "prior": 0.5}, "row 1, node 'group': known_count and"),
        ({"known_count": [0, 0, None, 1], "prior": [0.5, 0.5, None, 0.5]}, "belong to leaves"),
        ({"known_count": [0, None, None, None], "prior": [1.0, None, None, None]}, "between 0"),
        ({"sigma2": 1.0}, "exactly one of"),
    ],
)
def test_bad_tables_are_refused(change, message):
    with pytest.raises(DataError, match=message):
        Tree.from_frame(GOOD.assign(**change))


def test_other_refusals():
    with pytest.raises(DataError, match="'parent'"):
        Tree.from_frame(GOOD.drop(columns="parent"))
    with pytest.raises(DataError, match="at least one row"):
        Tree.from_frame(GOOD.iloc[:0])
    with pytest.raises(ArgumentTypeError, match="DataFrame"):
        Tree.from_frame({"node": ["a"]})
    with pytest.raises(DataError, match="sigma2 must be > 0"):
        Tree.from_frame(GOOD.drop(columns="rho").assign(sigma2=[1.0, 0.0, 1.0, 1.0]))
    with pytest.raises(DataError, match="no node 'z'"):
        Tree.from_frame(GOOD).index("z")
