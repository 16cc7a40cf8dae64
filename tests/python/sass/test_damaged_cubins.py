"""Damaged cubins: each is one clear error, or has the same machine code as before."""

import copy
import re
import struct

import numpy as np
import pytest

import warpstack as ws
from effort import rounds
from warpstack import _core
from warpstack.cuda import disassembly
from warpstack.cuda.cubin import Cubin, _LineProgram
from warpstack.cuda.disassembly import find_nvdisasm, listing_of
from warpstack.cuda.toolchain import compile_both
from warpstack.errors import InputError

pytestmark = pytest.mark.skipif(
    find_nvdisasm() is None or not ws.cuda.compilers(),
    reason="nvdisasm or a CUDA compiler is not installed",
)

SOURCE = """
struct Numbers { int a; double b[2]; };
__constant__ float weights[4] = {1, 2, 3, 4};
__device__ int base = 5;
__device__ int* pointer = &base;
extern "C" __global__ void __launch_bounds__(128) k(float* o, Numbers n) {
  __shared__ int tile[64];
  tile[threadIdx.x] = n.a;
  __syncthreads();
  o[threadIdx.x] = weights[threadIdx.x % 4] + *pointer + tile[63 - threadIdx.x] + n.b[n.a];
}
extern "C" __global__ void other(int* o) { o[threadIdx.x] = 1; }
"""


@pytest.fixture(scope="module", params=["sm_75", "sm_90"])
def cubin(request):
    return compile_both(SOURCE, "<source>", request.param, (), None)[1]


@pytest.fixture(scope="module")
def instructions(cubin):
    return disassembly._disassemble(cubin, "k.cubin")


@pytest.fixture
def code(instructions, monkeypatch):
    """Let the listing have the instructions of the sound cubin, without nvdisasm, which is slow."""
    monkeypatch.setattr(disassembly, "_disassemble", lambda data, file: copy.deepcopy(instructions))


def outcome(data):
    """Return the listing of a cubin that reads, or what is wrong with it."""
    try:
        listing = listing_of(data, "k.cubin")
        _core.SassModule(listing, "k.cubin", True)
        return listing
    except InputError as error:
        return error


def section_bytes(data, name):
    """Return where the bytes of a section lie in the file."""
    section = Cubin(data, "k.cubin").find(name)
    at = struct.unpack_from("<Q", data, 40)[0] + 64 * section.number
    offset, size = struct.unpack_from("<QQ", data, at + 24)
    return range(offset, offset + size)


def without_lines(listing):
    kept = [line for line in listing.splitlines() if not line.startswith(".file")]
    return [re.sub(r"^([0-9a-f]+) \d+:\d+ ", r"\1 ", line) for line in kept]


def test_flipped_and_missing_bytes(cubin, code):
    generator = np.random.default_rng()
    errors = set()
    for _ in range(rounds(900)):
        damaged = bytearray(cubin)
        if generator.random() < 0.1:
            del damaged[generator.integers(len(cubin)) :]
        for at in generator.integers(len(damaged) or 1, size=generator.integers(1, 3)):
            damaged[at : at + 1] = generator.choice([b"\0", b"\xff", generator.bytes(1)])
        result = outcome(bytes(damaged))
        if isinstance(result, InputError):
            assert re.match(r"k\.cubin: [^\n]+(;|,|\() ?[^\n]+$", str(result)), result
            errors.add(re.sub(r"0x[0-9a-f]+|\d+", "#", str(result)))
    assert len(errors) > 3


def test_every_byte_of_the_headers_of_sections(cubin, code):
    table = struct.unpack_from("<Q", cubin, 40)[0]
    found = 0
    for at in range(table, min(len(cubin), table + 64 * 40), 5):
        damaged = bytearray(cubin)
        damaged[at] ^= 0x80
        found += isinstance(outcome(bytes(damaged)), InputError)
    assert found > 50


def test_damage_of_lines_drops_lines_only(cubin, code):
    whole = without_lines(listing_of(cubin, "k.cubin"))
    places = section_bytes(cubin, ".debug_line")
    generator = np.random.default_rng()
    for _ in range(rounds(200)):
        damaged = bytearray(cubin)
        for at in generator.choice(places, size=3):
            damaged[at] = generator.integers(256)
        result = outcome(bytes(damaged))
        assert not isinstance(result, InputError), result
        assert without_lines(result) == whole


def test_numbers_without_an_end_take_no_time():
    header = struct.pack("<HIBBbBB", 2, 16, 1, 1, -5, 14, 10) + bytes(9) + b"\0\0"
    program = b"\x02" + b"\x80" * 5_000_000
    data = struct.pack("<I", len(header) + len(program)) + header + program
    with pytest.raises(ValueError, match="a number without an end"):
        _LineProgram(data, {}, [], b"").run()


@pytest.mark.parametrize(
    ("name", "offset", "value", "message"),
    [
        (".nv.info.k", 0, 0xFF, r"attribute 0xff in section .nv.info.k at 0x0 has the form"),
        (".symtab", 24, 0xFF, r"the name of symbol 1 is at 0x\w+ of 0x\w+ bytes"),
        (".shstrtab", 1, 0x0A, r"the name of section \d+ is b'"),
    ],
)
def test_messages_name_the_place(cubin, code, name, offset, value, message):
    damaged = bytearray(cubin)
    places = section_bytes(cubin, name)
    for at in range(places[0] + offset, places[0] + offset + 4):
        damaged[at] = value
    with pytest.raises(InputError, match=f"^k.cubin: {message}.*make it anew$"):
        listing_of(bytes(damaged), "k.cubin")


def test_other_architectures(cubin):
    old = bytearray(cubin)
    flags = struct.unpack_from("<I", cubin, 48)[0]
    shift = 8 if cubin[8] >= 8 else 0
    struct.pack_into("<I", old, 48, flags & ~(255 << shift) | 30 << shift)
    with pytest.raises(InputError, match="machine code for sm_30 is not read; compile for sm_75"):
        ws.cuda.load_cubin(bytes(old))


def test_a_cubin_may_have_variables_alone():
    empty = compile_both("__device__ int x = 7;", "<source>", "sm_80", (), None)[1]
    module = ws.cuda.load_cubin(empty)
    assert module.kernels == ()
    assert np.asarray(module.symbol("x", np.int32)) == 7


def test_messages_about_code_name_the_cubin_and_not_its_listing(cubin, instructions, monkeypatch):
    """nvdisasm may write what the core does not know."""
    found = copy.deepcopy(instructions)
    found["k"][2]["operands"] = "R1, [R2+R3]"
    monkeypatch.setattr(disassembly, "_disassemble", lambda data, file: copy.deepcopy(found))
    with pytest.raises(
        InputError, match=r"^<cubin>: kernel k, machine code at 0x20: operand \[R2\+R3\].*anew"
    ):
        ws.cuda.load_cubin(cubin)


def test_objects_that_are_not_linked():
    source = '__device__ int t[4]; extern "C" __global__ void k(int* o) { *o = t[*o]; }'
    data = compile_both(source, "<source>", "sm_80", ("-rdc=true",), None)[1]
    with pytest.raises(InputError, match=r"<cubin>: it is an object that is not linked.*-rdc=true"):
        ws.cuda.load_cubin(data)
