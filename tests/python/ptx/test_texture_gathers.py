"""Gathers, gradients and offsets of textures, as PTX and as the machine code that ptxas makes of it."""

import functools
import itertools

import numpy as np
import pytest

import machine_forms
import warpstack as ws
from effort import rounds
from ptx_forms import at, compile_body
from python_reference.textures import accesses, gathered, sampled
from warpstack.cuda.disassembly import find_nvdisasm
from warpstack.cuda.toolchain import find_ptxas
from warpstack.errors import InputError

needs_tools = pytest.mark.skipif(
    find_ptxas() is None or find_nvdisasm() is None, reason="ptxas or nvdisasm is not installed"
)
#: None: PTX itself.
ARCHS = [None, *(pytest.param(a, marks=needs_tools) for a in ("sm_75", "sm_80", "sm_90", "sm_120"))]
MODES = ("wrap", "clamp", "mirror", "border")
COUNT = 64

#: Registers: coordinates %f0 to %f2, gradients %f3 to %f8, offsets %r1 and %r2, layer %r3.
FETCHES = {
    **{f"tld4.{c}.2d": "{%f0, %f1}]" for c in "rgba"},
    "tld4.g.2d offsets": "{%f0, %f1}], {%r1, %r2}",
    "tld4.b.a2d": "{%r3, %f0, %f1, %f1}]",
    "tld4.a.a2d offsets": "{%r3, %f0, %f1, %f1}], {%r1, %r2}",
    "tex.grad.1d": "{%f0}], {%f3}, {%f4}",
    "tex.grad.2d": "{%f0, %f1}], {%f3, %f4}, {%f5, %f6}",
    "tex.grad.a1d": "{%r3, %f0}], {%f3}, {%f4}",
    "tex.grad.a2d": "{%r3, %f0, %f1, %f1}], {%f3, %f4}, {%f5, %f6}",
    "tex.grad.2d offsets": "{%f0, %f1}], {%f3, %f4}, {%f5, %f6}, {%r1, %r2}",
    "tex.grad.a2d offsets": "{%r3, %f0, %f1, %f1}], {%f3, %f4}, {%f5, %f6}, {%r1, %r2}",
    "tex.2d offsets": "{%f0, %f1}], {%r1, %r2}",
    "tex.3d offsets": "{%f0, %f1, %f2, %f2}], {%r1, %r2, %r1, %r1}",
    "tex.level.2d": "{%f0, %f1}], %f3",
    "tex.level.2d offsets": "{%f0, %f1}], %f3, {%r1, %r2}",
    "tex.level.a2d offsets": "{%r3, %f0, %f1, %f1}], %f3, {%r1, %r2}",
}
#: ptxas makes loops over the threads of a quad, or calls of the driver's functions, of these.
ONLY_PTX = {
    "tex.grad.3d": "{%f0, %f1, %f2, %f2}], {%f3, %f4, %f5, %f5}, {%f6, %f7, %f8, %f8}",
}


@functools.cache
def bodies(kind, handles):
    """Return the body of a kernel with a fetch into %r4 to %r7 for results of a type."""
    return {
        name: (
            ("ld.param.u64 %l1, [q];" if handles == "parameter" else at("%l1", "%a2", "%g", 8))
            + ("ld.global.u64 %l1, [%l1];" if handles == "memory" else "")
            + at("%l0", "%a0", "%g", 64)
            + "".join(f"ld.global.f32 %f{i}, [%l0+{4 * i}];" for i in range(9))
            + "".join(f"ld.global.u32 %r{i}, [%l0+{36 + 4 * i}];" for i in (1, 2, 3))
            + f"{name.split()[0]}.v4.{kind}.f32 {{%r4, %r5, %r6, %r7}}, [%l1, {operands};"
            + at("%l2", "%a1", "%g", 16)
            + "st.global.v4.u32 [%l2], {%r4, %r5, %r6, %r7};"
        )
        for name, operands in (FETCHES | ONLY_PTX).items()
    }


def dimensions_of(name):
    """Return the dimensions of a fetch, and whether there are layers."""
    shape = name.split()[0].split(".")[-1]
    return int(shape[-2]), shape[0] == "a"


def texels_of(rng, dtype, shape, channels):
    """Return random texels, and what an array of a device holds."""
    if dtype[0] == "f":
        values = rng.normal(0, 1, (*shape, channels)).astype(dtype)
    else:
        values = rng.integers(0, 256, (*shape, channels * int(dtype[1])), np.uint8).view(dtype)
    record = np.dtype([(f"c{i}", dtype) for i in range(channels)])
    held = values.view(record)[..., 0] if channels > 1 else values[..., 0].copy()
    return values, np.ascontiguousarray(held)


