# One pull step of breadth-first search: each unvisited node looks for a parent in the frontier F, and stops at the first.
#   tamis run examples/bfs_gather.py "G=rmat(6,4)" "F=rand(64; 0.1)" "V=rand(64; 0.5; 7)" -f "G=csc; pattern" -f F=bytemap

def bfs_gather(G, F, V):
    N = tensor("sparse", dtype="i32", fill=-1)
    for j in _:
        if not V[j]:
            found = short_circuit_scalar(-1)
            for i in _:
                if G[i,j] and F[follow(i)]:
                    found = choose(found, i, -1)
            if found >= 0:
                N[j] = i32(found)
    return N
