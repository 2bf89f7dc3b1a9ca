"""`phloem examples`: the data of the tutorials, written to a folder."""

from __future__ import annotations

from pathlib import Path

from phloem.analysis.outputs import check_outputs
from phloem.errors import InputError
from phloem.io.output_file import write_file

_ROOM = Path(__file__).resolve().parents[1]
# In an installation beside the code; in a checkout where the repository has them.
_PLACES = (_ROOM / "example_data", _ROOM.parents[1] / "examples")

EXAMPLES = {
    "primates.nex": "12 primates, mitochondrial DNA",
    "primates.partitions": "their columns by codon position",
    "carnivores.fasta.gz": "62 carnivores, protein-coding mitochondrial genes",
    "carnivores.nwk": "a tree of them",
    "west_nile.fasta.gz": "104 West Nile virus genomes, 1999 to 2007",
    "west_nile.dates.tsv": "their sampling dates",
    "west_nile.regions.tsv": "where they were sampled, of five regions",
    "west_nile.nwk": "a dated tree of them",
}


def write_examples(folder: str, redo: bool = False) -> dict[str, str]:
    """Write the example data to a folder, which is made; file → what it is. Files that exist are replaced
    only with redo: all are checked before any is written."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        hint = "Choose another place."
        raise InputError(f"no folder can be made: {error.strerror}", file=folder, hint=hint) from None
    place = next((one for one in _PLACES if (one / "primates.nex").is_file()), None)
    if place is None:
        raise InputError("this installation has no example data", hint="Install phloem again.")
    files = {str(Path(folder) / name): what for name, what in EXAMPLES.items()}
    check_outputs(files, [str(place / name) for name in EXAMPLES], redo)
    for name in EXAMPLES:
        write_file(Path(folder) / name, (place / name).read_bytes())
    return files
