"""Triton's interpreter without needless work: these tests take half the time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from inspect import getmembers

import numpy as np

from gpu.lean_operations import Quick


@cache  # two folders of tests ask for it, and what is replaced must not be replaced again
def make_lean() -> None:
    """For Triton 3.9, whose insides this is about; another version stays as it is."""
    import triton

    if triton.__version__.startswith("3.9."):
        from triton.language import core, semantic
        from triton.runtime import interpreter

        _know_types_again(core, interpreter)
        _leave_equal_shapes_alone(core, semantic)
        _leave_out_unchecked_overflows(interpreter)
        _prepare_a_module_once_a_launch(interpreter)
        _call_built_ins_at_once(core, interpreter)
        _know_operands_again(core, semantic)
        _make_handles_at_once(interpreter)
        interpreter.ReduceOps.generic_reduce = _reduce_by_halves


def _know_types_again(core, interpreter) -> None:
    """A type of blocks is made once, and what follows from it; the interpreter makes several an operation."""
    block, make_block = core.block_type, core.block_type.__init__
    unwrap, numpy_type = core._unwrap_if_constexpr, interpreter._get_np_dtype
    blocks: dict[tuple, object] = {}
    plain = (int, float, bool, str, type(None), core.tensor, core.dtype)

    def new_block(kind, element, shape):
        sizes = tuple(x.value if type(x) is core.constexpr else x for x in shape)
        key = id(element), sizes  # the block that is kept keeps its element, and so the number
        if key not in blocks:
            made = object.__new__(kind)
            make_block(made, element, list(sizes))
            made.lean = core.tuple([core.constexpr(x) for x in sizes]), core.constexpr(made.numel)
            blocks[key] = made
        return blocks[key]

    scalar = core.tuple([]), core.constexpr(1)

    def make_tensor(self, handle, kind):
        self.handle, self.type, self.dtype = handle, kind, kind.scalar
        self.shape, self.numel = kind.lean if kind.is_block() else scalar

    def lean_unwrap(x):
        if type(x) is core.constexpr:
            return x.value
        return x if type(x) in plain else unwrap(x)

    def lean_numpy_type(kind):
        if not hasattr(kind, "lean_numpy"):
            kind.lean_numpy = numpy_type(kind)
        return kind.lean_numpy

    pointer, make_pointer = core.pointer_type, core.pointer_type.__init__
    pointers: dict[tuple, object] = {}

    def new_pointer(kind, element_ty, address_space="global", const=False):
        element = lean_unwrap(element_ty)
        key = id(element), address_space, const
        if key not in pointers:
            pointers[key] = object.__new__(kind)
            make_pointer(pointers[key], element, address_space, const)
        return pointers[key]

    block.__new__, block.__init__ = new_block, lambda self, element, shape: None
    pointer.__new__, pointer.__init__ = new_pointer, lambda self, *arguments, **options: None
    core.tensor.__init__ = make_tensor
    core._unwrap_if_constexpr = lean_unwrap
    interpreter._get_np_dtype = lean_numpy_type


def _leave_equal_shapes_alone(core, semantic) -> None:
    """Operands of equal shapes need no broadcast, a number beside a block is repeated at once, and operands
    of the right type need no cast."""
    broadcast, cast = semantic.TritonSemantic.broadcast_impl_value, semantic.TritonSemantic.cast

    def lean_broadcast(self, left, right):
        a, b = left.type, right.type
        if not (a.is_block() or b.is_block()):
            return left, right
        if not b.is_block():
            return left, repeated(self, right, a.shape)
        if not a.is_block():
            return repeated(self, left, b.shape), right
        return (left, right) if a.shape.values == b.shape.values else broadcast(self, left, right)

    def repeated(self, number, shape):
        kind = core.block_type(number.type.scalar, shape)
        return self.make_tensor(self.builder.create_splat(kind, number.handle), kind)

    def lean_cast(self, value, kind, *more, **options):
        if value.dtype is kind and not more and not options:
            return value
        return cast(self, value, kind, *more, **options)

    semantic.TritonSemantic.broadcast_impl_value = lean_broadcast
    semantic.TritonSemantic.cast = lean_cast


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


def _call_built_ins_at_once(core, interpreter) -> None:
    """A built-in function is called without copies of its arguments or a look whether a kernel calls it.
    Which ones there are is looked up once, and not every launch."""
    patch, checks = interpreter._patch_attr, core.builtin(lambda: None).__code__
    quick, semantic = Quick(core, interpreter), interpreter.interpreter_semantic
    made: dict[int, Callable] = {}
    members: dict[int, list] = {}

    def lean_patch_all(place, builder, scope):
        if id(place) not in members:
            members[id(place)] = [(name, one) for name, one in getmembers(place) if core.is_builtin(one)]
        for name, one in members[id(place)]:
            if getattr(place, name) is one:
                interpreter._patch_attr(place, name, one, builder, scope)

    def lean_patch(place, name, member, builder, scope):
        if getattr(member, "__code__", None) is not checks:
            return patch(place, name, member, builder, scope)
        if id(member) not in made:
            made[id(member)] = lean_call(name, member)
        return scope.set_attr(place, name, made[id(member)])

    def lean_call(name, member):
        function = member.__wrapped__

        def called(*arguments, **options):
            options["_semantic"] = semantic
            return function(*arguments, **options)

        of_tensors = member is getattr(core.tensor, name, None) or member is core.load
        return (of_tensors and quick.instead(name, called)) or called

    interpreter._patch_attr, interpreter._patch_builtin = lean_patch, lean_patch_all


def _know_operands_again(core, semantic) -> None:
    """Two operands of one plain type stay as they are, and a number beside a block becomes a block once; a
    pointer's offset needs no type of its own."""
    checked = semantic.TritonSemantic.binary_op_type_checking_impl
    names = ("int1", "int8", "int16", "int32", "int64", "uint8", "uint32", "uint64", "float32", "float64")
    plain, tensor = {id(getattr(core, name)) for name in names}, core.tensor
    known: dict[tuple, tuple] = {}

    def both(self, lhs, rhs, more, options):
        one, other = lhs.dtype, rhs.dtype
        if lhs.type is rhs.type and id(one) in plain:
            return lhs, rhs
        offset = type(one) is core.pointer_type and more[:1] == (True,) and other.is_int()
        if offset or (one is other and id(one) in plain):
            return self.broadcast_impl_value(lhs, rhs)
        return checked(self, lhs, rhs, *more, **options)

    def lean_checked(self, lhs, rhs, *more, **options):
        if type(lhs) is tensor:
            kind, number, first = lhs.type, rhs, False
            if type(rhs) is tensor:
                return both(self, lhs, rhs, more, options)
        elif type(rhs) is tensor:
            kind, number, first = rhs.type, lhs, True
        else:
            return checked(self, lhs, rhs, *more, **options)
        key = type(number), number, id(kind), first, more, *options.items()
        if key not in known:
            found = checked(self, lhs, rhs, *more, **options)
            same = (rhs if first else lhs) is found[first]
            if not (same and number):  # 0.0 is equal to -0.0
                return found
            known[key] = found[not first], kind  # which is kept, and so its number
        block = known[key][0]
        return (block, rhs) if first else (lhs, block)

    semantic.TritonSemantic.binary_op_type_checking_impl = lean_checked


