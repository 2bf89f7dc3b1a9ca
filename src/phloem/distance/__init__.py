"""Trees from pairwise distances: distances, linkage, neighbour joining."""
