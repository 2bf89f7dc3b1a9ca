"""What is inferred: named blocks of numbers, and the density of their values."""
