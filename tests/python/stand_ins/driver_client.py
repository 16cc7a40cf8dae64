"""A program that calls NVIDIA's driver interface (libcuda) by ctypes.

Usage: driver_client.py SCENARIO [FILE]. Prints what `test_driver` expects.
"""

import ctypes
import struct
import sys

from host_client import PTX, container, image

N = 200
ref, size, pointer = ctypes.byref, ctypes.c_size_t, ctypes.c_void_p
lib = ctypes.CDLL("libcuda.so.1")


def name(error):
    text = ctypes.c_char_p()
    return text.value.decode() if lib.cuGetErrorName(error, ref(text)) == 0 else f"{error}?"


def check(error):
    assert error == 0, name(error)


def begin():
    """Make a context."""
    check(lib.cuInit(0))
    context = pointer()
    check(lib.cuCtxCreate_v2(ref(context), 0, 0))
    return context


def load():
    module, function = pointer(), pointer()
    check(lib.cuModuleLoadData(ref(module), PTX.encode()))
    check(lib.cuModuleGetFunction(ref(function), module, b"axpy"))
    return module, function


def vectors():
    """Return x = 0, 1, 2, ... and y = 1, 1, 1, ... on the device."""
    x, y = ctypes.c_uint64(), ctypes.c_uint64()
    host = (ctypes.c_float * N)(*range(N))
    check(lib.cuMemAlloc_v2(ref(x), size(4 * N)))
    check(lib.cuMemAlloc_v2(ref(y), size(4 * N)))
    check(lib.cuMemcpyHtoD_v2(x, host, size(4 * N)))
    check(lib.cuMemsetD32_v2(y, 0x3F800000, size(N)))  # 1.0
    return x, y


def launch(function, x, y, blocks=2, stream=None):
    arguments = (x, y, ctypes.c_float(3), ctypes.c_int(N))
    places = (pointer * 4)(*(ctypes.addressof(each) for each in arguments))
    return lib.cuLaunchKernel(function, blocks, 1, 1, 128, 1, 1, 0, stream, places, None)


def packed(x, y):
    """Return the arguments in a buffer, as cuLaunchKernel's `extra` has them, and what it refers to."""
    buffer = struct.pack("QQfi", x.value, y.value, 3.0, N)
    bytes_ = ctypes.create_string_buffer(buffer, len(buffer))
    length = size(len(buffer))
    extra = (pointer * 5)(1, ctypes.addressof(bytes_), 2, ctypes.addressof(length), 0)
    return extra, (bytes_, length)


def shown(y):
    host = (ctypes.c_float * N)()
    check(lib.cuMemcpyDtoH_v2(host, y, size(4 * N)))
    return [host[i] for i in (0, 1, 199)]


def axpy():
    begin()
    module, function = load()
    x, y = vectors()
    check(launch(function, x, y))
    extra, _kept = packed(x, y)
    check(lib.cuLaunchKernel(function, 2, 1, 1, 128, 1, 1, 0, None, None, extra))
    # The launch of before CUDA 4, with settings that stay.
    check(lib.cuFuncSetBlockShape(function, 128, 1, 1))
    check(lib.cuParamSetSize(function, 24))
    check(lib.cuParamSetv(function, 0, ref(x), 8))
    check(lib.cuParamSetv(function, 8, ref(y), 8))
    lib.cuParamSetf.argtypes = (pointer, ctypes.c_int, ctypes.c_float)
    check(lib.cuParamSetf(function, 16, 3.0))
    check(lib.cuParamSeti(function, 20, N))
    check(lib.cuLaunchGrid(function, 2, 1))
    count, bytes_ = ctypes.c_uint64(), size()
    check(lib.cuModuleGetGlobal_v2(ref(count), ref(bytes_), module, b"launches"))
    value = ctypes.c_int()
    check(lib.cuMemcpyDtoH_v2(ref(value), count, bytes_))
    print(shown(y), value.value, bytes_.value)


