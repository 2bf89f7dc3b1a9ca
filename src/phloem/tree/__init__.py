"""Shape and time of trees as flat arrays."""
