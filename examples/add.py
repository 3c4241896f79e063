# Matrix addition: the union of the entries of two sparse matrices.
#   tamis run examples/add.py "A=laplacian(20)" "B=rand(400,400; 0.01)" -f A=csr -f B=csr

def add(A, B):
    C = tensor("csr")
    for i, j in _:
        C[i,j] = A[i,j] + B[i,j]
    return C
