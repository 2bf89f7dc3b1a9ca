"""GPU kernels in Triton."""

from phloem.hardware.gpu_device import announce_cache_misses

announce_cache_misses()
