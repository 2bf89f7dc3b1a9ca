"""Figures from records; computes nothing."""
