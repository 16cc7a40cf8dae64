"""A CUDA host program without nvcc: it does by ctypes what nvcc's host code does.

Usage: host_client.py LIBRARY SCENARIO [FILE]. Prints what `test_host` expects.
"""

import ctypes
import struct
import sys
import time

PTX = r"""
.version 7.0
.target sm_75
.address_size 64

.visible .global .align 4 .u32 launches = 3;

.visible .entry axpy(.param .u64 x, .param .u64 y, .param .f32 a, .param .u32 n)
{
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .f32 %f<5>;
    .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    ld.param.f32 %f1, [a];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    setp.ge.s32 %p1, %r5, %r1;
    @%p1 bra done;
    mul.wide.s32 %rd3, %r5, 4;
    add.s64 %rd4, %rd1, %rd3;
    add.s64 %rd5, %rd2, %rd3;
    ld.global.f32 %f2, [%rd4];
    ld.global.f32 %f3, [%rd5];
    fma.rn.f32 %f4, %f1, %f2, %f3;
    st.global.f32 [%rd5], %f4;
done:
    setp.ne.s32 %p1, %r5, 0;
    @%p1 bra end;
    ld.global.u32 %r6, [launches];
    add.s32 %r7, %r6, 1;
    st.global.u32 [launches], %r7;
end:
    ret;
}
"""


def image(kind, target, payload, flags=0x11, unpacked=0):
    """Return one image of a container, as fatbinary 13.0 lays it out."""
    packed = len(payload) if unpacked else 0
    payload += bytes(-len(payload) % 8)
    header = struct.pack("<HHIQIIIIQQQQ", kind, 0x101, 64, len(payload), packed, 0, 0x70000, target,
                         0, flags, 0, unpacked)  # fmt: skip
    return header + payload


def container(*images):
    content = b"".join(images)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(content)) + content


