from __future__ import annotations

import pytest

from phloem.errors import InputError, ModelError, in_file


def test_the_column_of_a_model_error_is_not_a_line_of_a_file():
    assert str(ModelError("unknown model", column=3)).startswith("model string, column 3: ")
    assert str(InputError("odd", file="a.fa", line=2, column=3)).startswith("a.fa:2:3: ")


def test_a_file_is_added_where_none_is_named():
    with pytest.raises(InputError, match=r"^a\.nwk: odd \(taxon 'odd'\) \(site 2\)$"), in_file("a.nwk"):
        raise InputError("odd", taxon="odd", site=2)
    with pytest.raises(InputError, match=r"^b\.fa: odd \(site 2\)$"), in_file("a.nwk"):
        raise InputError("odd", file="b.fa", site=2)
    with pytest.raises(InputError, match=r"^odd$"), in_file("a.nwk"):
        raise InputError("odd")
