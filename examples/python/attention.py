"""Sparse attention: scores are computed only where a mask is set, and nothing of the size of the mask is ever dense."""

import numpy as np

import tamis as tm


def attention(Q, K, V, mask):
    """softmax(mask(Q K^T / sqrt(d))) V, row by row over what the mask stores."""
    scale = 1.0 / Q.shape[1] ** 0.5
    S = tm.einsum("S[i,j] = M[i,j] * Q[i,k] * K[j,k]", M=mask, Q=Q, K=K, format="csr") * scale
    top = S.max(axis=1)
    P = tm.einsum("P[i,j] = M[i,j] * exp(S[i,j] - t[i])", M=mask, S=S, t=top, format="csr")
    total = P.sum(axis=1)
    return tm.einsum("O[i,d] = P[i,j] * V[j,d] / z[i]", P=P, V=V, z=total)


def check(Q, K, V, mask, found):
    """Dense attention in NumPy with minus infinity outside of the mask."""
    scores = np.where(mask.to_numpy() != 0, Q @ K.T / Q.shape[1] ** 0.5, -np.inf)
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    np.testing.assert_allclose(found.to_numpy(), powers / powers.sum(axis=1, keepdims=True) @ V, rtol=1e-9, atol=1e-12)


def main():
    """A window of neighbours, and a few tokens that see everything that came before."""
    tokens, width = 256, 32
    i, j = np.mgrid[:tokens, :tokens]
    pattern = ((i - j >= 0) & (i - j < 16)) | ((j % 64 == 0) & (j <= i))
    mask = tm.tensor(pattern.astype(float), format="csr")
    rng = np.random.default_rng(0)
    Q, K, V = (rng.normal(size=(tokens, width)) for _ in range(3))
    found = attention(Q, K, V, mask)
    check(Q, K, V, mask, found)
    print(f"{tokens} tokens: {mask.nnz} of {tokens * tokens} scores were computed")


if __name__ == "__main__":
    main()
