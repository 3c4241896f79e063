# One push step of breadth-first search from the frontier F: new nodes, and a parent of each.
#   tamis run examples/bfs_push.py "G=rmat(6,4)" "F=rand(64; 0.1)" "V=rand(64; 0.5; 7)" -f "G=csr; pattern" -f "F=sparse; pattern"

def bfs_push(G, F, V):
    P = tensor("dense", fill=-1)
    N = tensor("bytemap; pattern")
    for i, j in _:
        if F[i] and G[i,j] and not V[j]:
            P[j] = choose(P[j], i, -1)
            N[j] |= True
    return N, P
