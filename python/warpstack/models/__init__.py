"""The analytical models: what each says of a profile, and those that users add."""

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

__all__ = [
    "STACK_COMPONENTS",
    "Prediction",
    "application_totals",
    "evaluate",
    "fields_used",
    "names",
    "predict",
    "register",
    "unregister",
]
