# The sum of the upper triangle: the mask becomes a bound of the inner loop instead of a test.
#   tamis run examples/upper.py "A=laplacian(20)" -f A=csr

def upper(A):
    s = scalar(0)
    for i, j in _:
        if i <= j:
            s += A[i,j]
    return s
