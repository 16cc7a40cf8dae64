"""Accesses outside of every allocation, and reads of what nobody has written, are told apart and named."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import warpstack as ws
from warpstack import InputError, cuda
from warpstack.cuda import host

PROGRAMS = Path(__file__).parents[1] / "stand_ins" / "host_programs"

READ = """.version 7.0
.target sm_75
.address_size 64
.visible .entry read(.param .u64 from, .param .u64 to, .param .u64 index)
{
.reg .b64 %a<4>; .reg .b32 %v;
ld.param.u64 %a0, [from]; ld.param.u64 %a1, [to]; ld.param.u64 %a2, [index];
shl.b64 %a2, %a2, 2; add.s64 %a0, %a0, %a2;
ld.global.u32 %v, [%a0];
st.global.u32 [%a1], %v;
ret;
}
"""
LOOP = READ.replace("read(", "sum(").replace(
    "ld.global.u32 %v, [%a0];",
    """.reg .b64 %i; .reg .pred %p;
ld.param.u64 %a0, [from]; mov.u64 %i, 0;
loop: ld.global.u32 %v, [%a0]; add.s64 %a0, %a0, 4; add.s64 %i, %i, 4;
setp.lt.u64 %p, %i, %a2; @%p bra loop;""",
)


@pytest.fixture
def device():
    return cuda.Device(0.25)


def kernel(text, device):
    return cuda.compile(text, device=device).kernel("sum" if "sum(" in text else "read")


@pytest.mark.parametrize("index", [1024, 1025, 1_000_000, 4_000_000, -1, -1000])
def test_an_access_beyond_an_array_never_reads_a_neighbour(device, index):
    """Neighbours of all kinds stand on either side; the message says how far outside it is."""
    neighbours = [device.zeros(100_000, np.uint32) for _ in range(3)]
    array = device.array(np.arange(1024, dtype=np.uint32))
    neighbours += [device.zeros(100_000, np.uint32), device.empty(7, np.uint8)]
    out = device.zeros(1, np.uint32)
    launch = kernel(READ, device).launch
    with pytest.raises(InputError) as error:
        launch(1, 1, array, out, index % 2**64)
    distance = 4 * (index - 1024) if index > 0 else -4 * index
    side = "past the end of" if index > 0 else "before"
    named = f"it is {distance} bytes {side} the 4096-byte allocation at {array.address:#x}"
    assert named in str(error.value)
    assert launch(1, 1, array, out, 1023) is not None
    assert out.to_host()[0] == 1023


def test_a_loop_is_stopped_at_the_first_element_beyond(device):
    array, _, out = (device.zeros(n, np.uint32) for n in (1024, 1_000_000, 1))
    with pytest.raises(InputError, match="it is 0 bytes past the end of the 4096-byte allocation"):
        kernel(LOOP, device).launch(1, 1, array, out, 1_000_000)


def test_freed_memory_belongs_to_nobody(device):
    array, other, out = (device.zeros(n, np.uint32) for n in (1024, 1024, 1))
    address, launch = array.address, kernel(READ, device).launch
    del array
    with pytest.raises(InputError, match="out-of-bounds load"):
        launch(1, 1, address, out, 0)
    assert other.to_host().sum() == 0


def test_addresses_are_aligned_and_arrays_apart(device):
    arrays = [device.zeros(n, np.uint8) for n in (1, 300, 256, 0, 1 << 20)]
    addresses = [array.address for array in arrays]
    assert all(address % 256 == 0 for address in addresses)
    ends = [array.address + array.nbytes for array in arrays]
    gaps = [begin - end for end, begin in zip(ends, addresses[1:], strict=False)]
    assert min(gaps) > 30 << 20


def test_gaps_take_no_memory_of_the_device():
    """A device can be filled to the last 256 bytes, with as many arrays as fit."""
    device = cuda.Device(1 / 16)
    arrays = [device.empty(1, np.uint8) for _ in range(2**26 // 256)]
    assert len({array.address for array in arrays}) == len(arrays)
    with pytest.raises(InputError, match="no room for 1 bytes: 0 of 67108864"):
        device.empty(1, np.uint8)
    del arrays[::2]
    device.empty(1, np.uint8)


def test_gaps_take_nothing_of_a_large_device():
    """The default device has its 16 GiB where the address space is not limited."""
    device = cuda.Device()
    with pytest.raises(InputError, match=f"{2**34} of {2**34} bytes are free"):
        device.empty(2**34 + 1, np.uint8)
    whole = device.empty(2**34, np.uint8)
    assert device.used_bytes == whole.nbytes == 2**34


def test_traces_of_workloads_have_no_gaps():
    """What caches see is what a GPU's allocator gives: arrays back to back from the base."""
    kernel = ws.workloads.load("hotspot")[0]
    sectors = np.concatenate([kernel.warp(0, w)["sector"] for w in range(8)]).astype(np.int64)
    sectors = sectors[sectors * 32 >= 0x7000_0000_0000] - 0x7000_0000_0000 // 32
    assert sectors.size
    assert sectors.max() * 32 < 16 << 20  # three arrays of less than a MiB each


