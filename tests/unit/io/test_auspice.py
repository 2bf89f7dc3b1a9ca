"""Datasets of Auspice, and the tables whose columns are carried along."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

from phloem.errors import InputError, InputWarning
from phloem.io.auspice import AuspiceDataset, auspice_chunks, coloring, dated, node_names, of_states
from phloem.io.metadata_table import metadata_from_table
from phloem.io.trees import parse_trees
from phloem.tree.tree import Tree, node_depths
from unit.auspice_rules import problems, walk


def dataset_of(tree: Tree, **more) -> AuspiceDataset:
    nodes = [{"div": depth} for depth in node_depths(tree).tolist()]
    return AuspiceDataset(tree, nodes, [{} for _ in nodes], more.pop("colorings", ()), **more)


def document(dataset: AuspiceDataset) -> dict:
    return json.loads("".join(auspice_chunks(dataset)))


def test_the_tree_is_nested_in_its_order():
    found = document(dataset_of(parse_trees("((a:1,b:2)clade:1,(c:3,d:4,e:1):2);")[0], title="t"))
    assert problems(found) == [] and found["meta"]["title"] == "t"
    assert found["meta"]["display_defaults"] == {"distance_measure": "div"}
    names = [[child["name"] for child in node.get("children", [])] for node, _ in walk(found)]
    assert ["a", "b"] in names and ["c", "d", "e"] in names
    assert {node["name"]: node["node_attrs"]["div"] for node, _ in walk(found)}["d"] == 6.0
    assert "clade" in {node["name"] for node, _ in walk(found)}


def test_trees_deeper_than_any_stack():
    """A caterpillar of 30,000 tips, which neither json nor recursion could write."""
    n = 30_000
    parent = np.concatenate([[n], np.arange(n, 2 * n - 1), np.arange(n + 1, 2 * n - 1), [-1]])
    tree = Tree(tuple(f"t{k}" for k in range(n)), parent.astype(np.int32), np.ones(2 * n - 1))
    text = "".join(auspice_chunks(dataset_of(tree)))
    assert text.count('"children"') == n - 1 and text.count("{") == text.count("}")
    assert text.count("[") == text.count("]") and text.count('"name"') == 2 * n - 1


def test_names_of_nodes_are_names_and_each_is_there_once():
    tree = parse_trees("((a:1,b:1)95:1,((c:1,d:1)X:1,(e:1,NODE_0000000:1)a:1)X:1);")[0]
    names = node_names(tree)
    assert len(set(names)) == len(names) and names.count("X") == 1
    assert not {"95", "95/1"} & set(names) and names[:6] == list(tree.taxa)


@pytest.mark.parametrize(
    ("plant", "told"),
    [
        (lambda d: d["tree"]["children"][0]["node_attrs"].update(num_date={"value": 1990.0}), "before"),
        (lambda d: d["tree"]["children"][0].update(name="d"), "a name twice"),
        (lambda d: d["tree"]["node_attrs"].clear(), "no place"),
        (lambda d: d["meta"]["colorings"].append(coloring("place", "Place", "categorical")), "of nothing"),
        (lambda d: d["tree"]["branch_attrs"]["labels"].update({"a b": "x"}), "labels"),
        (lambda d: d["tree"]["node_attrs"].update(x={"value": "A", "confidence": {"A": 0.7}}), "probabil"),
        (lambda d: d["tree"].update(children=[]), "keys"),
    ],
)
def test_a_fault_is_seen(plant, told):
    """Negative control of unit/auspice_rules.py."""
    tree = parse_trees("((a:1,b:2):1,(c:3,d:4):2);")[0]
    nodes = [{"num_date": dated(2000.0 + depth)} for depth in node_depths(tree).tolist()]
    branches = [{"labels": {"support": "1"}} for _ in nodes]
    found = document(AuspiceDataset(tree, nodes, branches, [coloring("num_date", "Date", "continuous")]))
    assert problems(found) == []
    plant(found)
    assert any(told in one for one in problems(found))


def test_states_and_their_entropy():
    found = of_states({"A": 0.25, "B": 0.75})
    assert found["value"] == "B" and found["confidence"] == {"A": 0.25, "B": 0.75}
    assert found["entropy"] == pytest.approx(0.5623351446)
    assert str(of_states({"A": 1.0})["entropy"]) == "0.0"


def test_a_node_without_a_place_is_an_error():
    tree = parse_trees("(a:1,b:2,c:1);")[0]
    with pytest.raises(InputError, match="neither"):
        AuspiceDataset(tree, [{}] * 4, [{}] * 4, [])


TABLE = "strain\tdate\tcountry\tlab\nb\t2020\tPeru\t?\na\t2021\tNA\tx\nz\t2021\tChile\t7\n"


def test_columns_of_a_table():
    with pytest.warns(InputWarning, match=r"1 of 3 taxa have no line, as 'c'"):
        found = metadata_from_table(TABLE, ["a", "b", "c"], ["Country", "lab"])
    assert found == {"country": {"b": "Peru"}, "lab": {"a": "x"}}
    quoted = 'x,strain,country\n1,"a","Bonaire, Saba"\n2,b,"Peru"\n'
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert metadata_from_table(quoted, ["a", "b"], ["country"])["country"]["a"] == "Bonaire, Saba"
        same = TABLE + "a\t2021\tNA\tx\nz\t1\t1\t1\n"
        assert metadata_from_table(same, ["a", "b"], ["lab"]) == {"lab": {"a": "x"}}


def test_names_that_differ_in_blanks_alone_are_two():
    found = metadata_from_table("name\tx\nA_b\t1\nA b\t2\n", ["A_b", "A b"], ["x"])
    assert found == {"x": {"A_b": "1", "A b": "2"}}
    assert metadata_from_table("name\tx\nA b\t2\n", ["a_B"], ["x"]) == {"x": {"a_B": "2"}}


@pytest.mark.parametrize(
    ("text", "columns", "told", "line"),
    [
        (TABLE, ["contry"], "no column is called 'contry'", 1),
        (TABLE.replace("lab", "country"), ["country"], "2 columns are called", 1),
        (TABLE + "b\t2020\tChile\tx\n", ["country"], "'b' has two lines that differ, the first is 2", 5),
        ("strain\tcountry\nq\tPeru\n", ["country"], "no line of the table is of a taxon", None),
    ],
)
def test_tables_that_are_wrong(text, columns, told, line):
    with pytest.raises(InputError, match=told) as error:
        metadata_from_table(text, ["a", "b"], columns)
    assert error.value.line == line and error.value.hint
    assert line is not None or "called as 'a', the table has 'q'" in error.value.hint
