"""The sampler of dated trees, compiled."""
