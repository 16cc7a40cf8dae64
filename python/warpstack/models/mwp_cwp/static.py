"""Kernel descriptions from PTX that is not run (Hong and Kim, ISCA 2009, Section 3.4.3)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import pandas as pd

from warpstack import cuda
from warpstack._util.arguments import as_integer
from warpstack._util.checked import checked
from warpstack.errors import InputError, shown, unknown
from warpstack.hardware.description import Gpu
from warpstack.models.mwp_cwp.coalescing import Expression, is_coalesced, transactions
from warpstack.models.mwp_cwp.machine import WARP_SIZE, Machine, as_machine
from warpstack.models.mwp_cwp.model import KernelDescription

__all__ = ["M_FACTORS", "describe_ptx", "m_factor", "static_instructions"]

#: Issue time by kind of instruction, in those of a floating-point addition (Table 7, measured).
M_FACTORS = {
    "fp division": 4.2,
    "integer multiplication": 4.3,
    "integer division": 30.0,
    "modulo": 35.0,
}

#: Limits of polynomials, beyond which a value counts as unknown.
_MOST_DEGREE = 4
_MOST_TERMS = 64
_MOST_COEFFICIENT = 2**64
_OFF_CHIP = ("global", "local")
_FLOATS = ("f16", "f16x2", "bf16", "bf16x2", "f32", "f64")
_AXES = "xyzw"
_WITHOUT_RESULT = ("st", "red", "bra", "brx", "bar", "barrier", "ret", "exit", "call", "membar")
#: Names of the algorithms for PTX's special registers.
_NAMES = {"tid": "t", "ctaid": "b", "ntid": "ntid.", "nctaid": "nctaid."}


@checked
def m_factor(opcode: str) -> float:
    """Return the issue time of an instruction (Table 7), by its opcode in PTX or SASS.

    A multiplication and addition of integers counts as the multiplication.
    """
    words = re.split(r"[.]", opcode.lower())
    first, floating = words[0], any(word in _FLOATS for word in words)
    if first == "div":
        return M_FACTORS["fp division" if floating else "integer division"]
    if first == "rem":
        return M_FACTORS["modulo"]
    if (first in ("mul", "mad") and not floating) or first in ("imul", "imad"):
        is_move = first == "imad" and "mov" in words
        return 1.0 if is_move else M_FACTORS["integer multiplication"]
    if first == "mufu" and "rcp" in words:
        return M_FACTORS["fp division"]
    return 1.0


class _Flow:
    """The execution counts of a kernel's instructions, from the trip counts of its loops."""

    def __init__(self, body: list[dict[str, Any]], where: str) -> None:
        self.body = body
        self.successors: list[list[int]] = []
        self.names: dict[int, str] = {}
        for i, instruction in enumerate(body):
            targets: list[int] = []
            for operand in instruction["operands"]:
                if instruction["opcode"] == "bra" and "label" in operand:
                    targets.append(operand["index"])
                    self.names[operand["index"]] = operand["label"]
                elif instruction["opcode"] == "brx" and "labels" in operand:
                    targets += operand["labels"]
            ends = instruction["opcode"] in ("ret", "exit", "trap", "bra", "brx")
            falls = not ends or instruction["guard"] is not None
            self.successors.append([*targets, *([i + 1] if falls else [])])
        self.where = where
        self.loops = self._loops()

    def _loops(self) -> dict[int, set[int]]:
        """Return the instructions of each natural loop by that of its head."""
        predecessors: dict[int, list[int]] = {}
        for i, successors in enumerate(self.successors):
            for j in successors:
                predecessors.setdefault(j, []).append(i)
        loops: dict[int, set[int]] = {}
        for i, successors in enumerate(self.successors):
            for head in successors:
                if head > i:
                    continue
                members, todo = loops.setdefault(head, {head}), [i]
                while todo:
                    j = todo.pop()
                    if j not in members:
                        members.add(j)
                        todo += predecessors.get(j, [])
        return loops

    def name(self, head: int) -> str:
        return self.names.get(head, f"line {self.body[head]['line']}")

    def executions(self, trips: Mapping[str, float], counts: Mapping[str, float]) -> list[float]:
        known = {self.name(head) for head in self.loops}
        for name in trips:
            if name not in known:
                raise unknown("loop", name, sorted(known), where=self.where)
        for name in counts:
            if name not in self.names.values():
                raise InputError(
                    f"{self.where}: no branch leads to a label {shown(name)}; the labels are "
                    f"{', '.join(sorted(self.names.values())) or 'none'}"
                )
        for what, given in (("trip_counts", trips), ("executions", counts)):
            for name, value in given.items():
                if not (isinstance(value, (int, float)) and math.isfinite(value) and value >= 0):
                    raise InputError(
                        f"{self.where}: {what}: {name} = {shown(value)} is not a count"
                    )
        result = [1.0] * len(self.body)
        for head, members in self.loops.items():
            name = self.name(head)
            if name not in trips:
                raise InputError(
                    f"{self.where}: how often does the loop at {name} (line "
                    f"{self.body[head]['line']}) run? Give trip_counts={{{shown(name)}: ...}}"
                )
            for i in members:
                result[i] *= trips[name]
        starts = sorted({0, *self.names})
        for start, end in zip(starts, [*starts[1:], len(self.body)], strict=True):
            if self.names.get(start) in counts:
                result[start:end] = [float(counts[self.names[start]])] * (end - start)
        return result