def describe():
    text = ctypes.create_string_buffer(9)
    numbers = [ctypes.c_int() for _ in range(5)]
    check(lib.cuInit(0))
    check(lib.cuDriverGetVersion(ref(numbers[0])))
    check(lib.cuDeviceGetCount(ref(numbers[1])))
    check(lib.cuDeviceGetName(text, 9, 0))
    check(lib.cuDeviceGetAttribute(ref(numbers[2]), 10, 0))  # size of a warp
    check(lib.cuDeviceComputeCapability(ref(numbers[3]), ref(numbers[4]), 0))
    print(text.value.decode(), *(number.value for number in numbers))
    begin()
    _, function = load()
    values = [ctypes.c_int() for _ in range(4)]
    check(lib.cuFuncGetAttribute(ref(values[0]), 0, function))  # threads of a block
    check(lib.cuFuncGetAttribute(ref(values[1]), 5, function))  # version of the PTX
    check(lib.cuFuncSetAttribute(function, 8, 64 << 10))  # dynamic shared memory
    check(lib.cuFuncGetAttribute(ref(values[2]), 8, function))
    check(lib.cuOccupancyMaxActiveBlocksPerMultiprocessor(ref(values[3]), function, 1024, size(0)))
    print(*(value.value for value in values))
    check(lib.cuOccupancyMaxPotentialBlockSize(
        ref(values[0]), ref(values[1]), function, None, size(0), 0))  # fmt: skip
    offset, bytes_ = size(), size()
    check(lib.cuFuncGetParamInfo(function, size(2), ref(offset), ref(bytes_)))
    print(values[0].value, values[1].value, offset.value, bytes_.value)


def memory():
    """Copies of rectangles and pointers' attributes."""
    begin()
    y, pitch = ctypes.c_uint64(), size()
    check(lib.cuMemAllocPitch_v2(ref(y), ref(pitch), size(12), size(3), 4))
    check(lib.cuMemsetD2D32_v2(y, pitch, 7, size(3), size(3)))
    host = (ctypes.c_int * 9)(*[-1] * 9)
    # Two rows of two elements from (1, 1) of the device to (0, 1) of the host.
    copy = struct.pack(
        "QQiPQPQQQiPQPQQQ",
        *(4, 1, 2, 0, y.value, 0, pitch.value),
        *(0, 1, 1, ctypes.addressof(host), 0, 0, 12),
        *(8, 2),
    )
    check(lib.cuMemcpy2D_v2(copy))
    print(*host)
    managed, places = ctypes.c_uint64(), [ctypes.c_uint64(99) for _ in range(3)]
    check(lib.cuMemAllocManaged(ref(managed), size(64), 1))
    ctypes.c_int.from_address(managed.value).value = 5
    check(lib.cuPointerGetAttribute(ref(places[0]), 8, managed))  # managed
    check(lib.cuPointerGetAttribute(ref(places[1]), 12, ctypes.c_uint64(y.value + 4)))  # size
    address = ctypes.c_uint64()
    check(lib.cuMemGetAddressRange_v2(ref(address), None, ctypes.c_uint64(y.value + 4)))
    check(lib.cuMemcpy(y, managed, size(4)))
    check(lib.cuMemcpyDtoH_v2(host, y, size(4)))
    unknown = ctypes.c_uint64(ctypes.addressof(host))
    wanted = (ctypes.c_int * 2)(2, 9)
    found = (pointer * 2)(*(ctypes.addressof(place) for place in places[1:]))
    print(places[0].value & 0xFFFFFFFF, places[1].value == 3 * pitch.value, address.value == y.value,
          host[0], name(lib.cuPointerGetAttribute(ref(places[0]), 2, unknown)))  # fmt: skip
    check(lib.cuPointerGetAttributes(2, wanted, found, unknown))
    print(places[1].value & 0xFFFFFFFF, ctypes.c_int(places[2].value & 0xFFFFFFFF).value)


def errors():
    out, device, context = pointer(), ctypes.c_int(), pointer()
    print("early", name(lib.cuDeviceGet(ref(device), 0)))
    check(lib.cuInit(0))
    print("device", name(lib.cuDeviceGet(ref(device), 1)))
    print("none", name(lib.cuModuleLoadData(ref(out), PTX.encode())))
    context = begin()
    for image_ in (PTX.replace("%r4;\n    setp", "%r4\n    setp").encode(), b"no such thing",
                   container(image(2, 80, b"x" * 8))):  # fmt: skip
        print("image", name(lib.cuModuleLoadData(ref(out), image_)))
    log = ctypes.create_string_buffer(b"x" * 40, 40)
    options, values = (ctypes.c_int * 2)(5, 6), (pointer * 2)(ctypes.addressof(log), 40)
    lib.cuModuleLoadDataEx(ref(out), b".version 7.0\nnonsense", 2, options, values)
    print("log", values[1], log.value.decode()[:6])
    module, function = load()
    print("name", name(lib.cuModuleGetFunction(ref(out), module, b"other")))
    print("symbol", name(lib.cuModuleGetGlobal_v2(ref(out), None, module, b"other")))
    print("size", name(lib.cuMemAlloc_v2(ref(out), size(0))))
    print("large", name(lib.cuMemAlloc_v2(ref(out), size(1 << 50))))
    x, y = vectors()
    print("grid", name(launch(function, x, y, blocks=0)))
    extra, kept = packed(x, y)
    kept[1].value = 20
    print("buffer", name(lib.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, None, extra)))
    print("host", name(lib.cuMemcpyHtoD_v2(x, None, size(4))))
    print("handle", name(lib.cuModuleUnload(x)), name(launch(x, x, y)))
    check(lib.cuModuleUnload(module))
    print("unloaded", name(launch(function, x, y)))
    print("lacks", name(lib.cuMemAddressReserve(ref(out), size(1), size(1), x, 0)))
    print("table", name(lib.cuGetExportTable(ref(out), b"0123456789abcdef")))
    text = ctypes.c_char_p(b"")
    print("code", lib.cuGetErrorName(12345, ref(text)), text.value)
    check(lib.cuGetErrorString(700, ref(text)))
    print("words", text.value.decode())
    check(lib.cuCtxDestroy_v2(context))
    print("gone", name(lib.cuCtxSynchronize()))


