"""Transforms as cuFFT's guide defines them, index by index, on numpy's."""

import numpy as np

#: Bytes of a real number.
WIDTHS = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8}
#: The rounding of one number, relative to it and absolute (of the least one).
ROUNDING = {
    "f16": (2.0**-11, 2.0**-25),
    "bf16": (2.0**-8, 0),
    "f32": (2.0**-24, 2.0**-150),
    "f64": (2.0**-53, 0),
}


def by_definition(values, sign):
    """Return sum over n of x[n] exp(sign 2 pi i k n / N)."""
    n = np.arange(len(values))
    return np.exp(sign * 2j * np.pi * np.outer(n, n) / len(values)) @ values


def encoded(precision, values):
    """Return the bytes of real numbers, rounded."""
    if precision == "bf16":
        bits = values.astype(np.float32).view(np.uint32)
        return (bits >> np.uint32(16)).astype(np.uint16).view(np.uint8)
    kind = {"f16": np.float16, "f32": np.float32, "f64": np.float64}[precision]
    return values.astype(kind).view(np.uint8)


def decoded(precision, data):
    """Return the real numbers of these bytes."""
    if precision == "bf16":
        return (data.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)
    return data.view({"f16": np.float16, "f32": np.float32, "f64": np.float64}[precision])


def _side(each, side):
    """Return whether the numbers are real, their lengths, and their places in the memory."""
    lengths, kind = each["lengths"], each["kind"]
    half = [*lengths[:-1], lengths[-1] // 2 + 1]
    real = kind == {"input": "to_complex", "output": "to_real"}[side]
    shape = lengths if real or kind == "complex" else half
    if each.get("input") and each.get("output"):
        embed, stride, distance = each[side]
    else:
        embed = [*half[:-1], 2 * half[-1]] if real and each["in_place"] else shape
        stride, distance = 1, int(np.prod(embed))
    places = np.zeros((each["batch"], *shape), np.int64)
    for b, *index in np.ndindex(*places.shape):
        place = 0
        for size, i in zip(embed, index, strict=True):
            place = place * size + i
        places[(b, *index)] = b * distance + place * stride
    return real, places


def sizes(each):
    """Return the bytes that input and output take, from the first element to the last."""
    found = []
    for side in ("input", "output"):
        real, places = _side(each, side)
        found.append((int(places.max()) + 1) * (1 if real else 2) * WIDTHS[each["precision"]])
    return found


def _transformed(each, values):
    """Return the transforms of a batch, unnormalised."""
    axes = tuple(range(1, values.ndim))
    count = float(np.prod(each["lengths"]))
    if each["kind"] == "to_complex":
        return np.fft.rfftn(values, axes=axes)
    if each["kind"] == "to_real":
        return np.fft.irfftn(values, each["lengths"], axes=axes) * count
    return np.fft.fftn(values, axes=axes) if each["direction"] < 0 else (
        np.fft.ifftn(values, axes=axes) * count
    )  # fmt: skip


def check(each, source, before, after):
    """Compare the bytes after a transform with what they should be.

    `source` and `before` are the bytes of the input, and of the output before the transform.
    """
    precision = each["precision"]
    real, places = _side(each, "input")
    numbers = decoded(precision, source).astype(np.float64)
    values = numbers[places] if real else numbers[2 * places] + 1j * numbers[2 * places + 1]
    wanted = _transformed(each, values)
    real, places = _side(each, "output")
    found = decoded(precision, after)
    exact = decoded(precision, before).copy()
    relative, least = ROUNDING[precision]
    # A part is rounded once; the transform itself is computed in f64.
    noise = 1e-15 * (4 + np.log2(values[0].size)) * float(np.linalg.norm(values, axis=None) + 1)
    for part, at in (
        ((wanted.real, places),) if real else ((wanted.real, 2 * places), (wanted.imag, 2 * places + 1))
    ):  # fmt: skip
        error = np.abs(found[at].astype(np.float64) - part)
        limit = relative * np.abs(part) + least + noise
        assert (error <= limit).all(), (each, float((error / limit).max()))
        exact[at] = found[at]
    np.testing.assert_array_equal(exact, found)
