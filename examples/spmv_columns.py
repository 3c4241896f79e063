# Sparse matrix times dense vector, column by column: what a matrix stored by columns wants.
#   tamis run examples/spmv_columns.py "A=laplacian(20)" x=ones -f A=csc

def spmv_columns(A, x):
    y = tensor("dense")
    for j, i in _:
        y[i] += A[i,j] * x[j]
    return y
