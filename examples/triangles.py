# The number of triangles of a graph: each is counted once, with its nodes in increasing order.
#   tamis run examples/triangles.py "G=rmat(6,4)" -f "G=csr; pattern"

def triangles(G):
    n = scalar(0)
    for i, j, k in _:
        if i < j and j < k:
            n += G[i,j] * G[j,k] * G[i,k]
    return n
