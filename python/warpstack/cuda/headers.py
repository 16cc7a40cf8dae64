"""Substitutes for headers of the C library that NVRTC lacks, for sources that include them.

NVRTC knows printf, malloc, memcpy and the functions of math.h without any header; what is missing
are the names of types, macros and namespace std.
"""

from __future__ import annotations

_INTEGERS = {
    "int8_t": "signed char",
    "uint8_t": "unsigned char",
    "int16_t": "short",
    "uint16_t": "unsigned short",
    "int32_t": "int",
    "uint32_t": "unsigned int",
    "int64_t": "long",
    "uint64_t": "unsigned long",
    "intptr_t": "long",
    "uintptr_t": "unsigned long",
    "intmax_t": "long",
    "uintmax_t": "unsigned long",
}
_LIMITS = {
    **{f"INT{bits}_MAX": f"{2 ** (bits - 1) - 1}{'L' * (bits == 64)}" for bits in (8, 16, 32, 64)},
    **{f"UINT{b}_MAX": f"{2**b - 1}{'U' * (b > 16)}{'L' * (b == 64)}" for b in (8, 16, 32, 64)},
    **{f"INT{bits}_MIN": f"(-INT{bits}_MAX - 1)" for bits in (8, 16, 32, 64)},
}
_MATH = [
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "copysign",
    "cos", "cosh", "erf", "erfc", "exp", "exp2", "expm1", "fabs", "fdim", "floor", "fma", "fmax",
    "fmin", "fmod", "frexp", "hypot", "ilogb", "isfinite", "isinf", "isnan", "ldexp", "lgamma",
    "llrint", "llround", "log", "log10", "log1p", "log2", "logb", "lrint", "lround", "modf",
    "nearbyint", "nextafter", "pow", "remainder", "rint", "round", "scalbn", "signbit", "sin",
    "sinh", "sqrt", "tan", "tanh", "tgamma", "trunc",
]  # fmt: skip
_CONSTANTS = {
    "M_E": "2.718281828459045",
    "M_LN2": "0.6931471805599453",
    "M_LN10": "2.302585092994046",
    "M_LOG2E": "1.4426950408889634",
    "M_PI": "3.141592653589793",
    "M_PI_2": "1.5707963267948966",
    "M_PI_4": "0.7853981633974483",
    "M_SQRT2": "1.4142135623730951",
    "M_SQRT1_2": "0.7071067811865476",
    "INFINITY": "__int_as_float(0x7f800000)",
    "NAN": "__int_as_float(0x7fffffff)",
    "HUGE_VAL": "((double)INFINITY)",
    "HUGE_VALF": "INFINITY",
}
_FLOATS = {
    "FLT_RADIX": "2",
    "FLT_MANT_DIG": "24",
    "FLT_DIG": "6",
    "FLT_MAX": "3.40282347e+38F",
    "FLT_MIN": "1.17549435e-38F",
    "FLT_EPSILON": "1.19209290e-7F",
    "FLT_MAX_EXP": "128",
    "FLT_MIN_EXP": "(-125)",
    "DBL_MANT_DIG": "53",
    "DBL_DIG": "15",
    "DBL_MAX": "1.7976931348623157e+308",
    "DBL_MIN": "2.2250738585072014e-308",
    "DBL_EPSILON": "2.2204460492503131e-16",
    "DBL_MAX_EXP": "1024",
    "DBL_MIN_EXP": "(-1021)",
}
_WIDTHS = {
    "CHAR_BIT": "8",
    "SCHAR_MAX": "127",
    "SCHAR_MIN": "(-128)",
    "CHAR_MAX": "127",
    "CHAR_MIN": "(-128)",
    "UCHAR_MAX": "255",
    "SHRT_MAX": "32767",
    "SHRT_MIN": "(-32768)",
    "USHRT_MAX": "65535",
    "INT_MAX": "2147483647",
    "INT_MIN": "(-INT_MAX - 1)",
    "UINT_MAX": "4294967295U",
    "LONG_MAX": "9223372036854775807L",
    "LONG_MIN": "(-LONG_MAX - 1)",
    "ULONG_MAX": "18446744073709551615UL",
    "LLONG_MAX": "9223372036854775807LL",
    "LLONG_MIN": "(-LLONG_MAX - 1)",
    "ULLONG_MAX": "18446744073709551615ULL",
}


def _define(macros: dict[str, str]) -> str:
    return "".join(f"#ifndef {n}\n#define {n} {value}\n#endif\n" for n, value in macros.items())


def _std(names: list[str]) -> str:
    return "namespace std { " + " ".join(f"using ::{name};" for name in names) + " }\n"


_ASSERT = """#undef assert
#ifdef NDEBUG
#define assert(condition) ((void)0)
#else
extern "C" __device__ void __assertfail(const char*, const char*, unsigned int, const char*, size_t);
#define assert(condition) \\
  ((condition) ? (void)0 : __assertfail(#condition, __FILE__, __LINE__, __func__, sizeof(char)))
#endif
"""


def _once(text: str) -> str:
    return "#pragma once\n" + text


def _also(header: str, names: list[str] | None = None) -> str:
    """Return the C++ name of a header of C."""
    return _once(f"#include <{header}>\n" + (_std(names) if names else ""))


#: Text by name, as in ``#include <name>``.
HEADERS = {
    "assert.h": _ASSERT,  # may be included again with another NDEBUG
    "cassert": "#include <assert.h>\n",
    "stdio.h": _once(""),
    "cstdio": _also("stdio.h", ["printf"]),
    "stdlib.h": _once(_define({"NULL": "0", "EXIT_SUCCESS": "0", "EXIT_FAILURE": "1"})),
    "cstdlib": _also("stdlib.h", ["malloc", "free", "size_t"]),
    "stddef.h": _once(_define({"NULL": "0"})),
    "cstddef": _also("stddef.h", ["size_t"]),
    "string.h": _once(_define({"NULL": "0"})),
    "cstring": _also("string.h", ["memcpy", "memset", "size_t"]),
    "stdint.h": _once(
        "".join(f"typedef {kind} {name};\n" for name, kind in _INTEGERS.items()) + _define(_LIMITS)
    ),
    "cstdint": _also("stdint.h", list(_INTEGERS)),
    "math.h": _once(_define(_CONSTANTS)),
    "cmath": _also("math.h", _MATH),
    "float.h": _once(_define(_FLOATS)),
    "cfloat": _also("float.h"),
    "limits.h": _once(_define(_WIDTHS)),
    "climits": _also("limits.h"),
}
