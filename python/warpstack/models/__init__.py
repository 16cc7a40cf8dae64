"""The analytical models: what each says of a profile, and those that users add."""

from typing import TYPE_CHECKING

from warpstack._util.lazy import lazy_exports
from warpstack.models.prediction import (
    STACK_COMPONENTS,
    Prediction,
    application_totals,
    evaluate,
    fields_used,
    names,
    predict,
    register,
    unregister,
)

if TYPE_CHECKING:
    from warpstack.models import mwp_cwp
    from warpstack.models.details import STACK_DETAILS, stack_details
    from warpstack.models.frequency import CrispCounters, dvfs
    from warpstack.models.program_changes import PROGRAM_CHANGES, changes_that_apply, program_gains
    from warpstack.models.rooflines import roofline

__all__ = [
    "PROGRAM_CHANGES",
    "STACK_COMPONENTS",
    "STACK_DETAILS",
    "CrispCounters",
    "Prediction",
    "application_totals",
    "changes_that_apply",
    "dvfs",
    "evaluate",
    "fields_used",
    "mwp_cwp",
    "names",
    "predict",
    "program_gains",
    "register",
    "roofline",
    "stack_details",
    "unregister",
]

_LAZY_EXPORTS = {
    "PROGRAM_CHANGES": "program_changes",
    "STACK_DETAILS": "details",
    "CrispCounters": "frequency",
    "dvfs": "frequency",
    "mwp_cwp": "mwp_cwp",
    "program_gains": "program_changes",
    "changes_that_apply": "program_changes",
    "roofline": "rooflines",
    "stack_details": "details",
}

__getattr__, __dir__ = lazy_exports(__name__, _LAZY_EXPORTS)
