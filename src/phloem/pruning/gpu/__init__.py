"""The GPU engine, in Triton."""
