# A matrix by rows from one by rows, turned: entries come in the wrong order, so a hash table stands between.
#   tamis run examples/transpose.py "A=rmat(6,4)" -f A=csr

def transpose(A):
    w = tensor("hash, hash")
    for i, j in _:
        w[j,i] = A[i,j]
    B = tensor("csr")
    for j, i in _:
        B[j,i] = w[j,i]
    return B
