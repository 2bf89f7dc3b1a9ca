"""Prior densities inside compiled loops."""
