# Sparse matrix times sparse vector: only the columns that the vector has are looked at.
#   tamis run examples/spmspv.py "A=laplacian(20)" "x=rand(400; 0.05)" -f A=csc -f x=sparse

def spmspv(A, x):
    y = tensor("bytemap")
    for j, i in _:
        y[i] += A[i,j] * x[j]
    return y
