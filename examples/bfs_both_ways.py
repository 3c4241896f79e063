# Direction-optimising breadth-first search; T is the transposed graph, whose row j lists the predecessors of j.
#   tamis run examples/bfs_both_ways.py "G=rmat(6,4)" "T=rmat(6,4)" source=0 -f "G=csr; pattern" -f "T=csr; pattern"
# It pushes while few edges leave the frontier; otherwise each unvisited node pulls a parent and
# stops at the first. The queue holds the frontier between `first` and `last`; `depth` distinguishes its nodes from earlier ones.

def bfs_both_ways(G, T, source):
    parent = tensor("dense", dtype="i32", fill=-1, shape=(G.shape[0],))
    depth = tensor("dense", dtype="i32", fill=-1, shape=(G.shape[0],))
    queue = tensor("dense", dtype="i32", shape=(G.shape[0],))
    first = scalar(0)
    last = scalar(1)
    parent[source] = i32(source)
    depth[source] = 0
    queue[0] = i32(source)
    edges = scalar(0)
    for step in range(G.shape[0]):
        if first < last:
            end = last
            if 8 * edges < G.nnz or 24 * (end - first) < G.shape[0]:
                edges = 0
                for k in range(first, end):
                    i = queue[k]
                    for p in range(G.first[i], G.first[i+1]):
                        j = G.coords[1,p]
                        if parent[j] < 0:
                            parent[j] = i
                            depth[j] = i32(step + 1)
                            queue[last] = i32(j)
                            last += 1
                            edges += G.first[j+1] - G.first[j]
            else:
                edges = 0
                for j in range(G.shape[0]):
                    if parent[j] < 0:
                        found = short_circuit_scalar(-1)
                        for p in range(T.first[j], T.first[j+1]):
                            i = T.coords[1,p]
                            if depth[i] == step:
                                found = choose(found, i, -1)
                        if found >= 0:
                            parent[j] = i32(found)
                            depth[j] = i32(step + 1)
                            queue[last] = i32(j)
                            last += 1
                            edges += G.first[j+1] - G.first[j]
            first = end
    return parent
