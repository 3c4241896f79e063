# Bellman-Ford shortest paths from a source: distances, parents, and whether there is a negative cycle.
#   tamis run examples/shortest_paths.py "A=rand(50,50; 0.1)" source=0 -f A=csr
# Nodes with a reduced distance are in a ring buffer, each at most once; a round relaxes the edges of all of them.

def shortest_paths(A, source):
    n = A.shape[0]
    distance = tensor("dense", fill=inf, shape=(A.shape[0],))
    parent = tensor("dense", dtype="i32", fill=-1, shape=(A.shape[0],))
    waiting = tensor("dense", dtype="bool", shape=(A.shape[0],))
    queue = tensor("dense", dtype="i32", shape=(A.shape[0],))
    first = scalar(0)
    last = scalar(1)
    distance[source] = 0.0
    queue[0] = i32(source)
    for turn in range(A.shape[0]):
        if first < last:
            end = last
            for k in range(first, end):
                i = queue[k % n]
                waiting[i] = False
                here = distance[i]
                for p in range(A.first[i], A.first[i+1]):
                    j = A.coords[1,p]
                    d = here + A.data[p]
                    if d < distance[j]:
                        distance[j] = d
                        parent[j] = i
                        if not waiting[j]:
                            waiting[j] = True
                            queue[last % n] = i32(j)
                            last += 1
            first = end
    negative = scalar(False)
    negative = first < last
    return distance, parent, negative
