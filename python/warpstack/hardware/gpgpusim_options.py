"""The options of GPGPU-Sim configurations: names with values, and the lines that they stand in."""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Iterator
from pathlib import Path

from warpstack._util.arguments import printable
from warpstack._util.input_file import read_input
from warpstack._util.yaml_file import MAX_YAML_BYTES
from warpstack.errors import InputError

__all__ = ["INTEGER", "Option", "Options"]

#: A word, or a quoted text, perhaps behind ``-option=``.
_TOKEN = re.compile(r"""(?:-{1,2}[A-Za-z_][A-Za-z0-9_:.]*=)?(?:"[^"]*"|'[^']*')|\S+""")
#: A quoted value has no options in it: then the quote was to end before them.
_QUOTED = re.compile(r"""(["'])(?:(?!\s-[A-Za-z_])(?!\1).)*\1""", re.DOTALL)
_OPTION_NAME = re.compile(r"-[A-Za-z_][A-Za-z0-9_:.]*")
_WITH_VALUE = re.compile(r"(-[A-Za-z_][A-Za-z0-9_:.]*)=(.*)", re.DOTALL)
_CONFLICT = re.compile(r"<{7}|={7}|>{7}")
INTEGER = re.compile(r"[0-9]{1,10}")
#: A whole number on its own, which GPGPU-Sim takes as octal and hexadecimal, too.
_WHOLE = re.compile(r"0[xX][0-9A-Fa-f]{1,8}|0[0-7]{1,11}|[1-9][0-9]{0,9}|0")

#: Names that options had in some version of GPGPU-Sim, in small letters, with those of version 4.2.
_SPELLINGS = {
    "-rop_latency": "-gpgpu_l2_rop_latency",
    "-l2_rop_latency": "-gpgpu_l2_rop_latency",
    "-l1_latency": "-gpgpu_l1_latency",
    "-smem_latency": "-gpgpu_smem_latency",
    "-gpgpu_dram_latency": "-dram_latency",
    "-gmem_skip_l1d": "-gpgpu_gmem_skip_L1D",
    "-gpgpu_gmem_skip_l1d": "-gpgpu_gmem_skip_L1D",
    "-memory_partition_indexing": "-gpgpu_memory_partition_indexing",
    "-adaptive_cache_config": "-gpgpu_adaptive_cache_config",
    "-adaptive_volta_cache_config": "-gpgpu_adaptive_cache_config",
    "-adpative_volta_cache_config": "-gpgpu_adaptive_cache_config",
    "-sub_core_model": "-gpgpu_sub_core_model",
    "-enable_specialized_operand_collector": "-gpgpu_enable_specialized_operand_collector",
    "-dual_bus_interface": "-dram_dual_bus_interface",
    "-gpgpu_dram_sched_queue_size": "-gpgpu_frfcfs_dram_sched_queue_size",
    "-simple_dram_model": "-gpgpu_simple_dram_model",
    "-inct_in_buffer_limit": "-icnt_in_buffer_limit",
    "-ptx_opcode_latency_tensor": "-ptx_opcode_latency_tesnor",
    "-ptx_opcode_initiation_tesnor": "-ptx_opcode_initiation_tensor",
}
#: Switches that configurations give without a value. What that means depends on the compiler that
#: GPGPU-Sim was built with, so that it is an error only where the switch is of use here.
_SWITCHES = frozenset(
    {
        "-gpgpu_cache:dl2_texture_only",
        "-gpgpu_cuda_sim",
        "-gpgpu_no_dl1",
        "-gpgpu_gmem_skip_L1D",
        "-gpgpu_adaptive_cache_config",
        "-gpgpu_sub_core_model",
        "-gpgpu_simple_dram_model",
        "-gpgpu_perfect_mem",
        "-gpgpu_spread_blocks_across_cores",
    }
)
#: What GPGPU-Sim takes for options that a configuration does not give, with the fields that follow.
#: The size of a machine (SMs, clocks, caches, channels) is not among them.
_DEFAULTS: dict[str, tuple[str, str]] = {
    "-gpgpu_n_sub_partition_per_mchannel": ("1", "l2_slices, l2_size_kib"),
    "-gpgpu_shader_cta": ("32", "blocks_per_sm"),
    "-gpgpu_shmem_size": ("16384", "shared_memory_kib_per_sm"),
    "-gpgpu_num_sched_per_core": ("1", "issue_width, schedulers_per_sm"),
    "-gpgpu_scheduler": ("gto", "scheduler"),
    "-gpgpu_l1_latency": ("1", "l1_latency, l2_latency"),
    "-gpgpu_smem_latency": ("3", "shared_memory_latency"),
    "-gpgpu_l2_rop_latency": ("85", "l2_latency"),
    "-dram_latency": ("30", "dram_latency"),
    "-icnt_flit_size": ("32", "noc_bandwidth_gbs, noc_sm_bytes_per_cycle"),
    "-gpgpu_n_mem_per_ctrlr": ("1", "dram_bandwidth_gbs"),
    "-gpgpu_dram_buswidth": ("4", "dram_bandwidth_gbs"),
    "-dram_data_command_freq_ratio": ("2", "dram_bandwidth_gbs"),
    "-ptx_opcode_latency_int": ("1,1,19,25,145,32", "integer_latency, shuffle_latency"),
    "-ptx_opcode_latency_fp": ("1,1,1,1,30", "fp32_latency, fp16_latency"),
    "-ptx_opcode_latency_dp": ("8,8,8,8,335", "fp64_latency"),
    "-ptx_opcode_latency_sfu": ("8", "sfu_latency"),
    "-ptx_opcode_initiation_int": ("1,1,4,4,32,4", "integer_interval"),
    "-ptx_opcode_initiation_fp": ("1,1,1,1,5", "fp32_interval, fp16_interval"),
    "-ptx_opcode_initiation_dp": ("8,8,8,8,130", "fp64_interval"),
    "-ptx_opcode_initiation_sfu": ("8", "sfu_interval"),
    "-ptx_opcode_initiation_tensor": ("64", "tensor_interval"),
    **{
        f"-trace_opcode_latency_initiation_spec_op_{unit}": ("4,4", "latency of its unit")
        for unit in range(1, 9)
    },
}


