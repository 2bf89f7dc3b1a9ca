"""Distances, linkage and neighbour joining."""