# --- programs -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    if nvcc is None or not sys.platform.startswith("linux"):
        pytest.skip("nvcc is not installed")
    folder = tmp_path_factory.mktemp("guards")
    for name in ("guards", "texels"):
        target = ["-cudart", "shared", "-gencode", "arch=compute_75,code=compute_75"]
        command = [nvcc, *target, "-o", folder / name, PROGRAMS / f"{name}.cu"]
        subprocess.run(command, check=True, timeout=300)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("how", ["malloc", "managed", "pinned", "async", "pitch", "3d"])
def test_memory_of_programs_stands_apart(programs, tmp_path, capfd, how):
    for index in (1023, 1024, 1_001_023, -1):
        command = [programs / "guards", how, index]
        if index == 1023:
            assert not host.trace_program(command, tmp_path / "out").problem()
            assert capfd.readouterr().out.split() == ["cudaSuccess"]
            continue
        with pytest.raises(InputError, match="out-of-bounds"):
            host.trace_program(command, tmp_path / "bad")
        out, told = capfd.readouterr()
        assert out.split() == ["cudaErrorIllegalAddress"]
        distance = 4 * (index - 1024) if index > 0 else 4
        side = "past the end of" if index > 0 else "before"
        assert f"it is {distance} bytes {side} the 4096-byte allocation at" in told


@pytest.mark.slow
@pytest.mark.parametrize("how", ["named", "inner"])
def test_variables_and_memory_of_kernels_stand_apart(programs, tmp_path, capfd, how):
    good = host.trace_program([programs / "guards", how, 63], tmp_path / "out")
    assert not good.problem()
    with pytest.raises(InputError):
        host.trace_program([programs / "guards", how, 64], tmp_path / "bad")
    assert re.search(r"it is 0 bytes past the end of the 256-byte ", capfd.readouterr().err)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["point", "linear", "surface"])
def test_texels_that_nobody_has_written(programs, tmp_path, capfd, how):
    """Rows 0 and 1 are copied, a kernel writes the texel (3, 2), nobody the rest."""
    for x, y, value in ((9, 1, "19"), (0, 0, "0"), (3, 2, "5"), (4, 2, None), (9, 3, None)):
        command = [programs / "texels", how, x, y]
        result = host.trace_program(command, tmp_path / "out", overwrite=True)
        out, err = capfd.readouterr()
        if value is not None:
            assert out.split() == [value]
            assert not result.problem()
            continue
        assert "which nobody has written" in result.problem()
        assert "--allow-uninitialized" in err
    result = host.trace_program(
        [programs / "texels", how, 4, 2], tmp_path / "out", allow_uninitialized=True, overwrite=True
    )
    assert not result.problem()
    assert capfd.readouterr().out.split() == ["0"]


def test_a_texture_of_an_array_that_nobody_has_written(device):
    text = READ.replace("index)", "index, .param .u64 image)").replace(
        "ld.global.u32 %v, [%a0];",
        """.reg .b64 %t; .reg .b32 %x, %w<4>;
ld.param.u64 %t, [image]; ld.param.u32 %x, [index];
tex.1d.v4.u32.s32 {%v, %w1, %w2, %w3}, [%t, {%x}];""",
    )
    source = device.empty(8, np.uint32)
    out = device.zeros(1, np.uint32)
    launch = kernel(text, device).launch
    image = cuda.texture(source)
    with pytest.raises(InputError, match=r"of a texture, which nobody has written: 12 bytes into"):
        launch(1, 1, source, out, 3, image)
    with pytest.warns(cuda.KernelWarning, match="nobody has written"):
        launch(1, 1, source, out, 3, image, on_fault="continue")
    launch(1, 1, source, out, 3, image, check_uninitialized=False)
    source.copy_from(np.arange(8, dtype=np.uint32))
    launch(1, 1, source, out, 3, image)
    assert out.to_host()[0] == 3
