"""Triton's interpreter without needless work: these tests take half the time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np


def make_lean() -> None:
    """For Triton 3.9, whose insides this is about; another version stays as it is."""
    import triton

    if triton.__version__.startswith("3.9."):
        from triton.runtime import interpreter

        _leave_out_unchecked_overflows(interpreter)
        _prepare_a_module_once_a_launch(interpreter)
        interpreter.ReduceOps.generic_reduce = _reduce_by_halves


def _leave_out_unchecked_overflows(interpreter) -> None:
    """Every integer operation is repeated in 64 bits for an assertion, which only debug mode makes."""
    builder = interpreter.interpreter_builder
    if not builder.options.debug:
        builder.options = replace(builder.options, sanitize_overflow=False)


def _prepare_a_module_once_a_launch(interpreter) -> None:
    """Every call of a function inside a kernel looks through triton.language for operations to replace.

    They have been replaced in that module since the first call of the launch, and are put back at its end.
    """
    prepare: Callable = interpreter._patch_lang
    restore: Callable = interpreter._LangPatchScope.restore
    prepared: set[int] = set()

    def prepare_once(function):
        module = id(function.__globals__)
        if module in prepared:
            return interpreter._LangPatchScope()
        prepared.add(module)
        return prepare(function)

    def restore_all(scope):
        prepared.clear()
        restore(scope)

    interpreter._patch_lang = prepare_once
    interpreter._LangPatchScope.restore = restore_all


def _reduce_by_halves(self, tensors):
    """A reduction with a function of the kernel's own: halves are combined, as on a GPU.

    The interpreter's goes from number to number, thousands of calls where this makes eleven.
    """
    tensors, axis = self.unravel(tensors, self.axis)
    shape = tensors[0].handle.data.shape
    values = [np.moveaxis(x.handle.data, axis, 0) for x in tensors]
    while len(values[0]) > 1:
        half = len(values[0]) // 2
        first, second = (
            [self.to_tensor(np.ascontiguousarray(v[part]), x.dtype) for v, x in zip(values, tensors)]
            for part in (slice(None, half), slice(half, None))
        )
        found = self.combine_fn.fn(*first, *second)
        values = [x.handle.data for x in (found if isinstance(found, tuple) else (found,))]
    results = []
    for value, x in zip(values, tensors):
        kept = np.moveaxis(value, 0, axis)
        if self.axis is None:
            kept = kept.reshape([1] * len(shape)) if self.keep_dims else kept.item()
        elif not self.keep_dims:
            kept = kept.squeeze(axis)
        results.append(self.to_tensor(kept, x.dtype))
    return results