def arguments_of(rng, sizes, normalized):
    """Return what each thread reads: coordinates, gradients, offsets and layers."""
    rows = np.zeros((COUNT, 16), np.float32)
    for d, size in enumerate(sizes):
        texels = rng.uniform(-1.5 * size, 2.5 * size, COUNT)
        # Exactly between texels, in their middles, and just beside: the rounding decides there.
        near = rng.integers(-1, size + 1, 24) + np.repeat([0.0, 0.5, 0.5 - 1 / 1024], 8)
        texels[:24] = near
        rows[:, d] = texels / size if normalized else texels
    rows[:, 3:9] = rng.normal(0, 2, (COUNT, 6))
    whole = rng.integers(-8, 8, (COUNT, 2)).astype(np.int32)
    rows[:, 10:12] = whole.view(np.float32)
    layers = rng.integers(0, 4, COUNT).astype(np.int32)
    rows[:, 12] = layers.view(np.float32)
    return rows, whole, layers


def machine_or_ptx(monkeypatch, arch):
    if arch is not None:
        monkeypatch.setattr(ws.cuda, "compile", machine_forms.compiler_for(arch))


@pytest.mark.slow
@pytest.mark.parametrize("handles", ["parameter", "memory"])
@pytest.mark.parametrize("arch", ARCHS)
def test_random_fetches(arch, handles, monkeypatch):
    machine_or_ptx(monkeypatch, arch)
    rng = np.random.default_rng(17)
    names = [*FETCHES, *([] if arch else ONLY_PTX)]
    if handles == "memory":
        names = [name for name in names if "a2d" in name or "2d offsets" in name]
    for name in names:
        kind = rng.choice(["f32", "f32", "s32", "u32"])
        as_float = kind == "f32"
        device = ws.cuda.Device(0.1)
        module = compile_body(
            bodies(kind, handles)[name],
            2 if handles == "parameter" else 3,
            device=device,
            parameters=".param .u64 q" if handles == "parameter" else "",
        )
        kernel = module.kernel("k")
        for _ in range(rounds(12)):
            of_kind = {"f32": ["u1", "i1", "u2", "i2", "f2", "f4"]}
            dtype = rng.choice(
                of_kind.get(kind, [f"{kind[0].replace('s', 'i')}{b}" for b in "124"])
            )
            read = as_float and dtype[0] != "f"
            dimensions, layered = dimensions_of(name)
            channels, linear = int(rng.choice([1, 2, 4])), bool(rng.integers(2))
            normalized, mode = bool(rng.integers(2)), str(rng.choice(MODES))
            shape = tuple(rng.integers(1, 9, dimensions).tolist())
            whole_shape = (3, *shape) if layered else shape
            values, held = texels_of(rng, dtype, whole_shape, channels)
            rows, offsets, layers = arguments_of(rng, shape[::-1], normalized)
            source, out = device.array(held), device.zeros((COUNT, 4), np.uint32)
            texture = ws.cuda.texture(
                source,
                filter_mode="linear" if linear else "point",
                address_mode=mode,
                normalized_coordinates=normalized,
                normalized_read=read,
                layered=layered,
            )
            where = texture
            if handles == "memory":
                where = device.array(np.full(COUNT, texture.handle, np.uint64))
            trace = kernel.launch(1, COUNT, device.array(rows), out, where)

            shown = values.astype(np.float64)
            if read:
                shown = np.maximum(shown / np.iinfo(dtype).max, -1)
            expected, touched = np.zeros((COUNT, 4)), []
            for thread in range(COUNT):
                layer = min(int(layers[thread]), 2) if layered else 0
                plane = np.concatenate([shown, np.zeros((*whole_shape, 4 - channels))], -1)
                plane = plane[layer] if layered else plane
                point = rows[thread, :dimensions].tolist()
                far = offsets[thread].tolist() if "offsets" in name else [0, 0]
                if name.startswith("tld4"):
                    component = "rgba".index(name[5])
                    found, places = gathered(plane, point, component, mode, normalized, far)
                else:
                    filters = linear and as_float
                    far = [*far, far[0]]
                    found, places = sampled(plane, point, mode, filters, normalized, far)
                expected[thread] = found
                touched.append({p + layer * int(np.prod(shape)) for p in places})
            case = (name, dtype, channels, read, linear, normalized, mode, shape)
            got = out.to_host()
            if as_float:
                assert got.view(np.float32) == pytest.approx(expected, rel=1e-6, abs=1e-6), case
            else:
                assert (got == expected.astype(np.int64).astype(np.uint32)).all(), case
            bytes_of_texel = channels * int(dtype[1])
            sectors = [
                {
                    (source.address + bytes_of_texel * place) // 4 * 4 // 32
                    for places in lanes
                    for place in places
                }
                for lanes in (touched[:32], touched[32:])
            ]
            opcode = name[:4] if name[:2] == "tl" else "txd" if arch and "grad" in name else "tex"
            found = [set(one) for one in accesses(trace, opcode) if one]
            assert found == [one for one in sectors if one], case


