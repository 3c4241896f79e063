# SpMV by columns, for a matrix in column-major order.
#   tamis run examples/spmv_columns.py "A=laplacian(20)" x=ones -f A=csc

def spmv_columns(A, x):
    y = tensor("dense")
    for j, i in _:
        y[i] += A[i,j] * x[j]
    return y
