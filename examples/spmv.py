# SpMV: sparse matrix times dense vector.
#   tamis run examples/spmv.py "A=laplacian(20)" x=ones -f A=csr

def spmv(A, x):
    y = tensor("dense")
    for i, j in _:
        y[i] += A[i,j] * x[j]
    return y