def _make_handles_at_once(interpreter) -> None:
    """What is known to fit its type is not looked at again, and a block of one number is filled."""
    handle, builder = interpreter.TensorHandle, interpreter.InterpreterBuilder
    checked, slow, fits = handle.__post_init__, builder.binary_op, dict[tuple, object]()
    boolean, new = np.dtype(bool), handle.__new__

    def lean_check(self):
        key = self.data.itemsize, id(self.dtype)
        if key not in fits:
            checked(self)
            fits[key] = self.dtype  # which is kept, and so its number

    def lean_binary(self, lhs, rhs, operation):
        a, b = lhs.data, rhs.data
        if a.dtype is boolean or a.dtype is not b.dtype:
            return slow(self, lhs, rhs, operation)
        made = new(handle)
        made.data, made.dtype, made.attr = operation(a, b), lhs.dtype.scalar, {}
        return made if made.data.itemsize <= a.itemsize else slow(self, lhs, rhs, operation)

    def lean_splat(self, kind, value):
        data = np.empty(kind.shape, interpreter._get_np_dtype(value.dtype))
        data[...] = value.data.ravel()[0]
        return handle(data, value.dtype.scalar)

    handle.__post_init__, builder.binary_op, builder.create_splat = lean_check, lean_binary, lean_splat


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
