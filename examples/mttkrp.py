# Matricized tensor times Khatri-Rao product (MTTKRP), the bottleneck of CP decomposition.
#   tamis run examples/mttkrp.py "B=rand(20,30,10; 0.01)" "C=rand(30,4)" D=rand -f B=csf

def mttkrp(B, C, D):
    A = tensor("dense")
    for i, k, l, j in _:
        A[i,j] += B[i,k,l] * C[k,j] * D[l,j]
    return A
