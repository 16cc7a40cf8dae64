"""Memory of simulated devices: its limits, what is given back, and copies of what stands for it."""

import copy
import gc
import pickle
import re

import numpy as np
import pytest

import warpstack as ws
from warpstack import InputError, cuda

WRITER = """
.visible .entry writer(.param .u64 out)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r1;
    ret;
}
"""

READER = """
.visible .entry reader(.param .u64 in)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [in];
    ld.global.u32 %r1, [%rd1+4];
    st.global.u32 [%rd1], %r1;
    ret;
}
"""


def module(text, device):
    return cuda.compile(f".version 7.8\n.target sm_75\n.address_size 64\n{text}", device=device)


def entry(declarations, body="", name="k", parameters=""):
    return f".visible .entry {name}({parameters})\n{{\n{declarations}\n{body}\nret;\n}}\n"


def status(field):
    with open("/proc/self/status") as file:
        for line in file:
            if line.startswith(field + ":"):
                return int(line.split()[1]) << 10
    raise AssertionError(field)


@pytest.fixture
def device():
    return cuda.Device(0.25)


# ---- copies of what stands for memory ----


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
def test_a_copied_array_has_memory_of_its_own(device, duplicate):
    array = device.array(np.arange(6, dtype=np.int32).reshape(2, 3))
    other = duplicate(array)
    assert (other.shape, other.dtype, other.device) == (array.shape, array.dtype, device)
    assert other.address != array.address
    array.copy_from(np.zeros((2, 3), np.int32))
    assert np.array_equal(np.asarray(other), np.arange(6).reshape(2, 3))
    used = device.used_bytes
    del array
    assert device.used_bytes == used - 256
    assert device.empty(3).address != other.address
    assert np.array_equal(np.asarray(other), np.arange(6).reshape(2, 3))
    del other
    assert device.used_bytes == 0


def test_copies_of_views_of_variables_and_of_empty_arrays(device):
    loaded = module(".visible .global .align 4 .u32 v[2] = {7, 8};\n" + WRITER, device)
    view = loaded.symbol("v", np.uint32)
    own = copy.copy(view)
    view.copy_from(np.uint32([1, 2]))
    del view
    assert np.asarray(own).tolist() == [7, 8]
    assert np.asarray(loaded.symbol("v", np.uint32)).tolist() == [1, 2]
    assert copy.copy(device.zeros((0, 3))).shape == (0, 3)


def test_a_copy_of_unwritten_elements_is_unwritten(device):
    duplicate = copy.copy(device.empty(4, np.int32))
    with pytest.raises(InputError, match="which nobody has written"):
        module(READER, device).kernel("reader").launch(1, 1, duplicate)


@pytest.mark.parametrize(
    "operation", [copy.copy, copy.deepcopy, pickle.dumps], ids=["copy", "deepcopy", "pickle"]
)
@pytest.mark.parametrize("kind", ["Device", "Module", "Kernel", "Texture", "DeviceArray"])
def test_handles_are_neither_copied_nor_pickled(device, kind, operation):
    loaded = module(WRITER, device)
    source = device.zeros((4, 4))
    values = {
        "Device": device,
        "Module": loaded,
        "Kernel": loaded.kernel("writer"),
        "Texture": cuda.texture(source),
        "DeviceArray": source,
    }
    if kind == "DeviceArray" and operation is not pickle.dumps:
        operation(values[kind])  # allowed: see above
        return
    with pytest.raises(InputError, match=rf"cuda.{kind} .* can be neither copied nor pickled; "):
        operation(values[kind])
    loaded.kernel("writer").launch(1, 4, source)


# ---- what is given back ----


@pytest.mark.slow
def test_twenty_thousand_devices():
    before = status("VmSize")
    peak = 0
    for i in range(20_000):
        device = cuda.Device()
        if i % 1000 == 0:
            device.zeros(1000)
            peak = max(peak, status("VmSize"))
    del device
    # One device, and another while it replaces the first.
    assert peak < before + (40 << 30)
    assert status("VmSize") < before + (1 << 30)


