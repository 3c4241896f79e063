# One push step of breadth-first search: the unvisited successors of the frontier F, each with a parent.
#   tamis run examples/bfs_expand.py "G=rmat(6,4)" "F=rand(64; 0.1)" "V=rand(64; 0.5; 7)" -f "G=csr; pattern" -f "F=sparse; pattern"

def bfs_expand(G, F, V):
    N = tensor("bytemap", dtype="i32", fill=-1)
    for i, j in _:
        if F[i] and G[i,j] and not V[j]:
            N[j] = choose(N[j], i32(i), -1)
    return N
