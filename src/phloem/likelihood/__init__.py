"""The tree likelihood: value, gradient, site values."""
