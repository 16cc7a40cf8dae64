"""Triton's compiler without a GPU: what its runtime does between a call and the PTX.

Triton compiles a kernel for the arguments of a call: integers that are 1 become constants, integers
and addresses that are divisible by 16 are known to be so (without this, loads are as narrow as an
element). Its own binder decides that here, too; only the driver, which wants a GPU, is left out.
"""

from __future__ import annotations

import atexit
import contextlib
import copy
import functools
import itertools
import os
import shutil
import tempfile
import threading
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from warpstack.cuda.cubin import Cubin
from warpstack.cuda.device import DeviceArray
from warpstack.cuda.extras import load_extra
from warpstack.cuda.toolchain import target_number
from warpstack.cuda.triton_descriptors import descriptor_parameters, is_descriptor, with_base
from warpstack.errors import InputError, not_a

#: The environment variable of Triton that says where it keeps what it compiled.
CACHE_VARIABLE = "TRITON_CACHE_DIR"
#: The oldest architecture that Triton compiles for.
FIRST_TARGET = 75
#: What Triton says where its compiler has written more than that to standard error.
_SAID_ELSEWHERE = ("error encountered during parsing", "PassManager::run failed")
#: Triton's settings are those of the process.
_compiling = threading.Lock()


@dataclass(frozen=True)
class Compiled:
    """A kernel as compiled by Triton.

    Attributes
    ----------
    name
        Of the kernel in the PTX.
    ptx, cubin
        Its code.
    target
        The target that it was compiled for, for example ``sm_80``.
    num_warps, num_stages
        Warps of a block, and stages of the software pipeline.
    num_ctas
        Blocks of a cluster, which work on one program together.
    shared_memory_bytes, scratch_bytes
        Dynamic shared memory of a block, and its scratch in global memory.
    registers_per_thread
        Of the machine code that ptxas made of the PTX for `target`.
    cooperative
        Whether its blocks must be resident at once.
    arguments
        Those that are parameters of the PTX: types as Triton writes them (``*fp16``, ``i32``), and
        values.
    meta
        All arguments by name, for a grid that is a function of them.
    """

    name: str
    ptx: str
    cubin: bytes
    target: str
    num_warps: int
    num_stages: int
    num_ctas: int
    shared_memory_bytes: int
    scratch_bytes: int
    registers_per_thread: int
    cooperative: bool
    arguments: tuple[tuple[str, Any], ...]
    meta: Mapping[str, Any]


class _Pointer:
    """An array of the device as Triton's binder asks one: for the type and the address."""

    def __init__(self, array: DeviceArray) -> None:
        self.array = array
        if array.dtype.kind == "c":
            raise InputError(
                f"ws.triton: an array of {array.dtype.name}: Triton has no complex numbers; give its parts, "
                "x.real and x.imag, or a view of twice as many floats"
            )
        self.dtype = array.dtype.name  # those of ml_dtypes have Triton's names: bfloat16, ...

    def data_ptr(self) -> int:
        """Return the address of the first element."""
        return self.array.address


def jit_function(
    what: str,
    kernel: Any,
    arguments: Sequence[Any],
    named: dict[str, Any],
    given: Callable[[Any], Any],
) -> Any:
    """Return the function inside of the decorators, and add to `named` what heuristics choose."""
    *above, function = layers(what, kernel)
    for layer in above:
        if is_tuner(layer):
            raise InputError(
                f"{what}: the kernel is autotuned; ws.triton(kernel)[grid](...) launches it in its best "
                "configuration, ws.triton.tune compares them, or give one here and the function inside "
                "of @triton.autotune (its .fn)"
            )
        named |= chosen_by_heuristics(what, layer, arguments, named, given)
    return function


def layers(what: str, kernel: Any) -> list[Any]:
    """Return the decorators of a kernel from the outermost, and last the function itself.

    Raises
    ------
    InputError
        If Triton is not installed, or it is no kernel.
    """
    triton = load_extra(what, "triton", "triton")
    found = [_unwrapped(kernel)]
    while not isinstance(found[-1], triton.JITFunction):
        one = found[-1]
        if not isinstance(one, (triton.runtime.Autotuner, triton.runtime.Heuristics)):
            kind = type(one).__name__
            remedy = "unset TRITON_INTERPRET" if kind == "InterpretedFunction" else ""
            raise not_a(f"{what}: kernel", "a function decorated with @triton.jit", one, remedy)
        found.append(_unwrapped(one.fn))
    if sum(map(is_tuner, found)) > 1:
        raise InputError(
            f"{what}: the kernel has @triton.autotune twice; write all configurations into one of them"
        )
    return found


