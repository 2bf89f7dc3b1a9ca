"""Is the posterior of `phloem mcmc` MrBayes'? Means and clades of both programs on MrBayes' own examples.

    python benchmarks/mcmc_agreement.py [NAME …] [--examples FOLDER] [--out FOLDER] [--scale 1]

Both programs are given one file, MrBayes' commands of the case below; each makes two runs of four chains, a
quarter is burn-in. What has been sampled stays in --out: MrBayes' files are used again as they are, phloem
goes on where more --generations are asked for by --scale. NAME-golden compares with the posterior of
MrBayes 3.2.7a in ../shared/golden/mrbayes. Needs `mb` for all others, and the examples: a folder with
Debian's (/usr/share/doc/mrbayes/examples) and anolis.nex (test/data of MrBayes' sources up to 2015).

A row a case: z = (phloem's mean − MrBayes') / √(mcse² + mcse²), mcse = sd/√ESS (rank-normalised bulk ESS), of
every number but LnPr, which differs by a constant; the same of the presence of every clade that either has
in more than 5% of its trees. A presence that never changes counts with the smallest ESS of its sample.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

from phloem.analysis.trace_view import read_traces
from phloem.io.trees import read_tree_sample
from phloem.summary.splits import split_table
from phloem.summary.trace import mixing
from phloem.tree.splits import split_members

HERE = Path(__file__).resolve().parent
GOLDEN = HERE.parents[1] / "shared/golden/mrbayes"
BURN_IN, LEAST = 0.25, 0.05

# Name → file, MrBayes' commands of the model, generations of MrBayes and of phloem, and between samples.
CASES = {
    "replicase": ("replicase", "lset nst=2 rates=gamma;", 1_000_000, 2_000_000, 200),
    "primates": ("primates", "lset nst=6 rates=invgamma;", 1_000_000, 2_000_000, 200),
    "anolis": ("anolis", "lset nst=6 rates=invgamma;", 1_000_000, 3_000_000, 200),
    "avian": ("avian_ovomucoids", "lset rates=gamma; prset aamodelpr=fixed(wag);", 500_000, 1_000_000, 200),
    "cynmix": ("cynmix", "lset rates=gamma coding=variable;", 1_000_000, 2_000_000, 200),
}
USUAL = ["replicase-golden", "primates-golden", "replicase", "primates", "anolis", "avian", "cynmix"]


class Posterior(NamedTuple):
    """means: name of a number or clade → mean and its standard error, NaN where it never changed.
    least_ess: of the numbers and clades that moved. per_draw: that, a draw."""

    means: dict[object, tuple[float, float]]
    ess: dict[object, float]
    n_draws: int


def sampled(prefix: Path) -> Posterior:
    """Of two runs' .p and .t files; clades as the taxa of the side without the first one in the alphabet."""
    traces = read_traces(str(prefix))
    if traces is None:
        raise SystemExit(f"{prefix}: no traces")
    n = min(len(values) for values in traces.values)
    first = int(BURN_IN * n)
    draws = np.stack([values[first:n] for values in traces.values])
    names: list[object] = list(traces.names)
    samples = [read_tree_sample(f"{prefix}.run{r}.t").select(slice(first, n)) for r in (1, 2)]
    table = split_table(samples)
    common = np.flatnonzero(~table.trivial & (table.probability > LEAST / 2))
    taxa = np.array(table.sample.taxa)
    members = split_members(table.splits[common], len(taxa))
    presence = np.stack([(table.which == s).any(axis=1) for s in common], axis=1).astype(float)
    names += [clade(taxa[inside], taxa) for inside in members]
    values = np.concatenate([draws, presence.reshape(2, n - first, -1)], axis=2)
    ess, _ = mixing(values)
    flat = values.reshape(-1, values.shape[2])
    mean, sd = flat.mean(axis=0), flat.std(axis=0, ddof=1)
    return Posterior(
        {name: (m, s / np.sqrt(e)) for name, m, s, e in zip(names, mean, sd, ess)},
        dict(zip(names, ess.tolist())),
        len(flat),
    )


def clade(inside, taxa) -> frozenset:
    """The side of a split without the first taxon of the alphabet."""
    held = frozenset(map(str, inside))
    return held if min(map(str, taxa)) not in held else frozenset(map(str, taxa)) - held


def golden(name: str) -> Posterior:
    """MrBayes' posterior as stored: means, standard deviations and ESS."""
    stored = json.loads((GOLDEN / f"{name}.json").read_text())
    means, ess = {}, {}
    for key, row in stored["parameters"].items():
        means[key] = row["mean"], row["sd"] / np.sqrt(row["ess"])
        ess[key] = row["ess"]
    for text, p in stored["clades"].items():
        key, own = frozenset(text.split(",")), stored["clade_ess"][text]
        ess[key] = np.nan if own is None else own
        means[key] = p, np.nan if own is None else np.sqrt(p * (1 - p) / own)
    return Posterior(means, ess, 0)


def z_scores(a: Posterior, b: Posterior) -> tuple[dict, dict]:
    """Of numbers by name, and of clades."""
    numbers, clades = {}, {}
    least = [min(v for v in one.ess.values() if v == v) for one in (a, b)]
    for key in a.means.keys() | b.means.keys():
        (x, dx), (y, dy) = (one.means.get(key, (0.0, np.nan)) for one in (a, b))
        if not isinstance(key, frozenset):
            if key not in ("LnPr",) and key in a.means and key in b.means and dx == dx and dy == dy:
                numbers[key] = (x - y) / np.hypot(dx, dy)
        elif max(x, y) > LEAST:
            p = min(max((x + y) / 2, 1e-6), 1 - 1e-6)
            ess = [one.ess.get(key, np.nan) for one in (a, b)]
            ess = [e if e == e else other for e, other in zip(ess, least)]
            clades[key] = (x - y) / np.sqrt(p * (1 - p) * (1 / ess[0] + 1 / ess[1]))
    return numbers, clades


