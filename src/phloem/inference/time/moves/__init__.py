"""Moves of dated trees, one a file: each defines MOVE (phloem.inference.time.move_table.Move)."""
