# One iteration of PageRank: each node distributes its rank equally.
#   tamis run examples/pagerank.py "G=rmat(6,4)" r=ones -f "G=csr; pattern"

def pagerank(G, r):
    degree = tensor("dense")
    for i, j in _:
        degree[i] += G[i,j]
    next = tensor("dense")
    for j in _:
        next[j] += 0.15
    for i in _:
        share = 0.85 * r[i] / max(degree[i], 1)
        for j in _:
            next[j] += share * G[i,j]
    return next
