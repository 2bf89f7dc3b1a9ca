"""Effective samples of `phloem mcmc`, and of MrBayes beside it, a generation and a second of processor time,
by the worst number and the worst split.

    python benchmarks/mcmc_ess.py [NAME …] [--generations 500000] [--moves 'nni=5,spr=7.5'] [--seed 1]
    python benchmarks/mcmc_ess.py [NAME …] --mrbayes 1000000 [--examples FOLDER]

NAME: of the table below; MrBayes' own examples are read where Debian has them or in --examples (anolis and
bglobin: test/data of MrBayes' sources), DS1 from ../shared, and what is missing is said and left out. Two
runs of four chains, one after the other on one thread; the first fifth of the generations, in which moves
adapt, is left out of samples and times. Splits: those with a frequency of 0.1 to 0.9. First checked: carried
log-likelihoods are, bit for bit, those of an evaluation of everything. --mrbayes: `mb` with BEAGLE (SSE,
double) is given the same commands and so many generations; four fifths of its processor time count.
"""

from __future__ import annotations

import argparse
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from mcmc_speed import correct

from phloem.analysis.mcmc_data import chain_input
from phloem.analysis.mcmc_options import mcmc_settings
from phloem.analysis.mrbayes import block_analysis
from phloem.analysis.trace_view import read_traces
from phloem.inference.mcmc.convergence import split_presence
from phloem.inference.mcmc.move_table import chosen_moves
from phloem.inference.mcmc.run import Run, advanced, new_run
from phloem.inference.mcmc.settings import ChainSettings
from phloem.io.trees import read_tree_sample
from phloem.summary.splits import SplitTable, split_frequency_deviation, split_table
from phloem.summary.trace import mixing

HERE = Path(__file__).resolve().parent
EXAMPLES, SHARED = Path("/usr/share/doc/mrbayes/examples"), HERE.parents[1] / "shared/data"
GTR = "lset nst=6 rates=invgamma;"
CASES: dict[str, tuple[str, str]] = {  # name → file, MrBayes' commands
    "replicase": ("replicase.nex", "lset nst=2 rates=gamma;"),
    "primates": ("primates.nex", GTR),
    "anolis": ("anolis.nex", GTR),
    "cynmix": ("cynmix.nex", "lset rates=gamma coding=variable;"),  # its binary characters of morphology
    "avian": (
        "avian_ovomucoids.nex",
        "taxset far = 21-89; delete far; lset rates=gamma; prset aamodelpr=fixed(wag);",
    ),
    "bglobin": ("bglobin.nex", "taxset far = 9-17; delete far; lset nucmodel=codon nst=2;"),
    "sceloporus": ("sceloporus.nex", GTR),
    "DS1": ("DS1.fasta", "lset nst=1; prset statefreqpr=fixed(equal) brlenspr=unconstrained:exp(10);"),
}
BURN_IN = 0.2


class Sampled(NamedTuple):
    """After the burn-in. numbers: (runs, draws, n) of names. table: of both runs' trees. seconds: of a
    processor."""

    names: tuple[str, ...]
    numbers: np.ndarray
    table: SplitTable
    seconds: float
    generations: int


# The problem, as a NEXUS file with a block that both programs obey.


def data_block(name: str, folder: Path) -> str | None:
    """The data alone, of cynmix its binary characters of morphology."""
    places = [place / CASES[name][0] for place in (folder, EXAMPLES, SHARED / "ds")]
    file = next((place for place in places if place.exists()), None)
    if file is None:
        return None
    text = file.read_text()
    if file.suffix == ".fasta":
        rows = [one.split(maxsplit=1) for one in text.split(">")[1:]]
        return nexus({name: list("".join(rest.split())) for name, rest in rows}, "dna")
    if name == "cynmix":
        return binary(text)
    return re.match(r".*?\bmatrix\b.*?;\s*end;", text, re.S | re.I).group()


def binary(text: str) -> str:
    """The columns of the first block of rows that show the states 0 and 1 only."""
    lines = [line.split() for line in text.partition("Matrix\n")[2].split("\n\n")[0].splitlines()]
    rows = {name: re.findall(r"\{.*?\}|.", states) for name, states in lines}
    seen = [set("".join(column)) - set("{}-?") for column in zip(*rows.values())]
    columns = [j for j, states in enumerate(seen) if states == {"0", "1"}]
    return nexus({name: [row[j] for j in columns] for name, row in rows.items()}, "standard")


def nexus(rows: dict[str, list[str]], datatype: str) -> str:
    n = len(next(iter(rows.values())))
    head = f"#NEXUS\nbegin data;\ndimensions ntax={len(rows)} nchar={n};\n"
    matrix = "\n".join(f"{name} {''.join(row)}" for name, row in rows.items())
    return f"{head}format datatype={datatype} gap=- missing=?;\nmatrix\n{matrix}\n;\nend;\n"


def written(name: str, data: str, folder: Path, generations: int, seed: int) -> Path:
    """The file of a problem, with its commands."""
    block = (
        "begin mrbayes;\n"
        f"set autoclose=yes nowarn=yes seed={seed} swapseed={seed} usebeagle=yes beagledevice=cpu"
        " beaglesse=yes beagleprecision=double;\n"
        f"{CASES[name][1]}\n"
        "mcmcp nruns=2 nchains=4 temp=0.1 samplefreq=100 diagnfreq=100000 printfreq=100000 filename=mb;\n"
        f"mcmc ngen={generations};\nend;\n"
    )
    file = folder / f"{name}.nex"
    file.write_text(f"{data}\n{block}")
    return file


