# SpGEMM in its textbook form: the loops may have any order, and the compiler inserts a workspace if C needs one.
#   tamis run examples/spgemm.py "A=rmat(5,4)" "B=rmat(5,4,7)" -f A=csc -f B=csr
#   tamis run examples/spgemm.py "A=rmat(5,4)" "B=rmat(5,4,7)" -s "reorder(i,j,k)"

def spgemm(A, B):
    C = tensor("csr")
    for j, i, k in _:
        C[i,k] += A[i,j] * B[j,k]
    return C
