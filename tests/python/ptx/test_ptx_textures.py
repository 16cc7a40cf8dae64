"""Textures and surfaces of the PTX interpreter."""

import itertools

import numpy as np
import pytest

import warpstack as ws
from ptx_forms import OWN_WORD, at, compile_body
from python_reference.textures import accesses, sampled_scalar
from warpstack.errors import InputError


@pytest.mark.parametrize("dimensions", [1, 2, 3])
@pytest.mark.parametrize("mode", ["wrap", "clamp", "mirror", "border"])
def test_textures(dimensions, mode):
    rng = np.random.default_rng(8)
    shape = (4, 5, 6)[3 - dimensions :]
    texels = rng.normal(0, 1, shape).astype(np.float32)
    device = ws.cuda.Device(0.25)
    points = rng.uniform(-7, 12, (64, 4)).astype(np.float32)
    points[:8] = np.round(points[:8])
    listed = {1: "{%f0}", 2: "{%f0, %f1}", 3: "{%f0, %f1, %f2, %f2}"}[dimensions]
    body = (
        at("%l0", "%a0", "%g", 16)
        + "ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%l0]; ld.param.u64 %l1, [q];"
        f"tex.{dimensions}d.v4.f32.f32 {{%f4, %f5, %f6, %f7}}, [%l1, {listed}];"
        + at("%l2", "%a1", "%g", 4)
        + "st.global.f32 [%l2], %f4;"
    )
    module = compile_body(body, 2, device=device, parameters=".param .u64 q")
    source, out = device.array(texels), device.zeros(64, np.float32)
    for linear, normalized in itertools.product((False, True), repeat=2):
        used = points / np.float32(8) if normalized else points
        texture = ws.cuda.texture(
            source,
            filter_mode="linear" if linear else "point",
            address_mode=mode,
            normalized_coordinates=normalized,
        )
        trace = module.kernel("k").launch(1, 64, device.array(used), out, texture)
        expected, touched = zip(
            *(
                sampled_scalar(texels, p[:dimensions], mode, linear, normalized)
                for p in used.tolist()
            ),
            strict=True,
        )
        assert out.to_host() == pytest.approx(expected, rel=1e-6, abs=1e-7), (linear, normalized)
        sectors = [
            {(source.address + 4 * texel) // 32 for texels in lanes for texel in texels}
            for lanes in (touched[:32], touched[32:])
        ]
        assert list(map(set, accesses(trace, "tex"))) == sectors


def test_texel_formats_and_fetch():
    """Integers, normalised reads, halves and channels, fetched at integer positions."""
    rng = np.random.default_rng(9)
    device = ws.cuda.Device(0.25)
    body = (
        "ld.param.u64 %l1, [q]; mov.u32 %r0, %t; sub.u32 %r0, %r0, 2;"
        "tex.1d.v4.{kind}.s32 {{%r1, %r2, %r3, %r4}}, [%l1, {{%r0}}];"
        + at("%l2", "%a0", "%g", 16)
        + "st.global.v4.u32 [%l2], {{%r1, %r2, %r3, %r4}};"
    )
    for dtype, normalized in [
        ("u1", False), ("i1", False), ("u2", False), ("i2", False), ("u4", False), ("i4", False),
        ("f2", False), ("f4", False), ("u1", True), ("i1", True), ("u2", True), ("i2", True),
    ]:  # fmt: skip
        for channels in (1, 2, 4):
            raw = rng.integers(0, 256, 20 * channels * int(dtype[1]), dtype=np.uint8)
            values = raw.view(dtype)
            if dtype[0] == "f":
                values = rng.normal(0, 1, 20 * channels).astype(dtype)
            fields = values.reshape(20, channels)
            record = np.dtype([(f"c{i}", dtype) for i in range(channels)]) if channels > 1 else None
            source = device.array(values if record is None else values.view(record))
            as_float = dtype[0] == "f" or normalized
            kind = "f32" if as_float else f"{'s' if dtype[0] == 'i' else 'u'}32"
            module = compile_body(
                body.format(kind=kind), 1, device=device, parameters=".param .u64 q"
            )
            out = device.zeros(128, np.uint32)
            texture = ws.cuda.texture(source, normalized_read=normalized)
            module.kernel("k").launch(1, 32, out, texture)
            expected = np.zeros((32, 4))
            shown = fields.astype(np.float64)
            if normalized:
                greatest = np.iinfo(dtype).max
                shown = np.maximum(shown / greatest, -1)
            expected[2:22, :channels] = shown
            got = out.to_host().reshape(32, 4)
            if as_float:
                assert (got.view(np.float32) == expected.astype(np.float32)).all(), (
                    dtype,
                    channels,
                )
            else:
                assert (got == expected.astype(np.int64).astype(np.uint32)).all(), (dtype, channels)


def test_texture_references_and_queries():
    device = ws.cuda.Device(0.25)
    body = (
        "cvt.rn.f32.u32 %f0, %t; mov.f32 %f1, 0f00000000; add.f32 %f0, %f0, 0f3F000000;"
        "tex.2d.v4.f32.f32 {%f4, %f5, %f6, %f7}, [image, {%f0, %f1}];"
        "cvt.rzi.u32.f32 %r0, %f4; ld.param.u64 %l1, [q];"
        "txq.width.b32 %r1, [%l1]; txq.height.b32 %r2, [%l1]; txq.width.b32 %r3, [image];"
        "mad.lo.u32 %r0, %r1, 1000, %r0; mad.lo.u32 %r0, %r2, 100000, %r0;"
        "mad.lo.u32 %r0, %r3, 10000000, %r0;" + OWN_WORD + "st.global.u32 [%l30], %r0;"
    )
    module = compile_body(
        body, 1, device=device, parameters=".param .u64 q", outside=".global .texref image;"
    )
    source = device.array(np.arange(12, dtype=np.float32).reshape(3, 4))
    texture = ws.cuda.texture(source)
    out = device.zeros(4, np.uint32)
    with pytest.raises(InputError, match="the texture reference is not bound"):
        module.kernel("k").launch(1, 4, out, texture)
    module.bind_texture("image", texture)
    module.kernel("k").launch(1, 4, out, texture)
    assert out.to_host().tolist() == [40000000 + 300000 + 4000 + i for i in range(4)]
    with pytest.raises(InputError, match="no texture reference other"):
        module.bind_texture("other", texture)
    with pytest.raises(InputError, match="77 is not a texture or surface object"):
        module.kernel("k").launch(1, 4, out, 77)


@pytest.mark.parametrize("beyond", ["trap", "clamp", "zero"])
def test_surfaces(beyond):
    """Byte positions in x; stores outside are dropped, loads give zero, or the border for clamp."""
    device = ws.cuda.Device(0.25)
    body = (
        "ld.param.u64 %l1, [q]; ld.param.u64 %l2, [s]; sub.u32 %r0, %t, 2; shl.b32 %r1, %r0, 2;"
        "mov.u32 %r2, 1;"
        f"suld.b.2d.b32.{beyond} %r3, [%l1, {{%r1, %r2}}];"
        "add.u32 %r4, %r3, 100;"
        f"sust.b.2d.b32.{beyond} [%l2, {{%r1, %r2}}], %r4;"
        + OWN_WORD
        + "st.global.u32 [%l30], %r3;"
    )
    module = compile_body(body, 1, device=device, parameters=".param .u64 q, .param .u64 s")
    values = np.arange(1, 25, dtype=np.uint32).reshape(3, 8)
    source, copy = device.array(values), device.zeros((3, 8), np.uint32)
    out = device.zeros(12, np.uint32)
    arguments = (out, ws.cuda.texture(source), ws.cuda.texture(copy))
    if beyond == "trap":
        with pytest.raises(InputError, match="access outside the surface"):
            module.kernel("k").launch(1, 12, *arguments)
        return
    trace = module.kernel("k").launch(1, 12, *arguments)
    # Twelve threads, of which two are beyond the row of eight words at either end.
    row_of = {
        name: [(array.address + 32) // 32] for name, array in (("suld", source), ("sust", copy))
    }
    assert {name: accesses(trace, name) for name in row_of} == {n: [s] for n, s in row_of.items()}
    row = values[1].tolist()
    ends = [row[0]] * 2, [row[-1]] * 2
    if beyond == "zero":
        ends = [0, 0], [0, 0]
    assert out.to_host().tolist() == [*ends[0], *row, *ends[1]]
    written = np.zeros((3, 8), np.uint32)
    written[1] = values[1] + 100
    assert (copy.to_host() == written).all()


def test_surface_vectors():
    device = ws.cuda.Device(0.25)
    body = (
        "ld.param.u64 %l1, [q]; shl.b32 %r1, %t, 4;"
        "suld.b.1d.v4.b32.zero {%r3, %r4, %r5, %r6}, [%l1, {%r1}];"
        "sust.b.1d.v4.b32.zero [%l1, {%r1}], {%r6, %r5, %r4, %r3};"
        "shl.b32 %r1, %t, 1; suld.b.1d.b16.zero %h0, [%l1, {%r1}]; shl.b32 %r1, %t, 3;"
        "suld.b.1d.b64.zero %l3, [%l1, {%r1}]; suld.b.1d.b8.zero %h1, [%l1, {%t}];"
        + at("%l5", "%a0", "%t", 16)
        + "cvt.u32.u16 %r7, %h0; cvt.u32.u16 %r8, %h1; st.global.u64 [%l5], %l3; st.global.u32 [%l5+8], %r7;"
        "st.global.u32 [%l5+12], %r8;"
    )
    values = np.arange(32, dtype=np.uint32) * 0x01010101
    record = np.dtype([(f"c{i}", "u4") for i in range(4)])
    source, out = device.array(values.view(record)), device.zeros((8, 16), np.uint8)
    module = compile_body(body, 1, device=device, parameters=".param .u64 q")
    module.kernel("k").launch(1, 8, out, ws.cuda.texture(source))
    after = values.reshape(8, 4)[:, ::-1].reshape(-1)
    assert (source.to_host().view(np.uint32).reshape(-1) == after).all()
    got = out.to_host()
    assert (got[:, :8].copy().view(np.uint64).reshape(-1) == after.view(np.uint64)[:8]).all()
    assert (got[:, 8:12].copy().view(np.uint32).reshape(-1) == after.view(np.uint16)[:8]).all()
    assert (got[:, 12:].copy().view(np.uint32).reshape(-1) == after.view(np.uint8)[:8]).all()


@pytest.mark.parametrize("dimensions", [1, 2])
@pytest.mark.parametrize("linear", [False, True])
def test_layered_textures_and_surfaces(dimensions, linear):
    """A layer reads as a texture of its own; layers beyond are the nearest, for surfaces none."""
    rng = np.random.default_rng(10)
    shape = (3, 4, 5)[:: 1 if dimensions == 2 else 2]
    texels = rng.normal(0, 1, shape).astype(np.float32)
    device = ws.cuda.Device(0.25)
    point = "{%r0, %f0}" if dimensions == 1 else "{%r0, %f0, %f1, %f1}"
    whole = "{%r0, %r1}" if dimensions == 1 else "{%r0, %r1, %r2, %r2}"
    body = (
        "ld.param.u64 %l1, [q]; ld.param.u32 %r0, [layer];"
        + at("%l0", "%a0", "%t", 8)
        + "ld.global.v2.f32 {%f0, %f1}, [%l0];"
        + f"tex.a{dimensions}d.v4.f32.f32 {{%f4, %f5, %f6, %f7}}, [%l1, {point}];"
        + "cvt.rzi.s32.f32 %r1, %f0; cvt.rzi.s32.f32 %r2, %f1;"
        + f"tex.a{dimensions}d.v4.f32.s32 {{%f8, %f5, %f6, %f7}}, [%l1, {whole}];"
        + "shl.b32 %r1, %r1, 2;"
        + f"suld.b.a{dimensions}d.b32.zero %r5, [%l1, {whole}]; mov.b32 %f9, %r5;"
        + at("%l2", "%a1", "%t", 16)
        + "st.global.v4.f32 [%l2], {%f4, %f8, %f9, %f0};"
    )
    module = compile_body(body, 2, device=device, parameters=".param .u64 q, .param .u32 layer")
    points = rng.uniform(0, 4, (32, 2)).astype(np.float32)
    held, out = device.array(points), device.zeros((32, 4), np.float32)
    options = {"filter_mode": "linear" if linear else "point", "address_mode": "clamp"}
    texture = ws.cuda.texture(device.array(texels), layered=True, **options)
    for layer in (0, 1, 2, 7, -1):
        module.kernel("k").launch(1, 32, held, out, texture, layer % 2**32)
        plane = texels[min(layer % 2**32, 2)]  # the index has no sign
        sampled = [
            sampled_scalar(plane, p[:dimensions], "clamp", linear, False)[0]
            for p in points.tolist()
        ]
        got = out.to_host()
        assert got[:, 0] == pytest.approx(sampled, rel=1e-6, abs=1e-7)
        place = tuple(points.astype(int)[:, :dimensions].T[::-1])
        assert np.array_equal(got[:, 1], plane[place])
        assert np.array_equal(got[:, 2], plane[place] if 0 <= layer < 3 else got[:, 2] * 0)
    plain = ws.cuda.texture(device.array(texels), **options)
    with pytest.raises(InputError, match="without layers is accessed as a layered one"):
        module.kernel("k").launch(1, 32, held, out, plain, 0)


#: Direction of a face's middle, of rising s and of rising t (CUDA C++ Programming Guide, "Cubemap
#: Textures": face, m, s, t).
FACES = [
    ((1, 0, 0), (0, 0, -1), (0, -1, 0)),
    ((-1, 0, 0), (0, 0, 1), (0, -1, 0)),
    ((0, 1, 0), (1, 0, 0), (0, 0, 1)),
    ((0, -1, 0), (1, 0, 0), (0, 0, -1)),
    ((0, 0, 1), (1, 0, 0), (0, -1, 0)),
    ((0, 0, -1), (-1, 0, 0), (0, -1, 0)),
]


@pytest.mark.parametrize("layered", [False, True])
def test_cubemaps(layered):
    size = 4
    texels = np.arange(12 * size * size, dtype=np.float32).reshape(12, size, size)
    device = ws.cuda.Device(0.25)
    name, where = ("acube", "%r0, %f0, %f1, %f2") if layered else ("cube", "%f0, %f1, %f2, %f2")
    body = (
        "ld.param.u64 %l1, [q]; mov.u32 %r0, 1;"
        + at("%l0", "%a0", "%g", 16)
        + "ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%l0];"
        + f"tex.{name}.v4.f32.f32 {{%f4, %f5, %f6, %f7}}, [%l1, {{{where}}}];"
        + at("%l2", "%a1", "%g", 4)
        + "st.global.f32 [%l2], %f4;"
    )
    module = compile_body(body, 2, device=device, parameters=".param .u64 q")
    points, expected = [], []
    for face, axes in enumerate(FACES):
        middle, rising_s, rising_t = np.array(axes)
        for row, column in itertools.product(range(size), repeat=2):
            # The middle of a texel, as far from the face's middle as its place says; any length.
            s, t = (2 * column + 1) / size - 1, (2 * row + 1) / size - 1
            points.append([*((middle + s * rising_s + t * rising_t) * (1 + face)), 0])
            expected.append(texels[face + 6 * layered, row, column])
    count = len(points)
    out = device.zeros(count, np.float32)
    texture = ws.cuda.texture(device.array(texels), cube=True)
    held = device.array(np.array(points, np.float32))
    module.kernel("k").launch(count // 32, 32, held, out, texture)
    assert out.to_host().tolist() == expected
    wrong = ws.cuda.texture(device.array(texels), layered=True)
    with pytest.raises(InputError, match="a texture that is not a cubemap is read as one"):
        module.kernel("k").launch(1, 32, held, out, wrong)


def test_shapes_that_are_no_layers():
    device = ws.cuda.Device(0.25)
    with pytest.raises(InputError, match="an array of one dimension has no layers"):
        ws.cuda.texture(device.zeros(6), layered=True)
    with pytest.raises(InputError, match=r"\(5, 4, 4\) is not the shape of cubes"):
        ws.cuda.texture(device.zeros((5, 4, 4)), cube=True)
