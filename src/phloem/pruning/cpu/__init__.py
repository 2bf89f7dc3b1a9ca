"""The CPU engine, in Numba."""
