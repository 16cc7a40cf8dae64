"""What GPGPU-Sim configurations say of DRAM: address bits, and the times between its commands."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

from warpstack.errors import InputError
from warpstack.hardware.gpgpusim_options import INTEGER, Option, Options

__all__ = ["AddressMapping", "Banks"]

_ADDRESS_MAP = re.compile(r"(?:dramid@(?P<chip>[0-9]{1,2});)?(?P<bits>[0DdRrBbCcSs]{64})")

#: Timings in the order of the form without names, with the field that each one is. RC has none: a
#: bank cannot open a row sooner than RAS + RP after the one before.
_TIMINGS = {
    "nbk": "dram_banks",
    "CCD": "dram_tccd",
    "RRD": "dram_trrd",
    "RCD": "dram_trcd",
    "RAS": "dram_tras",
    "RP": "dram_trp",
    "RC": None,
    "CL": "dram_cl",
    "WL": "dram_wl",
    "CDLR": "dram_twtr",
    "WR": "dram_twr",
    "nbkgrp": "dram_bank_groups",
    "CCDL": "dram_tccdl",
    "RTPL": "dram_trtp",
}
#: What the simulator takes for those that may be left out: no bank groups.
_WITHOUT_GROUPS = {"nbkgrp": 1, "CCDL": 0, "RTPL": 0}
_TIMING_FORM = "nbk=<banks>:CCD=<cycles>:..., or the numbers of " + ":".join(_TIMINGS)

#: What is simplified where an option has this value.
_INEXACT = {
    ("-dram_bnk_indexing_policy", 1): "bank xor bits of the row, taken without",
    ("-dram_bnk_indexing_policy", 2): "bank hashed with the row, taken without",
    (
        "-dram_bnk_indexing_policy",
        3,
    ): "custom bank index, of which the simulator has none, taken without",
    ("-dram_bnkgrp_indexing_policy", 0): "groups of neighbouring banks, taken in turn",
    ("-dram_dual_bus_interface", 1): "a row and a column command at once, taken one by one",
    ("-dram_seperate_write_queue_enable", 1): "a queue for writes, taken as one with the reads'",
    ("-dram_elimnate_rw_turnaround", 1): "a bus without turnaround, taken with it",
}
#: Entries of the queue of the scheduler that serves requests in order.
_FIFO_ENTRIES = 2
#: For a queue without limit.
_MOST_ENTRIES = 1 << 20


@dataclasses.dataclass(frozen=True)
class AddressMapping:
    """Which bits of an address choose the channel, the slice of L2, the bank, the row and the column.

    A slice is the memory channel (the bits D, or those that dramid@ inserts) with the lowest bits
    of the bank (B).

    Attributes
    ----------
    option
        ``-gpgpu_mem_addr_mapping``.
    bits
        The letters, lowest bit first.
    chip
        The lowest bit of the channel, or -1.
    slice_banks
        The bits of the bank that choose the slice in its channel.
    """

    option: Option
    bits: str
    chip: int
    slice_banks: tuple[int, ...]

    @classmethod
    def parse(cls, option: Option, slices_per_channel: int) -> AddressMapping:
        """Return the mapping that an option gives."""
        match = _ADDRESS_MAP.fullmatch(option.value.replace(".", "").replace("|", ""))
        if not match:
            raise option.error(
                "malformed address mapping",
                "write dramid@<bit>; and 64 of the letters 0, R, B, C, S and D, highest bit first",
            )
        bits = match["bits"].upper()[::-1]
        chip = int(match["chip"]) if match["chip"] else bits.find("D")
        banks = [bit for bit, letter in enumerate(bits) if letter == "B"]
        return cls(option, bits, chip, tuple(banks[: slices_per_channel.bit_length() - 1]))

    @property
    def slice_interleave(self) -> int:
        """The bytes after which addresses move on to another slice of L2."""
        positions = [bit for bit in (self.chip, *self.slice_banks) if bit >= 0]
        if not positions or max(positions) > 30:
            raise self.option.error("no bits choose the channel", "add dramid@<bit>; in front")
        return int(2 ** min(positions))

    @property
    def row_bytes(self) -> int:
        """The bytes of a row: those of its columns (C), each of the bits S."""
        columns = self.bits.count("C") + self.bits.count("S")
        if not columns:
            raise self.option.error("no bits choose the column", "add C and S")
        return int(2**columns)

    def interleaved_banks(self) -> tuple[int, int, str]:
        """Return the banks of a slice over which neighbouring addresses spread.

        Returns
        -------
        tuple
            Their number, consecutive bytes in each of them, and what this simplifies.
        """
        # The addresses of one slice have neither the bits of the channel nor those of the slice.
        letters = [
            letter
            for bit, letter in enumerate(self.bits)
            if letter != "D" and bit not in self.slice_banks
        ]
        top = max(bit for bit, letter in enumerate(letters) if letter in "CS")
        low = [bit for bit, letter in enumerate(letters[:top]) if letter == "B"]
        high = "".join(letters[top + 1 :]).rstrip("0")
        is_exact = "R" not in letters[:top] and re.fullmatch("B*R*", high)
        if low and low[-1] - low[0] + 1 != len(low):
            is_exact = None
        note = "" if is_exact else "bits of the bank, taken as side by side and below the row"
        return int(2 ** len(low)), int(2 ** low[0]) if low else 0, note


class Banks:
    """The banks of a channel and the times between its commands.

    Attributes
    ----------
    values, sources
        Values by field of `Gpu`, and the option that each comes from.
    approximations
        What is simplified.
    """

    def __init__(self, options: Options, timing: Option, mapping: AddressMapping) -> None:
        self.values: dict[str, Any] = {}
        self.sources: dict[str, str] = {}
        self.approximations: list[str] = []
        numbers = _timings(timing)
        self._burst(options, timing, numbers)
        for name, field in _TIMINGS.items():
            if field is not None and field not in self.values:
                self._put(field, numbers[name], f"{_place(timing)}: {name} {numbers[name]}")
        if numbers["RC"] > numbers["RAS"] + numbers["RP"]:
            self.approximations.append(f"{timing.name} (RC, taken as RAS + RP)")
        self._addresses(mapping)
        self._queue(options)
        for name, value in _INEXACT:
            option = options.find(name)
            if (option.integer(0) if option else 0) == value and (
                name != "-dram_bnkgrp_indexing_policy" or 1 < numbers["nbkgrp"] < numbers["nbk"]
            ):
                self.approximations.append(f"{name} {value} ({_INEXACT[name, value]})")

    def _put(self, field: str, value: int, source: str) -> None:
        self.values[field] = value
        self.sources[field] = source

    def _burst(self, options: Options, timing: Option, numbers: dict[str, int]) -> None:
        """Put what depends on the length of a burst."""
        length = options.find("-gpgpu_dram_burst_length")
        beats = length.integer() if length else 4
        burst = f"{length.name} {beats}" if length else "no option -gpgpu_dram_burst_length: 4"
        parts = [
            options.need("-gpgpu_dram_buswidth", 16),
            options.need("-gpgpu_n_mem_per_ctrlr", 1),
        ]
        width = parts[0].integer() * parts[1].integer()
        source = " x ".join([burst, *(f"{part.name} {part.value}" for part in parts)])
        self._put("dram_burst_bytes", beats * width, f"{timing.path.name}, {source}")
        # A command each cycle is the most that there can be.
        ccd = numbers["CCD"]
        self._put("dram_tccd", max(ccd, 1), f"{_place(timing)}: CCD {ccd}")
        ratio = options.need("-dram_data_command_freq_ratio", 2)
        cycles = beats // ratio.integer()
        self._put(
            "dram_trtp",
            max(cycles, numbers["RTPL"]),
            f"{_place(timing)}: RTPL {numbers['RTPL']}, at least {burst} / {ratio.name} "
            f"{ratio.value}",
        )

    def _addresses(self, mapping: AddressMapping) -> None:
        where = mapping.option.where
        self._put("dram_row_bytes", mapping.row_bytes, f"{where}: C and S")
        count, run, note = mapping.interleaved_banks()
        without = " without those of the slice" if mapping.slice_banks else ""
        self._put("dram_interleaved_banks", count, f"{where}: B below C{without}")
        if count > 1:
            self._put("dram_bank_interleave_bytes", run, f"{where}: below B")
        if note:
            self.approximations.append(f"{mapping.option.name} ({note})")

    def _queue(self, options: Options) -> None:
        scheduler = options.find("-gpgpu_dram_scheduler")
        if scheduler is not None:
            if scheduler.value not in ("0", "1"):
                raise scheduler.error("no such scheduler", "write 0 (FIFO) or 1 (FR-FCFS)")
            if scheduler.value == "0":
                source = f"{scheduler.where}: the {_FIFO_ENTRIES} of its queue"
                self._put("dram_queue_entries", _FIFO_ENTRIES, source)
                self.approximations.append(f"{scheduler.name} 0 (FIFO, taken as FR-FCFS)")
                return
        queue = options.find("-gpgpu_frfcfs_dram_sched_queue_size")
        if queue is not None:
            entries = queue.integer(at_least=0)
            without = "" if entries else ": no limit"
            self._put("dram_queue_entries", entries or _MOST_ENTRIES, queue.where + without)


def _place(timing: Option) -> str:
    return f"{timing.path.name}, {timing.name}"


def _timings(option: Option) -> dict[str, int]:
    """Return the timings by name, of the form with names or of that without."""
    parts = re.split("[:;]", option.value.rstrip(":;"))
    if "=" not in option.value:
        if not len(_TIMINGS) - len(_WITHOUT_GROUPS) <= len(parts) <= len(_TIMINGS):
            raise _malformed(option)
        pairs = list(zip(_TIMINGS, parts, strict=False))
    else:
        pairs = [(name, number) for name, _, number in (part.partition("=") for part in parts)]
    numbers: dict[str, int] = {}
    for name, number in pairs:
        if name not in _TIMINGS:
            known = ", ".join(_TIMINGS)
            raise option.error(f"there is no timing {name or number!r}", f"write one of {known}")
        if not INTEGER.fullmatch(number):
            raise _malformed(option)
        if name in numbers:
            raise option.error(f"{name} is given twice", "leave one of them out")
        numbers[name] = int(number)
    missing = [name for name in _TIMINGS if name not in {**numbers, **_WITHOUT_GROUPS}]
    if missing:
        raise option.error(f"without {', '.join(missing)}", f"add {missing[0]}=<number>")
    for name in ("nbk", "nbkgrp"):
        if numbers.get(name) == 0:
            raise option.error(f"{name} is 0", "give at least 1")
    return {**_WITHOUT_GROUPS, **numbers}


def _malformed(option: Option) -> InputError:
    return option.error("malformed", f"write {_TIMING_FORM}")
