# A sum masked by a third matrix: C is iterated, the others are looked up.
#   tamis run examples/masked_sum.py "A=laplacian(20)" "B=rand(400,400; 0.1)" "C=rand(400,400; 0.01; 7)" -f A=csr -f B=coo -f C=dcsr

def masked_sum(A, B, C):
    D = tensor("coo")
    for i, j in _:
        D[i,j] = (A[i,j] + B[i,j]) * C[i,j]
    return D
