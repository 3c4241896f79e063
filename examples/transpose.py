# A matrix by rows from one by rows, turned: entries come in the wrong order, so the compiler puts a workspace between.
#   tamis run examples/transpose.py "A=rmat(6,4)" -f A=csr

def transpose(A):
    B = tensor("csr")
    for i, j in _:
        B[j,i] = A[i,j]
    return B
