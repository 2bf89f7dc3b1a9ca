"""Chains under +AG: the likelihood of proposals is the reference's, whatever data and columns left out."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from phloem.data.alignment import Alignment, alignment_from_sequences
from phloem.data.alphabet import alphabet
from phloem.density.parts import Linkage, PartModel
from phloem.errors import DeviceError, InputError, NumericalError
from phloem.inference.mcmc import seen
from phloem.inference.mcmc.guard import plain_likelihood
from phloem.inference.mcmc.move_table import chosen_moves
from phloem.inference.mcmc.recipes import observations, recipes_of
from phloem.inference.mcmc.records import COMPILED, KIND
from phloem.inference.mcmc.run import Run, advanced, new_run
from phloem.inference.mcmc.sampler import sample
from phloem.inference.mcmc.samples import draw
from phloem.inference.mcmc.settings import ChainSettings, ExponentialPrior, Priors
from phloem.inference.mcmc.structure import sites_per_character, structure_of_parts
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.model.autocorrelated_rates import class_edges, neighbours_of
from phloem.pruning.cpu.neighbour_matrices import matrix_power, neighbours
from phloem.pruning.site_order import SiteOrder

BOUND = 1e-9  # relative
LETTERS = {"dna": "ACGTRN-", "protein": "ARNDCQEGHILKMFPSTWYV", "binary": "01"}
SHORT = {"priors": Priors(branch_lengths=ExponentialPrior(1e9)), "branch_length_bounds": (1e-8, 3e-8)}
Asked = tuple[str, str, int]


def drawn(n_tips: int, kind: str, n_sites: int, seed: int) -> Alignment:
    """Every third of the first columns is left out."""
    rng, letters = np.random.default_rng(seed), list(LETTERS[kind])
    first = rng.choice(letters, n_sites)
    rows = np.where(rng.random((n_tips, n_sites)) < 0.33, rng.choice(letters, (n_tips, n_sites)), first)
    names = {f"t{i}": "".join(row) for i, row in enumerate(rows)}
    kept = f"not 2-{n_sites // 2}\\3"
    return alignment_from_sequences(names, alphabet(kind), sites=kept)


def made(n_tips: int, asked: list[Asked], linkage=None, **settings) -> tuple[Run, list[Alignment]]:
    data = [drawn(n_tips, kind, n, seed) for seed, (kind, _, n) in enumerate(asked)]
    models = []
    for i, (alignment, (_, text, _)) in enumerate(zip(data, asked)):
        model = model_for_alignment(text, alignment)
        models.append(PartModel(f"p{i}", model, alignment.n_sites, sites_per_character(model)))
    observed = [observations(a, along=m.model.along_sites is not None) for a, m in zip(data, models)]
    given = {"n_runs": 1, "n_chains": 2, "sample_every": 10, "tuning_generations": 0, "heating": 1e6}
    run = new_run(0, observed, structure_of_parts(models, linkage), ChainSettings(**(given | settings)))
    return run, data


def largest_difference(n_tips: int, asked: list[Asked], linkage=None, generations=240, **settings) -> float:
    """Relative, over a cold chain and one so hot that it takes whatever its prior allows."""
    run, data = made(n_tips, asked, linkage, **settings)
    plain, worst = plain_likelihood(data, run.structure), 0.0
    for _ in range(generations // 20):
        run = advanced(run, 20)
        for rank in range(2):
            row = draw(run.state, run.columns, rank)
            expected = plain(*row.tree_and_numbers(0, run.columns.names))
            worst = max(worst, abs(row.numbers[0, 0] / expected - 1))
    assert np.isfinite(worst) and run.state.accepted[1].sum() > 0.3 * run.state.tried[1].sum()
    return worst


@pytest.mark.parametrize("n_tips", [3, 6, 30])
@pytest.mark.parametrize(
    "kind, model",
    [
        ("dna", "GTR+FO+AG4"),
        ("binary", "MK+AG3"),
        ("dna", "JC+AG7{rho=0.9}"),
        ("dna", "HKY+FO+AG4{0.5,-0.3}"),
        ("dna", "JC+AG5{alpha=0.4}"),
    ],
)
def test_walks(n_tips, kind, model):
    assert largest_difference(n_tips, [(kind, model, 60)]) < BOUND


def test_walks_of_many_states():
    assert largest_difference(6, [("protein", "LG+AG4", 30)], generations=100) < BOUND


def test_walks_on_the_shortest_branches():
    assert largest_difference(30, [("dna", "HKY+FO+AG4", 40)], **SHORT) < BOUND


TWO = [("dna", "HKY+FO+AG4", 50), ("dna", "JC+AG4", 35)]
BESIDE = [("dna", "HKY+FO+AG4", 50), ("dna", "JC+G4", 35), ("protein", "LG+AG2", 12)]


@pytest.mark.parametrize("asked", [TWO, BESIDE], ids=["two", "beside +G"])
@pytest.mark.parametrize("linkage", [Linkage("proportional"), Linkage("unlinked")], ids=["shared", "own"])
def test_walks_of_parts(asked, linkage):
    assert largest_difference(5, asked, linkage, generations=100) < BOUND


def test_a_correlation_that_parts_share():
    linkage = Linkage("linked", {"rho": (("p0", "p1"),)})
    run, _ = made(5, TWO, linkage)
    assert [name for name in run.columns.names if name.startswith("rho")] == ["rho"]
    assert largest_difference(5, TWO, linkage, generations=100) < BOUND


@pytest.mark.parametrize("what", ["pattern", "distance"])
def test_sites_in_another_order_show(what, monkeypatch):
    right = seen.chain_cells

    def wrong(observed, *others, **options):
        order = observed[0].order
        given = {"pattern": order.pattern, "distance": order.distance}
        given[what] = np.sort(given[what])
        return right([replace(observed[0], order=SiteOrder(**given))], *others, **options)

    monkeypatch.setattr(seen, "chain_cells", wrong)
    with pytest.raises(NumericalError, match="not that of the reference"):
        run_sample(generations=2)


def test_chains_without_the_order_of_the_sites_do_not_start():
    with pytest.raises(ValueError, match="order of the sites"):
        run_sample(along=False, generations=2)


def run_sample(prefix: str | None = None, along: bool = True, n_sites: int = 60, **settings):
    data = drawn(6, "dna", n_sites, 1)
    model = model_for_alignment("HKY+FO+AG4", data)
    structure = structure_of_parts([PartModel("all", model, data.n_sites)])
    chains = ChainSettings(**({"n_runs": 1, "n_chains": 2, "sample_every": 10, "seed": 3} | settings))
    plain = plain_likelihood([data], structure)
    return sample(observations(data, along=along), structure, chains, prefix and str(prefix), {}, plain=plain)


def test_a_resumed_run_goes_on_bit_for_bit(tmp_path):
    tuning = {"tuning_generations": 200, "check_every": 200, "sample_every": 20}
    run_sample(tmp_path / "whole", generations=800, **tuning)
    run_sample(tmp_path / "parts", generations=400, **tuning)
    again = run_sample(tmp_path / "parts", generations=800, **tuning)
    assert again.resumed_at == 400
    for kind in "pt":
        one, other = ((tmp_path / f"{name}.run1.{kind}").read_text() for name in ("whole", "parts"))
        assert one == other
    assert "rho" in (tmp_path / "whole.run1.p").read_text().splitlines()[1].split("\t")


def test_the_compiled_matrix_is_the_models():
    for n, rho in product((2, 3, 4, 7, 16), (-0.9999, -0.7, 0.0, 1e-9, 0.3, 0.95, 0.99999)):
        found, power, room = np.empty((n, n)), np.empty((n, n)), np.empty((n + 1, n + 1))
        neighbours(rho, class_edges(n), room, found)
        assert found == pytest.approx(neighbours_of(rho, n), abs=2e-14)
        for k in (1, 2, 3, 100):
            matrix_power(found, k, power, room, np.empty((n, n)))
            assert power == pytest.approx(np.linalg.matrix_power(found, k), abs=1e-13)


@pytest.mark.parametrize(
    "model, kind",
    [("HKY+FO+AG4", COMPILED), ("GTR+AG3", COMPILED), ("JC+FO+AG4", COMPILED), ("JC+AG2", COMPILED)],
)
def test_models_are_made_in_the_loop(model, kind):
    assert recipes_of(made(5, [("dna", model, 40)])[0].structure).rows[0, KIND] == kind


def test_what_chains_do_not_have_under_it():
    run, data = made(5, [("dna", "HKY+FO+AG4", 40)])
    with pytest.raises(InputError, match="gradients"):
        chosen_moves(run.structure, 5, {"leapfrog": 1.0, "nni": 1.0})
    with pytest.raises(DeviceError, match="CPUs only"):
        seen.chain_cells([observations(data[0], along=True)], run.structure, ChainSettings(), True)
