"""Dates of nodes and the rate, from branch lengths and sampling dates."""
