"""Genomes as differences to one of them: trees of very many that are nearly equal."""
