"""Kernels for CPUs, in Numba."""
