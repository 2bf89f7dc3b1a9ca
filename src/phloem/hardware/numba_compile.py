"""The one door to Numba: every compiled function of phloem goes through `compiled`."""

from __future__ import annotations

import gc
import itertools
import os
import uuid
from collections.abc import Callable
from functools import cached_property
from hashlib import sha256
from typing import Any

import numba
from llvmlite import binding
from numba.core import cgutils, event, types
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, compile_result
from numba.core.compiler_lock import global_compiler_lock
from numba.core.datamodel import models
from numba.core.errors import LoweringError
from numba.core.imputils import lower_constant
from numba.core.registry import CPUDispatcher
from numba.extending import intrinsic, register_model, typeof_impl

from phloem.hardware.notice import compilation_begins
from phloem.hardware.numba_answers import remember_answers
from phloem.hardware.numba_cache import cache_on_disk
from phloem.hardware.numba_records import Reference, read_whole

_functions: list[Any] = []


def _number_symbols_from_anew() -> None:
    """Numba names machine code by a function's name and a number, counted from 1 in every process. Functions
    that one function makes share a name; where code from the cache meets code just compiled, two of them may
    have the same number as well, and LLVM, told that equal names are equal code, keeps one for both: a prior
    of another family. Numbers that begin anywhere among 2**64 do not meet."""
    FunctionIdentity._unique_ids = itertools.count(uuid.uuid4().int >> 64)


remember_answers()
_number_symbols_from_anew()
os.register_at_fork(after_in_child=_number_symbols_from_anew)


def compiled(function: Callable | None = None, **options: Any) -> Any:
    """Compile on first use, cached on disk, without the GIL; options as in numba.njit (e.g. fastmath)."""
    if function is None:
        return lambda f: compiled(f, **options)
    settings: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"} | options
    dispatcher = _ForPython(function, settings)
    _functions.append(dispatcher)
    return dispatcher


