"""What is made of single draws: sites, states of ancestors, simulated data; and who has to do without."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from phloem.analysis import mcmc_ancestral
from phloem.analysis.mcmc import run_mcmc
from phloem.analysis.mcmc_ancestral import clades_from
from phloem.analysis.mcmc_data import chain_input
from phloem.analysis.mcmc_draws import Draw, Drawn, likelihood_of
from phloem.analysis.mcmc_options import command_line, mcmc_settings
from phloem.analysis.mrbayes import block_analysis
from phloem.cli.chain_tables import checks_table
from phloem.errors import InputError
from phloem.inference.mcmc.convergence import kept
from phloem.inference.mcmc.guard import plain_likelihood
from phloem.inference.mcmc.sampler import sample
from phloem.io.trees import read_tree
from phloem.likelihood.simulation import simulate_alignment
from phloem.likelihood.tree_likelihood import TreeLikelihood
from phloem.model.grammar import parse_model
from phloem.summary.predictive import leave_one_out
from phloem.tree.random import uniform_unrooted
from phloem.tree.reroot import root_at_outgroup

BLOCK = {"generations": 6000, "sample_every": 100, "prefix": "x", "redo": True, "chains": 1}
TREE = uniform_unrooted(6, np.random.default_rng(3), 0.1)
SITES = 200


def quiet(what: str, done: int, n: int) -> None:
    pass


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = simulate_alignment(TREE, parse_model("HKY{4}+FQ", datatype="dna"), SITES, seed=1)
    rows = "\n".join(f">{taxon}\n{text}" for taxon, text in zip(data.taxa, texts_of(data)))
    Path("d.fasta").write_text(rows.replace("A", "-", 1) + "\n")
    return tmp_path


def texts_of(data):
    return ["".join(data.alphabet.states[k] for k in row) for row in data.codes]


def sampled(**options):
    settings = mcmc_settings({"alignment": "d.fasta", "model": "HKY+G4"} | BLOCK | options)
    return settings, run_mcmc(settings)


def drawn_from(settings) -> tuple:
    """Data and draws of an analysis, sampled again."""
    data = chain_input(settings)
    chains = data.chains(settings.chains)
    again = sample(data.observed(), data.structure, chains)
    first = kept(again.runs[0].samples, chains.burn_in, chains.tuning)
    return data, Drawn([run.samples for run in again.runs], again.runs[0].columns.names, first)


# Sites.


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"model": "HKY+I+H2"},
        {"model": None, "part": ["HKY+G4, a = 1-30", "JC, b = 31-200"]},
        {"model": None, "part": ["HKY+G4, a = 1-30", "JC, b = 31-200"], "linkage": "unlinked"},
    ],
)
def test_log_likelihoods_of_sites_are_those_of_the_draws(folder, options):
    settings, _ = sampled(site_table=True, **options)
    data, drawn = drawn_from(settings)
    draws = [draw for run in drawn.evenly() for draw in run]
    assert len(draws) == 2 * min(100, drawn.runs[0].n - drawn.first)
    plain = plain_likelihood(list(data.alignments.values()), data.structure)
    by_draw = [plain(*draw) for draw in draws]
    table = np.genfromtxt("x.sites", names=True, dtype=None, encoding="utf-8")
    assert table["log_likelihood"].sum() == pytest.approx(np.mean(by_draw), rel=1e-7)
    assert table["site"].tolist() == [*range(1, SITES + 1)]
    assert len(table) == SITES and (table["left_out"] <= table["log_likelihood"] + table["sd"]).all()
    each = [
        sum(likelihood_of(data, p, draw).log_likelihood() for p in range(len(data.structure.parts)))
        for draw in draws[:3]
    ]
    assert each == pytest.approx(by_draw[:3], rel=1e-10)
    of = json.loads(Path("x.json").read_text())["leave_one_out"]
    assert of["log_density"] == pytest.approx(table["left_out"].sum(), rel=1e-6)
    assert 0 < of["numbers"] < 60 and of["sites"] == SITES and of["draws"] == len(draws)
    # the control: another draw's tree
    wrong = draws[0]._replace(parent=draws[-1].parent, lengths=draws[-1].lengths * 1.5)
    assert likelihood_of(data, 0, wrong).log_likelihood() != pytest.approx(by_draw[0], rel=1e-6)


def test_rates_of_sites_have_those_of_their_parts(folder):
    Path("fast.fasta").write_text(
        "\n".join(
            f">{t}\n{'ACGT'[k % 4] * 30}{'ACGTTGCA'[k:] + 'ACGTTGCA'[:k]}" for k, t in enumerate("abcdef")
        )
    )
    sampled(alignment="fast.fasta", model=None, part=["JC, slow = 31-38", "JC, fast = 1-30"], site_table=True)
    table = np.genfromtxt("x.sites", names=True, dtype=None, encoding="utf-8")
    slow, fast = (table["rate"][table["part"] == name] for name in ("slow", "fast"))
    assert np.ptp(slow) == 0 and np.ptp(fast) == 0 and slow[0] != fast[0]
    assert (8 * slow[0] + 30 * fast[0]) / 38 == pytest.approx(1, abs=1e-6)
    assert table["site"][table["part"] == "slow"].tolist() == [*range(31, 39)]


def test_leave_one_out_of_normal_data():
    # y ~ N(m, 1), flat m: what is left out has N(mean of the others, 1 + 1 / (n - 1))
    rng, n = np.random.default_rng(1), 12
    y = rng.normal(0.0, 1.0, n)
    m = y.mean() + rng.normal(size=(4, 2000)) / np.sqrt(n)
    values = -0.5 * (y[:, None, None] - m) ** 2 - 0.5 * np.log(2 * np.pi)
    values = np.concatenate([values, np.full((1, 4, 2000), -3.0)])  # and one that no draw changes
    found, spent, k = leave_one_out(values, 1.0)
    others, variance = (y.sum() - y) / (n - 1), 1 + 1 / (n - 1)
    exact = -0.5 * (y - others) ** 2 / variance - 0.5 * np.log(2 * np.pi * variance)
    assert found[:-1] == pytest.approx(exact, abs=0.01)
    assert found[-1] == -3 and spent[-1] == 0 and k[-1] == 0 and (k < 0.7).all()
    mean = np.log(np.exp(values[:-1]).mean((1, 2)))
    assert spent[:-1] == pytest.approx(mean - exact, abs=0.01)
    assert np.abs(mean - exact).max() > 0.1  # the control: with itself, not left out


def test_leave_one_out_where_nothing_can_be_fitted():
    rng = np.random.default_rng(2)
    values = -3 + 0.1 * rng.normal(size=(4, 2, 50))
    values[0] = -3 + 1e-14 * rng.normal(size=(2, 50))  # rounding
    values[1].ravel()[:40] = -4.0  # the largest weights are equal: bounded
    values[2].ravel()[:19] = -9.0  # all but one of them
    few = values[:, :, :10]
    for given, unreliable in ((values, ()), (few, (1, 2, 3))):
        found, spent, k = leave_one_out(given, 0.5)
        plain = -np.log(np.exp(-given).mean((1, 2)))
        assert np.isfinite(found).all() and np.isfinite(spent).all() and not np.isnan(k).any()
        assert found[:2] == pytest.approx(plain[:2]) and k[0] == 0
        assert found[3] == pytest.approx(plain[3], abs=0.1)
        assert all(k[i] == np.inf for i in unreliable)
    assert leave_one_out(values, 0.5)[2][1] == 0


# Ancestors.


@pytest.mark.parametrize("seed", range(4))
def test_nodes_are_the_clades_seen_from_a_taxon(folder, seed):
    tree = uniform_unrooted(9, np.random.default_rng(seed), 0.3)
    model = parse_model("HKY{4}+F{0.4,0.3,0.2,0.1}+G4{0.5}", datatype="dna")
    data = simulate_alignment(tree, model, 20, seed=seed)
    numbers = [tree.taxa.index(taxon) for taxon in tree.taxa]
    there = dict(TreeLikelihood(data, tree, model).states_of_all_nodes())
    for away in (0, 4, 8):
        rooted = root_at_outgroup(tree, tree.taxa[away], 0.5)
        states = dict(TreeLikelihood(data, rooted, model).states_of_all_nodes())
        below = [1 << rooted.taxa.index(t) for t in rooted.taxa] + [0] * (rooted.n_nodes - 9)
        for x in range(rooted.n_nodes - 1):
            below[rooted.parent[x]] |= below[x]
        wanted = {below[x]: states[x] for x in range(9, rooted.n_nodes - 1)}
        found = {clade: there[x] for x, clade in clades_from(tree.parent, 9, numbers, away).items()}
        assert found.keys() == wanted.keys() and len(found) == 7
        for clade in wanted:
            assert found[clade] == pytest.approx(wanted[clade], abs=1e-12)
    other, own = (set(clades_from(tree.parent, 9, numbers, away).values()) for away in (4, 0))
    assert other != own  # the control


def test_states_are_means_over_the_draws_that_have_the_clade(folder):
    settings, _ = sampled(ancestral=True, outgroup=TREE.taxa[2])
    data, drawn = drawn_from(settings)
    named = read_tree("x.ancestral.tree")
    away, full = data.taxa.index(TREE.taxa[2]), (1 << 6) - 1
    below = [1 << data.taxa.index(taxon) for taxon in named.taxa] + [0] * (named.n_nodes - 6)
    for x in range(named.n_nodes - 1):
        below[named.parent[x]] |= below[x]
    x = next(x for x in range(6, named.n_nodes - 1) if not below[x] >> away & 1)
    name, clade = named.labels[x], below[x]
    assert clade not in (0, full)
    sums, n, all_draws = 0.0, 0, [draw for run in drawn.evenly() for draw in run]
    for draw in all_draws:
        at = clades_from(draw.parent, 6, range(6), away)
        for node, its in at.items():
            if its == clade:
                one = likelihood_of(data, 0, draw)
                sums, n = sums + dict(one.states_of_all_nodes())[node][one.site_pattern], n + 1
    lines = Path("x.state").read_text().splitlines()
    rows = [line.split("\t") for line in lines if line.startswith(f"{name}\t")]
    found = np.array([[float(p) for p in row[3:]] for row in rows])
    assert found == pytest.approx(sums / n, abs=1.1e-5) and len(found) == SITES
    assert rows[0][2] in "ACGT-" and [int(row[1]) for row in rows] == [*range(1, SITES + 1)]
    assert f"# {name}: its clade is in {100 * n / len(all_draws):.3g} % of the draws looked at" in lines
    if n < len(all_draws):  # the control: as if all had it
        assert found != pytest.approx(sums / len(all_draws), abs=1e-3)


def test_a_clade_of_no_draw_has_no_rows(folder, monkeypatch):
    settings, _ = sampled()
    data, drawn = drawn_from(settings)
    another = uniform_unrooted(6, np.random.default_rng(11), 0.3)
    last = replace(drawn, first=drawn.runs[0].n - 1)
    found = mcmc_ancestral.node_states(data, last, another, data.taxa[0], quiet)
    never = [name for name, share in found.share.items() if share == 0]
    assert never and not set(never) & found.posterior.keys()
    mcmc_ancestral.write_states("x", data, found, "")
    assert not any(line.startswith(f"{never[0]}\t") for line in Path("x.state").read_text().splitlines())


# Simulated data.


def test_data_of_the_model_are_like_simulated_ones_and_others_are_not(folder):
    _, result = sampled(predictive=60)
    by_name = {check.name: check for check in result.checks}
    assert all(0.005 < check.p < 0.995 for check in by_name.values())
    table = np.genfromtxt("x.predictive.tsv", names=True, dtype=None, encoding="utf-8")
    assert table["statistic"].tolist() == [*by_name]
    # the control: two taxa whose composition the model cannot have made
    text = Path("d.fasta").read_text().splitlines()
    for row in (1, 5):
        text[row] = text[row].replace("C", "A").replace("G", "T")
    Path("odd.fasta").write_text("\n".join(text) + "\n")
    _, odd = sampled(alignment="odd.fasta", predictive=60)
    assert next(check for check in odd.checks if check.name == "composition").p < 0.02
    of_parts = sampled(model=None, part=["HKY+G4, a = 1-30", "JC, b = 31-200"], predictive=20)[1].checks
    assert {check.name for check in of_parts} >= {"differences{a}", "differences{b}"}


def test_variable_characters_are_simulated_as_such(folder):
    data = simulate_alignment(TREE, parse_model("MK+ASC", datatype="standard", n_states=2), 150, seed=1)
    rows = np.array([list(text) for text in texts_of(data)])
    rows[np.random.default_rng(1).random(rows.shape) < 0.1] = "?"
    varies = [len(set(column) - {"?"}) > 1 for column in rows.T]
    matrix = "\n".join(f"{taxon} {''.join(row[varies])}" for taxon, row in zip(data.taxa, rows))
    head = f"begin data; dimensions ntax=6 nchar={sum(varies)}; format datatype=standard missing=?; matrix\n"
    Path("m.nex").write_text(f"#NEXUS\n{head}{matrix}\n; end;\n")
    _, result = sampled(alignment="m.nex", model="MK+ASC", predictive=40)
    by_name = {check.name: check for check in result.checks}
    none = by_name.pop("constant_columns")
    assert none.observed == none.mean == none.high == 0.0 and none.p == 0.5
    assert all(0.01 < by_name[name].p < 0.99 for name in ("differences", "distinct_columns")), by_name


# Who has to do without.


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"ancestral": True, "prior_only": True}, "--ancestral is about the data"),
        (
            {"site_table": True, "stepping_stone": 5, "sample_every": 10},
            "--site-table is about samples",
        ),
        (
            {"alignment": "m.nex", "predictive": 5, "model": "MK+ASC", "asc": "mrbayes"},
            "as no process does",
        ),
        ({"predictive": -1}, "predictive"),
    ],
)
def test_what_would_change_nothing_or_cannot_be_made_is_an_error(folder, options, told):
    text = Path("d.fasta").read_text().splitlines()
    rows = np.array([list(row) for row in text[1::2]])
    varies = [len(set(column) - {"-"}) > 1 for column in rows.T]
    cut = ["".join(row[varies]) for row in rows]
    Path("v.fasta").write_text("\n".join(f"{name}\n{row}" for name, row in zip(text[::2], cut)) + "\n")
    head = '#NEXUS\nbegin data; dimensions ntax=4 nchar=4; format datatype=standard symbols="012"; matrix\n'
    Path("m.nex").write_text(f"{head}a 0010\nb 0101\nc 1102\nd 1021\n; end;\n")
    with pytest.raises(InputError, match=told):
        sampled(**{"alignment": "v.fasta"} | options)
    assert not Path("x.json").exists()


def test_tables_are_made_of_a_finished_analysis_without_sampling(folder):
    sampled()
    before = Path("x.run1.p").read_bytes()
    settings = mcmc_settings({"alignment": "d.fasta", "model": "HKY+G4", "site_table": True} | BLOCK)
    again = mcmc_settings({**{k: v for k, v in BLOCK.items() if k != "redo"}, "alignment": "d.fasta",
                           "model": "HKY+G4", "site_table": True})  # fmt: skip
    result = run_mcmc(again)
    assert result.left_out is not None and Path("x.run1.p").read_bytes() == before
    table, consensus = Path("x.sites").read_bytes(), Path("x.con.tre").read_bytes()
    told = run_mcmc(again)
    assert told.was_finished and told.left_out == result.left_out and Path("x.sites").read_bytes() == table
    checked = run_mcmc(replace(again, predictive=10))
    assert not checked.was_finished and len(checked.checks) == 6
    assert run_mcmc(replace(again, predictive=10)).checks == checked.checks
    more = run_mcmc(replace(again, predictive=20))
    assert not more.was_finished and more.checks != checked.checks and more.checks[0].data_sets == 20
    all_draws = run_mcmc(replace(again, predictive=1000)).checks
    n = all_draws[0].data_sets
    assert (
        n < 200
        and f"{n} simulated from the draws, of which there are no" in checks_table(all_draws, 1000).title
    )
    assert "no" not in checks_table(more.checks, 20).title
    assert Path("x.predictive.tsv").read_text().splitlines()[1].split("\t")[6] == str(n)
    hung = run_mcmc(replace(again, outgroup=TREE.taxa[2]))
    assert not hung.was_finished and Path("x.con.tre").read_bytes() != consensus
    assert Path("x.run1.p").read_bytes() == before
    run_mcmc(settings)
    assert Path("x.sites").read_bytes() == table  # the same seed, from the start


def test_a_block_asks_for_them(folder):
    rows = Path("d.fasta").read_text().splitlines()
    matrix = "\n".join(f"{name[1:]} {row}" for name, row in zip(rows[::2], rows[1::2]))
    head = "begin data; dimensions ntax=6 nchar=200; format datatype=dna gap=-;"
    text = f"#NEXUS\n{head} matrix\n{matrix}\n; end;\n"
    Path("b.nex").write_text(f"{text}begin mrbayes; report ancstates=yes siterates=yes; mcmc; end;\n")
    found = block_analysis("b.nex")
    assert found.options["ancestral"] is True and found.options["site_table"] is True
    assert "--site-table --ancestral" in command_line(mcmc_settings(found.options))
    Path("b.nex").write_text(f"{text}begin mrbayes; report siterates=yes; report siterates=no; mcmc; end;\n")
    assert "site_table" not in block_analysis("b.nex").options
    clock = "prset brlenspr=clock:uniform; report ancstates=yes;"
    Path("b.nex").write_text(f"{text}begin mrbayes; {clock} mcmc; end;\n")
    assert block_analysis("b.nex").options["ancestral"] is True


def test_draws_are_evenly_chosen():
    class Few:
        n = 1001

        def tree_and_numbers(self, i, names):
            return i, i, {}

    chosen = Drawn([Few(), Few()], (), 1).evenly(5)
    assert [[draw.parent for draw in run] for run in chosen] == [[1, 251, 500, 750, 1000]] * 2
    assert isinstance(chosen[0][0], Draw)
