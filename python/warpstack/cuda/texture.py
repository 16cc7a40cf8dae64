"""Textures over arrays of a device."""

from __future__ import annotations

from warpstack._util.arguments import as_integer
from warpstack._util.checked import strictly_checked
from warpstack._util.handle import Handle
from warpstack.cuda.device import DeviceArray
from warpstack.errors import InputError, not_one_of

_ADDRESS_MODES = ("wrap", "clamp", "mirror", "border")  # in the order of cudaTextureAddressMode


class Texture(Handle):
    """A texture object over an array of the device; pass it to a kernel. Made by `texture`."""

    _remedy = "make another one with warpstack.cuda.texture"

    @strictly_checked
    def __init__(self, source: DeviceArray, handle: int) -> None:
        self.source = source
        self.handle = as_integer("handle", handle, 0, 2**64 - 1)

    def __del__(self) -> None:
        if hasattr(self, "handle"):
            self.source.device._core.remove_texture(self.handle)


@strictly_checked
def texture(
    source: DeviceArray,
    *,
    filter_mode: str = "point",
    address_mode: str = "clamp",
    normalized_coordinates: bool = False,
    normalized_read: bool = False,
    layered: bool = False,
    cube: bool = False,
) -> Texture:
    """Make a texture object over an array of the device.

    Parameters
    ----------
    source
        Texels in C order, of one to three dimensions (slices, rows, columns). Elements are 8-, 16-
        or 32-bit integers, half or single floats; a structured type of 2 or 4 equal fields makes
        texels of that many channels.
    filter_mode
        ``"point"`` or ``"linear"``.
    address_mode
        Outside the texture: ``"wrap"``, ``"clamp"``, ``"mirror"`` or ``"border"``.
    normalized_coordinates
        Coordinates run from 0 to 1.
    normalized_read
        Integers are read as floats of 0 to 1, or -1 to 1.
    layered
        The first of two or three dimensions counts layers.
    cube
        Each six layers are the faces of a cube: +x, -x, +y, -y, +z, -z.

    Raises
    ------
    InputError
        If the array cannot be a texture or a mode is unknown.
    """
    if not 1 <= source.ndim <= 3:
        raise InputError(f"texture: {source.ndim} dimensions, expected 1 to 3")
    if (layered or cube) and source.ndim == 1:
        raise InputError("texture: an array of one dimension has no layers")
    if cube and (source.ndim != 3 or source.shape[0] % 6 or source.shape[1] != source.shape[2]):
        raise InputError(f"texture: {source.shape} is not the shape of cubes, (6 n, size, size)")
    if filter_mode not in ("point", "linear"):
        raise not_one_of("texture: filter_mode", filter_mode, ("point", "linear"))
    if address_mode not in _ADDRESS_MODES:
        raise not_one_of("texture: address_mode", address_mode, _ADDRESS_MODES)
    channel, channels = source.dtype, 1
    if source.dtype.fields:
        kinds = {field[0] for field in source.dtype.fields.values()}
        if len(kinds) != 1:
            raise InputError("texture: the fields of its elements have different types")
        channel, channels = kinds.pop(), len(source.dtype.fields)
    kinds_of = {"i": 0, "u": 1, "f": 2}
    if channel.kind not in kinds_of or channel.itemsize > 4 or channels not in (1, 2, 4):
        raise InputError(f"texture: elements of type {source.dtype} cannot be texels")
    layers = source.shape[0] if layered or cube else 0
    shape = source.shape[1:] if layers else source.shape
    columns, rows, slices = (*reversed(shape), 1, 1)[:3]
    row_bytes = columns * source.dtype.itemsize
    mode = _ADDRESS_MODES.index(address_mode)
    handle = source.device._core.add_texture(
        {
            "address": source.address,
            "dimensions": len(shape),
            "size": [columns, rows, slices],
            "row_bytes": row_bytes,
            "slice_bytes": row_bytes * rows,
            "layers": layers,
            "cube": bool(cube),
            "format": kinds_of[channel.kind],
            "channels": channels,
            "channel_bytes": channel.itemsize,
            "address_mode": [mode] * 3,
            "linear_filter": filter_mode == "linear",
            "normalized_coordinates": bool(normalized_coordinates),
            "normalized_read": bool(normalized_read),
        }
    )
    return Texture(source, handle)


# ---- modules and kernels ----
