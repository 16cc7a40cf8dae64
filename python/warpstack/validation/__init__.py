"""Predictions held against references."""

from typing import TYPE_CHECKING

from warpstack._util.lazy import lazy_exports

if TYPE_CHECKING:
    from warpstack.validation import measures, reference
    from warpstack.validation.changes import what_if, what_if_agreement
    from warpstack.validation.pairs import pair_errors
    from warpstack.validation.validate import validation_errors

__all__ = [
    "measures",
    "pair_errors",
    "reference",
    "validation_errors",
    "what_if",
    "what_if_agreement",
]

_LAZY_EXPORTS = {
    "measures": "measures",
    "pair_errors": "pairs",
    "reference": "reference",
    "validation_errors": "validate",
    "what_if": "changes",
    "what_if_agreement": "changes",
}

__getattr__, __dir__ = lazy_exports(__name__, _LAZY_EXPORTS)