def test_a_device_prints_while_its_module_lives():
    said = []
    device = cuda.Device(0.25, print_to=said.append)
    loaded = module(
        ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n"
        ".global .align 1 .b8 text[4] = {104, 105, 10, 0};\n"
        + entry(
            ".reg .b64 %rd<3>; .reg .b32 %r<2>;",
            "mov.u64 %rd1, text; cvta.global.u64 %rd2, %rd1;\n"
            "{ .param .b64 p0; .param .b64 p1; .param .b32 q;\n"
            "st.param.b64 [p0], %rd2; st.param.b64 [p1], 0;\n"
            "call.uni (q), vprintf, (p0, p1); ld.param.b32 %r1, [q]; }",
        ),
        device,
    )
    kernel = loaded.kernel("k")
    del device, loaded
    gc.collect()
    kernel.launch(1, 1)
    assert "".join(said) == "hi\n"


def test_an_array_keeps_its_device():
    array = cuda.Device(0.25).array(np.arange(5))
    gc.collect()
    assert np.asarray(array).tolist() == [0, 1, 2, 3, 4]


def test_modules_give_their_variables_back(device):
    text = ".visible .global .align 4 .b8 v[100000];\n" + WRITER
    before = device.used_bytes
    for _ in range(300):
        module(text, device).kernel("writer")
    assert device.used_bytes == before
    broken = ".global .align 4 .b8 v[100000];\n.const .b8 c[65537];\n" + WRITER
    with pytest.raises(InputError, match="take 65537 bytes"):
        module(broken, device)
    assert device.used_bytes == before


def test_short_traces_are_small(device):
    kernel = module(WRITER, device).kernel("writer")
    out = device.zeros(32)
    before = status("VmSize")
    traces = [kernel.launch(1, 32, out) for _ in range(500)]
    assert status("VmSize") < before + (100 << 20)
    assert {trace.num_warps for trace in traces} == {1}


# ---- sizes ----


def test_untouched_variables_take_no_memory():
    device = cuda.Device(16)
    before = status("VmRSS")
    loaded = module(".visible .global .align 8 .b8 huge[12884901888];\n" + WRITER, device)
    huge = loaded.symbol("huge", np.uint8)
    assert huge.nbytes == 12 << 30
    assert device.empty(2 << 30, np.uint8).nbytes == 2 << 30
    assert status("VmRSS") < before + (100 << 20)


@pytest.mark.parametrize(
    ("declaration", "message"),
    [
        (".local .b8 s[400000000];", r":6: kernel k: the local variables need 400000000 bytes"),
        (".local .b8 s[4294967312];", r":6: kernel k: the local variables need 4294967312 bytes"),
        (".local .b8 s[524288]; .local .b8 t[1];", r"need 524289 bytes of local memory per thread"),
        (".local .b64 s[70000];", r"need 560000 bytes of local memory .*, at most 524288"),
        (".local .v4 .b32 s[65536][65536];", r"need 68719476736 bytes"),
        (".param .b8 p[4294967304];", r"the parameters of it and of its calls need 4294967304"),
    ],
)
def test_local_memory_of_a_thread(device, declaration, message):
    loaded = module(entry(declaration), device)
    with pytest.raises(InputError, match=message):
        loaded.kernel("k")


def test_local_memory_of_a_chain_of_calls(device):
    def function(name, callee):
        call = f"call.uni {callee};" if callee else ""
        return f".func {name}\n{{\n.local .align 4 .b8 s[200000];\n{call}\nret;\n}}\n"

    text = function("c", "") + function("b", "c") + function("a", "b")
    assert module(text + entry("", "call.uni b;"), device).kernel("k").local_memory_bytes == 400000
    with pytest.raises(InputError, match=r"functions that it calls need 600000 bytes of local"):
        module(text + entry("", "call.uni a;"), device).kernel("k")


