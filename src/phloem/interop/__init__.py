"""The likelihood as a differentiable function of other libraries (PyTorch, JAX), loaded on first use."""
