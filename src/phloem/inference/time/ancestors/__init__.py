"""The likelihood of a tree together with sequences of its ancestors, which are sampled in place of summed."""
