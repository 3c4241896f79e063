"""CP decomposition by alternating least squares, whose work is the MTTKRP of a sparse tensor."""

import os

import numpy as np

import tamis as tm

DATA = os.environ.get("TAMIS_DATA", os.path.join(os.path.dirname(__file__), "../../../shared/data"))
MTTKRP = [
    "M[i,r] = X[i,j,k] * B[j,r] * C[k,r]",
    "M[j,r] = X[i,j,k] * A[i,r] * C[k,r]",
    "M[k,r] = X[i,j,k] * A[i,r] * B[j,r]",
]


def als(X, rank, sweeps=10, seed=0):
    """Factors of a model of this rank, and the share of the tensor that it explains after each sweep."""
    rng = np.random.default_rng(seed)
    factors = [rng.random((n, rank)) for n in X.shape]
    norm = float(tm.sum(X * X)) ** 0.5
    fits = []
    for _ in range(sweeps):
        for mode, text in enumerate(MTTKRP):
            others = [d for d in range(3) if d != mode]
            names = {"ABC"[d]: factors[d] for d in others}
            M = tm.einsum(text, X=X, **names).to_numpy()
            gram = np.prod([factors[d].T @ factors[d] for d in others], axis=0)
            factors[mode] = np.linalg.solve(gram + 1e-12 * np.eye(rank), M.T).T
        model = np.prod([f.T @ f for f in factors], axis=0).sum()
        inner = (M * factors[2]).sum()
        fits.append(1 - max(norm**2 - 2 * inner + model, 0.0) ** 0.5 / norm)
    return factors, fits


def check(X, factors, fits):
    """The products are NumPy's on the dense tensor, the fit is that of the dense model, and no sweep made it worse."""
    dense, (A, B, C) = X.to_numpy(), factors
    M = tm.einsum(MTTKRP[0], X=X, B=B, C=C).to_numpy()
    np.testing.assert_allclose(M, np.einsum("ijk,jr,kr->ir", dense, B, C), rtol=1e-9, atol=1e-9)
    error = np.linalg.norm(dense - np.einsum("ir,jr,kr->ijk", A, B, C)) / np.linalg.norm(dense)
    np.testing.assert_allclose(fits[-1], 1 - error, atol=1e-6)
    assert all(later >= earlier - 1e-9 for earlier, later in zip(fits, fits[1:]))


def main():
    """The relations between nations if they are there, else a random tensor."""
    path = f"{DATA}/tensors/nations.tns"
    there = os.path.exists(path)
    X = (tm.read(path) if there else tm.gallery.random((30, 40, 50), 0.05, 1)).astype("f64").convert("csf")
    factors, fits = als(X, rank=8)
    check(X, factors, fits)
    print(f"{'nations' if there else 'a generated tensor'} {X.shape}, {X.nnz} entries: {fits[-1]:.1%} explained")


if __name__ == "__main__":
    main()
