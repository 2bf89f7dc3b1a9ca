"""The sampler's moves, one a file: each defines MOVE (phloem.inference.mcmc.move_table.Move)."""
