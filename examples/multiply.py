# The elementwise product: the intersection of the entries.
#   tamis run examples/multiply.py "A=laplacian(20)" "B=rand(400,400; 0.1)" -f A=csr -f B=dcsr

def multiply(A, B):
    C = tensor("coo")
    for i, j in _:
        C[i,j] = A[i,j] * B[i,j]
    return C