class Dim3(ctypes.Structure):
    _fields_ = (("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint))


class Wrapper(ctypes.Structure):
    _fields_ = (
        ("magic", ctypes.c_int),
        ("version", ctypes.c_int),
        ("data", ctypes.c_char_p),
        ("file", ctypes.c_void_p),
    )


class Program:
    """The host side of a module with one kernel and one variable."""

    def __init__(self, library, binary):
        self.lib = ctypes.CDLL(library)
        self.binary = binary  # the stand-in reads it when it is needed
        self.wrapper = Wrapper(0x466243B1, 1, ctypes.cast(binary, ctypes.c_char_p), None)
        self.stub = ctypes.create_string_buffer(1)  # its address stands for the kernel
        self.shadow = ctypes.create_string_buffer(4)
        self.lib.cudaGetErrorName.restype = ctypes.c_char_p
        register = getattr(self.lib, "__cudaRegisterFatBinary")
        register.restype = ctypes.c_void_p
        self.handle = ctypes.c_void_p(register(ctypes.byref(self.wrapper)))
        getattr(self.lib, "__cudaRegisterFunction")(
            self.handle, self.stub, self.stub, b"axpy", -1, *[None] * 5
        )
        getattr(self.lib, "__cudaRegisterVar")(
            self.handle, self.shadow, self.shadow, b"launches", 0, ctypes.c_size_t(4), 0, 0
        )
        getattr(self.lib, "__cudaRegisterFatBinaryEnd")(self.handle)

    def name(self, error):
        return self.lib.cudaGetErrorName(error).decode()

    def allocate(self, count):
        pointer = ctypes.c_void_p()
        assert self.lib.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(4 * count)) == 0
        return pointer

    def launch(self, blocks, threads, *arguments, stream=None):
        pointers = (ctypes.c_void_p * len(arguments))(
            *(ctypes.cast(ctypes.byref(a), ctypes.c_void_p).value for a in arguments)
        )
        grid, block = Dim3(blocks, 1, 1), Dim3(threads, 1, 1)
        launch = self.lib.cudaLaunchKernel
        launch.argtypes = (ctypes.c_void_p, Dim3, Dim3, ctypes.c_void_p, ctypes.c_size_t,
                           ctypes.c_void_p)  # fmt: skip
        return launch(ctypes.addressof(self.stub), grid, block, pointers, 0, stream)


def plain():
    text = PTX.encode() + b"\0"
    return container(image(1, 75, text))


def axpy(library, binary=None):
    data = binary if binary is not None else plain()
    program = Program(library, ctypes.create_string_buffer(data, len(data)))
    n = 200
    x, y = program.allocate(n), program.allocate(n)
    host = (ctypes.c_float * n)(*range(n))
    ones = (ctypes.c_float * n)(*[1.0] * n)
    size = ctypes.c_size_t(4 * n)
    assert program.lib.cudaMemcpy(x, host, size, 1) == 0
    assert program.lib.cudaMemcpy(y, ones, size, 1) == 0
    for _ in range(2):
        error = program.launch(2, 128, x, y, ctypes.c_float(3), ctypes.c_int(n))
        print(program.name(error))
        if error:
            return
    assert program.lib.cudaMemcpy(ones, y, size, 2) == 0
    count = ctypes.c_uint()
    error = program.lib.cudaMemcpyFromSymbol(
        ctypes.byref(count), program.shadow, ctypes.c_size_t(4), ctypes.c_size_t(0), 2
    )
    print(program.name(error), [ones[i] for i in (0, 1, 199)], count.value)


def many(library):
    """Launch 300 blocks of a warp, and 2."""
    data = plain()
    program = Program(library, ctypes.create_string_buffer(data, len(data)))
    n = 300 * 32
    x, y = program.allocate(n), program.allocate(n)
    host = (ctypes.c_float * n)(*range(n))
    size = ctypes.c_size_t(4 * n)
    for to in (x, y):
        assert program.lib.cudaMemcpy(to, host, size, 1) == 0
    for blocks in (300, 2):
        error = program.launch(blocks, 32, x, y, ctypes.c_float(3), ctypes.c_int(n))
        print(program.name(error))
    assert program.lib.cudaMemcpy(host, y, size, 2) == 0
    print(sum(host) == 4 * sum(range(n)) + 3 * sum(range(64)))


def wait(library):
    """Launch, then work for a long time."""
    axpy(library)
    print("ready", flush=True)
    time.sleep(60)


def machine_code(library):
    axpy(library, container(image(2, 80, b"ELF")))


def file(library):
    with open(sys.argv[3], "rb") as found:
        axpy(library, found.read())


def damaged(library):
    axpy(library, container(image(1, 75, PTX.encode(), 0x2011, len(PTX))))


def syntax_error(library):
    axpy(library, container(image(1, 75, PTX.replace("%r4;\n    setp", "%r4\n    setp").encode())))


def properties(library):
    """Print numbers at the places where programs of this CUDA version look for them."""
    lib = ctypes.CDLL(library)
    version = ctypes.c_int()
    assert lib.cudaRuntimeGetVersion(ctypes.byref(version)) == 0
    major = version.value // 1000
    # sizeof(cudaDeviceProp), then multiProcessorCount and sharedMemPerBlockOptin by offsetof(), with
    # the headers of CUDA 11.8, 12.9 and 13.0.
    layouts = {11: (728, 388, 696), 12: (1032, 388, 696), 13: (1008, 384, 672)}
    size, num_sms, largest = layouts[major]
    memory = ctypes.create_string_buffer(b"\xee" * 2048, 2048)
    function = lib.cudaGetDeviceProperties_v2 if major == 12 else lib.cudaGetDeviceProperties
    assert function(memory, 0) == 0
    print(
        major,
        struct.unpack_from("<i", memory, num_sms)[0],
        struct.unpack_from("<Q", memory, largest)[0],
        memory.raw[size - 4 : size] != b"\xee" * 4,
        memory.raw[size:] == b"\xee" * (2048 - size),
    )


def graph(library):
    """Use the functions of graphs whose arguments differ between versions of CUDA."""
    data = plain()
    program = Program(library, ctypes.create_string_buffer(data, len(data)))
    lib = program.lib
    version = ctypes.c_int()
    assert lib.cudaRuntimeGetVersion(ctypes.byref(version)) == 0
    major = version.value // 1000
    ref, size = ctypes.byref, ctypes.c_size_t
    n = 64
    x, y = program.allocate(n), program.allocate(n)
    ones = (ctypes.c_float * n)(*[1.0] * n)
    for array in (x, y):
        assert lib.cudaMemcpy(array, ones, size(4 * n), 1) == 0

    def capture(a, launches=2):
        """Return a graph of launches, and what is known of the capture after the first one."""
        made = ctypes.c_void_p()
        assert lib.cudaStreamBeginCapture(stream, 0) == 0
        status, number, count = ctypes.c_int(), ctypes.c_ulonglong(), size(99)
        into, nodes, edges = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        for i in range(launches):
            arguments = x, y, ctypes.c_float(a), ctypes.c_int(n)
            assert program.launch(1, n, *arguments, stream=stream) == 0
            if i > 0:
                continue
            first = ref(status), ref(number)
            if major == 11:
                assert lib.cudaStreamGetCaptureInfo(stream, *first) == 0
            graph_, nodes_, edges_, count_ = ref(into), ref(nodes), ref(edges), ref(count)
            if major == 13:
                assert lib.cudaStreamGetCaptureInfo(
                    stream, *first, graph_, nodes_, edges_, count_) == 0  # fmt: skip
            else:
                assert lib.cudaStreamGetCaptureInfo_v2(
                    stream, *first, graph_, nodes_, count_) == 0  # fmt: skip
        assert lib.cudaStreamEndCapture(stream, ref(made)) == 0
        assert into.value == made.value
        return made, (status.value, count.value)

    stream = ctypes.c_void_p()
    assert lib.cudaStreamCreate(ref(stream)) == 0
    graph, known = capture(1)
    print(*known)

    no_data = (None,) if major == 13 else ()
    count = size(0)
    assert lib.cudaGraphGetEdges(graph, None, None, *no_data, ref(count)) == 0
    sources, targets = (ctypes.c_void_p * 4)(), (ctypes.c_void_p * 4)(*[7] * 4)
    room = size(4)
    assert lib.cudaGraphGetEdges(graph, sources, targets, *no_data, ref(room)) == 0
    print(count.value, room.value, targets[1])
    first, second = ctypes.c_void_p(sources[0]), ctypes.c_void_p(targets[0])
    counts = []
    for node in (first, second):
        for function in (lib.cudaGraphNodeGetDependencies, lib.cudaGraphNodeGetDependentNodes):
            assert function(node, None, *no_data, ref(count)) == 0
            counts.append(count.value)
    print(*counts)
    edge = (graph, ref(first), ref(second), *no_data, size(1))
    assert lib.cudaGraphRemoveDependencies(*edge) == 0
    print(program.name(lib.cudaGraphRemoveDependencies(*edge)))
    assert lib.cudaGraphAddDependencies(*edge) == 0

    ready = ctypes.c_void_p()
    if major == 11:
        text, bad = ctypes.create_string_buffer(b"x" * 9, 9), ctypes.c_void_p(5)
        assert lib.cudaGraphInstantiate(ref(ready), graph, ref(bad), text, size(9)) == 0
    else:
        assert lib.cudaGraphInstantiate(ref(ready), graph, ctypes.c_ulonglong(0)) == 0
    assert lib.cudaGraphLaunch(ready, stream) == 0

    result = (ctypes.c_int * 6)(*[9] * 6)  # the result and the node, of 8 bytes each, and another
    for launches in (2, 1):
        other, _ = capture(10, launches)
        if major == 11:
            bad = ctypes.c_void_p(5)
            error = lib.cudaGraphExecUpdate(ready, other, ref(bad), result)
        else:
            error = lib.cudaGraphExecUpdate(ready, other, result)
        print(program.name(error), result[0])
    assert lib.cudaGraphLaunch(ready, stream) == 0
    assert lib.cudaMemcpy(ones, y, size(4 * n), 2) == 0
    print(ones[n - 1])
    if major >= 12:
        parameters = (ctypes.c_byte * 256)()
        parameters[0] = 5  # an empty node
        node, added = ctypes.c_void_p(), lib.cudaGraphAddNode
        assert added(ref(node), graph, ref(second), *no_data, size(1), parameters) == 0
        assert lib.cudaGraphNodeGetDependencies(node, None, *no_data, ref(count)) == 0
        assert count.value == 1


if __name__ == "__main__":
    {
        "axpy": axpy,
        "graph": graph,
        "many": many,
        "wait": wait,
        "machine_code": machine_code,
        "file": file,
        "damaged": damaged,
        "syntax_error": syntax_error,
        "properties": properties,
    }[sys.argv[2]](sys.argv[1])
