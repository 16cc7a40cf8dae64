"""Latencies and intervals of the execution units of GPGPU-Sim configurations.

Accel-Sim runs machine code with the options ``-trace_opcode_latency_initiation_*``, which GPGPU-Sim
alone does not have; it runs PTX with ``-ptx_opcode_latency_*`` and ``-ptx_opcode_initiation_*``.
Traces here are of machine code, so that the former come first, class by class.
"""

from __future__ import annotations

import dataclasses

from warpstack.hardware.gpgpusim_options import INTEGER, Option
from warpstack.hardware.gpgpusim_values import Values

__all__ = ["put_units"]

_TRACE = "-trace_opcode_latency_initiation_"
_TRACE_FORM = "<latency>,<initiation interval>"
_PTX_FORM = "the numbers of ADD,MAX,MUL,MAD,DIV"
_ADD, _MAD, _SHFL = 0, 3, 5


@dataclasses.dataclass(frozen=True)
class _Class:
    """A class of instructions: its options, and the units that it runs on.

    The interval is that of a multiply-add where this is what the throughput is known by.
    """

    field: str
    machine: str
    ptx: str
    units: tuple[str, ...]
    interval_of: int = _ADD


#: Without units of their own, integers run on those of single precision and double precision on the
#: special function units.
_CLASSES = (
    _Class("integer", "int", "int", ("int", "sp")),
    _Class("fp32", "sp", "fp", ("sp",), _MAD),
    _Class("fp64", "dp", "dp", ("dp", "sfu"), _MAD),
    _Class("sfu", "sfu", "sfu", ("sfu",)),
)
#: Specialised units of trace.config by their names, with the field that their latency is.
_UNITS = {
    "BRA": "control_latency",
    "TEX": "texture_latency",
    "TENSOR": "tensor_latency",
    "UDP": "uniform_latency",
}


def put_units(values: Values) -> None:
    """Set the latencies and intervals of all classes of instructions."""
    is_traced = bool(values.options.names(_TRACE))
    for kind in _CLASSES:
        _put_class(values, kind, is_traced)
    values.integer("shared_memory_latency", "-gpgpu_smem_latency", 20)
    _put_specialised(values, is_traced)
    _put_tensor(values)

    # What Accel-Sim's opcode tables make of the other classes.
    _put_as(values, "fp16_latency", "fp32_latency", "half precision runs on the SP units")
    _put_as(values, "fp16_interval", "fp32_interval", "half precision runs on the SP units")
    _put_as(values, "control_latency", "integer_latency", "no unit BRA")
    _put_as(values, "uniform_latency", "integer_latency", "no unit UDP")
    _put_as(values, "texture_latency", "l1_latency", "no unit TEX")
    _put_as(values, "barrier_latency", "integer_latency", "no option")
    _put_as(values, "constant_latency", "integer_latency", "no option")
    if values.options.find(f"{_TRACE}int") is None:
        ptx = values.options.need("-ptx_opcode_latency_int", "4,13,4,5,145,21")
        numbers = _numbers(ptx)
        if len(numbers) > _SHFL:
            values.put("shuffle_latency", numbers[_SHFL], f"{ptx.where}: SHFL")
    _put_as(values, "shuffle_latency", "integer_latency", "an ALU instruction")


def _put_as(values: Values, field: str, other: str, why: str) -> None:
    if field not in values.values:
        values.put(field, values.values[other], f"{why}: as {other} ({values.sources[other]})")


