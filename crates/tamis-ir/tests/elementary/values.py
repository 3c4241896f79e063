"""Values of elementary functions with many digits, for `elementary.rs`.

Usage: `python values.py [COUNT] > values.txt` with mpmath. A line holds a function, a type, an
argument (or two), and the value as a sum of two numbers; all in hexadecimal bits of floats.
"""

import math
import random
import struct
import sys

from mpmath import mp, mpf

mp.prec = 200

FUNCTIONS = {
    "exp": (mp.exp, [(-745, 709), (-1, 1)], [(-104, 88.7), (-1, 1)]),
    "exp2": (lambda x: mpf(2) ** x, [(-1074, 1023), (-1, 1)], [(-149, 127), (-1, 1)]),
    "expm1": (mp.expm1, [(-40, 709), (-1, 1)], [(-18, 88.7), (-1, 1)]),
    "log": (mp.log, [(0, 1e3), (0.5, 2)], [(0, 1e3), (0.5, 2)]),
    "log2": (lambda x: mp.log(x) / mp.log(2), [(0, 1e3), (0.5, 2)], [(0, 1e3), (0.5, 2)]),
    "log10": (lambda x: mp.log(x) / mp.log(10), [(0, 1e3), (0.5, 2)], [(0, 1e3), (0.5, 2)]),
    "log1p": (mp.log1p, [(-1, 1e3), (-0.5, 1)], [(-1, 1e3), (-0.5, 1)]),
    "sin": (mp.sin, [(-10, 10), (-1e6, 1e6)], [(-10, 10), (-1e5, 1e5)]),
    "cos": (mp.cos, [(-10, 10), (-1e6, 1e6)], [(-10, 10), (-1e5, 1e5)]),
    "tan": (mp.tan, [(-10, 10), (-1e6, 1e6)], [(-10, 10), (-1e5, 1e5)]),
    "tanh": (mp.tanh, [(-20, 20), (-1, 1)], [(-9, 9), (-1, 1)]),
    "sigmoid": (lambda x: 1 / (1 + mp.exp(-x)), [(-700, 40), (-4, 4)], [(-80, 20), (-4, 4)]),
    "erf": (mp.erf, [(-6, 6), (-1.2, 1.2)], [(-4, 4), (-1.2, 1.2)]),
}

# Magnitudes near the ends of the range that logarithms see, and of arguments near zero.
EXPONENTS = {"f64": (-1074, 1023), "f32": (-149, 127)}


def rounded(x: float, single: bool) -> float:
    return struct.unpack("<f", struct.pack("<f", x))[0] if single else x


def bits(x: float, single: bool) -> str:
    return format(struct.unpack("<I", struct.pack("<f", x))[0], "08x") if single else wide(x)


def wide(x: float) -> str:
    return format(struct.unpack("<Q", struct.pack("<d", x))[0], "016x")


def arguments(name: str, dtype: str, ranges: list, count: int) -> list:
    random.seed(f"{name} {dtype}")
    single = dtype == "f32"
    chosen = []
    for k in range(count):
        if k % 4 < 3:
            x = random.uniform(*ranges[k % 2])
        elif name.startswith("log") and name != "log1p":
            x = math.ldexp(random.uniform(0.5, 1), random.randint(*EXPONENTS[dtype]))
        elif name in ("sin", "cos", "tan") and k % 8 == 3:
            # Close to a multiple of a quarter turn.
            x = random.randint(1, 10**5) * math.pi / 2
        elif name in ("sin", "cos", "tan"):
            x = random.uniform(0, 1.9e5 if single else 2.7e14)
        else:
            x = math.ldexp(random.uniform(-1, 1), random.randint(-30, 0))
        x = rounded(x, single)
        if x != 0:
            chosen.append(x)
    return chosen


def powers(dtype: str, count: int) -> list:
    """Bases and exponents whose powers are normal numbers."""
    random.seed(f"pow {dtype}")
    single = dtype == "f32"
    limit = 126 if single else 1021
    chosen = []
    while len(chosen) < count:
        kind = len(chosen) % 4
        if kind == 0:
            x, y = random.uniform(0, 10), random.uniform(-20, 20)
        elif kind == 1:
            x = math.ldexp(random.uniform(0.5, 1), random.randint(-limit, limit))
            y = random.uniform(-limit, limit) / max(1, abs(math.log2(x)))
        elif kind == 2:
            x = 1 + math.ldexp(random.uniform(-0.5, 1), -random.randint(1, 20))
            y = random.uniform(-limit, limit) / abs(math.log2(x))
        else:
            x, y = -random.uniform(0.1, 50), float(random.randint(-20, 20))
        x, y = rounded(x, single), rounded(y, single)
        if x not in (0, 1) and y != 0 and abs(y * math.log2(abs(x))) < limit:
            chosen.append((x, y))
    return chosen


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    for name, (function, doubles, singles) in FUNCTIONS.items():
        for dtype, ranges in (("f64", doubles), ("f32", singles)):
            for x in arguments(name, dtype, ranges, count):
                y = function(mpf(x))
                high = float(y)
                low = float(y - mpf(high))
                print(name, dtype, bits(x, dtype == "f32"), wide(high), wide(low))
    for dtype in ("f64", "f32"):
        single = dtype == "f32"
        for x, y in powers(dtype, count):
            value = mp.power(abs(mpf(x)), mpf(y)) * (-1 if x < 0 and y % 2 == 1 else 1)
            high = float(value)
            print("pow", dtype, bits(x, single), bits(y, single), wide(high), wide(float(value - mpf(high))))


if __name__ == "__main__":
    main()
