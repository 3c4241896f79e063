# A function that maps 0 to 1: the result has another fill value than its operand.
#   tamis run examples/exponential.py "A=laplacian(10)" -f A=csr

def exponential(A):
    E = tensor("csr", fill=1)
    for i, j in _:
        E[i,j] = exp(A[i,j])
    return E
