"""Numba's compiler for CUDA without a GPU: Python functions to PTX.

Numba compiles for a chosen compute capability, but asks the driver for that of the GPU when a kernel
calls another function, and NVRTC's wrapper asks it for its version. Both have their answer here
while a kernel is compiled.
"""

from __future__ import annotations

import contextlib
import re
import threading
import types
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from warpstack.cuda.device import DeviceArray
from warpstack.cuda.extras import load_extra
from warpstack.cuda.toolchain import compile_text
from warpstack.errors import InputError, not_a, shown

_compiling = threading.Lock()

#: Functions of NVIDIA's device runtime that synchronize a grid. The handle is the address of the
#: words that a cooperative launch gives in %envreg1 and %envreg2. Thread 0 of each block adds to the
#: second of them, block 0 what flips its highest bit once all have come.
_GRID_SYNCHRONIZATION = """
.visible .func (.param .b64 result) cudaCGGetIntrinsicHandle(.param .b32 scope)
{
  .reg .b32 %r<3>;
  .reg .b64 %l<2>;
  mov.u32 %r1, %envreg2;
  mov.u32 %r2, %envreg1;
  mov.b64 %l1, {%r1, %r2};
  st.param.b64 [result], %l1;
  ret;
}
.visible .func (.param .b32 result) cudaCGSynchronize(.param .b64 handle, .param .b32 flags)
{
  .reg .b32 %r<12>;
  .reg .b64 %l<2>;
  .reg .pred %p<4>;
  ld.param.b64 %l1, [handle];
  bar.sync 0;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %tid.y;
  or.b32 %r1, %r1, %r2;
  mov.u32 %r2, %tid.z;
  or.b32 %r1, %r1, %r2;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra met;
  mov.u32 %r3, %nctaid.x;
  mov.u32 %r4, %nctaid.y;
  mul.lo.u32 %r3, %r3, %r4;
  mov.u32 %r4, %nctaid.z;
  mul.lo.u32 %r3, %r3, %r4;
  mov.u32 %r5, %ctaid.x;
  mov.u32 %r6, %ctaid.y;
  or.b32 %r5, %r5, %r6;
  mov.u32 %r6, %ctaid.z;
  or.b32 %r5, %r5, %r6;
  setp.eq.u32 %p2, %r5, 0;
  sub.u32 %r7, 0x80000001, %r3;
  selp.b32 %r8, %r7, 1, %p2;
  fence.acq_rel.gpu;
  atom.add.release.gpu.global.u32 %r9, [%l1+4], %r8;
wait:
  ld.acquire.gpu.global.u32 %r10, [%l1+4];
  xor.b32 %r11, %r10, %r9;
  setp.gt.s32 %p3, %r11, -1;
  @%p3 bra wait;
met:
  bar.sync 0;
  st.param.b32 [result], 0;
  ret;
}
"""


