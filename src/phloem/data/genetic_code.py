"""NCBI's genetic codes: which amino acid each codon stands for.

Source: NCBI Taxonomy, "The Genetic Codes" (Elzanowski & Ostell), tables 1-33. Where a codon is read both as
an amino acid and as a stop, depending on context (tables 27, 28, 31), it is an amino acid here, so that the
sense codons of those codes number up to 64.
"""

from __future__ import annotations

from dataclasses import dataclass

from phloem.errors import InputError

NUCLEOTIDES = "ACGT"
CODONS = tuple(a + b + c for a in NUCLEOTIDES for b in NUCLEOTIDES for c in NUCLEOTIDES)

# number: (name, amino acids of the 64 codons in the alphabetical order of A, C, G, T; * is a stop)
_CODES = {
    1: ("Standard", "KNKNTTTTRSRSIIMIQHQHPPPPRRRRLLLLEDEDAAAAGGGGVVVV*Y*YSSSS*CWCLFLF"),
    2: ("Vertebrate Mitochondrial", "KNKNTTTT*S*SMIMIQHQHPPPPRRRRLLLLEDEDAAAAGGGGVVVV*Y*YSSSSWCWCLFLF"),
    3: ("Yeast Mitochondrial", "KNKNTTTTRSRSMIMIQHQHPPPPRRRRTTTTEDEDAAAAGGGGVVVV*Y*YSSSSWCWCLFLF"),
    4: ("Mold Mitochondrial", "KNKNTTTTRSRSIIMIQHQHPPPPRRRRLLLLEDEDAAAAGGGGVVVV*Y*YSSSSWCWCLFLF"),
    5: ("Invertebrate Mitochondrial", "KNKNTTTTSSSSMIMIQHQHPPPPRRRRLLLLEDEDAAAAGGGGVVVV*Y*YSSSSWCWCLFLF"),
    6: ("Ciliate Nuclear", "KNKNTTTTRSRSIIMIQHQHPPPPRRRRLLLLEDEDAAAAGGGGVVVVQYQYSSSS*CWCLFLF"),
    9: ("Echinoderm Mitochondrial", "NNKNTTTTSSSSIIMIQHQHPPPPRRRRLLLLEDEDAAAAGGGGVVVV*Y*YSSSSWCWCLFLF"),
    10: ("Euplotid Nuclear", "KNKNTTTTRSRSIIMIQHQHPPPPRRRRLLLLEDEDAAAAGGGGVVVV*Y*YSSSSCCWCLFLF"),
    11: ("Bacterial", "KNKNTTTTRSRSIIMIQHQHPPPPRRRRLLLLEDEDAAAAGGGGVVVV*Y*YSSSS*CWCLFLF"),
    12: ("Alternative Yeast Nuclear", "KNKNTTTTRSRSIIMIQHQHPPPPRRRRLLSLEDEDAAAAGGGGVVVV*Y*YSSSS*CWCLFLF"),
    13: ("Ascidian Mitochondrial", "KNKNTTTTGSGSMIMIQHQHPPPPRRRRLLLLEDEDAAAAGGGGVVVV*Y*YSSSSWCWCLFLF"),
    14: (
        "Alternative Flatworm Mitochondrial",
        "NNKNTTTTSSSSIIMIQHQHPPPPRRRRLLLLEDEDAAAAGGGGVVVVYY*YSSSSWCWCLFLF",
    ),
    15: ("Blepharisma Macronuclear", "KNKNTTTTRSRSIIMIQHQHPPPPRRRRLLLLEDEDAAAAGGGGVVVV*YQYSSSS*CWCLFLF"),
    16: ("Chlorophycean Mitochondrial", "KNKNTTTTRSRSIIMIQHQHPPPPRRRRLLLLEDEDAAAAGGGGVVVV*YLYSSSS*CWCLFLF"),
    21: ("Trematode Mitochondrial", "NNKNTTTTSSSSMIMIQHQHPPPPRRRRLLLLEDEDAAAAGGGGVVVV*Y*YSSSSWCWCLFLF"),
    22: (
        "Scenedesmus obliquus Mitochondrial",
        "KNKNTTTTRSRSIIMIQHQHPPPPRRRRLLLLEDEDAAAAGGGGVVVV*YLY*SSS*CWCLFLF",
    ),
    23: (
        "Thraustochytrium Mitochondrial",
        "KNKNTTTTRSRSIIMIQHQHPPPPRRRRLLLLEDEDAAAAGGGGVVVV*Y*YSSSS*CWC*FLF",
    ),
    24: ("Pterobranchia Mitochondrial", "KNKNTTTTSSKSIIMIQHQHPPPPRRRRLLLLEDEDAAAAGGGGVVVV*Y*YSSSSWCWCLFLF"),
    25: ("Candidate Division SR1", "KNKNTTTTRSRSIIMIQHQHPPPPRRRRLLLLEDEDAAAAGGGGVVVV*Y*YSSSSGCWCLFLF"),
    26: (
        "Pachysolen tannophilus Nuclear",
        "KNKNTTTTRSRSIIMIQHQHPPPPRRRRLLALEDEDAAAAGGGGVVVV*Y*YSSSS*CWCLFLF",
    ),
    27: ("Karyorelict Nuclear", "KNKNTTTTRSRSIIMIQHQHPPPPRRRRLLLLEDEDAAAAGGGGVVVVQYQYSSSSWCWCLFLF"),
    28: ("Condylostoma Nuclear", "KNKNTTTTRSRSIIMIQHQHPPPPRRRRLLLLEDEDAAAAGGGGVVVVQYQYSSSSWCWCLFLF"),
    29: ("Mesodinium Nuclear", "KNKNTTTTRSRSIIMIQHQHPPPPRRRRLLLLEDEDAAAAGGGGVVVVYYYYSSSS*CWCLFLF"),
    30: ("Peritrich Nuclear", "KNKNTTTTRSRSIIMIQHQHPPPPRRRRLLLLEDEDAAAAGGGGVVVVEYEYSSSS*CWCLFLF"),
    31: ("Blastocrithidia Nuclear", "KNKNTTTTRSRSIIMIQHQHPPPPRRRRLLLLEDEDAAAAGGGGVVVVEYEYSSSSWCWCLFLF"),
    32: ("Balanophoraceae Plastid", "KNKNTTTTRSRSIIMIQHQHPPPPRRRRLLLLEDEDAAAAGGGGVVVV*YWYSSSS*CWCLFLF"),
    33: ("Cephalodiscidae Mitochondrial", "KNKNTTTTSSKSIIMIQHQHPPPPRRRRLLLLEDEDAAAAGGGGVVVVYY*YSSSSWCWCLFLF"),
}


