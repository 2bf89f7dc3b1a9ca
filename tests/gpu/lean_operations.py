"""Operators, indices and loads of Triton's interpreter without its dozen calls each.

How one is done for operands of some types is found out once: the interpreter does it, and NumPy by itself
with what is known of the types. Where both agree to the last bit, NumPy does it from then on.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

OPERATORS = {
    "__add__": np.add, "__sub__": np.subtract, "__mul__": np.multiply, "__truediv__": np.divide,
    "__and__": np.bitwise_and, "__or__": np.bitwise_or, "__lt__": np.less, "__le__": np.less_equal,
    "__gt__": np.greater, "__ge__": np.greater_equal, "__eq__": np.equal, "__ne__": np.not_equal,
    "__radd__": lambda a, b: b + a, "__rsub__": lambda a, b: b - a, "__rmul__": lambda a, b: b * a,
}  # fmt: skip
LOGICAL = ("__and__", "__or__")
SIGNED = ("int1", "int8", "int16", "int32", "int64", "float32", "float64")
UNKNOWN = object()


class Quick:
    """Makes, of what the interpreter calls, what is called in its place; `kept` are types that are known by
    their numbers, which others would get."""

    def __init__(self, core, interpreter) -> None:
        self.core, self.interpreter = core, interpreter
        self.signed = {id(getattr(core, one)) for one in SIGNED}
        self.kept: list = []

    def instead(self, name: str, slow: Callable) -> Callable | None:
        if name in OPERATORS:
            return self.operator(name, slow)
        return {"__getitem__": self.index, "load": self.load}.get(name, lambda slow: None)(slow)

    def maker(self) -> Callable:
        tensor, handle = self.core.tensor, self.interpreter.TensorHandle
        new = handle.__new__

        def make(data, element, kind):
            made = new(handle)
            made.data, made.dtype, made.attr = data, element, {}
            return tensor(made, kind)

        return make

    def operator(self, name: str, slow: Callable) -> Callable:
        """Of a block or number with another, or with a number of Python's."""
        tensor, constexpr = self.core.tensor, self.core.constexpr
        make, operation = self.maker(), OPERATORS[name]
        plans: dict[tuple, tuple | None] = {}

        def apply(left, right, plan):
            first, second, number, bytes_each, expected, element, kind = plan
            if first is not None:
                left = left.astype(first)
            if second is not None:
                right = right.astype(second)
            if bytes_each:
                right = bytes_each * right
            data = operation(left, right if number is None else number)
            return make(data, element, kind) if data.dtype is expected else None

        def known(block):  # what a comparison gives is int1, and its handle's type that of what was compared
            return id(block.type), id(block.handle.dtype)

        def quick(self_, other, **options):
            if type(other) is constexpr:
                other = other.value
            if type(other) is tensor:
                key, right = (*known(self_), *known(other)), other.handle.data
            elif type(other) is int or (type(other) is float and other):  # 0.0 is equal to -0.0
                key, right = (*known(self_), type(other), other), None
            else:
                return slow(self_, other, **options)
            plan = plans.get(key, UNKNOWN)
            if plan is None:
                return slow(self_, other, **options)
            if plan is not UNKNOWN:  # numbers of a type may be of a larger one of NumPy's
                found = apply(self_.handle.data, right, plan)
                return slow(self_, other, **options) if found is None else found
            wanted = slow(self_, other, **options)
            plan = self.plan(name, self_, other, wanted)
            found = None if plan is None else apply(self_.handle.data, right, plan)
            agree = found is not None and _agree(found.handle.data, wanted.handle.data)
            plans[key] = plan if agree else None
            self.kept += [
                one for x in (self_, other) if type(x) is tensor for one in (x.type, x.handle.dtype)
            ]
            return wanted

        return quick

    def plan(self, name: str, left, right, wanted) -> tuple | None:
        """To which types operands are cast, the number or bytes of a pointer's element, and what comes of it;
        None: the interpreter has to do it."""
        number = type(right) is not self.core.tensor
        made = np.asarray(wanted.handle.data).dtype, wanted.handle.dtype, wanted.type
        if not number and id(right.dtype) not in self.signed:
            return None
        if name == "__add__" and left.dtype.is_ptr():
            bytes_each = max(1, left.handle.get_element_ty().primitive_bitwidth // 8)
            if number:
                return None, None, np.array([bytes_each * right]).astype(np.uint64), 0, *made
            return None, np.uint64, None, bytes_each, *made
        if id(left.dtype) not in self.signed:
            return None
        checked = self.interpreter.interpreter_semantic.binary_op_type_checking_impl
        pair = checked(left, right, *((False, False, True, True) if name == "__truediv__" else ()))
        one, other = (x.handle.data for x in pair)
        if one.dtype != other.dtype or (one.dtype == bool and name not in LOGICAL):
            return None
        first = None if left.handle.data.dtype == one.dtype else one.dtype
        if number:
            return first, None, other.ravel()[:1].copy(), 0, *made
        return first, None if right.handle.data.dtype == one.dtype else one.dtype, None, 0, *made

    def index(self, slow: Callable) -> Callable:
        """Of new axes of length one among whole ones."""
        make, plans, whole = self.maker(), dict[tuple, tuple | None](), slice(None)

        def quick(block, slices, **options):
            if type(slices) is not tuple or any(s is not None and s != whole for s in slices):
                return slow(block, slices, **options)
            key = id(block.type), id(block.handle.dtype), *[s is None for s in slices]
            if key not in plans:
                wanted = slow(block, slices, **options)
                agree = block.type.is_block() and _agree(block.handle.data[slices], wanted.handle.data)
                plans[key] = (wanted.handle.dtype, wanted.type) if agree else None
                self.kept += [block.type, block.handle.dtype]
            plan = plans[key]
            if plan is None:
                return slow(block, slices, **options)
            return make(block.handle.data[slices], *plan)

        return quick

    def load(self, slow: Callable) -> Callable:
        """Of a block or a number, of which a mask may leave out some."""
        tensor, make, fetch = self.core.tensor, self.maker(), self.interpreter._interpreter.load
        plans: dict[tuple, tuple | None] = {}
        filled: dict[tuple, np.ndarray] = {}

        def full(shape, value, kind):
            key = shape, repr(value), kind
            if key not in filled:
                filled[key] = np.full(shape, value, kind)
            return filled[key]

        def apply(pointer, mask, other, plan):
            shape, kind, element, made = plan
            place = pointer.handle.data
            shape = place.shape if shape is None else shape

            def fitting(data):
                return data if data.shape == shape else np.broadcast_to(data, shape)

            chosen = full(shape, True, bool) if mask is None else fitting(mask.handle.data)
            if type(other) is tensor:
                rest = fitting(other.handle.data.astype(kind, copy=False))
            else:
                rest = full(shape, other or 0, kind)
            return make(fetch(fitting(place), chosen, rest, kind), element, made)

        def quick(pointer, mask=None, other=None, **options):
            masked, rest = type(mask) is tensor, type(other) is tensor
            known = (mask is None or masked) and (rest or other is None or type(other) in (int, float))
            if options or not known:
                return slow(pointer, mask, other, **options)
            key = id(pointer.type), masked and id(mask.type), id(other.type) if rest else repr(other)
            plan = plans.get(key, UNKNOWN)
            if plan is None:
                return slow(pointer, mask, other)
            if plan is not UNKNOWN:
                return apply(pointer, mask, other, plan)
            wanted = slow(pointer, mask, other)
            found = wanted.handle.data
            shape = found.shape if wanted.type.is_block() else None
            plan = shape, found.dtype, wanted.handle.dtype, wanted.type
            agree = wanted.dtype is not self.core.int1 and _agree(
                apply(pointer, mask, other, plan).handle.data, found
            )
            plans[key] = plan if agree else None
            self.kept.append((pointer.type, getattr(mask, "type", None), getattr(other, "type", None)))
            return wanted

        return quick


def _agree(found, wanted) -> bool:
    found = np.asarray(found)
    return (found.shape, found.dtype) == (wanted.shape, wanted.dtype) and found.tobytes() == wanted.tobytes()
