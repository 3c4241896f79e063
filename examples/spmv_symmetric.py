# Symmetric SpMV from the upper triangle: each entry is used twice.
#   tamis run examples/spmv_symmetric.py "A=laplacian(20)" x=ones -f A=csr

def spmv_symmetric(A, x):
    y = tensor("dense")
    for i, j in _:
        a = A[i,j]
        if i <= j:
            y[i] += a * x[j]
        if i < j:
            y[j] += a * x[i]
    return y
