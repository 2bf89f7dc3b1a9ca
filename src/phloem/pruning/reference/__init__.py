"""The specification, in NumPy."""
