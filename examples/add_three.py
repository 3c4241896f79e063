# The sum of three sparse matrices in one fused loop, without empty rows in the result.
#   tamis run examples/add_three.py "A=laplacian(20)" "B=rand(400,400; 0.01)" "C=permutation(400)" -f A=csr -f B=dcsr -f C=coo

def add_three(A, B, C):
    D = tensor("dcsr")
    for i, j in _:
        D[i,j] = A[i,j] + B[i,j] + C[i,j]
    return D
