"""NumPy kernels: the specification, with the formula and its source in each docstring."""
