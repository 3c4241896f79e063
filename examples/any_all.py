# The rows with an element above 2, and the rows without one below 0.
#   tamis run examples/any_all.py "A=laplacian(20)" -f A=csr

def any_all(A):
    high = tensor("dense", fill=False)
    low = tensor("dense", fill=True)
    for i, j in _:
        high[i] |= A[i,j] > 2
        low[i] &= A[i,j] >= 0
    return high, low
