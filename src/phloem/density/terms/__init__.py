"""Densities that make up a target: a family a file, its NumPy form beside the plain form that is compiled."""
