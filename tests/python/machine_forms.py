"""The PTX forms of ptx_forms.py as machine code: what ptxas makes of each runs in place of it."""

import functools
import re
import subprocess

import warpstack as ws
from python_reference.ptx_arithmetic import is_nan
from warpstack.cuda.toolchain import assemble, find_ptxas
from warpstack.errors import InputError

#: Operands beyond what the PTX ISA defines, by place: these take their place.
LIMITED = {
    "bfe.u64": {1: range(64), 2: range(64)},
    "bfe.s64": {1: range(64), 2: range(64)},
    "bfi.b64": {2: range(64), 3: range(64)},
    "fns far": {1: range(32)},
    "tf32": {0: range(0x3F000000, 0x40000000, 0x1357)},  # no NaN
    # Results of large divisors may be zero, and of NaNs only the upper word is looked at.
    "div.approx.f32": {1: range(0x3F000000, 0x40000000, 0x1357)},
    "div.approx.ftz.f32": {1: range(0x3F000000, 0x40000000, 0x1357)},
    "rcp.approx.ftz.f64": {0: range(0x3F0 << 52, 0x410 << 52, 0x12345 << 40)},
    "rsqrt.approx.ftz.f64": {0: range(0x3F0 << 52, 0x410 << 52, 0x12345 << 40)},
}
# The remainder by zero is left open.
LIMITED |= {
    f"rem.{kind}{width}": {1: range(1, 6000, 37)} for kind in "us" for width in (16, 32, 64)
}
#: Forms whose .ftz ptxas ignores.
NOT_FLUSHED = {"cvt.rm.ftz.f16.f32", "cvt.rp.ftz.f16.f32", "cvt.rz.ftz.f16.f32"}


@functools.cache
def newest_version():
    """Return the first version of PTX with all conversions that this ptxas has, which refuses older ones."""
    said = subprocess.run(
        [find_ptxas(), "--version"], stdout=subprocess.PIPE, text=True, check=True
    )
    release = tuple(map(int, re.search(r"release (\d+)\.(\d+)", said.stdout).groups()))
    return "9.1" if release >= (13, 1) else "9.0"


def for_target(text, arch):
    """Return PTX made for an architecture."""
    if int(re.sub(r"\D", "", arch)) >= 100:
        text = text.replace(".version 8.3", f".version {newest_version()}")
    return re.sub(r"\.target sm_\d+a?", f".target {arch}", text)


def compiler_for(arch):
    """Return a `ws.cuda.compile` whose modules are machine code."""
    plain = ws.cuda.compile

    def compile_as_machine_code(source, **options):
        return plain(for_target(source, arch), machine_code=arch, **options)

    return compile_as_machine_code


def refused_lines(text, arch):
    """Return the lines of a PTX text that ptxas refuses for an architecture, from 1."""
    try:
        assemble(for_target(text, arch), "<forms>", arch)
    except InputError as error:
        return [int(line) for line in re.findall(r"line (\d+); error", str(error))]
    return []


def possible(forms, arch, kernel_text):
    """Return the forms that an architecture has and does as the PTX ISA says."""
    forms = {label: form for label, form in forms.items() if label not in NOT_FLUSHED}
    header = f".version 8.3\n.target {arch}\n.address_size 64\n"
    while forms:
        texts = [kernel_text(f"k{n}", form) for n, form in enumerate(forms.values())]
        wrong = refused_lines(header + "".join(texts), arch)
        if not wrong:
            break
        ends, line = [], 3
        for text in texts:
            line += text.count("\n")
            ends.append(line)
        refused = {next(n for n, end in enumerate(ends) if place <= end) for place in wrong}
        forms = {k: f for n, (k, f) in enumerate(forms.items()) if n not in refused}
    return forms


def executed(forms, kernel_text, missing):
    """Return the forms that are executed. Others must be refused for an opcode of `missing`."""
    text = ".version 8.3\n.target sm_80\n.address_size 64\n"
    text += "".join(kernel_text(f"k{n}", form) for n, form in enumerate(forms.values()))
    module = ws.cuda.compile(text, device=ws.cuda.Device(0.1))
    result = {}
    for n, (label, form) in enumerate(forms.items()):
        try:
            module.kernel(f"k{n}")
        except InputError as error:
            opcode = re.search(r"machine code at 0x\w+, (\w+)", str(error)).group(1)
            if opcode not in missing:
                raise
        else:
            result[label] = form
    return result


def same_but_for_nan(form):
    """Return a comparison that takes all NaNs for equal: PTX leaves open which one comes out."""
    plain = form.same
    kinds = {kind for kind in form.outputs if kind[0] in "bf" and kind not in ("b32", "b64")}
    halves = {kind for kind in kinds if kind.endswith("x2")}

    def both_nan(a, b):
        for kind in kinds:
            if kind in halves:
                pairs = [((a >> s) & 0xFFFF, (b >> s) & 0xFFFF) for s in (0, 16)]
                if all(x == y or (is_nan(x, kind[:-2]) and is_nan(y, kind[:-2])) for x, y in pairs):
                    return True
            elif is_nan(a, kind) and is_nan(b, kind):
                return True
        return False

    def same(got, expected, *operands):
        plainly = plain(got, expected, *operands) if plain else got == expected
        return plainly or (not isinstance(expected, float) and both_nan(got, expected))

    return same
