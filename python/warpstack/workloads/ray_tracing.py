"""Ray tracing: mirroring spheres above a chequered floor."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from warpstack.workloads import Arrays, Parameters, Session, Workload

_BLOCK = (16, 8)
_FAR, _NEAR = np.float32(1e30), np.float32(1e-3)
_LIGHT = (np.float32(-6), np.float32(12), np.float32(-8))

_Floats = npt.NDArray[np.float32]


def _make_inputs(p: Parameters, rng: np.random.Generator) -> dict[str, npt.NDArray[Any]]:
    count = p["spheres"]
    radius = rng.uniform(0.3, 1.0, count)
    centre = [
        rng.uniform(-5, 5, count),
        radius + rng.uniform(0, 3, count),
        rng.uniform(-2, 8, count),
    ]
    colour, mirrored = rng.uniform(0.1, 0.9, (count, 3)), rng.uniform(0, 0.8, count)
    return {
        "spheres": np.column_stack([*centre, radius]).astype(np.float32),
        "surfaces": np.column_stack([colour, mirrored]).astype(np.float32),
    }


def _run(session: Session, p: Parameters, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
    width, height = p["width"], p["height"]
    pixels = session.zeros((height, width), np.uint32)
    session.launch(
        "ray_tracing",
        (-(-width // _BLOCK[0]), -(-height // _BLOCK[1])),
        _BLOCK,
        session.array(inputs["spheres"]),
        session.array(inputs["surfaces"]),
        np.int32(p["spheres"]),
        np.int32(width),
        np.int32(height),
        np.int32(p["bounces"]),
        *_LIGHT,
        pixels,
    )
    return {"pixels": np.asarray(pixels)}


def _fma(a: Any, b: Any, c: Any) -> _Floats:
    """Return a b + c rounded once: the product of two floats is exact in a double."""
    return np.asarray(np.float64(a) * np.float64(b) + np.float64(c), dtype=np.float32)


def _dot(a: _Floats, b: _Floats) -> _Floats:
    """Return the product of vectors of shape (3, rays)."""
    return _fma(a[0], b[0], _fma(a[1], b[1], a[2] * b[2]))


def _unit(a: _Floats) -> _Floats:
    return np.asarray(a * (np.float32(1) / np.sqrt(_dot(a, a))))


def _distances(spheres: _Floats, origin: _Floats, direction: _Floats) -> _Floats:
    """Return the distance of each ray to each sphere, shape (spheres, rays)."""
    distances = np.full((len(spheres), origin.shape[1]), _FAR)
    for row, (*centre, radius) in zip(distances, spheres, strict=True):
        towards = np.array(centre, np.float32)[:, np.newaxis] - origin
        half = _dot(towards, direction)
        discriminant = _fma(half, half, -_fma(-radius, radius, _dot(towards, towards)))
        crossing = discriminant > 0
        distance = half[crossing] - np.sqrt(discriminant[crossing])
        row[crossing] = np.where(distance > _NEAR, distance, _FAR)
    return distances


def _reference(p: Parameters, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
    """Trace all rays of a bounce together, in the kernel's arithmetic.

    A ray that passes the edge of a sphere goes elsewhere after the least difference, so the order
    of operations is that of the kernel and the pictures are equal.
    """
    spheres, surfaces = inputs["spheres"], inputs["surfaces"]
    width, height = p["width"], p["height"]
    y, x = np.indices((height, width), dtype=np.float32).reshape(2, -1)
    scale = np.float32(2) / np.float32(width)
    half = np.float32(0.5)
    direction = _unit(
        np.stack(
            [
                _fma(x + half, scale, -1.0),
                _fma(np.float32(height) - y - half, scale, -1.25),
                np.full_like(x, 1.5),
            ]
        )
    )
    origin = np.tile(np.array([[0], [3], [-9]], np.float32), x.size)
    colour = np.zeros((3, x.size), np.float32)
    share = np.ones(x.size, np.float32)
    ray = np.arange(x.size)  # pixels of the rays still under way

    for _ in range(p["bounces"] + 1):
        distances = _distances(spheres, origin, direction)
        sphere = distances.argmin(axis=0)
        distance = np.take_along_axis(distances, sphere[np.newaxis], axis=0)[0]
        down = direction[1] < 0
        floor_distance = np.full_like(distance, _FAR)
        floor_distance[down] = -origin[1, down] / direction[1, down]
        on_floor = down & (floor_distance <= distance)
        distance = np.where(on_floor, floor_distance, distance)

        missed = ~on_floor & (distance >= _FAR)
        haze = np.float32(1) - direction[1, missed]
        for channel, sky in enumerate((np.float32(0.7) * haze, np.float32(0.8) * haze, 1.0)):
            lost = ray[missed]
            colour[channel, lost] = _fma(share[missed], sky, colour[channel, lost])
        hit = ~missed
        ray, share, sphere, on_floor = ray[hit], share[hit], sphere[hit], on_floor[hit]
        origin, direction, distance = origin[:, hit], direction[:, hit], distance[hit]

        point = _fma(distance, direction, origin)
        normal = _unit(point - spheres[sphere, :3].T)
        normal[:, on_floor] = [[0], [1], [0]]
        square = np.floor(point[0]).astype(np.int64) + np.floor(point[2]).astype(np.int64)
        tone = np.where(square % 2 == 1, np.float32(0.9), np.float32(0.2))
        surface = np.where(
            on_floor, np.stack([tone] * 3 + [np.full_like(tone, 0.2)]), surfaces[sphere].T
        )

        start = _fma(_NEAR, normal, point)
        way = np.array(_LIGHT)[:, np.newaxis] - start
        to_light = _unit(way)
        bright = np.maximum(_dot(normal, to_light), np.float32(0))
        nearest = _distances(spheres, start, to_light).min(axis=0, initial=_FAR)
        lit = (bright > 0) & (nearest >= np.sqrt(_dot(way, way)))
        mirrored = _fma(np.float32(-2) * _dot(direction, normal), normal, direction)
        gloss = np.maximum(_dot(mirrored, to_light), np.float32(0))
        for _ in range(5):
            gloss = gloss * gloss
        bright, gloss = np.where(lit, bright, np.float32(0)), np.where(lit, gloss, np.float32(0))

        shade = _fma(bright, np.float32(0.85), np.float32(0.15))
        kept = share * (np.float32(1) - surface[3])
        for channel in range(3):
            seen = _fma(surface[channel], shade, gloss)
            colour[channel, ray] = _fma(kept, seen, colour[channel, ray])
        share = share * surface[3]
        origin, direction = start, mirrored

    red, green, blue = _fma(np.clip(colour, 0, 1), 255.0, 0.5).astype(np.uint32)
    return {"pixels": (red | green << 8 | blue << 16).reshape(height, width).astype(np.uint32)}


workload = Workload(
    name="ray-tracing",
    title="Ray tracing",
    abbreviation="RAY",
    suite="GPGPUsim",
    memory_divergent=False,
    description=(
        "Mirroring spheres above a floor with one light and shadows, a thread per pixel (after the ray "
        "tracer of the GPGPU-Sim benchmarks). Neighbouring rays part, so control flow diverges, but all "
        "active lanes read the same sphere, and the scene is a few lines."
    ),
    sizes={
        "small": {"width": 128, "height": 128, "spheres": 16, "bounces": 3},
        "paper": {"width": 256, "height": 256, "spheres": 20, "bounces": 5},
    },
    make_inputs=_make_inputs,
    run=_run,
    reference=_reference,
)
