"""One partition or several, of any data: every chain's likelihood is the reference's, whoever computes it.

One of the two chains of a walk is so hot that it takes whatever its prior allows. So the likelihoods of
proposals are compared, not only of what a cold chain accepts: one that is wrongly low would never be seen.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from phloem.data.alignment import Alignment, alignment_from_sequences
from phloem.data.alphabet import alphabet
from phloem.data.genetic_code import genetic_code
from phloem.density.parts import Linkage, PartModel
from phloem.errors import InputError
from phloem.inference.mcmc import run as runs
from phloem.inference.mcmc import seen, start
from phloem.inference.mcmc.guard import plain_likelihood
from phloem.inference.mcmc.recipes import observations
from phloem.inference.mcmc.records import BY_MODEL, COMPILED, INVARIABLE, KIND
from phloem.inference.mcmc.run import Run, advanced, new_run
from phloem.inference.mcmc.samples import draw
from phloem.inference.mcmc.settings import ChainSettings, ExponentialPrior, Priors
from phloem.inference.mcmc.structure import ChainModel, sites_per_character, structure_of_parts
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.pruning.cpu.cell_records import CellNumbers

BOUND = 1e-9  # relative
ACIDS, NO_CW = "ARNDCQEGHILKMFPSTWYV", "ARNDQEGHILKMFPSTYV"
CODONS = genetic_code(1).sense_codons
PROPORTIONAL, LINKED, UNLINKED = (Linkage(x) for x in ("proportional", "linked", "unlinked"))
LETTERS = {"dna": "ACGT", "protein": ACIDS, "binary": "01", "codon": CODONS}
SHORT = {"priors": Priors(branch_lengths=ExponentialPrior(1e9)), "branch_length_bounds": (1e-8, 3e-8)}


def part(kind: str, model: str, n_sites: int, letters=None):
    return kind, model, n_sites, letters or LETTERS[kind]


def drawn(n_tips: int, kind: str, model: str, n_sites: int, letters, seed: int) -> Alignment:
    """Each row the first with a third of its characters drawn anew; no constant column for Mkv."""
    rng = np.random.default_rng(seed)
    first = rng.choice(list(letters), n_sites)
    rows = np.where(rng.random((n_tips, n_sites)) < 0.33, rng.choice(list(letters), (n_tips, n_sites)), first)
    if "MKV" in model:
        rows[0], rows[1] = letters[0], letters[1]
    states = alphabet(kind, symbols=letters) if kind == "standard" else alphabet(kind)
    return alignment_from_sequences({f"t{i}": "".join(row) for i, row in enumerate(rows)}, states)


def made(n_tips: int, parts, linkage=None, threads: int = 1, **settings) -> tuple[Run, list[Alignment]]:
    """A run at its start."""
    data = [drawn(n_tips, *p, seed) for seed, p in enumerate(parts)]
    models = []
    for i, (alignment, (_, text, *_)) in enumerate(zip(data, parts)):
        model = model_for_alignment(text, alignment)
        models.append(PartModel(f"p{i}", model, alignment.n_sites, sites_per_character(model)))
    observed = [observations(a, m.model.unseen) for a, m in zip(data, models)]
    given = {"n_runs": 1, "n_chains": 2, "sample_every": 10, "tuning_generations": 0}
    chains = ChainSettings(**(given | settings))
    return new_run(0, observed, structure_of_parts(models, linkage), chains, threads=threads), data


def largest_difference(n_tips: int, parts, linkage=None, generations: int = 300, every: int = 15, **settings):
    """Relative, over both chains and all times looked at, and the run at the end."""
    run, data = made(n_tips, parts, linkage, heating=1e6, sample_every=every, **settings)
    plain, worst = plain_likelihood(data, run.structure), 0.0
    for _ in range(generations // every):
        run = advanced(run, every)
        for rank in range(2):
            row = draw(run.state, run.columns, rank)
            expected = plain(*row.tree_and_numbers(0, run.columns.names))
            worst = max(worst, abs(row.numbers[0, 0] / expected - 1))
    assert len(set(run.columns.names)) == len(run.columns.names)
    assert np.isfinite(worst) and run.state.accepted[1].sum() > 0.5 * run.state.tried[1].sum()
    return worst, run


def tips(fast, all_of_them) -> list:
    """Numbers of taxa; those between others of the slow suite."""
    return [pytest.param(n, marks=[] if n in fast else pytest.mark.slow) for n in all_of_them]


@pytest.mark.parametrize("n_tips", tips((3, 4, 12, 64), (3, 4, 5, 12, 30, 64)))
@pytest.mark.parametrize(
    "one",
    [
        part("dna", "JC", 40),
        part("dna", "GTR+FO+I+G4", 40),
        part("dna", "MIXED+FO+I+G4", 40),
        part("binary", "MK", 20),
        part("binary", "MKV+G4", 20),
        part("standard", "ORDERED+FO", 20, "0123"),
        part("protein", "LG+G4", 15),
    ],
    ids=lambda p: p[1],
)
def test_walks_over_few_taxa_and_many(n_tips, one):
    assert largest_difference(n_tips, [one])[0] < BOUND


@pytest.mark.parametrize(
    ("kind", "model"),
    [
        *(("dna", text) for text in ("HKY+R3", "JC+I+R3", "HKY+FO+COV+G4", "HKY+F+COV{0.3,0.4}+I")),
        *(("dna", text) for text in ("GTR+FO+MM2", "MIX{HKY+FO,GTR+FO}+G4", "MIX{JC,K80{3}}+G4")),
        *(("dna", text) for text in ("HKY+FO+H2", "JC+H3{0.2,0.3,0.5}+I", "GTR+FO*H2", "JC+H2{0.4,0.6}")),
        *(("dna", text) for text in ("GTR+I{0.3}+G5", "TN93+GA4")),
        ("binary", "MKV+COV"),
        ("protein", "LG+C10+G4{0.4}+I"),
        *(("protein", text) for text in ("LG4M", "LG4X", "LG+C10+I", "LG+C10+G4", "LG+C10+I+G2", "WAG+FO+I")),
    ],
)  # fmt: skip
def test_walks_of_models_with_hidden_states_mixtures_and_free_rates(kind, model):
    assert largest_difference(6, [part(kind, model, 12)], generations=150)[0] < BOUND


@pytest.mark.parametrize(
    "model", ["GY94+FO3X4", "GY94+FO1X4+G2", "MG94+F3X4", "GY94+FO", "GY94{2,0.3}+FQ+G2"]
)
def test_walks_of_codons(model):
    assert largest_difference(6, [part("codon", model, 10)], generations=45)[0] < BOUND


MIXED = [part("dna", "HKY+FO+G4", 40), part("protein", "LG+G4", 15), part("standard", "MKV", 12, "012")]
TWO = [part("dna", "GTR+FO+G4", 40), part("dna", "HKY+FO+I", 25)]
CASES = {
    "two genes": TWO,
    "mixed data": MIXED,
    "one column each": [part("dna", "GTR+FO+G4", 1), part("protein", "LG", 1), part("binary", "MK", 1)],
    "fewer columns than codes": [
        part("protein", "Poisson", 6),
        part("dna", "HKY", 3),
        part("protein", "WAG", 8),
    ],
    "absent states": [part("dna", "GTR+F", 40, "ACT"), part("protein", "WAG+F+I+G4", 15, NO_CW)],
    "fixed mixtures": [part("protein", "LG+C10+G4{0.4}", 8), part("protein", "LG4M+G4{0.5}", 8)],
    "with Python's models": [part("dna", "HKY+FO+COV+G4", 12), *TWO, part("protein", "LG+FO", 10)],
}  # fmt: skip


@pytest.mark.parametrize("n_tips", tips((3, 12), (3, 5, 12, 30)))
@pytest.mark.parametrize("linkage", [LINKED, PROPORTIONAL, UNLINKED], ids=lambda x: x.lengths)
@pytest.mark.parametrize("case", CASES)
def test_walks_over_partitions(case, linkage, n_tips):
    assert largest_difference(n_tips, CASES[case], linkage, 150)[0] < BOUND


TOGETHER = (("p0", "p2"),)


@pytest.mark.parametrize(
    "linkage",
    [
        Linkage("proportional", together=TOGETHER),
        Linkage("proportional", unit_rates=("p1",)),
        Linkage("unlinked", together=TOGETHER),
    ],
    ids=["one rate", "a rate of one", "one set"],
)
def test_walks_of_parts_that_are_together(linkage):
    worst, run = largest_difference(5, MIXED, linkage, 150)
    assert worst < BOUND
    assert run.structure.set_names == (("p0,p2", "p1") if linkage.lengths == "unlinked" else ())


def test_codons_beside_nucleotides_have_lengths_per_nucleotide():
    found, run = largest_difference(
        5, [part("dna", "GTR+FO+G4", 30), part("codon", "GY94+F3X4", 10)], PROPORTIONAL, 60
    )
    assert found < BOUND
    start_values = run.structure.space.start()
    assert [run.structure.rate_factor(i, start_values) for i in (0, 1)] == pytest.approx([1, 3])


def test_branches_of_almost_no_length():
    found = largest_difference(
        6, [part("dna", "HKY+G4", 12), part("protein", "WAG+G4", 9)], PROPORTIONAL, **SHORT
    )
    assert found[0] < BOUND


@pytest.mark.parametrize(
    ("parameters", "parts", "blocks"),
    [
        (
            {"alpha": (("p0", "p1"),)},
            [part("dna", "GTR+FO+G4", 40), part("protein", "LG+G4", 9)],
            {"relative_rates", "frequencies", "alpha"},
        ),
        (
            {"kappa": (("p0", "p2"),)},
            [part("dna", "HKY+FQ+G4", 40), part("dna", "HKY+FQ", 25), part("dna", "K80", 25)],
            {"kappa{p0,p2}", "kappa{p1}", "alpha"},
        ),
        (
            {"frequencies": (("p0", "p1"),), "p_invariable": (("p0", "p1"),)},
            [part("dna", "HKY+FO+I", 40), part("dna", "F81+FO+I+G4", 25)],
            {"kappa", "frequencies", "p_invariable", "alpha"},
        ),
        (
            {f"rate_{pair}": (("p0", "p1"),) for pair in ("AC", "AG", "AT", "CG", "CT")},
            [part("dna", "MIXED+FQ", 40), part("dna", "MIXED+FQ+G4", 25), part("dna", "MIXED+FQ", 25)],
            {"relative_rates{p0,p1}", "relative_rates{p2}", "alpha"},
        ),
    ],
    ids=["alpha", "kappa", "frequencies", "models"],
)
def test_linked_parameters(parameters, parts, blocks):
    found, run = largest_difference(6, parts, Linkage("proportional", parameters))
    assert found < BOUND
    assert {b.name for b in run.structure.space.blocks} == blocks | {"partition_rates"}


SETS = [part("dna", "HKY+FO+H2", 30), part("protein", "LG+G4", 9), part("dna", "JC+H3+I", 20)]


def test_parts_and_classes_with_lengths_of_their_own():
    found, run = largest_difference(7, SETS, UNLINKED, 150)
    assert found < BOUND
    assert run.structure.set_names == ("p0.1", "p0.2", "p1", "p2.1", "p2.2", "p2.3")
    lengths, mean, numbers = run.samples.sets[-1], run.samples.lengths[-1], run.samples.numbers[-1]
    assert numbers[3:9] == pytest.approx(lengths.sum(axis=1)) and len(set(numbers[3:9])) == 6
    values, model = run.structure.values_of(run.samples.tree_and_numbers(-1, run.columns.names)[2]), []
    for i in range(3):
        site_model = run.structure.site_model(i, values)
        each = np.bincount(site_model.length_class, site_model.weights)
        model.append(each / each.sum() * (30, 9, 20)[i] / 59)
    assert mean == pytest.approx(np.concatenate(model) @ lengths)


def test_classes_with_lengths_beside_parts_that_share_one_set_are_refused():
    with pytest.raises(InputError, match="2 sets of branch lengths"):
        made(5, SETS[:2], PROPORTIONAL)


# controls ---------------------------------------------------------------------------------------------------


def doubled_exchangeability(recipes):
    recipes.base[0, [0, 1], [1, 0]] *= 2


def forgotten_number(recipes):
    """The second part does not notice that its numbers change."""
    recipes.reads[1] = 0


def rate_of_the_other_part(recipes):
    recipes.site_share[:] = recipes.site_share[::-1].copy()


def no_invariable_sites(recipes):
    recipes.rows[1, INVARIABLE] = -1


@pytest.mark.parametrize(
    "plant", [doubled_exchangeability, forgotten_number, rate_of_the_other_part, no_invariable_sites]
)
def test_a_wrong_recipe_shows(plant, monkeypatch):
    right = start.recipes_of

    def wrong(structure):
        recipes = right(structure)
        assert (recipes.rows[:, KIND] == COMPILED).all()
        plant(recipes)
        return recipes

    monkeypatch.setattr(start, "recipes_of", wrong)
    assert largest_difference(5, TWO, PROPORTIONAL)[0] > 1e3 * BOUND


def test_a_part_that_reads_the_other_ones_columns_shows(monkeypatch):
    right = seen.chain_cells

    def wrong(observed, *others, **options):
        other = replace(observed[1], codes=observed[1].codes[::-1].copy())
        return right([observed[0], other], *others, **options)

    monkeypatch.setattr(seen, "chain_cells", wrong)
    assert largest_difference(5, TWO, PROPORTIONAL)[0] > 1e3 * BOUND


def test_a_part_that_reads_the_other_ones_lengths_shows(monkeypatch):
    right, column = start.chain_forest, CellNumbers._fields.index("first_lengths")

    def wrong(*arguments):
        forest = right(*arguments)
        assert forest.numbers[:, :, column].tolist() == [[0, 1]] * 2
        forest.numbers[:, 1, column] = 0
        return forest

    monkeypatch.setattr(start, "chain_forest", wrong)
    assert largest_difference(5, TWO, UNLINKED)[0] > 1e3 * BOUND


# what must not change any bit -------------------------------------------------------------------------------


def assert_same(a: Run, b: Run) -> None:
    for name in ("generation", "numbers", "parent", "lengths", "sets"):
        assert np.array_equal(getattr(a.samples, name), getattr(b.samples, name)), name
    for name, array in a.state._asdict().items():
        if name not in ("parent", "left", "right", "order", "lengths", "values"):
            assert np.array_equal(array, getattr(b.state, name)), name
    for name in ("parent", "left", "right", "order", "lengths", "values"):  # the other slot is scratch
        for h, slot in enumerate(a.state.slot):
            assert np.array_equal(getattr(a.state, name)[h, slot], getattr(b.state, name)[h, slot]), name


@pytest.mark.parametrize("case", ["two genes", "mixed data", "with Python's models"])
def test_threads_change_no_bit(case, monkeypatch):
    monkeypatch.setattr(runs, "SMALL_RUN", 0)
    found = []
    for threads in (1, 2, 3):
        run, _ = made(8, CASES[case], PROPORTIONAL, threads, n_chains=4, tuning_generations=100)
        assert len(run.scratches) == threads
        found.append(advanced(advanced(run, 130), 170))
    kinds = found[0].data.recipes.rows[:, KIND]
    assert (BY_MODEL in kinds) == (case == "with Python's models")
    assert found[0].state.swaps_accepted.sum() > 0
    for other in found[1:]:
        assert_same(found[0], other)


@pytest.mark.parametrize("case", [*CASES, "sets of lengths"])
def test_a_run_taken_up_again_changes_no_bit(case):
    parts, linkage = (SETS, UNLINKED) if case == "sets of lengths" else (CASES[case], PROPORTIONAL)
    whole, _ = made(8, parts, linkage, n_chains=3, tuning_generations=100)
    whole = advanced(whole, 400)
    run, data = made(8, parts, linkage, n_chains=3, tuning_generations=100)
    for _ in range(4):
        run = advanced(run, 100)
        state = type(run.state)(*(array.copy() for array in run.state))
        observed = [observations(a, p.model.unseen) for a, p in zip(data, run.structure.parts)]
        run = new_run(0, observed, run.structure, run.settings, state, run.samples)
    assert_same(whole, run)


@pytest.mark.parametrize("case", ["two genes", "mixed data"])
def test_site_repeats_change_no_bit(case):
    found = [
        advanced(made(9, CASES[case], PROPORTIONAL, repeats=repeats)[0], 200) for repeats in (True, False)
    ]
    assert_same(*found)


def test_a_thread_that_fails_stops_the_others(monkeypatch):
    """Its chain stays locked: without a word from it the other thread would wait for ever."""
    monkeypatch.setattr(runs, "SMALL_RUN", 0)
    run, _ = made(8, [part("dna", "HKY+R3", 12)], None, 2, n_chains=4)
    right, calls = ChainModel.site_model, []

    def fails(self, number, values):
        calls.append(number)
        if len(calls) == 20:
            raise FloatingPointError("planted")
        return right(self, number, values)

    monkeypatch.setattr(ChainModel, "site_model", fails)
    with pytest.raises(FloatingPointError, match="planted"):
        advanced(run, 500)
