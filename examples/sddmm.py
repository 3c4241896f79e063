# SDDMM: a product of dense matrices, sampled at the entries of S.
#   tamis run examples/sddmm.py "S=rand(40,40; 0.05)" "A=rand(40,8)" B=rand -f S=csr

def sddmm(S, A, B):
    X = tensor("csr")
    for i, j, k in _:
        X[i,j] += S[i,j] * A[i,k] * B[k,j]
    return X
