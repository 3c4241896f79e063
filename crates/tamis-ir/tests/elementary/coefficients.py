"""Minimax polynomials of elementary functions, by Remez's algorithm with mpmath.

Usage: `python coefficients.py`; it prints the constants of `algebra/elementary/coefficients.rs`
with their errors. Those of Rust are rounded to the type where they are used.
"""

from collections.abc import Callable

from mpmath import mp, mpf

mp.prec = 260
TINY = mpf(10) ** -15

Function = Callable[[mpf], mpf]


def remez(f: Function, weight: Function, low: mpf, high: mpf, degree: int) -> tuple:
    """The error and the coefficients of the polynomial with the least weighted error."""
    points = 600
    count = degree + 2
    half, middle = (high - low) / 2, (low + high) / 2
    chosen = [middle - half * mp.cos(mp.pi * k / (count - 1)) for k in range(count)]
    grid = [middle - half * mp.cos(mp.pi * k / points) for k in range(points + 1)]
    # Where the weight is zero, the error does not matter.
    weights = [weight(x) + mpf("1e-7") for x in grid]
    values = [f(x) for x in grid]
    best = None
    for _ in range(12):
        matrix, right = mp.matrix(count, count), mp.matrix(count, 1)
        for row, x in enumerate(chosen):
            for column in range(degree + 1):
                matrix[row, column] = x**column
            matrix[row, degree + 1] = (-1) ** row / (weight(x) + mpf("1e-7"))
            right[row] = f(x)
        solution = mp.lu_solve(matrix, right)
        coefficients = [solution[k] for k in range(degree + 1)]
        errors = [
            w * (mp.polyval(coefficients[::-1], x) - y)
            for w, x, y in zip(weights, grid, values, strict=True)
        ]
        largest = max(abs(error) for error in errors)
        if best is None or largest < best[0]:
            best = (largest, coefficients)
        # The extremum of each run of errors of one sign.
        extrema: list[int] = []
        for k, error in enumerate(errors):
            if not extrema or (errors[extrema[-1]] > 0) != (error > 0):
                extrema.append(k)
            elif abs(error) > abs(errors[extrema[-1]]):
                extrema[-1] = k
        while len(extrema) > count:
            ends = (abs(errors[extrema[0]]), abs(errors[extrema[-1]]))
            extrema.pop(0 if ends[0] < ends[1] else -1)
        following = [grid[k] for k in extrema]
        if len(extrema) < count or following == chosen:
            break
        chosen = following
    return best


def series(f: Function, at_zero: Function) -> Function:
    """A function of which 0 is a removable singularity."""
    return lambda x: at_zero(x) if abs(x) < TINY else f(x)


LN2 = mp.log(2)
REDUCED = LN2 / 2 * mpf("1.0001")
QUADRANT = (mp.pi / 4) ** 2 * mpf("1.0001")
ROOT = ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2 * mpf("1.0001")

EXP = series(lambda r: (mp.expm1(r) - r) / r**2, lambda r: mpf(1) / 2 + r / 6)
EXP2 = series(lambda r: (2**r - 1 - r * LN2) / r**2, lambda r: LN2**2 / 2 + r * LN2**3 / 6)
LOG = series(lambda z: 2 * (mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, lambda z: mpf(2) / 3)
ATANH = series(
    lambda z: (mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 1 - z / 3) / z**2,
    lambda z: mpf(1) / 5,
)
SIN = series(lambda z: (mp.sin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, lambda z: -mpf(1) / 6)
COS = series(lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2, lambda z: mpf(1) / 24)
TAN = series(lambda z: (mp.tan(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, lambda z: mpf(1) / 3)
TANH = series(lambda z: (mp.tanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, lambda z: -mpf(1) / 3)
ERF = series(lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1, lambda z: 2 / mp.sqrt(mp.pi) - 1)

# The name, the function, the weight, the interval, and the degrees for f64 and f32.
POLYNOMIALS = [
    ("EXP", EXP, lambda r: r * r, (-REDUCED, REDUCED), (9, 4)),
    ("EXP2", EXP2, lambda r: r * r, (-mpf("0.5"), mpf("0.5")), (9, 4)),
    ("EXPM1", EXP, lambda r: abs(r) * mpf("1.2") + mpf("1e-3"), (-REDUCED, REDUCED), (10, 5)),
    ("LOG", LOG, lambda z: z, (mpf(0), ROOT), (6, 2)),
    ("ATANH", ATANH, lambda z: z * z, (mpf(0), ROOT), (7, 2)),
    ("SIN", SIN, lambda z: z, (mpf(0), QUADRANT), (5, 2)),
    ("COS", COS, lambda z: z * z, (mpf(0), QUADRANT), (5, 2)),
    ("TAN", TAN, lambda z: z, (mpf(0), QUADRANT), (14, 6)),
    ("TANH", TANH, lambda z: z, (mpf(0), mpf("0.55") ** 2), (10, 4)),
    ("ERF", ERF, lambda z: mpf(1), (mpf(0), mpf("1.0001")), (12, 6)),
]


def log_erfc(t: mpf) -> mpf:
    return mp.log(mp.erfc(t + 1))


def show(name: str, found: tuple) -> None:
    error, coefficients = found
    print(f"{name}: error 2^{float(mp.log(error, 2)):.1f}")
    for coefficient in coefficients:
        print(f"    {float(coefficient)!r},")


def parts(name: str, value: mpf) -> None:
    """A constant as a sum of floats, for each type."""
    for dtype, bits in (("double", 53), ("single", 24)):
        rest, found = value, []
        for _ in range(3):
            with mp.workprec(bits):
                part = +rest
            found.append(float(part))
            rest -= part
        print(f"{name} {dtype}: {found}")


def main() -> None:
    for name, f, weight, (low, high), degrees in POLYNOMIALS:
        for degree in degrees:
            show(name, remez(f, weight, low, high, degree))
    for high, degree in ((5, 20), (3, 7)):
        show("LOG_ERFC", remez(log_erfc, lambda t: mp.erfc(t + 1), mpf(0), mpf(high), degree))
    parts("LN_2", LN2)
    parts("THIRD", mpf(1) / 3)
    parts("TWICE_LOG2_E", 2 / LN2)
    parts("FRAC_PI_2", mp.pi / 2)
    parts("LOG2_E", 1 / LN2)
    parts("LOG10_E", 1 / mp.log(10))
    # The first part has few bits, so that its products with exponents are exact.
    for bits in (40, 14):
        with mp.workprec(bits):
            first = mp.floor(mp.log10(2) * mpf(2) ** (bits + 1)) / mpf(2) ** (bits + 1)
        print(f"LOG10_2: {float(first)!r}, {float(mp.log10(2) - first)!r}")


if __name__ == "__main__":
    main()
