"""GPU kernels in Triton."""

from phloem.hardware.triton_compile import announce_cache_misses

announce_cache_misses()
