"""Triton's interpreter without the work whose result it throws away, a quarter of these tests' time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace


def drop_discarded_work() -> None:
    """For Triton 3.9, whose insides this is about; another version stays as it is."""
    import triton

    if triton.__version__.startswith("3.9."):
        from triton.runtime import interpreter

        _leave_out_unchecked_overflows(interpreter)
        _prepare_a_module_once_a_launch(interpreter)


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
