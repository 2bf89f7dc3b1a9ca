"""The GPU joins the table where there is one, or in Triton's interpreter where PHLOEM_TEST_GPU=1."""

from __future__ import annotations

import pytest

from gpu.conftest import REASON, lean_interpreter  # noqa: F401  (a fixture)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/conformance" in item.path.as_posix() and "[gpu" in item.name:
            item.add_marker(pytest.mark.gpu)
            if REASON is not None:
                item.add_marker(pytest.mark.skip(reason=REASON))