def _short(text: str) -> str:
    return text if len(text) <= 120 else text[:120] + "..."


@dataclasses.dataclass(frozen=True)
class Option:
    """An option with its name as it is written, and its value without spaces and quotes.

    One of line 0 is not in the file: `why` says where its value is from.
    """

    name: str
    value: str
    path: Path
    line: int
    why: str = "GPGPU-Sim's default"

    @property
    def where(self) -> str:
        """File, name and value: the source of what is read from it."""
        if not self.line:
            return f"no option {self.name}; {self.why}: {self.value}"
        return f"{self.path.name}, {self.name} {self.value}"

    def error(self, problem: str, remedy: str) -> InputError:
        """Return the error that says where the option is, what is wrong and what to do."""
        place = f"{self.path}:{self.line}" if self.line else f"{self.path}"
        value = _short(self.value) if self.line else f"{self.value} (not given: {self.why})"
        if not self.value:
            return InputError(f"{place}: {self.name} has no value; {remedy}")
        return InputError(f"{place}: {self.name} {value}: {problem}; {remedy}")

    def integer(self, at_least: int = 1) -> int:
        """Return the value as a whole number, which may be octal or hexadecimal as in C."""
        if not _WHOLE.fullmatch(self.value):
            raise self.error("not a number", f"write a whole number from {at_least} on")
        is_octal = len(self.value) > 1 and self.value.isdigit() and self.value[0] == "0"
        number = int(self.value, 8 if is_octal else 0)
        if not at_least <= number < 2**31:
            raise self.error("not a number", f"write a whole number from {at_least} on")
        return number

    def flag(self) -> bool:
        """Return whether the option is on."""
        if self.value not in ("0", "1"):
            raise self.error("not a switch", "write 0 or 1")
        return self.value == "1"

    def integers(self, separator: str, form: str, at_least: int = 1) -> list[int]:
        """Return the whole numbers of the value; `form` says what they are."""
        parts = self.value.split(separator)
        if not all(INTEGER.fullmatch(part) for part in parts):
            raise self.error("malformed", f"write {form}")
        numbers = [int(part) for part in parts]
        if not all(at_least <= number < 2**31 for number in numbers):
            raise self.error("a number is out of range", f"write {form}, each {at_least} or more")
        return numbers