def _unwrapped(kernel: Any) -> Any:
    """Return the kernel that ``ws.triton(kernel)`` has, of one; others are their own."""
    return kernel.fn if getattr(kernel, "_wraps_a_kernel", False) else kernel


def is_tuner(layer: Any) -> bool:
    """Return whether a decorator of a kernel is ``triton.autotune``."""
    return hasattr(layer, "prune_configs")


def chosen_by_heuristics(
    what: str,
    layer: Any,
    arguments: Sequence[Any],
    named: Mapping[str, Any],
    given: Callable[[Any], Any],
) -> dict[str, Any]:
    """Return the arguments by name that one ``triton.heuristics`` chooses.

    `given` makes the argument that the user gave of one.

    Raises
    ------
    InputError
        If a function of the heuristics fails.
    """
    known = {**dict(zip(layer.arg_names, arguments, strict=False)), **named}
    known = {name: given(value) for name, value in known.items()}
    chosen = {}
    for name, choose in layer.values.items():
        try:
            chosen[name] = known[name] = choose(dict(known))
        except Exception as error:
            raise InputError(
                f"{what}: the heuristics of {name} fail: {type(error).__name__}: {error}"
            ) from error
    return chosen


def compile_function(
    what: str,
    kernel: Any,
    arguments: Sequence[Any],
    named: Mapping[str, Any],
    target: str,
    given: Callable[[Any], Any] = lambda value: value,
) -> Compiled:
    """Compile a kernel for the arguments of a call.

    Parameters
    ----------
    what
        The function that was called, for messages.
    kernel
        A function decorated with ``triton.jit``, perhaps with heuristics.
    arguments, named
        Those of a call: arrays of the device, numbers, constants, and Triton's options
        (``num_warps``).
    target
        ``sm_80``, say.
    given
        Makes the argument that the user gave of one, for heuristics.

    Raises
    ------
    InputError
        If Triton is missing, the arguments do not fit, or it does not compile.
    """
    number = target_number(f"{what}: target", target)
    if number < FIRST_TARGET:
        raise InputError(
            f"{what}: Triton does not compile for {target}; choose sm_{FIRST_TARGET} or later"
        )
    named = dict(named)
    function = jit_function(what, kernel, arguments, named, given)
    _check_gluon(what, function, number)
    backends = load_extra(what, "triton.backends.compiler", "triton")
    compiler = load_extra(what, "triton.compiler", "triton")
    place = backends.GPUTarget("cuda", number, 32)
    backend = compiler.make_backend(place)
    named.setdefault(
        "enable_fp_fusion", True
    )  # the default of Triton up to 3.9, which 3.10 changes
    bound, specialization = _bind(what, function, backend, arguments, named)
    make_source = compiler.ASTSource
    if _is_gluon(function):
        runtime = load_extra(what, "triton.experimental.gluon._runtime", "triton")
        make_source = runtime.GluonASTSource
    try:
        options, signature, constants, attributes = function._pack_args(
            backend, named, bound, specialization, None
        )
        source = make_source(function, signature, constants, attributes)
        with _own_cache(what):
            made = compiler.compile(source, target=place, options=options.__dict__)
    except KeyError as error:
        raise InputError(f"{what}: {error.args[0] if error.args else error}") from None
    except InputError:
        raise
    except Exception as error:  # Triton has many kinds, those of its parts among them
        raise InputError(f"{what}: {_name(function)} does not compile: {_reason(error)}") from None
    facts = made.metadata
    # Without a tensor map for its descriptors, the code has none at all.
    maps = iter(getattr(facts, "tensordesc_meta", None) or itertools.repeat(None))
    return Compiled(
        name=facts.name,
        ptx=made.asm["ptx"],
        cubin=made.asm["cubin"],
        target=f"sm_{number}",
        num_warps=facts.num_warps,
        num_stages=facts.num_stages,
        num_ctas=facts.num_ctas,
        shared_memory_bytes=facts.shared,
        scratch_bytes=getattr(facts, "global_scratch_size", 0),
        registers_per_thread=_registers(made.asm["cubin"], facts.name),
        cooperative=facts.launch_cooperative_grid,
        arguments=tuple(_parameters(what, signature.values(), bound.values(), maps)),
        meta={name: _given(value) for name, value in bound.items()},
    )


def _is_gluon(function: Any) -> bool:
    return bool(getattr(function, "is_gluon", bool)())


