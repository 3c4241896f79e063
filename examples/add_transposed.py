# A matrix plus the transpose of another: the storage of B decides whether that needs a search.
#   tamis run examples/add_transposed.py "A=laplacian(10)" "B=rand(100,100; 0.05)" -f A=csr -f B=csc

def add_transposed(A, B):
    C = tensor("csr")
    for i, j in _:
        C[i,j] = A[i,j] + B[j,i]
    return C