class Options:
    """The options of the configuration files, and which of them were of use.

    Options are known by their name in GPGPU-Sim 4.2, whichever spelling a file has.

    Attributes
    ----------
    path
        The configuration, without the file of the trace-driven simulator.
    repeated
        What was given again with another value: the last one holds, as in GPGPU-Sim.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.repeated: list[str] = []
        self._options: dict[str, Option] = {}
        self._used: set[str] = set()
        self._defaults: dict[str, Option] = {}

    def read(self, path: Path) -> None:
        """Add the options of a file."""
        try:
            text = read_input(path, "configuration", MAX_YAML_BYTES).decode("utf-8-sig")
        except OSError as error:
            raise InputError(
                f"{printable(path)}: cannot read the configuration: {error.strerror}"
            ) from None
        except UnicodeDecodeError:
            text = "\0"
        if "\0" in text:
            raise InputError(f"{path}: not a text file; expected lines `-option value`")
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        # A comment ends its line, inside quotes too; newlines stay, so that lines can be counted.
        text = re.sub(r"#[^\n]*", "", text)
        # A backslash that ends a line says that the next one goes on.
        text = re.sub(r"(?<=\s)\\(?=[ \t]*\n)", " ", text)
        name, value, start = "", "", 0
        for line, word in _words(text):
            given = _WITH_VALUE.fullmatch(word)
            if _OPTION_NAME.fullmatch(word) or given:
                self._add(name, value, path, start)
                name, value, start = (given[1] if given else word), "", line
                if given:
                    value = _value(path, line, name, given[2])
            elif not name:
                raise _stray(path, line, word)
            elif not value or value[-1] in ",:;=" or word[0] in ",:;=":
                value += _value(path, line if value else start, name, word)
            else:
                raise _stray(path, line, word)
        self._add(name, value, path, start)

    def _add(self, name: str, value: str, path: Path, line: int) -> None:
        if not name:
            return
        key = _SPELLINGS.get(name.lower(), name)
        if not value and key not in _SWITCHES:
            raise InputError(f"{path}:{line}: {name} has no value; write the value after it")
        option = Option(name, value, path, line)
        before = self._options.get(key)
        if before is not None and before.value != value:
            self.repeated.append(
                f"{name} {_short(value)} of {path.name}:{line}, not the {_short(before.value)} of "
                f"{before.path.name}:{before.line}"
            )
        self._options[key] = option

    def find(self, name: str) -> Option | None:
        """Return an option, or None if the files do not give it, and take it as used."""
        self._used.add(name)
        return self._options.get(name)

    def need(self, name: str, example: object) -> Option:
        """Return an option, and take it as used.

        One that the files do not give has GPGPU-Sim's default, which `defaults` then names; where
        there is none that describes a GPU, raise `InputError`.
        """
        option = self.find(name) or self._defaults.get(name)
        if option is None and name in _DEFAULTS:
            option = self._defaults[name] = Option(name, _DEFAULTS[name][0], self.path, 0)
        if option is None:
            raise InputError(
                f"{self.path}: there is no option {name}{self._similar(name)}; add it, for example "
                f"`{name} {example}`"
            )
        return option

    def _similar(self, name: str) -> str:
        """Return what says that another name may be meant."""
        near = difflib.get_close_matches(name, self._options, 1, 0.95)
        if not near or near[0] in self._used:
            return ""
        option = self._options[near[0]]
        return f" (line {option.line} has {option.name})"

    def defaults(self) -> list[str]:
        """Return the defaults that were taken, each with its fields."""
        return [
            f"{name} {option.value} ({_DEFAULTS[name][1]})"
            for name, option in self._defaults.items()
        ]

    def unused(self) -> tuple[str, ...]:
        """Return the names of the options that were of no use, in the order of the files."""
        return tuple(o.name for key, o in self._options.items() if key not in self._used)

    def leave(self, name: str) -> None:
        """Take an option as not used after all."""
        self._used.discard(name)

    def names(self, prefix: str) -> list[str]:
        """Return the names that start with `prefix`, in the order of the files."""
        return [name for name in self._options if name.startswith(prefix)]


def _words(text: str) -> Iterator[tuple[int, str]]:
    """Yield the words of a file with their lines; two dashes before a name are one."""
    line, counted = 1, 0
    for token in _TOKEN.finditer(text):
        line += text.count("\n", counted, token.start())
        counted = token.start()
        word = token.group()
        yield line, word[1:] if re.match("--[A-Za-z_]", word) else word


def _value(path: Path, line: int, name: str, word: str) -> str:
    """Return a value, or a part of one, without quotes and spaces."""
    if word.startswith(('"', "'")) and not _QUOTED.fullmatch(word):
        raise InputError(
            f"{path}:{line}: {name} {_short(word.split()[0])}: the quote does not end; "
            "add the closing quote"
        )
    return "".join(word.strip("\"'").split())


def _stray(path: Path, line: int, word: str) -> InputError:
    """Return the error of a word that is neither an option nor a value."""
    if _CONFLICT.fullmatch(word):
        return InputError(f"{path}:{line}: {word} is of a merge conflict; keep one of its sides")
    return InputError(
        f"{path}:{line}: expected an option like -gpgpu_n_clusters, got {_short(word)!r}; quote a "
        "value that has spaces"
    )
