"""Matrix products on padded matrices, by a register tile.

A tile of 6 rows by up to 4 vectors stays in registers while it runs along the inner dimension: with 32
registers of 64 bytes that is 24 accumulators, 10 loads for 24 multiply-adds, about 90% of the machine's
peak for S = 61. (The scheme is Goto and van de Geijn 2008, ACM TOMS 34:12, without packing: our operands
are small and contiguous.)
"""

from __future__ import annotations

from llvmlite import binding, ir
from numba.core import cgutils, config, types
from numba.extending import intrinsic

from phloem.hardware.numba_compile import uncounted
from phloem.pruning.cpu.lanes import element_pointer, load_vector, splat, store_vector, vector_function
from phloem.pruning.cpu.records import Operand

ROWS = 6


def _has_avx512() -> bool:
    """Of the processor that Numba compiles for: this one's, or what its settings restrict it to."""
    restricted: str | None = getattr(config, "CPU_FEATURES", None)
    if restricted is not None:
        return "+avx512f" in restricted
    return bool(binding.get_host_cpu_features().get("avx512f", False))


WIDE = _has_avx512()
VECTOR_BYTES = 64 if WIDE else 32
MOST_VECTORS = 4 if WIDE else 2


def _tile(vectors: int):
    """An intrinsic: C[0:6, 0:vectors] (+)= A[0:6, 0:n] B[0:n, 0:vectors], widths counted in vectors."""

    @intrinsic
    def tile(typing_context, a, b, c, n, add):
        signature = types.void(a, b, c, types.int64, types.boolean)

        def generate(context, builder, signature, arguments):
            n, add = arguments[3:]
            operands = [cgutils.unpack_tuple(builder, operand, 4) for operand in arguments[:3]]
            a_start, b_start, c_start = (
                element_pointer(context, builder, kind.types[0], array, at)
                for kind, (array, at, _, _) in zip((a, b, c), operands)
            )
            (_, _, a_row, a_inner), (_, _, b_row, _), (_, _, c_row, _) = operands
            dtype = a.types[0].dtype
            scalar = context.get_value_type(dtype)
            lanes = VECTOR_BYTES // (dtype.bitwidth // 8)
            vector, i64 = ir.VectorType(scalar, lanes), ir.IntType(64)
            fma = vector_function(builder, "llvm.fma", vector, [vector] * 3)

            def c_pointer(row, column):
                offset = builder.add(builder.mul(c_row, i64(row)), i64(column * lanes))
                return builder.gep(c_start, [offset])

            cells = [(row, column) for row in range(ROWS) for column in range(vectors)]
            entry = builder.block
            load_old, loop, end = (builder.append_basic_block(name) for name in ("old", "loop", "end"))
            builder.cbranch(add, load_old, loop)
            builder.position_at_end(load_old)
            old = {cell: load_vector(builder, c_pointer(*cell), vector) for cell in cells}
            builder.branch(loop)
            builder.position_at_end(loop)
            k = builder.phi(i64)
            total = {cell: builder.phi(vector) for cell in cells}
            for value, start in [(k, {entry: i64(0), load_old: i64(0)})] + [
                (total[cell], {entry: ir.Constant(vector, None), load_old: old[cell]}) for cell in cells
            ]:
                for block, initial in start.items():
                    value.add_incoming(initial, block)
            b_line = builder.gep(b_start, [builder.mul(k, b_row)])
            row_of_b = [
                load_vector(builder, builder.gep(b_line, [i64(v * lanes)]), vector) for v in range(vectors)
            ]
            a_line = builder.gep(a_start, [builder.mul(k, a_inner)])
            updated = {}
            for row in range(ROWS):
                factor = builder.load(builder.gep(a_line, [builder.mul(a_row, i64(row))]))
                factor = splat(builder, factor, lanes)
                for v in range(vectors):
                    updated[row, v] = builder.call(fma, [factor, row_of_b[v], total[row, v]])
                    total[row, v].add_incoming(updated[row, v], loop)
            following = builder.add(k, i64(1))
            k.add_incoming(following, loop)
            builder.cbranch(builder.icmp_signed("<", following, n), loop, end)
            builder.position_at_end(end)
            for cell in cells:
                store_vector(builder, updated[cell], c_pointer(*cell))
            return context.get_dummy_value()

        return signature, generate

    return tile


_one, _two, _three, _four = (_tile(vectors) for vectors in (1, 2, 3, 4))


@uncounted
def product(a, b, c, rows, columns, n, add):
    """C = A B, or C += A B if add: C is rows × columns, the inner dimension is n ≥ 1.

    a, b, c: records.Operand of one float type, b and c with rows in one piece. columns: a multiple of a
    vector. Rows are done in sixes: up to 5 rows past the last are read from A and written to C, whose owner
    leaves room for them.
    """
    lanes = VECTOR_BYTES // a.array.itemsize
    column = 0
    while column < columns:
        vectors = min((columns - column) // lanes, MOST_VECTORS)
        right = Operand(b.array, b.at + column, b.row, 1)
        for row in range(0, rows, ROWS):
            left = Operand(a.array, a.at + row * a.row, a.row, a.inner)
            out = Operand(c.array, c.at + row * c.row + column, c.row, 1)
            if vectors == 4:
                _four(left, right, out, n, add)
            elif vectors == 3:
                _three(left, right, out, n, add)
            elif vectors == 2:
                _two(left, right, out, n, add)
            else:
                _one(left, right, out, n, add)
        column += vectors * lanes
