"""Sequences of ancestors of alphabets larger than four: amino acids, codons."""
