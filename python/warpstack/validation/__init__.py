"""Predictions held against references."""

from typing import TYPE_CHECKING

from warpstack._util.lazy import face

if TYPE_CHECKING:
    from warpstack.validation import measures, reference
    from warpstack.validation.changes import what_if, what_if_agreement
    from warpstack.validation.validate import validation_errors

__all__ = [
    "measures",
    "reference",
    "validation_errors",
    "what_if",
    "what_if_agreement",
]

_PLACES = {
    "measures": "measures",
    "reference": "reference",
    "validation_errors": "validate",
    "what_if": "changes",
    "what_if_agreement": "changes",
}

__getattr__, __dir__ = face(__name__, _PLACES)
