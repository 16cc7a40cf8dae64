"""A program that calls cuRAND, without nvcc.

Usage: rand_client.py LIBRARY PLACE PLAN RESULTS. PLACE is host or device, PLAN a JSON list of
generators (see `run`), RESULTS the .npz file to write. NVIDIA's library runs it on the host, too.
"""

import ctypes
import json
import sys

import numpy as np

KINDS = {
    "xorwow": 101,
    "mrg32k3a": 121,
    "mtgp32": 141,
    "mt19937": 142,
    "philox": 161,
    "sobol32": 201,
    "scrambled_sobol32": 202,
    "sobol64": 203,
    "scrambled_sobol64": 204,
}
ORDERINGS = {"default": 101, "seeded": 102, "legacy": 103}
#: Functions, the type of their results and of their arguments.
FUNCTIONS = {
    "bits": ("curandGenerate", np.uint32, None),
    "bits64": ("curandGenerateLongLong", np.uint64, None),
    "uniform": ("curandGenerateUniform", np.float32, None),
    "uniform_double": ("curandGenerateUniformDouble", np.float64, None),
    "normal": ("curandGenerateNormal", np.float32, ctypes.c_float),
    "normal_double": ("curandGenerateNormalDouble", np.float64, ctypes.c_double),
    "log_normal": ("curandGenerateLogNormal", np.float32, ctypes.c_float),
    "log_normal_double": ("curandGenerateLogNormalDouble", np.float64, ctypes.c_double),
    "poisson": ("curandGeneratePoisson", np.uint32, ctypes.c_double),
}


class Rand:
    """A library, and on the device the runtime below it."""

    def __init__(self, library, place):
        self.lib = ctypes.CDLL(library)
        self.cuda = ctypes.CDLL("libcudart.so.12") if place == "device" else None

    def check(self, status):
        assert status == 0, status

    def create(self, kind, ordering=None, seed=None, offset=None, dimensions=None):
        """Return a new generator with these settings."""
        generator = ctypes.c_void_p()
        make = self.lib.curandCreateGenerator if self.cuda else self.lib.curandCreateGeneratorHost
        self.check(make(ctypes.byref(generator), KINDS[kind]))
        if ordering is not None:
            self.check(self.lib.curandSetGeneratorOrdering(generator, ORDERINGS[ordering]))
        if seed is not None:
            number = ctypes.c_ulonglong(seed)
            self.check(self.lib.curandSetPseudoRandomGeneratorSeed(generator, number))
        if offset is not None:
            number = ctypes.c_ulonglong(offset)
            self.check(self.lib.curandSetGeneratorOffset(generator, number))
        if dimensions is not None:
            self.check(self.lib.curandSetQuasiRandomGeneratorDimensions(generator, dimensions))
        return generator

    def generate(self, generator, function, count, *arguments):
        """Return `count` numbers, through memory of the device if they are made there."""
        name, dtype, kind = FUNCTIONS[function]
        arguments = [kind(each) for each in arguments]
        numbers = np.zeros(count, dtype)
        host = numbers.ctypes.data_as(ctypes.c_void_p)
        call = getattr(self.lib, name)
        size = ctypes.c_size_t(count)
        if self.cuda is None:
            self.check(call(generator, host, size, *arguments))
            return numbers
        pointer = ctypes.c_void_p()
        self.check(self.cuda.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(numbers.nbytes)))
        self.check(call(generator, pointer, size, *arguments))
        self.check(self.cuda.cudaMemcpy(host, pointer, ctypes.c_size_t(numbers.nbytes), 2))
        self.check(self.cuda.cudaFree(pointer))
        return numbers


def run(library, place, plan):
    """Run each {"settings": {...}, "calls": [[function, count, arguments...], ...]} of a plan."""
    rand = Rand(library, place)
    results = {}
    for number, each in enumerate(plan):
        generator = rand.create(**each["settings"])
        for index, call in enumerate(each["calls"]):
            results[f"{number}.{index}"] = rand.generate(generator, *call)
        rand.check(rand.lib.curandDestroyGenerator(generator))
    return results


if __name__ == "__main__":
    np.savez(sys.argv[4], **run(sys.argv[1], sys.argv[2], json.loads(sys.argv[3])))