def test_local_memory_of_a_block(device):
    text = entry(
        ".local .align 4 .b8 s[500000]; .reg .b32 %r<2>;",
        "st.local.u32 [s+499996], 5; ld.local.u32 %r1, [s+499996];",
    )
    kernel = module(text, device).kernel("k")
    before = status("VmRSS")
    kernel.launch(3, 512)
    assert status("VmRSS") < before + (100 << 20)
    message = (
        "kernel k: the threads that run at once need 512000000 bytes of local memory (500000 each), "
        "and the device has 268435456 of 268435456 bytes free"
    )
    with pytest.raises(InputError, match=re.escape(message)):
        kernel.launch(1, 1024)
    with pytest.raises(InputError, match="at once need 512000000 bytes"):
        kernel.launch(32, 32, cooperative=True)
    module(text, cuda.Device(0.5)).kernel("k").launch(1, 1024)


def test_local_memory_begins_as_zero_in_every_block(device):
    """Pages of a large array that one block wrote do not show through in the next."""
    kernel = module(
        entry(
            ".local .align 4 .b8 s[100000]; .reg .b32 %r<4>; .reg .b64 %rd<4>;",
            "ld.param.u64 %rd1, [p]; mov.u32 %r1, %ctaid.x; ld.local.u32 %r2, [s+80000];\n"
            "mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2;\n"
            "st.global.u32 [%rd3], %r2; st.local.u32 [s+80000], 9;",
            parameters=".param .u64 p",
        ),
        device,
    ).kernel("k")
    out = device.empty(3, np.uint32)
    kernel.launch(3, 1, out, check_uninitialized=False)
    assert np.asarray(out).tolist() == [0, 0, 0]


def test_sizes_of_parameters(device):
    wide = ".param .align 4 .b8 p[32764]"
    assert module(entry("", parameters=wide), device).kernel("k").launch(1, 1, bytes(32764))
    for size in (32765, 4294967300):
        loaded = module(entry("", parameters=f".param .b8 p[{size}]"), device)
        with pytest.raises(InputError, match=rf":4: .* up to p take {size} bytes, at most 32764"):
            loaded.kernel("k")


def test_offsets_of_parameters_are_not_cut(device):
    body = "ld.param.u32 %r1, [p+4294967296];"
    kernel = module(entry(".reg .b32 %r<2>;", body, parameters=".param .u32 p"), device).kernel("k")
    with pytest.raises(InputError, match="load of 4 bytes at offset 4294967296 of 4 bytes"):
        kernel.launch(1, 1, 5)


def test_offsets_of_local_variables_are_not_cut(device):
    body = "st.local.u32 [s+4294967296], 1;"
    kernel = module(entry(".local .align 4 .b8 s[16];", body), device).kernel("k")
    with pytest.raises(
        InputError, match=r"out-of-bounds store of 4 bytes at .*: the thread has 16"
    ):
        kernel.launch(1, 1)


@pytest.mark.parametrize("size", [232449, 4294967312, 1 << 40])
def test_shared_memory_of_a_block(device, size):
    use = "st.shared.u32 [s], 1;"
    kernel = module(entry(f".shared .align 4 .b8 s[{size}];", use), device).kernel("k")
    with pytest.raises(InputError, match=f"a block needs {size} bytes of shared memory, at most"):
        kernel.launch(1, 1)


def test_constants_and_full_devices(device):
    module(".const .align 4 .b8 c[65536];\n" + WRITER, device)
    for text in (".const .b8 c[65537];", ".const .b8 b[65000];\n.const .b8 c[537];"):
        with pytest.raises(InputError, match=r": variable c: .* take 65537 bytes, at most 65536"):
            module(text + WRITER, device)
    message = r":4: variable v: the simulated device has no room for 4294967312 bytes"
    with pytest.raises(InputError, match=message):
        module(".global .b8 v[4294967312];\n" + WRITER, device)
    assert device.used_bytes == 0


def test_largest_block_of_a_kernel(device):
    """The product of the limits does not fit 32 bits."""
    text = entry("").replace("\n{", "\n.maxntid 65536, 65536, 1\n{", 1)
    assert module(text, device).kernel("k").launch(1, 1024).num_warps == 32


def test_arrays_beyond_all_addresses(device):
    for shape in ((2**40, 2**40), (2**48,) * 8, 2**47):
        with pytest.raises(InputError, match=r"no device has|no room for"):
            device.empty(shape, np.float64)
    assert device.used_bytes == 0
    assert ws.cuda.empty(0).nbytes == 0
