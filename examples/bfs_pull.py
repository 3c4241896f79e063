# One pull step of breadth-first search: each unvisited node looks for a parent in the frontier until it has one.
#   tamis run examples/bfs_pull.py "G=rmat(6,4)" "F=rand(64; 0.1)" "V=rand(64; 0.5; 7)" -f "G=csc; pattern" -f F=bytemap

def bfs_pull(G, F, V):
    N = tensor("sparse; pattern")
    for j in _:
        if not V[j]:
            found = short_circuit_scalar(False)
            for i in _:
                found |= G[i,j] and F[follow(i)]
            N[j] = found
    return N
