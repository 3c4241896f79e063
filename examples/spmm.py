# SpMM: sparse matrix times dense matrix.
#   tamis run examples/spmm.py "A=laplacian(20)" "B=rand(400,8)" -f A=csr

def spmm(A, B):
    C = tensor("dense")
    for i, j, k in _:
        C[i,k] += A[i,j] * B[j,k]
    return C
