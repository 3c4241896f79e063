"""Conjugate gradients: solves a discretised Poisson equation."""

import numpy as np

import tamis as tm


def solve(A, b, tolerance=1e-10):
    """The solution of ``A x = b`` for a symmetric positive definite matrix, and the number of steps."""
    x = tm.zeros(b.shape)
    residual = b - A @ x
    direction = residual
    error = float(residual @ residual)
    start = error
    for step in range(1, 10 * b.shape[0]):
        image = A @ direction
        length = error / float(direction @ image)
        x = x + length * direction
        residual = residual - length * image
        before, error = error, float(residual @ residual)
        if error <= tolerance**2 * start:
            return x, step
        direction = residual + (error / before) * direction
    raise RuntimeError("no convergence")


def check(A, b, x):
    """NumPy's dense solver finds the same."""
    np.testing.assert_allclose(x.to_numpy(), np.linalg.solve(A.to_numpy(), b.to_numpy()), rtol=1e-7, atol=1e-9)


def main():
    """A source in the middle of a square."""
    side = 24
    A = tm.gallery.laplacian(side) + 0.01 * tm.eye(side * side, format="csr")
    b = np.zeros(side * side)
    b[side * side // 2 + side // 2] = 1.0
    b = tm.tensor(b)
    x, steps = solve(A, b)
    check(A, b, x)
    print(f"{A.shape[0]} unknowns, {A.nnz} entries: {steps} steps")


if __name__ == "__main__":
    main()
