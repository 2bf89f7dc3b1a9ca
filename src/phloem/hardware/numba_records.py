"""Records of many arrays handed to compiled functions by reference.

Numba passes a named tuple by value: each of its arrays is seven or more words, a record of records several
hundred, which every call copies and every function that takes it has as variables of its own. Merging
functions into one avoids the copies but makes one function of thousands of variables, and compilers take more
than proportionally long over such a one. A reference is one word, and a field is read where it is used.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.core.imputils import lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import intrinsic, register_model


class Reference(types.Type):  # type: ignore[misc]
    """To a named tuple, whose fields it has; of a field that is itself one, a reference."""

    def __init__(self, record: types.NamedTuple) -> None:
        self.record = record
        super().__init__(f"Reference({record})")


register_model(Reference)(models.OpaqueModel)


@infer_getattr
class _Fields(AttributeTemplate):  # type: ignore[misc]
    key = Reference

    def generic_resolve(self, reference: Reference, name: str) -> Any:  # type: ignore[override]
        if name not in reference.record.fields:
            return None
        kind = reference.record[reference.record.fields.index(name)]
        return Reference(kind) if isinstance(kind, types.NamedTuple) else kind


@lower_getattr_generic(Reference)
def _field(context: Any, builder: Any, reference: Reference, value: Any, name: str) -> Any:
    index = reference.record.fields.index(name)
    place = cgutils.gep_inbounds(builder, _pointer(context, builder, reference.record, value), 0, index)
    if isinstance(reference.record[index], types.NamedTuple):
        return builder.bitcast(place, cgutils.voidptr_t)
    field = builder.load(place)
    # nothing writes into a record, so a field that a loop reads needs to be read once
    field.set_metadata("invariant.load", builder.module.add_metadata([]))
    return field


def _pointer(context: Any, builder: Any, record: Any, value: Any) -> Any:
    return builder.bitcast(value, context.get_value_type(record).as_pointer())


def read_whole(context: Any, builder: Any, reference: Reference, value: Any) -> Any:
    """The named tuple that is referred to."""
    return builder.load(_pointer(context, builder, reference.record, value))


@intrinsic
def by_reference(typing_context: Any, record: Any) -> Any:
    """A reference to a named tuple, which is good until the function that asks for it returns."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        place = cgutils.alloca_once_value(builder, values[0])
        opaque = builder.bitcast(place, cgutils.voidptr_t)
        # the record is written before a field is read, also where all of that becomes one function
        kind = ir.FunctionType(cgutils.voidptr_t, (cgutils.voidptr_t,))
        return builder.asm(kind, "", "=r,0,~{memory}", (opaque,), side_effect=True)

    return Reference(record)(record), generate
