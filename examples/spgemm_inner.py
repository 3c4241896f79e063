# SpGEMM by inner products: rows of A are intersected with columns of B.
#   tamis run examples/spgemm_inner.py "A=rmat(5,4)" "B=rmat(5,4,7)" -f A=csr -f B=csc

def spgemm_inner(A, B):
    C = tensor("csr")
    for i, k, j in _:
        C[i,k] += A[i,j] * B[j,k]
    return C