class _Code(JITCodeLibrary):
    """Optimised once, when everything that it calls is there, and not function by function before that."""

    def _optimize_functions(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout

    def finalize(self) -> None:
        self._raise_if_finalized()
        for bitcode in self._called().values():
            self._final_module.link_in(binding.parse_bitcode(bitcode))
        super().finalize()

    def _called(self) -> dict[bytes, bytes]:
        """Everything that is called from here, as _pieces has it; what it asks of a process is asked here."""
        found = dict[bytes, bytes]()
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._dynamic_globals += library._dynamic_globals
            found |= _pieces(library)
        self._linking_libraries.clear()
        return found


def _pieces(library: Any) -> dict[bytes, bytes]:
    """The code of a library and of all that it calls, function by function: LLVM's bitcode by its digest."""
    if not hasattr(library, "pieces"):
        bitcode = library._get_module_for_linking().as_bitcode()
        library.pieces = {sha256(bitcode).digest(): bitcode}
    return library.pieces


class _Compiler(Compiler):  # type: ignore[misc]
    """Numba's, with code as above."""

    library = _Code

    def __init__(self, typing: Any, target: Any, library: None, *rest: Any) -> None:
        super().__init__(typing, target, self.library(target.codegen(), "code"), *rest)
        self.state.library.enable_object_caching()


class _Dispatcher(CPUDispatcher):
    """Numba's, whose place on disk is looked for when something is first compiled, not when it is defined."""

    suffix = ""
    compiler: type[Compiler] = _Compiler

    def __init__(self, function: Callable, settings: dict[str, Any]):
        options = {"nopython": True, "no_cfunc_wrapper": True, **settings}
        self._place = self.suffix if options.pop("cache") else None
        super().__init__(function, targetoptions=options, pipeline_class=self.compiler)

    def compile(self, sig: Any) -> Any:
        with global_compiler_lock:  # else a second thread finds the place taken, and compiles what lies there
            place, self._place = self._place, None
            if place is not None:
                cache_on_disk(self, place)
        return super().compile(sig)


class _ForPython(_Dispatcher):
    """What Python calls. Compiled callers of the same function are given `inside`, which lacks the code that
    takes Python's arguments apart: for records of many arrays that is a quarter of the time to compile, and
    most functions are never called from Python. One that both call is compiled twice."""

    def __init__(self, function: Callable, settings: dict[str, Any]):
        super().__init__(function, settings)
        self.settings = settings

    @cached_property
    def inside(self) -> Any:
        dispatcher = _ForCompiled(self.py_func, {**self.settings, "no_cpython_wrapper": True})
        _functions.append(dispatcher)
        return dispatcher

    @cached_property
    def pointed(self) -> Any:
        """What is called by its address."""
        dispatcher = _ForPointers(self.py_func, {**self.settings, "no_cpython_wrapper": True})
        _functions.append(dispatcher)
        return dispatcher

    @property
    def _numba_type_(self) -> Any:
        return _PartType(self.inside)


class _ForPointers(_Dispatcher):
    suffix = ".pointed"


class _PartType(types.Dispatcher):  # type: ignore[misc]
    """Numba's, but that code which names such a function does not hold its address in this process."""


def _nothing(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    return context.get_dummy_value()


register_model(_PartType)(models.OpaqueModel)
lower_constant(_PartType)(_nothing)


class _Part(_Code):
    """Code that only compiled code calls, in LLVM's own form, beside that of all that it calls: linking,
    optimising across functions and making machine code are left to what Python calls, where all parts come
    together. Numba would do so for every function, and many times for one that is called from deep down."""

    def finalize(self) -> None:
        self._raise_if_finalized()
        called = self._called()
        self._finalize_dynamic_globals()
        self._finalized = True
        self.pieces = _pieces(self) | called

    def serialize_using_object_code(self) -> tuple[str, dict[bytes, bytes]]:
        return self.name, self.pieces

    @classmethod
    def restored(cls, codegen: Any, state: tuple[str, dict[bytes, bytes]]) -> _Part:
        """From what serialize_using_object_code made."""
        self = cls(codegen, state[0])
        self.pieces, self._finalized = state[1], True
        return self


class _PartCompiler(_Compiler):
    """What it compiles becomes a part."""

    library = _Part

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.state.flags.no_compile = True


class _PartCacheImpl(CompileResultCacheImpl):
    def rebuild(self, target: Any, payload: tuple) -> Any:
        state, fndesc, environment, signature, objectmode, lifted, note, reload_init, _ = payload
        if len(state) != 2:  # machine code, as other versions stored: compiled again
            return None
        for function in reload_init:
            function()
        return compile_result(
            typing_context=target.typing_context, target_context=target, entry_point=object(),
            type_annotation=note, signature=signature, objectmode=objectmode, lifted=lifted, fndesc=fndesc,
            library=_Part.restored(target.codegen(), state), environment=environment, reload_init=reload_init,
        )  # fmt: skip


class _PartCache(FunctionCache):
    _impl_class = _PartCacheImpl


class _ForCompiled(_Dispatcher):
    """What compiled functions call; no pointer to it exists."""

    suffix, compiler = ".inside", _PartCompiler

    def compile(self, sig: Any) -> Any:
        """Once for a kind of number, and not again for each that a call writes out."""
        return super().compile(tuple(types.unliteral(kind) for kind in sig))

    def enable_caching(self) -> None:
        self._cache = _PartCache(self.py_func)

    def add_overload(self, made: Any) -> None:
        if made.entry_point is None:  # just compiled: Numba knows a function by its entry point
            made = made._replace(entry_point=object())
            self.targetctx.insert_user_function(made.entry_point, made.fndesc, [made.library])
        self.overloads[tuple(made.signature.args)] = made


def uncounted(function: Callable | None = None, /, **options: Any) -> Any:
    """compiled, without counting array references: for kernels that allocate nothing.

    Kernels slice records of many arrays all the time; Numba would count every slice up and down, atomically,
    contended between threads. The caller owns the arrays. A function that allocates fails to compile.
    """
    return compiled(function, **{"_nrt": False, **options})


def merged(function: Callable) -> Any:
    """uncounted, and made part of its one caller before types are inferred: a record of many arrays is passed
    by value, hundreds of words, and merging saves the copying and most of the time to compile."""
    return uncounted(function, inline="always")


class ByAddress:
    """A kind of compiled function that others call by its address, given as a number: these are compiled
    without it, once for whatever they will call, and it is compiled when it is used, once for all of them.

    arguments: Numba's types, or examples; all return float64. `call` is for compiled code, call(address,
    (argument, …)): what has another type than was said is converted, or does not compile.
    """

    def __init__(self, *arguments: Any) -> None:
        returns, self._made = types.float64, {}  # type: ignore[var-annotated]
        kinds = tuple(one if isinstance(one, types.Type) else numba.typeof(one) for one in arguments)
        self._kinds = kinds

        @intrinsic
        def call(typing_context: Any, address: Any, given: Any) -> Any:
            def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
                fields = _converted(context, builder, values[1], signature.args[1], kinds)
                convention, missing = context.call_conv, cgutils.is_null(builder, values[0])
                with cgutils.if_unlikely(builder, missing):
                    convention.return_user_exc(builder, RuntimeError, ("nothing is at this address",))
                kind = convention.get_function_type(returns, kinds)
                function = builder.inttoptr(values[0], kind.as_pointer())
                status, value = convention.call_function(builder, function, returns, kinds, fields)
                with cgutils.if_unlikely(builder, status.is_error):
                    convention.return_status_propagate(builder, status)
                return value

            return returns(types.int64, given), generate

        self.call = call

    def address(self, function: Callable) -> int:
        """Of the machine code of a compiled, or plain, function, made or loaded now; it stays there while the
        process lives."""
        if function not in self._made:
            self._made[function] = function if isinstance(function, _ForPython) else uncounted(function)
        dispatcher = self._made[function].pointed
        dispatcher.compile(self._kinds)
        own = dispatcher.overloads[self._kinds]
        return int(own.library.get_pointer_to_function(own.fndesc.llvm_func_name))


def _converted(context: Any, builder: Any, value: Any, have: Any, want: Any) -> list:
    """The fields of a tuple as other types, records in them field by field."""
    fields = []
    for i, (one, other) in enumerate(zip(tuple(have), tuple(want), strict=True)):
        field = builder.extract_value(value, i)
        if isinstance(one, Reference):
            field = read_whole(context, builder, one, field)
            one = one.record
        if one != other and isinstance(one, types.BaseTuple) and isinstance(other, types.BaseTuple):
            inner = _converted(context, builder, field, one, other)
            field = context.make_tuple(builder, other, inner)
        elif one != other:
            if context.typing_context.can_convert(one, other) is None:
                raise LoweringError(f"what is called by its address wants {other}, not {one}")
            field = context.cast(builder, field, one, other)
        fields.append(field)
    return fields


class OneOf:
    """A function that is one of several compiled ones, by the types of its arguments, when what calls it is
    compiled. choose: from the arguments' types to the function that is meant."""

    def __init__(self, choose: Callable[[tuple], Any], name: str) -> None:
        self.choose, self.name = choose, name


class _OneOfType(types.Callable, types.Opaque):  # type: ignore[misc]
    """Asks the function that is meant."""

    def __init__(self, one: OneOf) -> None:
        self._one = one
        super().__init__(f"OneOf({one.name})")

    def _meant(self, arguments: tuple) -> Any:
        return self._one.choose(arguments)._numba_type_

    def get_call_type(self, context: Any, args: tuple, kws: Any) -> Any:
        return self._meant(args).get_call_type(context, args, kws)

    def get_call_signatures(self) -> tuple[tuple, bool]:
        return (), False

    def get_impl_key(self, sig: Any) -> Any:
        return self._meant(sig.args).get_impl_key(sig)


typeof_impl.register(OneOf)(lambda one, _: _OneOfType(one))
register_model(_OneOfType)(models.OpaqueModel)
lower_constant(_OneOfType)(_nothing)


def compiled_specialisation_count() -> int:
    """How many specialisations this process has loaded or compiled; a test holds it small."""
    return sum(len(dispatcher.overloads) for dispatcher in _functions)


class _Compilation(event.Listener):
    """Says so when something was not found in the cache and has to be compiled; meanwhile the collector of
    cycles, which finds next to nothing in what a compiler keeps, looks through it a hundred times less often.
    Numba compiles under a lock of its own, so one thread is here at a time."""

    depth = 0
    threshold = (0, 0, 0)

    def on_start(self, event: Any) -> None:
        compilation_begins("cpu")
        if self.depth == 0:
            self.threshold = gc.get_threshold()
            gc.set_threshold(100 * self.threshold[0], *self.threshold[1:])
        self.depth += 1

    def on_end(self, event: Any) -> None:
        self.depth -= 1
        if self.depth == 0:
            gc.set_threshold(*self.threshold)


event.register("numba:compile", _Compilation())