def argument_types(what: str, arguments: Sequence[Any]) -> tuple[Any, ...]:
    """Return Numba's types of the arguments of a call."""
    numba = load_extra(what, "numba", "numba")
    from_dtype = load_extra(what, "numba.np.numpy_support", "numba").from_dtype

    def type_of(value: Any, place: str) -> Any:
        try:
            if isinstance(value, DeviceArray):
                return numba.types.Array(from_dtype(value.dtype), value.ndim, "C")
            if isinstance(value, (tuple, list)):
                parts = [type_of(one, place) for one in value]
                return numba.types.BaseTuple.from_types(parts)
            if isinstance(value, np.ndarray):
                raise InputError(
                    f"{place}: got a NumPy array; copy it to the device first: "
                    "warpstack.cuda.array(x)"
                )
            return numba.typeof(value)
        except (ValueError, NotImplementedError, numba.core.errors.NumbaError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{place}: Numba has no type for {shown(value)}") from None

    return tuple(
        type_of(value, f"{what}, argument {number + 1}") for number, value in enumerate(arguments)
    )


def signature_types(what: str, signature: Any) -> tuple[Any, ...]:
    """Return the types of the parameters of a signature, a text or one of Numba."""
    sigutils = load_extra(what, "numba.core.sigutils", "numba")
    numba = load_extra(what, "numba", "numba")
    try:
        found, returned = sigutils.normalize_signature(signature)
    except Exception as error:  # texts are evaluated
        raise InputError(f"{what}: signature = {shown(signature)}: {error}") from None
    if returned not in (None, numba.types.void):
        raise InputError(f"{what}: signature = {shown(signature)}: a kernel returns nothing")
    return tuple(found)


def python_function(what: str, kernel: Any) -> tuple[Any, dict[str, Any]]:
    """Return the function behind a decorator of Numba, and the options of the decorator."""
    load_extra(what, "numba", "numba")
    if isinstance(kernel, types.FunctionType):
        return kernel, {}
    function = getattr(kernel, "py_func", None)
    options = getattr(kernel, "targetoptions", None)
    if not isinstance(function, types.FunctionType) or not isinstance(options, dict):
        raise not_a(f"{what}: kernel", "a function, plain or decorated with numba.cuda.jit", kernel)
    if options.get("device"):
        raise InputError(f"{what}: {function.__name__} is a function of the device, not a kernel")
    if options.get("link"):
        raise InputError(f"{what}: {function.__name__}: code that is linked (link=) does not run")
    kept = {name: options[name] for name in ("fastmath", "launch_bounds") if options.get(name)}
    return function, kept


def compile_function(
    what: str, function: Any, options: dict[str, Any], parameters: tuple[Any, ...], capability: int
) -> str:
    """Return the PTX of a kernel.

    Parameters
    ----------
    what
        The function that was called, for messages.
    function, options
        As `python_function` returns them.
    parameters
        Numba's types of its parameters.
    capability
        80 for sm_80.

    Raises
    ------
    InputError
        If Numba for CUDA is missing, or the function does not compile.
    """
    cuda = load_extra(what, "numba.cuda", "numba")
    compiler = load_extra(what, "numba.cuda.compiler", "numba")
    if not hasattr(compiler, "compile_all"):
        raise InputError(
            f"{what}: numba-cuda is not installed, or too old, or NUMBA_ENABLE_CUDASIM is set; "
            "install it with: pip install 'warpstack[numba]'"
        )
    numba = load_extra(what, "numba", "numba")
    target = divmod(capability, 10)
    with _compiling, _without_a_gpu(what, target), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a GPU would think of small grids, and the like
        try:
            codes, _ = cuda.compiler.compile_all(
                function,
                numba.types.void(*parameters),
                device=False,
                abi="numba",
                output="ptx",
                cc=target,
                lineinfo=True,
                **options,
            )
        except InputError:
            raise
        except Exception as error:  # Numba has many kinds, those of its parts among them
            raise InputError(f"{what}: {function.__name__} does not compile: {error}") from None
    texts = [code for code in codes if isinstance(code, str)]
    if len(texts) != len(codes):
        raise InputError(f"{what}: {function.__name__} needs machine code, which is not linked")
    if any("cudaCGSynchronize" in text for text in texts):
        texts.append(_GRID_SYNCHRONIZATION)
    return _linked(texts)


@contextlib.contextmanager
def _without_a_gpu(what: str, target: tuple[int, int]) -> Iterator[None]:
    """Answer for the driver while a kernel is compiled."""
    dispatcher = load_extra(what, "numba.cuda.dispatcher", "numba")
    compiler = load_extra(what, "numba.cuda.compiler", "numba")
    folder = Path(load_extra(what, "numba.cuda", "numba").__path__[0]) / "include"
    headers = sorted(folder.glob("[0-9]*"), key=lambda one: int(one.name))  # of versions of CUDA
    gpu = types.SimpleNamespace(compute_capability=target)

    def compile_source(source: str | bytes, name: str, *_: Any, **__: Any) -> tuple[str, str]:
        text = source.decode() if isinstance(source, bytes) else source
        options = ("-rdc=true", *(f"-I{one}" for one in headers[-1:]))
        ptx = compile_text(text, "<numba>", f"sm_{target[0]}{target[1]}", options, None)
        return ptx, ""

    shim = types.SimpleNamespace(compile=compile_source)
    answers = [(dispatcher, "get_current_device", lambda: gpu), (compiler, "nvrtc", shim)]
    kept = [(module, name, getattr(module, name)) for module, name, _ in answers]
    for module, name, answer in answers:
        setattr(module, name, answer)
    try:
        yield
    finally:
        for module, name, value in kept:
            setattr(module, name, value)


def _linked(texts: Sequence[str]) -> str:
    """Return one module of PTX of several, of which the first has the kernel."""
    first, *others = texts
    header = re.compile(r"^\s*\.(version|target|address_size)\b.*$", re.MULTILINE)
    return "\n".join([first, *(header.sub("", text) for text in others)])
