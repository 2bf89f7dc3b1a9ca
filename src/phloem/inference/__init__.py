"""Optimisers and samplers."""