def fault():
    """A kernel that fails spoils its context, and a new one is whole."""
    context = begin()
    _, function = load()
    x, y = vectors()
    print(name(launch(function, ctypes.c_uint64(x.value + (1 << 20)), y)))
    print(name(lib.cuCtxSynchronize()))
    check(lib.cuCtxDestroy_v2(context))
    begin()
    _, function = load()
    x, y = vectors()
    check(launch(function, x, y))
    print(shown(y))


def both():
    """The runtime and the driver work on the same device."""
    runtime = ctypes.CDLL("libcudart.so.12")
    context, x, count = pointer(1), ctypes.c_uint64(), ctypes.c_int()
    check(lib.cuInit(0))
    check(lib.cuCtxGetCurrent(ref(context)))
    before = context.value
    check(runtime.cudaMalloc(ref(x), size(4 * N)))
    check(lib.cuCtxGetCurrent(ref(context)))
    primary = pointer()
    check(lib.cuDevicePrimaryCtxRetain(ref(primary), 0))
    print(before, context.value == primary.value)
    _, function = load()
    check(lib.cuMemsetD8_v2(x, 0, size(4 * N)))
    y = vectors()[1]
    check(launch(function, x, y))
    host = (ctypes.c_float * N)()
    check(runtime.cudaMemcpy(host, y, size(4 * N), 2))
    # A mistake with the driver is not the runtime's last error.
    wrong = lib.cuMemcpyHtoD_v2(x, None, size(4))
    print(host[199], name(wrong), runtime.cudaGetLastError())
    found, status = pointer(), ctypes.c_int(9)
    check(runtime.cudaGetDriverEntryPoint(b"cuDeviceGetCount", ref(found), size(0), ref(status)))
    check(ctypes.CFUNCTYPE(ctypes.c_int, pointer)(found.value)(ref(count)))
    check(runtime.cudaGetDriverEntryPoint(b"cuNothing", ref(found), size(0), ref(status)))
    print(count.value, found.value, status.value)
    check(lib.cuDevicePrimaryCtxRelease_v2(0))
    check(runtime.cudaFree(x))  # the runtime goes on with the context


def entry_points():
    """Functions by name are those of the version that the program was built with."""

    def address(symbol, version, flags=0):
        found, status = pointer(), ctypes.c_int()
        error = lib.cuGetProcAddress_v2(
            symbol, ref(found), version, ctypes.c_uint64(flags), ref(status)
        )
        return found.value, error, status.value

    def exported(symbol):
        return ctypes.cast(getattr(lib, symbol), pointer).value

    check(lib.cuInit(0))
    for symbol, version, expected in (
        (b"cuMemAlloc", 12000, "cuMemAlloc_v2"),
        (b"cuCtxCreate", 4000, "cuCtxCreate_v2"),
        (b"cuCtxCreate", 11040, "cuCtxCreate_v3"),
        (b"cuCtxCreate", 13000, "cuCtxCreate_v4"),
        (b"cuCtxSynchronize", 12090, "cuCtxSynchronize"),
        (b"cuLaunchKernel", 13000, "cuLaunchKernel"),
    ):
        assert address(symbol, version) == (exported(expected), 0, 0), symbol
    assert address(b"cuLaunchKernel", 13000, 2) == (exported("cuLaunchKernel_ptsz"), 0, 0)
    print(*address(b"cuNothing", 13000), *address(b"cudaMalloc", 13000))
    found = pointer()
    print(name(lib.cuGetProcAddress(b"cuNothing", ref(found), 11030, ctypes.c_uint64(0))))