@dataclass(frozen=True)
class GeneticCode:
    """A genetic code: `amino_acids[i]` is what CODONS[i] stands for, `*` for a stop."""

    number: int
    name: str
    amino_acids: str

    @property
    def sense_codons(self) -> tuple[str, ...]:
        """The codons that stand for an amino acid, in alphabetical order."""
        return tuple(codon for codon, amino in zip(CODONS, self.amino_acids) if amino != "*")

    @property
    def stop_codons(self) -> tuple[str, ...]:
        return tuple(codon for codon, amino in zip(CODONS, self.amino_acids) if amino == "*")

    def translate(self, codon: str) -> str:
        """The amino acid (or `*`) of an unambiguous codon."""
        return self.amino_acids[CODONS.index(codon.upper().replace("U", "T"))]


def genetic_code(number: int) -> GeneticCode:
    """NCBI's genetic code of that number; InputError when there is none."""
    if number not in _CODES:
        known = ", ".join(str(code) for code in _CODES)
        raise InputError(f"there is no genetic code {number!r}", hint=f"Use one of NCBI's numbers: {known}.")
    return GeneticCode(number, *_CODES[number])


def genetic_code_numbers() -> tuple[int, ...]:
    """The numbers of all known genetic codes."""
    return tuple(_CODES)
