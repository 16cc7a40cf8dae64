"""A program that calls cuFFT, without nvcc.

Usage: fft_client.py LIBRARY PLAN MEMORY RESULTS. PLAN is a JSON list of transforms (see `run`),
MEMORY the .npz file with the bytes before, RESULTS the one to write with those after.
"""

import ctypes
import json
import sys

import numpy as np

TYPES = {
    ("complex", "f32"): 0x29,
    ("to_complex", "f32"): 0x2A,
    ("to_real", "f32"): 0x2C,
    ("complex", "f64"): 0x69,
    ("to_complex", "f64"): 0x6A,
    ("to_real", "f64"): 0x6C,
}
EXECUTE = {0x29: "C2C", 0x2A: "R2C", 0x2C: "C2R", 0x69: "Z2Z", 0x6A: "D2Z", 0x6C: "Z2D"}
#: cudaDataType of real and of complex numbers.
DATA_TYPES = {"f32": (0, 4), "f64": (1, 5), "f16": (2, 6), "bf16": (14, 15)}


def of_64(values):
    """Return an array of C, or a null pointer."""
    return None if values is None else (ctypes.c_longlong * len(values))(*values)


def of_32(values):
    return None if values is None else (ctypes.c_int * len(values))(*values)


class Fft:
    """A library, and the runtime below it."""

    def __init__(self, library):
        self.lib = ctypes.CDLL(library)
        self.cuda = ctypes.CDLL("libcudart.so.12")

    def check(self, status):
        assert status == 0, status

    def layout(self, each, array, number):
        """Return the arguments of one side, for functions of 32 or 64 bits."""
        inputs = each.get("input") or (None, 1, 0)
        outputs = each.get("output") or (None, 1, 0)
        return [
            [array(embed), number(stride), number(distance)]
            for embed, stride, distance in (inputs, outputs)
        ]

    def plan(self, each):
        """Return a new plan, made by the function that the transform asks for."""
        lengths, batch, through = each["lengths"], each["batch"], each["through"]
        plan, size = ctypes.c_int(-7), ctypes.c_size_t()
        rank = len(lengths)
        kind = TYPES.get((each["kind"], each["precision"]))
        if through == "simple":
            call = getattr(self.lib, f"cufftPlan{rank}d")
            self.check(call(ctypes.byref(plan), *lengths, kind, *([batch] if rank == 1 else [])))
            return plan
        inputs, outputs = self.layout(each, of_32, ctypes.c_int)
        if through == "many":
            self.check(
                self.lib.cufftPlanMany(
                    ctypes.byref(plan), rank, of_32(lengths), *inputs, *outputs, kind, batch
                )
            )
            return plan
        self.check(self.lib.cufftCreate(ctypes.byref(plan)))
        where = ctypes.byref(size)
        if through == "made":
            made = self.lib.cufftMakePlanMany(
                plan, rank, of_32(lengths), *inputs, *outputs, kind, batch, where
            )
        else:
            inputs, outputs = self.layout(each, of_64, ctypes.c_longlong)
            count = ctypes.c_longlong(batch)
            if through == "wide":
                made = self.lib.cufftMakePlanMany64(
                    plan, rank, of_64(lengths), *inputs, *outputs, kind, count, where
                )
            else:
                real, complex_ = DATA_TYPES[each["precision"]]
                first = real if each["kind"] == "to_complex" else complex_
                last = real if each["kind"] == "to_real" else complex_
                made = self.lib.cufftXtMakePlanMany(
                    plan, rank, of_64(lengths), *inputs, first, *outputs, last, count, where,
                    complex_,
                )  # fmt: skip
        self.check(made)
        again = ctypes.c_size_t()
        self.check(self.lib.cufftGetSize(plan, ctypes.byref(again)))
        assert size.value == again.value > 0
        return plan

    def allocated(self, numbers):
        """Return memory of the device with these bytes."""
        pointer = ctypes.c_void_p()
        self.check(self.cuda.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(numbers.nbytes)))
        self.copy(pointer, numbers.ctypes.data_as(ctypes.c_void_p), numbers.nbytes, 1)
        return pointer

    def copy(self, target, source, size, direction):
        self.check(self.cuda.cudaMemcpy(target, source, ctypes.c_size_t(size), direction))

    def run(self, each, before, after):
        """Return the bytes of the output."""
        plan = self.plan(each)
        source = self.allocated(before)
        target = source if each["in_place"] else self.allocated(after)
        kind = TYPES.get((each["kind"], each["precision"]))
        direction = [each["direction"]] if each["kind"] == "complex" else []
        if each["through"] == "typed":
            self.check(self.lib.cufftXtExec(plan, source, target, *(direction or [-1])))
        else:
            execute = getattr(self.lib, f"cufftExec{EXECUTE[kind]}")
            self.check(execute(plan, source, target, *direction))
        result = np.empty_like(before if each["in_place"] else after)
        self.copy(result.ctypes.data_as(ctypes.c_void_p), target, result.nbytes, 2)
        for pointer in {source.value, target.value}:
            self.check(self.cuda.cudaFree(ctypes.c_void_p(pointer)))
        self.check(self.lib.cufftDestroy(plan))
        return result


def run(library, plan, memory):
    """Run transforms with the bytes "N.input" and "N.output" of their numbers N."""
    fft = Fft(library)
    return {
        str(number): fft.run(each, memory[f"{number}.input"], memory[f"{number}.output"])
        for number, each in enumerate(plan)
    }


if __name__ == "__main__":
    with open(sys.argv[2], encoding="utf-8") as file:
        transforms = json.load(file)
    with np.load(sys.argv[3]) as saved:
        np.savez(sys.argv[4], **run(sys.argv[1], transforms, dict(saved)))