class _Values:
    """The registers of a kernel as expressions of thread, block, parameters and loop counters."""

    def __init__(self, flow: _Flow, parameters: Mapping[str, Any], pointers: set[str]) -> None:
        self.flow = flow
        self.parameters = parameters
        self.pointers = pointers
        self.definitions: dict[str, list[int]] = {}
        for i, instruction in enumerate(flow.body):
            for register in _registers(instruction)[0]:
                self.definitions.setdefault(register, []).append(i)
        self.known: dict[str, Expression] = {}
        self.evaluating: set[str] = set()

    def register(self, name: str) -> Expression:
        if name in self.known:
            return self.known[name]
        own = Expression({(f"?self {name}",): 1})
        if name in self.evaluating:
            return own
        self.evaluating.add(name)
        found = self._merge(name, own)
        self.evaluating.discard(name)
        if not any(other.startswith("?self ") for other in found.names):
            self.known[name] = found
        return found

    def _merge(self, name: str, own: Expression) -> Expression:
        """Join the definitions: one start and steps that add to it make a loop counter.

        If there are several starts, or a definition under a guard, threads may take different ones.
        """
        starts: set[Expression] = set()
        steps = Expression()
        is_counter = True
        for place in self.definitions.get(name, []):
            value = self.result(place)
            is_counter = is_counter and self.flow.body[place]["guard"] is None
            if own.names & value.names:
                step = value - own
                is_counter = is_counter and not (own.names & step.names or step.differs_by_thread)
                iteration = Expression({(f"iteration {self.flow.body[place]['line']}",): 1})
                steps = steps + step * iteration
            else:
                starts.add(value)
        if len(starts) == 1 and is_counter:
            return starts.pop() + steps
        return Expression({(f"?value {name}",): 1})

    def operand(self, operand: dict[str, Any]) -> Expression:
        if "reg" in operand:
            return self.register(operand["reg"])
        if "special" in operand:
            axis = _AXES[operand["component"]]
            prefix = _NAMES.get(operand["special"])
            if prefix is None:
                return Expression({(f"?{operand['special']}",): 1})
            name = prefix + axis
            return (
                Expression.of(self.parameters[name])
                if name in self.parameters
                else Expression({(name,): 1})
            )
        if "integer" in operand and "variable" not in operand and "address" not in operand:
            return Expression({(): operand["integer"]})
        if "variable" in operand:
            return Expression({(f"&{operand['variable']}",): 1}) + int(operand["integer"])
        return Expression({("?operand",): 1})

    def address(self, operand: dict[str, Any]) -> Expression:
        """Return the bytes from the start of the array, which is aligned."""
        (base,) = operand["address"]
        value = self.operand(base) + operand["integer"]
        kept = {
            monomial: coefficient
            for monomial, coefficient in value.terms.items()
            if not (
                len(monomial) == 1
                and coefficient == 1
                and (monomial[0] in self.pointers or monomial[0].startswith("&"))
            )
        }
        return Expression(kept)

    def result(self, place: int) -> Expression:
        """Return what an instruction computes; a new name where that is not a polynomial."""
        instruction = self.flow.body[place]
        opcode, words = instruction["opcode"], instruction["modifiers"]
        floating = any(word in _FLOATS for word in words)
        operands = instruction["operands"]
        if opcode == "ld" and "param" in words and "address" in operands[1]:
            (base,) = operands[1]["address"]
            name = base.get("variable")
            if name is not None and not operands[1]["integer"] and not base.get("integer"):
                if name in self.parameters:
                    return Expression.of(self.parameters[name])
                return Expression({(name,): 1})
            return Expression({(f"parameter at line {instruction['line']}",): 1})
        inputs = [self.operand(operand) for operand in operands[1:]]
        if not floating and inputs:
            a = inputs[0]
            if opcode in ("mov", "cvta") or opcode == "cvt":
                return a
            if opcode == "neg":
                return -a
            if opcode == "add":
                return a + inputs[1]
            if opcode == "sub":
                return a - inputs[1]
            if opcode in ("mul", "mul24", "mad", "mad24") and "hi" not in words:
                product = _bounded(a, inputs[1])
                if product is not None:
                    return product + (inputs[2] if opcode.startswith("mad") else 0)
            shift = inputs[1].constant if opcode == "shl" else None
            if shift is not None and 0 <= shift < 64:
                return a * (1 << int(shift))
        uniform = opcode not in ("ld", "atom", "shfl", "tex", "activemask", "vote", "match")
        uniform = uniform and not any(value.differs_by_thread for value in inputs)
        return Expression({(("" if uniform else "?") + f"line {instruction['line']}",): 1})