def graph():
    begin()
    _, function = load()
    x, y = vectors()
    stream, made, ready = pointer(), pointer(), pointer()
    check(lib.cuStreamCreate(ref(stream), 1))
    check(lib.cuStreamBeginCapture_v2(stream, 0))
    check(launch(function, x, y, stream=stream))
    check(lib.cuMemsetD32Async(x, 0, size(N), stream))
    print(name(lib.cuCtxSynchronize()), name(lib.cuStreamEndCapture(stream, ref(made))))
    check(lib.cuStreamBeginCapture_v2(stream, 0))
    check(launch(function, x, y, stream=stream))
    check(lib.cuMemsetD32Async(x, 0, size(N), stream))
    check(lib.cuStreamEndCapture(stream, ref(made)))
    check(lib.cuGraphInstantiateWithFlags(ref(ready), made, ctypes.c_uint64(0)))
    for _ in range(2):
        check(lib.cuGraphLaunch(ready, stream))
    start, end, time = pointer(), pointer(), ctypes.c_float()
    check(lib.cuEventCreate(ref(start), 0))
    check(lib.cuEventCreate(ref(end), 0))
    check(lib.cuEventRecord(start, stream))
    check(launch(function, x, y, stream=stream))
    check(lib.cuEventRecord(end, stream))
    check(lib.cuEventElapsedTime(ref(time), start, end))
    print(shown(y), time.value > 0)


def file():
    """Load what is in a file in every way."""
    begin()
    path = sys.argv[2].encode()
    with open(path, "rb") as found:
        data = found.read() + b"\0"
    modules = [pointer() for _ in range(4)]
    check(lib.cuModuleLoad(ref(modules[0]), path))
    check(lib.cuModuleLoadDataEx(ref(modules[1]), data, 0, None, None))
    check(lib.cuLibraryLoadData(ref(modules[2]), data, None, None, 0, None, None, 0))
    linker, linked, bytes_ = pointer(), pointer(), size()
    check(lib.cuLinkCreate_v2(0, None, None, ref(linker)))
    kind = {b"\x7f": 0, b".": 1}.get(data.lstrip()[:1], 2)
    check(lib.cuLinkAddData_v2(linker, kind, data, size(len(data)), b"", 0, None, None))
    check(lib.cuLinkComplete(linker, ref(linked), ref(bytes_)))
    check(lib.cuModuleLoadData(ref(modules[3]), linked))
    print(name(lib.cuLinkAddData_v2(linker, kind, data, size(len(data)), b"", 0, None, None)))
    check(lib.cuLinkDestroy(linker))
    x, y = vectors()
    for i, module in enumerate(modules):
        function = pointer()
        get = lib.cuLibraryGetKernel if i == 2 else lib.cuModuleGetFunction
        check(get(ref(function), module, b"axpy"))
        check(launch(function, x, y))
    print(shown(y))


def registers():
    """Launch 1024 threads of a kernel that holds 100 values: y[i] = i + (i + 1) + ... + (i + 99)."""
    begin()
    lines = [
        ".version 7.0",
        ".target sm_75",
        ".address_size 64",
        ".visible .entry sums(.param .u64 y) {",
        ".reg .u32 %v<101>; .reg .u64 %a<3>;",
        "ld.param.u64 %a0, [y];",
        "mov.u32 %v100, %tid.x;",
        "mul.wide.u32 %a1, %v100, 4;",
        "add.u64 %a2, %a0, %a1;",
        *(f"add.u32 %v{i}, %v100, {i};" for i in range(100)),
        *(f"add.u32 %v0, %v0, %v{i};" for i in range(1, 100)),
        "st.global.u32 [%a2], %v0;",
        "ret; }",
    ]
    module, function, y = pointer(), pointer(), ctypes.c_uint64()
    check(lib.cuModuleLoadData(ref(module), "\n".join(lines).encode()))
    check(lib.cuModuleGetFunction(ref(function), module, b"sums"))
    check(lib.cuMemAlloc_v2(ref(y), size(4 * 1024)))
    places = (pointer * 1)(ctypes.addressof(y))
    check(lib.cuLaunchKernel(function, 1, 1, 1, 1024, 1, 1, 0, None, places, None))
    host = (ctypes.c_uint32 * 1024)()
    check(lib.cuMemcpyDtoH_v2(host, y, size(4 * 1024)))
    resident = [ctypes.c_int(), ctypes.c_int()]
    for each, threads in zip(resident, (1024, 512), strict=True):
        check(lib.cuOccupancyMaxActiveBlocksPerMultiprocessor(
            ref(each), function, threads, size(0)))  # fmt: skip
    print(host[0], host[1023], *(each.value for each in resident))


if __name__ == "__main__":
    globals()[sys.argv[1]]()
