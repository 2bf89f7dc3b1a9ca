"""GPU kernels in Triton."""

from phloem.kernels.triton.compilation import announce_cache_misses

announce_cache_misses()
