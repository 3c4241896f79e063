# Shortest paths of two edges: the (min,+) product, where unstored elements are infinite.
#   tamis run examples/min_plus.py "A=rand(20,20)" "B=rand(20,20; 1; 7)"

def min_plus(A, B):
    C = tensor("dense", fill=inf)
    for i, j, k in _:
        C[i,k] = min(C[i,k], A[i,j] + B[j,k])
    return C