def _bounded(a: Expression, b: Expression) -> Expression | None:
    """Return a product; None where it is larger than what an index is made of.

    A register that is squared again and again doubles its degree, and the terms grow faster.
    """
    if _degree(a) + _degree(b) > _MOST_DEGREE or len(a.terms) * len(b.terms) > _MOST_TERMS**2:
        return None
    product = a * b
    fits = all(abs(coefficient) < _MOST_COEFFICIENT for coefficient in product.terms.values())
    return product if fits and len(product.terms) <= _MOST_TERMS else None


def _degree(value: Expression) -> int:
    return max(map(len, value.terms), default=0)


def _registers(instruction: dict[str, Any]) -> tuple[set[str], set[str]]:
    """Return the registers that an instruction writes and reads."""

    def named(operand: dict[str, Any]) -> set[str]:
        inner = [*operand.get("elements", []), *operand.get("address", [])]
        return {operand["reg"]} if "reg" in operand else set().union(*map(named, inner))

    operands = instruction["operands"]
    has_result = instruction["opcode"] not in _WITHOUT_RESULT
    written = named(operands[0]) if operands and has_result else set()
    read = set().union(*map(named, operands[has_result:]))
    return written, read | ({instruction["guard"]} if instruction["guard"] else set())


@checked
def static_instructions(
    kernel: cuda.Kernel,
    *,
    trip_counts: Mapping[str, float] | None = None,
    executions: Mapping[str, float] | None = None,
    parameters: Mapping[str, int] | None = None,
    block: int | Sequence[int] | None = None,
) -> pd.DataFrame:
    """Read the instructions of a kernel, how often each runs, and what off-chip accesses index.

    Parameters
    ----------
    kernel
        A kernel of `warpstack.cuda`; it is not run.
    trip_counts
        How often each loop runs, by the label at its head (``line N`` where no branch names one).
        Loops inside others: per entry.
    executions
        How often the instructions after a label run, up to the next one, in place of what follows
        from `trip_counts`: for paths that are not taken (0) or taken by some warps. Without it
        every path counts, as in a warp whose threads diverge at each branch (Section 6.3).
    parameters
        Values of kernel parameters that indexes contain, by name in the PTX.
    block
        Threads per block in x, y and z, for ``%ntid``.

    Returns
    -------
    DataFrame
        One row per instruction: ``line``, ``block`` (the label before it), ``opcode``,
        ``executions``, ``kind`` (``comp``, ``synch`` or ``mem``; ``operand`` for a load of a kernel
        parameter, which is an operand of other instructions in machine code and does not count),
        ``independent`` (of an access: it need not wait for the one before), ``m_factor``, ``size`` (bytes of
        an element, 0 for no access) and ``index`` (an `Expression` in elements, or None).

    Raises
    ------
    InputError
        If a loop has no trip count, or a name or count is wrong.
    """
    where = f"{kernel.module.file}: {kernel.name}"
    body = kernel.module._text.body(kernel.name)
    flow = _Flow(body, where)
    runs = flow.executions(trip_counts or {}, executions or {})
    declared = {entry["name"]: entry for entry in kernel._parameters}
    given: dict[str, Any] = {}
    for name, value in (parameters or {}).items():
        if name not in declared:
            raise unknown("parameter", name, declared, where=where)
        given[name] = value
    if block is not None:
        sizes = _sizes("block", block)
        given |= {f"ntid.{axis}": size for axis, size in zip("xyz", [*sizes, 1, 1], strict=False)}
    pointers = {name for name, entry in declared.items() if entry["bytes"] == 8} - set(given)
    values = _Values(flow, given, pointers)
    label, rows = "", []
    waiting: set[str] = set()
    for i, instruction in enumerate(body):
        if i in flow.names:
            label = flow.names[i]
            waiting.clear()
        opcode, words = instruction["opcode"], instruction["modifiers"]
        kind, size, index = "comp", 0, None
        is_access = opcode in ("ld", "st", "atom", "red", "ldu")
        spaces = ("global", "shared", "param", "const", "local")
        generic = is_access and not any(word.split("::")[0] in spaces for word in words)
        if is_access and (generic or any(word in _OFF_CHIP for word in words)):
            kind = "mem"
            bits = re.search(r"(\d+)(?:x(\d+))?", words[-1])
            vector = next((int(word[1:]) for word in words if re.fullmatch(r"v[248]", word)), 1)
            size = int(bits.group(1)) * int(bits.group(2) or 1) // 8 * vector if bits else 4
            place = next(o for o in instruction["operands"] if "address" in o)
            index = values.address(place) * Fraction(1, size)
        elif opcode in ("bar", "barrier") and "arrive" not in words:  # which does not wait
            kind = "synch"
        elif opcode == "ld" and "param" in words:
            kind = "operand"
        name = ".".join([opcode, *words])
        written, read = _registers(instruction)
        if waiting & read:
            waiting.clear()
        independent = kind == "mem" and bool(waiting)
        if kind == "mem":
            waiting |= written
        rows.append(
            {
                "line": instruction["line"],
                "block": label,
                "opcode": name,
                "executions": runs[i],
                "kind": kind,
                "independent": independent,
                "m_factor": m_factor(name),
                "size": size,
                "index": index,
            }
        )
    return pd.DataFrame(rows)


