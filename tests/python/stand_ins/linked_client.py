"""A CUDA host program of relocatable device code without nvcc: what `nvcc -rdc=true` makes, by ctypes.

Usage: linked_client.py LIBRARY SCENARIO. Prints what `test_host_relocatable` expects.
"""

import ctypes
import sys

from host_client import Dim3, Wrapper, container, image

HEADER = ".version 7.0\n.target sm_75\n.address_size 64\n"

#: Adds twice(depth) in each block and launches itself, with two blocks, one level less deep.
FIRST = r"""
.extern .func (.param .b64 r) __cudaCDP2GetParameterBufferV2
    (.param .b64 f, .param .align 4 .b8 g[12], .param .align 4 .b8 b[12], .param .b32 s);
.extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2(.param .b64 b, .param .b64 s);
.extern .func (.param .b32 r) twice(.param .b32 x);
.extern .global .align 4 .u32 total;
.global .align 4 .u32 mine = 5;

.visible .entry count(.param .u32 depth)
{
    .reg .pred %p<3>;
    .reg .b32 %r<6>;
    .reg .b64 %rd<3>;
    .param .b32 x;
    .param .b32 y;
    .param .b64 kernel;
    .param .align 4 .b8 grid[12];
    .param .align 4 .b8 block[12];
    .param .b32 shared;
    .param .b64 buffer;
    .param .b64 stream;
    .param .b32 error;
    ld.param.u32 %r1, [depth];
    st.param.b32 [x], %r1;
    call.uni (y), twice, (x);
    ld.param.b32 %r2, [y];
    red.global.add.u32 [total], %r2;
    setp.eq.u32 %p1, %r1, 0;
    @%p1 ret;
    mov.u64 %rd1, count;
    st.param.b64 [kernel], %rd1;
    st.param.b32 [grid], 2;
    st.param.b32 [grid+4], 1;
    st.param.b32 [grid+8], 1;
    st.param.b32 [block], 1;
    st.param.b32 [block+4], 1;
    st.param.b32 [block+8], 1;
    st.param.b32 [shared], 0;
    call.uni (buffer), __cudaCDP2GetParameterBufferV2, (kernel, grid, block, shared);
    ld.param.b64 %rd2, [buffer];
    sub.u32 %r3, %r1, 1;
    st.u32 [%rd2], %r3;
    st.param.b64 [stream], 0;
    call.uni (error), __cudaCDP2LaunchDeviceV2, (buffer, stream);
    ld.param.b32 %r4, [error];
    setp.ne.u32 %p2, %r4, 0;
    @%p2 trap;
    ret;
}
"""

SECOND = r"""
.visible .global .align 4 .u32 total = 100;
.global .align 4 .u32 mine = 2;

.visible .func (.param .b32 r) twice(.param .b32 x)
{
    .reg .b32 %r<4>;
    ld.param.b32 %r1, [x];
    ld.global.u32 %r2, [mine];
    mul.lo.u32 %r3, %r1, %r2;
    st.param.b32 [r], %r3;
    ret;
}
"""

#: The beginning of NVIDIA's libcudadevrt, which is linked, too, and calls the driver.
RUNTIME = ".extern .func cnpGetParameterBufferV2;\n"


def main(library, scenario):
    lib = ctypes.CDLL(library)
    lib.cudaGetErrorName.restype = ctypes.c_char_p
    texts = [FIRST, SECOND, RUNTIME]
    if "11" in library:
        texts[0] = FIRST.replace("__cudaCDP2", "cuda")
    if scenario == "clash":
        texts.append(SECOND)
    if scenario == "synchronize":
        texts[0] = FIRST.replace("__cudaCDP2LaunchDeviceV2", "cudaDeviceSynchronize")
    images = [image(1, 75, (HEADER + text).encode() + b"\0") for text in texts]
    if scenario == "no_ptx":
        images[1] = image(2, 75, b"ELF")
    objects = [ctypes.create_string_buffer(container(each)) for each in images]
    ends = [ctypes.addressof(each) for each in objects]
    prelinked = (ctypes.c_void_p * 5)(*ends)
    linked = ctypes.create_string_buffer(container())
    wrapper = Wrapper(
        0x466243B1,
        2,
        ctypes.cast(linked, ctypes.c_char_p),
        ctypes.cast(prelinked, ctypes.c_void_p),
    )
    register = getattr(lib, "__cudaRegisterFatBinary")
    register.restype = ctypes.c_void_p
    handle = ctypes.c_void_p(register(ctypes.byref(wrapper)))
    stub, shadow = ctypes.create_string_buffer(1), ctypes.create_string_buffer(4)
    getattr(lib, "__cudaRegisterFunction")(handle, stub, stub, b"count", -1, *[None] * 5)
    size = ctypes.c_size_t(4)
    getattr(lib, "__cudaRegisterVar")(handle, shadow, shadow, b"total", 0, size, 0, 0)
    getattr(lib, "__cudaRegisterFatBinaryEnd")(handle)

    depth = ctypes.c_uint(3)
    pointers = (ctypes.c_void_p * 1)(ctypes.addressof(depth))
    launch = lib.cudaLaunchKernel
    launch.argtypes = (
        ctypes.c_void_p,
        Dim3,
        Dim3,
        ctypes.c_void_p,
        ctypes.c_size_t,
        ctypes.c_void_p,
    )
    one = Dim3(1, 1, 1)
    error = launch(ctypes.addressof(stub), one, one, pointers, 0, None)
    print(lib.cudaGetErrorName(error).decode())
    if error:
        return
    total = ctypes.c_uint()
    zero = ctypes.c_size_t(0)
    assert lib.cudaMemcpyFromSymbol(ctypes.byref(total), shadow, size, zero, 2) == 0
    print(total.value)


if __name__ == "__main__":
    main(*sys.argv[1:])
