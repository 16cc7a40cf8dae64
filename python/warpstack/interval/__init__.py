"""The interval stage: what one warp does between its stalls."""

from typing import TYPE_CHECKING

from warpstack._util.lazy import face

if TYPE_CHECKING:
    from warpstack.interval.profile import representative_warp

__all__ = [
    "representative_warp",
]

_PLACES = {
    "representative_warp": "profile",
}

__getattr__, __dir__ = face(__name__, _PLACES)
