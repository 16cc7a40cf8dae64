"""The interval stage: what one warp does between its stalls."""

from typing import TYPE_CHECKING

from warpstack._util.lazy import lazy_exports

if TYPE_CHECKING:
    from warpstack.interval.profile import representative_warp

__all__ = [
    "representative_warp",
]

_LAZY_EXPORTS = {
    "representative_warp": "profile",
}

__getattr__, __dir__ = lazy_exports(__name__, _LAZY_EXPORTS)