def _put_class(values: Values, kind: _Class, is_traced: bool) -> None:
    """Set what machine instructions have, or for want of it PTX instructions."""
    options = values.options
    machine = options.find(f"{_TRACE}{kind.machine}")
    if machine is not None:
        latency, interval = _pair(machine)
        values.put(f"{kind.field}_latency", latency, machine.where)
        _put_interval(values, kind.field, interval, machine.where, kind.units)
        return
    latencies = options.need(f"-ptx_opcode_latency_{kind.ptx}", "4,13,4,5,39")
    intervals = options.need(f"-ptx_opcode_initiation_{kind.ptx}", "2,2,2,2,4")
    if is_traced:
        values.approximations.append(
            f"{_TRACE}{kind.machine} (not given, taken as the options of PTX; Accel-Sim takes 4,1)"
        )
    values.put(f"{kind.field}_latency", _numbers(latencies)[_ADD], latencies.where)
    numbers = _numbers(intervals)
    interval = numbers[min(kind.interval_of, len(numbers) - 1)]
    _put_interval(values, kind.field, interval, intervals.where, kind.units)


def _put_interval(
    values: Values, field: str, interval: int, source: str, units: tuple[str, ...]
) -> None:
    """Set the cycles from one instruction of a scheduler to the next.

    GPGPU-Sim's interval is that of a unit. Schedulers that share units wait for each other.
    """
    schedulers = int(values.values["issue_width"])
    number, shared = _units(values, units)
    if number < schedulers:
        source = f"{source} x {schedulers} schedulers / {number} units ({shared})"
        interval = -(-interval * schedulers // number)
    values.put(f"{field}_interval", max(interval, 1), source)


def _units(values: Values, names: tuple[str, ...]) -> tuple[int, str]:
    """Return how many units a class has, and the option that says so: else one per scheduler."""
    for name in names:
        option = values.options.find(f"-gpgpu_num_{name}_units")
        if option is not None and (number := option.integer(at_least=0)):
            return number, f"{option.name} {option.value}"
    return int(values.values["issue_width"]), "no option"


def _numbers(option: Option) -> list[int]:
    return option.integers(",", _PTX_FORM, at_least=0)


def _pair(option: Option) -> tuple[int, int]:
    numbers = option.integers(",", _TRACE_FORM, at_least=0)
    if len(numbers) != 2:
        raise option.error("malformed", f"write {_TRACE_FORM}")
    return numbers[0], numbers[1]


def _put_specialised(values: Values, is_traced: bool) -> None:
    """Set the latencies of the specialised units that have a meaning here.

    Only machine instructions run on them.
    """
    options = values.options
    for name in options.names("-specialized_unit_"):
        option = options.need(name, "")
        enabled, *rest = option.value.split(",")
        if len(rest) != 5 or not all(INTEGER.fullmatch(p) for p in (enabled, *rest[:4])):
            raise option.error(
                "malformed", "write <enabled>,<units>,<latency>,<width>,<width>,<name>"
            )
        field = _UNITS.get(rest[4])
        is_off = int(enabled) == 0 or not is_traced
        if field is None or field in values.values or is_off:
            options.leave(name)
            continue
        number = name.removeprefix("-specialized_unit_")
        machine = options.need(f"{_TRACE}spec_op_{number}", "4,4")
        latency, interval = _pair(machine)
        source = f"{machine.where} (unit {rest[4]})"
        values.put(field, latency, source)
        if field == "tensor_latency":
            values.put("tensor_interval", max(interval, 1), source)


def _put_tensor(values: Values) -> None:
    options = values.options
    if "tensor_latency" in values.values:
        return
    machine = options.find(f"{_TRACE}tensor")
    # GPGPU-Sim spells its own option so.
    ptx = options.find("-ptx_opcode_latency_tesnor")
    units = ("tensor_core",)
    if machine is not None:
        latency, interval = _pair(machine)
        values.put("tensor_latency", latency, machine.where)
        _put_interval(values, "tensor", interval, machine.where, units)
        if ptx is not None:
            options.leave("-ptx_opcode_latency_tesnor")
    elif ptx is not None:
        values.put("tensor_latency", _numbers(ptx)[0], ptx.where)
        intervals = options.need("-ptx_opcode_initiation_tensor", "64")
        _put_interval(values, "tensor", _numbers(intervals)[0], intervals.where, units)
    else:
        _put_as(values, "tensor_latency", "fp32_latency", "no tensor cores")
        _put_as(values, "tensor_interval", "fp32_interval", "no tensor cores")
