"""Dated trees, sampled: Hamiltonian dynamics of dates and numbers, and moves of the topology."""
