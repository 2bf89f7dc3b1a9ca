"""`phloem nj --midpoint` where joining leaves negative branches."""

from __future__ import annotations

import pytest

from phloem.analysis.distance import DistanceAnalysisSettings, run_distance_analysis
from phloem.errors import InputError

NEGATIVE = """4
a 0 0.1 0.3 0.3
b 0.1 0 0.9 0.9
c 0.3 0.9 0 0.1
d 0.3 0.9 0.1 0
"""


def test_negative_branches_have_no_midpoint(tmp_path):
    file = tmp_path / "m.phy"
    file.write_text(NEGATIVE)
    with pytest.raises(InputError, match="branches of the joined tree are negative") as error:
        run_distance_analysis(DistanceAnalysisSettings(str(file), "nj", midpoint=True))
    assert "--negative zero" in str(error.value)
    for negative in ("zero", "transfer"):
        settings = DistanceAnalysisSettings(str(file), "nj", midpoint=True, negative=negative)
        result = run_distance_analysis(settings)
        assert result.tree is not None and result.tree.rooted and (result.tree.lengths >= 0).all()
