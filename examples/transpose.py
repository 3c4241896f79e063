# Transposition from CSR to CSR: entries arrive out of order, so the compiler inserts a workspace.
#   tamis run examples/transpose.py "A=rmat(6,4)" -f A=csr

def transpose(A):
    B = tensor("csr")
    for i, j in _:
        B[j,i] = A[i,j]
    return B
