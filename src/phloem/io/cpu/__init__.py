"""Numbers parsed from bytes, in Numba."""
