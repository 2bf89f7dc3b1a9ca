"""phloem: statistical phylogenetics on many-core hardware.

Public names load on first use, so that `import phloem` needs neither numba nor torch.
"""

from __future__ import annotations

from importlib import import_module

__version__ = "0.1.0"

_PUBLIC = {
    "read_alignment": "phloem.io.alignment",
    "read_tree": "phloem.io.trees",
    "read_trees": "phloem.io.trees",
    "write_trees": "phloem.io.trees",
    "newick_text": "phloem.io.trees",
    "read_dates": "phloem.io.date_table",
    "dates_from_names": "phloem.io.dates",
    "TipDates": "phloem.data.dates",
    "best_root": "phloem.dating.regression",
    "clock_outliers": "phloem.dating.outliers",
    "date_tree": "phloem.dating.least_squares",
    "DatingSettings": "phloem.dating.least_squares",
    "read_distance_matrix": "phloem.io.distance_matrix",
    "pairwise_distances": "phloem.clustering.distances",
    "DistanceSettings": "phloem.clustering.settings",
    "DistanceMatrix": "phloem.data.distance_matrix",
    "linkage": "phloem.clustering.linkage",
    "neighbour_joining": "phloem.clustering.joining",
    "starting_tree": "phloem.clustering.starting_tree",
    "Alignment": "phloem.data.alignment",
    "Alphabet": "phloem.data.alphabet",
    "SitePatterns": "phloem.data.patterns",
    "Tree": "phloem.tree.tree",
    "parse_model": "phloem.model.grammar",
    "TreeLikelihood": "phloem.likelihood.tree_likelihood",
    "PartitionedLikelihood": "phloem.likelihood.partitioned",
    "Linkage": "phloem.density.parts",
    "simulate_alignment": "phloem.likelihood.simulation",
    "optimize": "phloem.inference.ml.optimize",
    "run_ml": "phloem.analysis.ml",
    "MlSettings": "phloem.analysis.ml",
    "run_mcmc": "phloem.analysis.mcmc",
    "mcmc_settings": "phloem.analysis.mcmc_options",
    "run_time": "phloem.analysis.time",
    "TimeTreeSettings": "phloem.analysis.time",
    "read_draws": "phloem.analysis.draws",
    "PhloemError": "phloem.errors",
    "InputError": "phloem.errors",
    "ModelError": "phloem.errors",
    "NumericalError": "phloem.errors",
    "DeviceError": "phloem.errors",
}

__all__ = ["__version__", *_PUBLIC]


def __getattr__(name: str):
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'phloem' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
