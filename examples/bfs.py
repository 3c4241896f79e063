# Breadth-first search with a queue: a parent for each node that is reachable from the source.
#   tamis run examples/bfs.py "G=rmat(6,4)" source=0 -f "G=csr; pattern"

def bfs(G, source):
    parent = tensor("dense", dtype="i32", fill=-1, shape=(G.shape[0],))
    queue = tensor("dense", dtype="i32", shape=(G.shape[0],))
    last = scalar(1)
    parent[source] = i32(source)
    queue[0] = i32(source)
    for first in range(G.shape[0]):
        if first < last:
            i = queue[first]
            for p in range(G.first[i], G.first[i+1]):
                j = G.coords[1,p]
                if parent[j] < 0:
                    parent[j] = i
                    queue[last] = i32(j)
                    last += 1
    return parent
