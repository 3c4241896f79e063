# Row normalisation: rows sum to 1, except for empty ones.
#   tamis run examples/normalise.py "A=rmat(6,4)" -f A=csr

def normalise(A):
    C = tensor("csr")
    for i in _:
        s = scalar(0.0)
        for j in _:
            s += A[i,j]
        if s != 0:
            for j in _:
                C[i,j] = A[i,j] / s
    return C