def block(file: Path, model: str, generations: int, every: int, name: str) -> str:
    lines = [
        "#NEXUS",
        "begin mrbayes;",
        "  set autoclose=yes nowarn=yes seed=7 swapseed=8;",
        f"  execute {file};",
        *(f"  {command};" for command in model.rstrip(";").split(";")),
        f"  mcmc ngen={generations} samplefreq={every} nruns=2 nchains=4 temp=0.1 diagnfreq=50000"
        f" printfreq=100000 relburnin=yes burninfrac={BURN_IN} filename={name};",
        "end;",
    ]
    return "\n".join(lines) + "\n"


def run_mrbayes(folder: Path, file: Path, case: tuple, scale: float) -> Path:
    """Samples of MrBayes, once."""
    prefix = folder / "mb"
    if not Path(f"{prefix}.con.tre").exists() and not finished(prefix):
        _, model, generations, _, every = case
        text = block(file, model, int(generations * scale), every, "mb")
        (folder / "mb.nex").write_text(text)
        with open(folder / "mb.log", "w") as log:
            subprocess.run(["mb", "mb.nex"], cwd=folder, stdout=log, stderr=log)
    if not finished(prefix):
        raise SystemExit(f"MrBayes failed: see {folder}/mb.log")
    return prefix


def finished(prefix: Path) -> bool:
    trees = Path(f"{prefix}.run2.t")
    return trees.exists() and trees.read_text().rstrip().endswith("end;")


def run_phloem(folder: Path, file: Path, case: tuple, scale: float) -> Path:
    _, model, _, generations, every = case
    (folder / "phloem.nex").write_text(block(file, model, 1_000_000, every, "unused"))
    asked = ["--generations", str(int(generations * scale)), "--seed", "11", "--prefix", "phloem"]
    command = [sys.executable, "-m", "phloem", "mcmc", "phloem.nex", *asked, "--threads", "1"]
    with open(folder / "phloem.log", "w") as log:
        subprocess.run(command, cwd=folder, check=True, stdout=log, stderr=log)
    return folder / "phloem"


COLUMNS = (
    "data",
    "samples (least ESS): phloem, MrBayes",
    "tree length: phloem, MrBayes, z",
    "numbers, largest z",
    "clades > 0.05, largest z",
)
HEAD = f"| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|"


def morphology(file: Path, folder: Path) -> Path:
    """The 166 characters of morphology of cynmix.nex, its first block of rows, which neither program can
    choose by excluding all others."""
    rows = file.read_text().partition("Matrix\n")[2].split("\n\n")[0].strip("\n")
    head = f"#NEXUS\nbegin data;\ndimensions ntax={len(rows.splitlines())} nchar=166;\n"
    form = "format datatype=standard gap=- missing=?;\nmatrix\n"
    cut = folder / "morphology.nex"
    cut.write_text(f"{head}{form}{rows}\n;\nend;\n")
    return cut.resolve()


def row(name: str, ours: Posterior, theirs: Posterior) -> tuple[str, bool]:
    """A line of the table, and whether every z lies within 4."""
    numbers, clades = z_scores(ours, theirs)
    sizes = [
        f"{one.n_draws or '–'} ({min(v for v in one.ess.values() if v == v):.0f})" for one in (ours, theirs)
    ]
    lengths = f"{ours.means['TL'][0]:.4f}, {theirs.means['TL'][0]:.4f}, {numbers['TL']:+.1f}"
    worst = max(numbers, key=lambda key: abs(numbers[key]))
    of_clades = f"{len(clades)}, {max(clades.values(), key=abs):+.1f}" if clades else "0"
    text = f"| {name} | {', '.join(sizes)} | {lengths} | {len(numbers)}, {numbers[worst]:+.1f} ({worst})"
    fine = max(map(abs, [*numbers.values(), *clades.values()])) < 4
    return f"{text} | {of_clades} |", fine


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=USUAL)
    parser.add_argument("--examples", type=Path, default=Path("/usr/share/doc/mrbayes/examples"))
    parser.add_argument("--out", type=Path, default=Path("mcmc_agreement"))
    parser.add_argument("--scale", type=float, default=1.0)
    given = parser.parse_args()
    print(HEAD)
    all_fine = True
    for name in given.names:
        case = CASES[name.removesuffix("-golden")]
        file = given.examples.resolve() / f"{case[0]}.nex"
        if not file.exists():
            print(f"{name}: {file} is not there", file=sys.stderr)
            all_fine = False
            continue
        folder = given.out / name.removesuffix("-golden")
        folder.mkdir(parents=True, exist_ok=True)
        file = morphology(file, folder) if name == "cynmix" else file
        ours = sampled(run_phloem(folder, file, case, given.scale))
        if name.endswith("-golden"):
            theirs = golden(name.removesuffix("-golden"))
        else:
            theirs = sampled(run_mrbayes(folder, file, case, given.scale))
        text, fine = row(name, ours, theirs)
        all_fine &= fine
        print(text, flush=True)
    return 0 if all_fine else 1


if __name__ == "__main__":
    sys.exit(main())
