# SpGEMM by outer products: columns of A times rows of B, accumulated in a hash table.
#   tamis run examples/spgemm_outer.py "A=rmat(5,4)" "B=rmat(5,4,7)" -f A=csc -f B=csr

def spgemm_outer(A, B):
    w = tensor("ism(hash)")
    for j, i, k in _:
        w[i,k] += A[i,j] * B[j,k]
    C = tensor("csr")
    for i, k in _:
        C[i,k] = w[i,k]
    return C
