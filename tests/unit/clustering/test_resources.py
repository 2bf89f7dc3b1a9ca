"""The forecast of memory, and the refusal."""

from __future__ import annotations

import numpy as np
import pytest

from phloem.clustering import settings
from phloem.clustering.settings import forecast_bytes, require_memory_for_distances
from phloem.errors import InputError


def test_forecast_is_of_triangles_and_squares():
    square = forecast_bytes(20_000, "nj", "float32")
    assert square == pytest.approx(1.6e9, rel=0.02)
    assert forecast_bytes(20_000, "upgma", "float32") == pytest.approx(0.8e9, rel=0.04)
    assert forecast_bytes(20_000, "upgma", "float64") == 2 * forecast_bytes(20_000, "upgma", "float32")
    assert forecast_bytes(20_000, "bionj", "float32") == pytest.approx(2 * square, rel=0.02)
    assert forecast_bytes(20_000, "single", "float32", cophenetic=True) == pytest.approx(1.6e9, rel=0.02)
    assert forecast_bytes(20_000, None, "float32", cophenetic=True) == square


def with_free(monkeypatch, free):
    monkeypatch.setattr(settings, "available_bytes", lambda: free)


def test_refusal_has_numbers_and_a_remedy(monkeypatch):
    need = forecast_bytes(100_000, "upgma", "float64")
    with_free(monkeypatch, need - 1)
    with pytest.raises(
        InputError, match=r"100,000 taxa need 40\.2 GB .* float64, 40\.2 GB are there"
    ) as found:
        require_memory_for_distances(100_000, "upgma", "float64", "m.phy")
    assert "--precision float32" in found.value.hint and found.value.file == "m.phy"
    require_memory_for_distances(100_000, "upgma", "float32", "m.phy")
    with pytest.raises(InputError, match="need 80") as found:
        require_memory_for_distances(100_000, "wpgma", "float64", "m.phy", cophenetic=True)
    assert "cophenetic" in found.value.hint
    for free in (need, None):
        with_free(monkeypatch, free)
        require_memory_for_distances(100_000, "upgma", "float64", "m.phy")


@pytest.mark.parametrize("n", [1000, 3000])
def test_forecast_covers_what_linkage_takes(n):
    """The peak that NumPy allocates while taxa are clustered from a triangle of their own."""
    import tracemalloc

    from phloem.clustering.linkage import linkage
    from phloem.data.distance_matrix import DistanceTriangle, new_entries

    def clustered(n: int) -> int:
        rng = np.random.default_rng(0)
        entries = new_entries(n, "float32")
        for i in range(n):
            entries[i * (i - 1) // 2 : i * (i + 1) // 2] = rng.random(i, dtype=np.float32)
        linkage(DistanceTriangle(tuple(map(str, range(n))), entries), overwrite=True)
        return entries.nbytes

    clustered(n)  # what compiling takes is none of the forecast's business
    tracemalloc.start()
    taken = clustered(n)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert taken < peak < forecast_bytes(n, "upgma", "float32") + n * 400
