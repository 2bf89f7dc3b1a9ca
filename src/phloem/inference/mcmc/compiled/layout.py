"""Where messages lie in the one long array of a chain.

First the columns of every character code (the tips' own partials), then one column of ones (the second factor
of a tip), then two buffers of n_codes columns for each tip, then two buffers of P columns for each internal
node.
"""

from __future__ import annotations

from phloem.inference.mcmc.compiled.compile import compiled


@compiled
def message_at(n_tips, n_patterns, n_codes, width, node, slot):
    """Start of the message of a node in one of its two buffers."""
    if node < n_tips:
        return width * (n_codes + 1 + (2 * node + slot) * n_codes)
    return width * (n_codes + 1 + 2 * n_tips * n_codes + (2 * (node - n_tips) + slot) * n_patterns)


@compiled
def class_row(n_tips, node, slot):
    """Row of class_of that numbers the columns of a node."""
    return node if node < n_tips else n_tips + 2 * (node - n_tips) + slot
