# Weights become distances: where there is no edge, the way is infinitely long, and to oneself it is none.
#   tamis run examples/distances.py "A=rmat(5,4)" -f A=csr

def distances(A):
    D = tensor("csr", fill=inf)
    for i, j in _:
        if i == j:
            D[i,j] = 0
        elif A[i,j] != 0:
            D[i,j] = A[i,j]
    return D
