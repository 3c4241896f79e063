# The number of nodes at a distance of two edges: a temporary set per node.
#   tamis run examples/two_hops.py "G=rmat(5,4)" -f "G=csr; pattern"

def two_hops(G):
    n = tensor("dense")
    for i in _:
        seen = tensor("bytemap; pattern")
        for j, k in _:
            seen[k] |= G[i,j] and G[j,k]
        for k in _:
            n[i] += seen[k]
    return n
