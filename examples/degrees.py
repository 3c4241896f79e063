# The out-degree and in-degree of each node of an unweighted graph.
#   tamis run examples/degrees.py "G=rmat(6,4)" -f "G=csr; pattern"

def degrees(G):
    leaving = tensor("dense")
    entering = tensor("dense")
    for i, j in _:
        leaving[i] += G[i,j]
        entering[j] += G[i,j]
    return leaving, entering
