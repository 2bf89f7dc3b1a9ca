"""The pruning recursion and its gradient: one interface; reference, CPU and GPU engines."""
