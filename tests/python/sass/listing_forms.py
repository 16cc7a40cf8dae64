"""Listings of machine code, written by hand, with a kernel per form: for `ptx_forms.check`.

The lines of a form are instructions. They find the operands a, b, c and e in R4, R6, R8 and R10 and leave
the results d and q in R12 and R14: values of 64 bits in pairs of registers, flags in P0 to P3, P4 and P5.
Uniform forms have them in UR4 and so on, and a block of one thread for each set of operands.
"""

from ptx_forms import width_of

TARGET = "sm_80"
PARAMETERS = 0x160  # where they lie in constant bank 0


def listing(name, lines, pointers, *, shared_bytes=0, constants=""):
    """Return the listing of a kernel with pointers as its parameters, and words in bank 2.

    A line "name:" is a label, and {name} the address of what follows it.
    """
    addresses, code = {}, []
    for line in lines:
        if line.endswith(":"):
            addresses[line[:-1]] = 16 * len(code)
        else:
            code.append(line)
    head = [
        f".kernel {name}",
        f".needs 40 {shared_bytes} 0 1024",
        f".parameters {PARAMETERS} {8 * pointers}",
        *(f".param b64 {8 * n} 8" for n in range(pointers)),
    ]
    words = [int(word.format(**addresses), 0) for word in constants.split()]
    if words:
        digits = b"".join(word.to_bytes(4, "little") for word in words).hex()
        head = [f".section .nv.constant2.{name} {4 * len(words)}", f".hex 0 {digits}", *head]
    code = [f"0 0:0 {line.format(**addresses)}" for line in [*code, "EXIT"]]
    return "\n".join([*head, *code, ".end", ""])


def module_of(*kernels):
    """Return the text of a module of listings of kernels."""
    return f".sass 1\n.target {TARGET}\n" + "".join(kernels)


def address(number, bytes_each):
    """Return code that sets R2 to the address of element R0 of an array that is a parameter."""
    place = f"c[0x0][{PARAMETERS + 8 * number:#x}]"
    return [f"MOV R1,{bytes_each:#x}", f"IMAD.WIDE.U32 R2,R0,R1,{place}"]


#: Sets R0 to the number of the thread in the grid.
THREAD = ["S2R R0,SR_CTAID.X", "S2R R1,SR_TID.X", "IMAD R0,R0,c[0x0][0x0],R1"]


def _kernel(name, form, u):
    """Return the listing of a form; `u` is "U" of a uniform one."""
    code = [*THREAD]
    for number, kind in enumerate(form.inputs):
        first, width = 4 + 2 * number, width_of(kind)
        code += [*address(number, width // 8), f"LDG.E{'.64' * (width == 64)} R{first},[R2.64]"]
        if u:
            code += [f"R2UR UR{r},R{r}" for r in range(first, first + width // 32)]
        if kind == "flag":
            code.append(f"{u}ISETP.NE.U32.AND {u}P{number},{u}PT,{u}R{first},{u}RZ,{u}PT")
    code += form.lines.split("; ")
    for number, kind in enumerate(form.outputs):
        first, width = 12 + 2 * number, width_of(kind)
        if kind == "flag":
            code.append(f"{u}SEL {u}R{first},{u}RZ,0x1,!{u}P{4 + number}")
        if u:
            code += [f"MOV R{r},UR{r}" for r in range(first, first + width // 32)]
        code += address(len(form.inputs) + number, width // 8)
        code.append(f"STG.E{'.64' * (width == 64)} [R2.64],R{first}")
    return listing(name, code, len(form.inputs) + len(form.outputs))


def lanes(forms):
    """Return a listing of forms of usual registers."""
    return module_of(*(_kernel(f"k{n}", form, "") for n, form in enumerate(forms)))


def uniform(forms):
    """Return a listing of forms of uniform registers."""
    return module_of(*(_kernel(f"k{n}", form, "U") for n, form in enumerate(forms)))
