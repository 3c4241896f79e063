# Edge weights to distances: infinite without an edge, and 0 on the diagonal.
#   tamis run examples/distances.py "A=rmat(5,4)" -f A=csr

def distances(A):
    D = tensor("csr", fill=inf)
    for i, j in _:
        if i == j:
            D[i,j] = 0
        elif A[i,j] != 0:
            D[i,j] = A[i,j]
    return D
