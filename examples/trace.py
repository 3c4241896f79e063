# The sum of the diagonal: one iteration per row.
#   tamis run examples/trace.py "A=laplacian(20)" -f A=csr

def trace(A):
    s = scalar(0)
    for i, j in _:
        if i == j:
            s += A[i,j]
    return s
