# One round of Bellman-Ford: relaxes the edges of the frontier; returns distances and the next frontier.
#   tamis run examples/bellman_ford.py "A=rand(50,50; 0.1)" D0=rand "F0=ones(50)" -f "A=csr" -f "F0=sparse; pattern"

def bellman_ford_step(A, D0, F0):
    D = tensor("dense", fill=inf)
    F = tensor("bytemap; pattern")
    for j in _:
        D[j] = min(D[j], D0[j])
    for j in _:
        if F0[j]:
            for i in _:
                if A[j,i] != 0:
                    d = D0[j] + A[j,i]
                    D[i] = min(D[i], d)
                    if d < D0[i]:
                        F[i] |= True
    return D, F