def _check_gluon(what: str, function: Any, number: int) -> None:
    """Refuse what makes Triton's compiler end the process: Gluon's instructions of a newer GPU.

    Raises
    ------
    InputError
        If a Gluon kernel, or a function that it calls, uses one.
    """
    if not _is_gluon(function):
        return
    seen: list[Any] = [function]
    for one in seen:  # grows: with the functions that it names
        used = one.fn.__code__.co_names
        named = [one.fn.__globals__.get(name) for name in used]
        for module in [value for value in named if isinstance(value, types.ModuleType)]:
            named += [getattr(module, name, None) for name in used]
        for value in named:
            if _is_gluon(value):
                seen += [value] if value not in seen else []
                continue
            name, place = getattr(value, "__name__", ""), str(getattr(value, "__module__", ""))
            needed = 90 if name == "warp_specialize" or ".nvidia.hopper" in place else 0
            needed = 100 if ".nvidia.blackwell" in place else needed
            if number < needed:
                raise InputError(
                    f"{what}: {_name(function)}: Gluon's {name} needs sm_{needed} or later, not "
                    f"sm_{number}; give target='sm_{needed}'"
                )


def _bind(
    what: str, function: Any, backend: Any, arguments: Sequence[Any], named: Mapping[str, Any]
) -> tuple[dict[str, Any], list[Any]]:
    """Return the arguments by name, and what Triton will know of each while it compiles."""
    jit = load_extra(what, "triton.runtime.jit", "triton")
    binder = jit.create_function_from_signature(function.signature, function.params, backend)
    positional = [_taken(what, value) for value in arguments]
    others = {name: _taken(f"{what}: {name}", value) for name, value in named.items()}
    try:
        bound, specialization, _ = binder(*positional, **others)
    except (TypeError, ValueError, OverflowError) as error:
        text = str(error).replace("dynamic_func()", _name(function))
        raise InputError(f"{what}: {text}") from None
    return bound, specialization


def _name(function: Any) -> str:
    return f"kernel {getattr(function, '__name__', '')}"


def _taken(what: str, value: Any) -> Any:
    """Return an argument as Triton takes it."""
    if isinstance(value, DeviceArray):
        return _Pointer(value)
    if isinstance(value, (tuple, list)):
        return tuple(_taken(what, item) for item in value)
    if isinstance(value, np.ndarray):
        raise InputError(
            f"{what}: got a NumPy array; copy it to the device first: warpstack.cuda.array(x)"
        )
    if isinstance(value, np.generic):
        return value.item()
    if is_descriptor(value):
        return with_base(what, value, _Pointer)
    return value


def _given(value: Any) -> Any:
    """Return an argument as it was given."""
    if is_descriptor(value):
        result = copy.copy(value)
        result.base = _given(value.base)
        return result
    return value.array if isinstance(value, _Pointer) else value


def _parameters(
    what: str, types: Any, values: Any, maps: Iterator[Mapping[str, Any] | None]
) -> Iterator[tuple[str, Any]]:
    """Yield type and value of each parameter of the PTX: tuples one by one, no constants.

    `maps` gives what the compiler says of each descriptor's tensor map, in order.
    """
    for kind, value in zip(types, values, strict=True):
        if isinstance(kind, (tuple, list)):
            yield from _parameters(what, kind, value, maps)
        elif kind.startswith("tensordesc"):
            yield from descriptor_parameters(what, kind, _given(value), next(maps))
        elif kind != "constexpr":
            yield kind, _given(value)


def _registers(cubin: bytes, name: str) -> int:
    for kernel in Cubin(cubin, name).kernels:
        if kernel.name == name:
            return kernel.registers
    raise AssertionError(f"the cubin lacks its kernel {name}")  # pragma: no cover


def _reason(error: BaseException) -> str:
    """Return what Triton says, with the causes that it wraps."""
    texts: list[str] = []
    found: BaseException | None = error
    while found is not None:
        text = str(found).strip() or type(found).__name__
        if not any(text in one for one in texts):
            texts.append(text)
        found = found.__cause__
    if texts[-1] in _SAID_ELSEWHERE:
        texts[-1] += "; Triton has written the reason to standard error"
    return "\n".join(texts)


@contextlib.contextmanager
def _own_cache(what: str) -> Iterator[None]:
    """Keep what Triton writes out of the user's home, unless the user says where it goes."""
    knobs = load_extra(what, "triton.knobs", "triton")
    with _compiling:
        if os.environ.get(CACHE_VARIABLE):
            yield
            return
        with knobs.cache.scope():
            knobs.cache.dir = _temporary_cache()
            yield


@functools.cache
def _temporary_cache() -> str:
    """Return a folder that lasts as long as the process."""
    folder = tempfile.mkdtemp(prefix="warpstack-triton-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