# Both programs.


def by_phloem(
    file: Path, generations: int, weights: dict[str, float], seed: int, usual: bool
) -> tuple[list[Run], Sampled]:
    """Both runs at their end, and what they sampled."""
    described = block_analysis(file)
    options = {k: v for k, v in described.options.items() if k not in ("generations", "prefix", "seed")}
    data = chain_input(mcmc_settings(options))
    burn_in = int(generations * BURN_IN)
    settings = ChainSettings(
        seed=seed, priors=data.priors, generations=generations, sample_every=100, tuning_generations=burn_in,
        usual_weights=usual,
    )  # fmt: skip
    if weights:
        usual = {m.name: m.weight for m in chosen_moves(data.structure, len(data.taxa), None)}
        settings = ChainSettings(**{**vars(settings), "move_weights": usual | weights})
    runs = [new_run(r, data.observed(), data.structure, settings) for r in (0, 1)]
    runs = [advanced(run, burn_in) for run in runs]
    begun = time.process_time()
    runs = [advanced(run, generations - burn_in) for run in runs]
    seconds = time.process_time() - begun
    first = int(np.searchsorted(runs[0].samples.generation, burn_in, side="right"))
    taxa = tuple(map(str, range(runs[0].data.n_tips)))
    table = split_table([run.samples.tree_sample(taxa, first) for run in runs])
    numbers = np.stack([run.samples.numbers[first:] for run in runs])
    return runs, Sampled(("LnL", "LnPr", *runs[0].columns.names), numbers, table, seconds, generations)


def by_mrbayes(file: Path, generations: int) -> Sampled:
    """The same of MrBayes, in the file's folder."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(["mb", file.name], cwd=file.parent, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    traces = read_traces(str(file.parent / "mb"))
    n = min(len(values) for values in traces.values)
    first = int(BURN_IN * n)
    numbers = np.stack([values[first:n] for values in traces.values])
    samples = [read_tree_sample(file.parent / f"mb.run{r}.t").select(slice(first, n)) for r in (1, 2)]
    return Sampled(traces.names, numbers, split_table(samples), (1 - BURN_IN) * seconds, generations)


# Figures.


def report(program: str, name: str, found: Sampled) -> None:
    """Smallest ESS of a number and of a split."""
    table, seconds = found.table, found.seconds
    presence, _ = split_presence(table, 2, found.numbers.shape[1], 0.1)
    splits = mixing(presence)[0] if presence.shape[2] else np.zeros(1)
    splits = splits[np.isfinite(splits)] if np.isfinite(splits).any() else np.zeros(1)
    numbers = mixing(found.numbers)[0]
    order = np.argsort(numbers)
    label = ", ".join(f"{found.names[i]} {numbers[i] / seconds:.2f}" for i in order[:4])
    spent = 2 * found.generations * (1 - BURN_IN) / 1e6
    deviation = split_frequency_deviation(table, 0.1).average
    print(
        f"{name:10} {program:7} splits {len(splits):3}: worst ESS {splits.min():7.0f}, "
        f"{splits.min() / spent:7.0f} a million generations, {splits.min() / seconds:7.2f} a CPU-s; "
        f"median {np.median(splits) / spent:7.0f}; ASDSF {deviation:.4f}; "
        f"numbers {np.nanmin(numbers) / spent:7.0f}, {np.nanmin(numbers) / seconds:7.2f} a CPU-s ({label}); "
        f"{seconds:.0f} s",
        flush=True,
    )


def report_moves(runs: list[Run]) -> None:
    """How often moves are tried and accepted."""
    tried, accepted = (sum(getattr(run.state, key)[0] for run in runs) for key in ("tried", "accepted"))
    shares = np.mean([np.diff(run.state.cumulative, prepend=0.0) for run in runs], axis=0)
    usual = sum(move.weight for move in runs[0].moves)
    for move, n_tried, n_accepted, share in zip(runs[0].moves, tried, accepted, shares):
        text = f"{100 * share:5.2f}% of proposals, usually {100 * move.weight / usual:5.2f}%, "
        print(f"           {move.name:26} {text}accepted {100 * n_accepted / max(n_tried, 1):6.2f}%")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(CASES))
    parser.add_argument("--generations", type=int, default=500_000)
    parser.add_argument("--mrbayes", type=int, default=0, metavar="GENERATIONS")
    parser.add_argument("--examples", type=Path, default=EXAMPLES)
    parser.add_argument("--moves", default="")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--usual-weights", action="store_true", help="moves keep their usual weights")
    given = parser.parse_args()
    weights = {k: float(v) for k, _, v in (one.partition("=") for one in given.moves.split(",") if one)}
    for name in given.names:
        data = data_block(name, given.examples)
        if data is None:
            print(f"{name}: {CASES[name][0]} is not there")
            continue
        with tempfile.TemporaryDirectory() as folder:
            file = written(name, data, Path(folder), given.mrbayes or given.generations, given.seed)
            runs, found = by_phloem(file, given.generations, weights, given.seed, given.usual_weights)
            if not all(correct(run) for run in runs):
                print("the chains' log-likelihoods are wrong: no figures", file=sys.stderr)
                return 1
            report("phloem", name, found)
            report_moves(runs)
            if given.mrbayes:
                report("MrBayes", name, by_mrbayes(file, given.mrbayes))
    return 0


if __name__ == "__main__":
    sys.exit(main())
