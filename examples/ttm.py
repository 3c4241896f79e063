# TTM: tensor times matrix along the last dimension, with dense fibers below sparse ones.
#   tamis run examples/ttm.py "B=rand(20,30,10; 0.01)" "C=rand(10,4)" -f B=csf

def ttm(B, C):
    A = tensor("sparse, sparse, dense")
    for i, j, k, l in _:
        A[i,j,l] += B[i,j,k] * C[k,l]
    return A