def _sizes(what: str, given: int | Sequence[int]) -> list[int]:
    """Return the sizes of a grid or a block in x, y and z, as many as there are given."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        given = [given]
    sizes = [as_integer(what, size, 1, 2**31 - 1) for size in given]
    if not 1 <= len(sizes) <= 3:
        raise InputError(f"{what} = {shown(given)} has {len(sizes)} sizes, not 1 to 3")
    return sizes


@checked
def describe_ptx(
    kernel: cuda.Kernel,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    gpu: Machine | Gpu | str,
    *,
    trip_counts: Mapping[str, float] | None = None,
    executions: Mapping[str, float] | None = None,
    parameters: Mapping[str, int] | None = None,
    active_blocks_per_sm: int | None = None,
) -> KernelDescription:
    """Describe a kernel by its PTX, without running it.

    Instructions count as PTX instructions (Section 3.4.3), off-chip accesses as coalesced or not by
    Algorithm 1 below compute capability 1.3 and by Algorithm 2 from there on.

    Parameters
    ----------
    kernel, trip_counts, executions, parameters
        As for `static_instructions`.
    grid, block
        Thread blocks and threads per block: a number, or up to three.
    gpu
        The GPU whose coalescing and occupancy to take; see `warpstack.models.mwp_cwp.predict`.
    active_blocks_per_sm
        Thread blocks per SM; by default as many as the kernel's registers and shared memory allow.

    Raises
    ------
    InputError
        As `static_instructions`, and if a block does not fit on an SM.
    """
    machine = as_machine(gpu)
    num_blocks, threads = math.prod(_sizes("grid", grid)), math.prod(_sizes("block", block))
    table = static_instructions(
        kernel,
        trip_counts=trip_counts,
        executions=executions,
        parameters=parameters,
        block=block,
    )
    table = table[table["kind"] != "operand"]
    runs = table["executions"]
    counts = {"coal": 0.0, "uncoal": 0.0}
    moved, spread = 0.0, 0.0
    accesses = table[table["kind"] == "mem"]
    for times, size, index in zip(
        accesses["executions"], accesses["size"], accesses["index"], strict=True
    ):
        moved += times * size * WARP_SIZE
        if machine.compute_capability < 1.3:
            coalesced, count = is_coalesced(index, size), float(machine.uncoalesced_transactions)
        else:
            found = transactions(index, size)
            coalesced, count = found.is_coalesced, found.count
        counts["coal" if coalesced else "uncoal"] += times
        spread += 0 if coalesced else times * count
    if active_blocks_per_sm is None:
        active_blocks_per_sm = machine.active_blocks_per_sm(
            threads, kernel.registers_per_thread, kernel.shared_memory_bytes
        )
    memory = counts["coal"] + counts["uncoal"]
    return KernelDescription(
        threads_per_block=threads,
        num_blocks=num_blocks,
        active_blocks_per_sm=active_blocks_per_sm,
        comp_insts=float(runs[table["kind"] != "mem"].sum()),
        uncoal_mem_insts=counts["uncoal"],
        coal_mem_insts=counts["coal"],
        synch_insts=float(runs[table["kind"] == "synch"].sum()),
        uncoal_per_mw=spread / counts["uncoal"] if counts["uncoal"] else 32,
        load_bytes_per_warp=moved / memory if memory else 128,
        independent_mem_insts=float(runs[table["independent"]].sum()),
        m_factor=float((runs * table["m_factor"]).sum() / runs.sum()),
        name=kernel.name,
    )