@pytest.mark.parametrize("arch", ARCHS)
def test_gathers_of_cubemaps(arch, monkeypatch):
    """A gather takes the texels of one face; beyond its edges are those at its edges."""
    machine_or_ptx(monkeypatch, arch)
    rng = np.random.default_rng(4)
    size = 5
    texels = rng.normal(0, 1, (12, size, size)).astype(np.float32)
    device = ws.cuda.Device(0.1)
    for layered in (False, True):
        shape, where = (
            ("acube", "%r0, %f0, %f1, %f2") if layered else ("cube", "%f0, %f1, %f2, %f2")
        )
        body = (
            "ld.param.u64 %l1, [q]; mov.u32 %r0, 1;"
            + at("%l0", "%a0", "%g", 16)
            + "ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%l0];"
            + f"tld4.r.{shape}.v4.f32.f32 {{%f4, %f5, %f6, %f7}}, [%l1, {{{where}}}];"
            + at("%l2", "%a1", "%g", 16)
            + "st.global.v4.f32 [%l2], {%f4, %f5, %f6, %f7};"
        )
        module = compile_body(body, 2, device=device, parameters=".param .u64 q")
        points, expected = [], []
        # +z: s is x, t is -y (CUDA C++ Programming Guide, "Cubemap Textures").
        for row, column in itertools.product(range(-1, size), repeat=2):
            s, t = (2 * min(max(one + 1.0, 0.25), size - 0.25) / size - 1 for one in (column, row))
            points.append([s, -t, 1, 0])
            faces = texels[4 + 6 * layered][..., None].astype(float)
            place = ((s + 1) / 2, (t + 1) / 2)
            expected.append(gathered(faces, place, 0, "clamp", True)[0])
        count = len(points)
        out = device.zeros((count, 4), np.float32)
        held = device.array(np.array(points, np.float32))
        texture = ws.cuda.texture(device.array(texels), cube=True)
        module.kernel("k").launch(1, count, held, out, texture)
        assert out.to_host().tolist() == np.array(expected, np.float32).tolist()
        assert len({tuple(one) for one in expected}) == count


def test_fetches_at_integers_have_offsets():
    values = np.arange(20, dtype=np.uint32).reshape(4, 5)
    device = ws.cuda.Device(0.1)
    body = (
        "ld.param.u64 %l1, [q]; mov.u32 %r0, 1;"
        "tex.2d.v4.u32.s32 {%r4, %r5, %r6, %r7}, [%l1, {%t, %r0}], {1, -1};"
        + at("%l2", "%a0", "%g", 4)
        + "st.global.u32 [%l2], %r4;"
    )
    out = device.zeros(6, np.uint32)
    for arch in (None, "sm_80") if find_ptxas() and find_nvdisasm() else (None,):
        compiler = ws.cuda.compile
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                ws.cuda, "compile", machine_forms.compiler_for(arch) if arch else compiler
            )
            module = compile_body(body, 1, device=device, parameters=".param .u64 q")
        module.kernel("k").launch(1, 6, out, ws.cuda.texture(device.array(values)))
        assert out.to_host().tolist() == [1, 2, 3, 4, 0, 0]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("tld4.r.3d.v4.f32.f32 {R}, [%l1, {%f0, %f1, %f2, %f3}];", "only planes and cubemaps"),
        ("tld4.2d.v4.f32.f32 {R}, [%l1, {%f0, %f1}];", "it names no component"),
        ("tld4.r.2d.v4.f32.f32 {R}, [%l1, {%f0, %f1}], %f2;", "comparisons with a depth"),
        ("tld4.r.cube.v4.f32.f32 {R}, [%l1, {%f0, %f1, %f2, %f2}], {1, 1};", "has no offsets"),
        ("tex.2d.v4.f32.f32 {R}, [%l1, {%f0, %f1}], {1};", "too few offsets"),
        ("tex.2d.v4.f32.f32 {R}|%p1, [%l1, {%f0, %f1}];", "resident"),
    ],
)
def test_what_is_refused(line, reason):
    text = line.replace("R", "%f4, %f5, %f6, %f7")
    module = compile_body(f"ld.param.u64 %l1, [q]; {text}", 0, parameters=".param .u64 q")
    with pytest.raises(InputError, match=reason):
        module.kernel("k")


@needs_tools
def test_gradients_of_solids_are_no_machine_code(monkeypatch):
    """They are loops over quads, which are refused, or functions of the driver, whose calls trap."""
    body = bodies("f32", "parameter")["tex.grad.3d"]
    with monkeypatch.context() as patch:
        machine_or_ptx(patch, "sm_80")
        with pytest.raises(InputError, match=r"MACTIVE|FSWZADD|NDV"):
            compile_body(body, 2, parameters=".param .u64 q").kernel("k")
    machine_or_ptx(monkeypatch, "sm_90")
    device = ws.cuda.Device(0.1)
    kernel = compile_body(body, 2, device=device, parameters=".param .u64 q").kernel("k")
    texture = ws.cuda.texture(device.zeros((2, 2, 2)))
    with pytest.raises(InputError, match=r"CALL.* the kernel executed a trap"):
        kernel.launch(1, 32, device.zeros((32, 16)), device.zeros((32, 4)), texture)
