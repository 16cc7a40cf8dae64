"""A program that calls a library for linear algebra, without nvcc.

Usage: library_client.py LIBRARY CREATE PLAN MEMORY RESULTS. LIBRARY may be several, with commas between;
CREATE is the function that makes a handle, in the first of them.
PLAN is a JSON list of cases, each {"device": names, "host": names, "steps": [[function, argument, ...],
...]}, and with "captured": the name of the function that sets the handle's stream, if the steps are to be
captured in a graph, which is launched when the arrays of the host are gone;
MEMORY is the .npz file with the bytes "N.name" of the arrays of case N, RESULTS the one to write
with those after, "N.status" (of each step) and "N.slots.name".

An argument is an integer, [type, number...] (of a floating-point number,
or of a complex one), null, "@name" (an array of the device), "$name" (one of the host), "&name" (the
place of a number or a descriptor) or "name" (what is there). "h" is the library's handle.
"""

import ctypes
import json
import sys

import numpy as np


def check(status):
    assert status == 0, status


class Complex32(ctypes.Structure):
    _fields_ = (("real", ctypes.c_float), ("imaginary", ctypes.c_float))


class Complex64(ctypes.Structure):
    _fields_ = (("real", ctypes.c_double), ("imaginary", ctypes.c_double))


NUMBERS = {"f32": ctypes.c_float, "f64": ctypes.c_double, "c32": Complex32, "c64": Complex64}


class Libraries:
    """Functions of several libraries."""

    def __init__(self, names):
        self.libraries = [ctypes.CDLL(name) for name in names]

    def __getattr__(self, function):
        return next(
            getattr(library, function) for library in self.libraries if hasattr(library, function)
        )


class Case:
    """The memory of one case, and its calls."""

    def __init__(self, lib, cuda, handle):
        self.lib, self.cuda = lib, cuda
        self.device, self.host, self.slots = {}, {}, {"h": ctypes.c_int64(handle)}

    def allocate(self, name, numbers):
        pointer = ctypes.c_void_p()
        size = max(numbers.nbytes, 1)
        check(self.cuda.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(size)))
        self.device[name] = (pointer, numbers)
        if numbers.nbytes:
            self.copy(pointer, numbers.ctypes.data_as(ctypes.c_void_p), numbers.nbytes, 1)

    def copy(self, target, source, size, direction):
        check(self.cuda.cudaMemcpy(target, source, ctypes.c_size_t(size), direction))

    def argument(self, word):
        if word is None:
            return ctypes.c_void_p(None)
        if isinstance(word, int):
            return ctypes.c_int64(word)
        if isinstance(word, list):
            return NUMBERS[word[0]](*word[1:])
        kind, name = word[0], word[1:]
        if kind == "@":
            return self.device[name][0]
        if kind == "$":
            return self.host[name].ctypes.data_as(ctypes.c_void_p)
        if kind == "&":
            return ctypes.byref(self.slots.setdefault(name, ctypes.c_int64(0)))
        return self.slots[word]

    def run(self, steps):
        return [getattr(self.lib, step[0])(*map(self.argument, step[1:])) for step in steps]

    def run_captured(self, steps, set_stream):
        """Run steps whose calls of the library are nodes of a graph."""
        cuda, stream, graph, executable = self.cuda, *(ctypes.c_void_p() for _ in range(3))
        by = ctypes.byref
        check(cuda.cudaStreamCreateWithFlags(by(stream), 1))
        check(getattr(self.lib, set_stream)(self.slots["h"], stream))
        before = {name: numbers for name, (_, numbers) in self.device.items()}
        check(cuda.cudaStreamBeginCapture(stream, 2))
        statuses = self.run(steps)
        check(cuda.cudaStreamEndCapture(stream, by(graph)))
        for name, (pointer, numbers) in self.device.items():  # nothing has run
            after = np.empty_like(numbers)
            if numbers.nbytes:
                self.copy(after.ctypes.data_as(ctypes.c_void_p), pointer, numbers.nbytes, 2)
            assert (after == before[name]).all(), f"{name} was written while the stream captured"
        check(cuda.cudaGraphInstantiate(by(executable), graph, 0))
        check(cuda.cudaGraphDestroy(graph))
        for numbers in self.host.values():
            numbers[:] = 0x55
        check(getattr(self.lib, set_stream)(self.slots["h"], None))
        check(cuda.cudaGraphLaunch(executable, None))
        check(cuda.cudaDeviceSynchronize())
        check(cuda.cudaGraphExecDestroy(executable))
        return statuses

    def results(self):
        found = {f"slots.{name}": np.int64(slot.value) for name, slot in self.slots.items()}
        found.update(self.host)
        for name, (pointer, numbers) in self.device.items():
            after = np.empty_like(numbers)
            if numbers.nbytes:
                self.copy(after.ctypes.data_as(ctypes.c_void_p), pointer, numbers.nbytes, 2)
            check(self.cuda.cudaFree(pointer))
            found[name] = after
        return found


def main(library, create, plan_file, memory_file, result_file):
    lib = Libraries(library.split(","))
    cuda = ctypes.CDLL("libcudart.so.12")
    handle = ctypes.c_int64()
    check(getattr(lib, create)(ctypes.byref(handle)))
    with open(plan_file, encoding="utf-8") as file:
        plan = json.load(file)
    results = {}
    with np.load(memory_file) as memory:
        for number, each in enumerate(plan):
            case = Case(lib, cuda, handle.value)
            for name in each["device"]:
                case.allocate(name, memory[f"{number}.{name}"])
            for name in each["host"]:
                case.host[name] = np.array(memory[f"{number}.{name}"])
            set_stream = each.get("captured")
            statuses = (
                case.run_captured(each["steps"], set_stream)
                if set_stream
                else case.run(each["steps"])
            )
            results[f"{number}.status"] = np.array(statuses)
            results.update({f"{number}.{name}": value for name, value in case.results().items()})
    np.savez(result_file, **results)


if __name__ == "__main__":
    main(*sys.argv[1:])
