# SpMSpV: sparse matrix times sparse vector; only the columns of stored elements are visited.
#   tamis run examples/spmspv.py "A=laplacian(20)" "x=rand(400; 0.05)" -f A=csc -f x=sparse

def spmspv(A, x):
    y = tensor("bytemap")
    for j, i in _:
        y[i] += A[i,j] * x[j]
    return y
