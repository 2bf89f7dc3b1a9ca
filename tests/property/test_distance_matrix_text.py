"""No text, however damaged, raises anything but the package's errors; what is read is a distance matrix."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from phloem.errors import PhloemError
from phloem.io.distance_matrix import is_distance_matrix, read_distance_matrix

GOOD = (
    b"3\na 0 1 2\nb 1 0 3\nc 2 3 0\n",
    b"4\na\nb 1\nc 2 3\nd 1 2 3\n",
    b",a,b\na,0,1\nb,1,0\n",
    b'\ta\t"b c"\na\t0\t1\n"b c"\t1\t0\n',
    b"2\r\na 0 1\r\nb 1 0\r\n",
)
EDITS = st.lists(
    st.tuples(
        st.integers(0, 60), st.integers(0, 3), st.sampled_from(list(b'0123456789.,;\t\r\n -+eE"ab\x00\xff'))
    ),
    max_size=6,
)


def damaged(text, edits):
    bytes_ = bytearray(text)
    for place, cut, new in edits:
        place = min(place, len(bytes_))
        bytes_[place : place + cut] = bytes([new])
    return bytes(bytes_)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(GOOD), EDITS, st.sampled_from([".phy", ".csv", ".tsv", ".npy"]))
def test_damaged_matrices_are_read_or_refused(tmp_path, text, edits, ending):
    file = tmp_path / f"m{ending}"
    file.write_bytes(damaged(text, edits))
    try:
        is_distance_matrix(file)
        values = read_distance_matrix(file).values
    except PhloemError as error:
        assert str(error)
        return
    assert np.array_equal(values, values.T) and np.all(values >= 0) and np.all(np.isfinite(values))
    assert np.all(np.diag(values) == 0)
