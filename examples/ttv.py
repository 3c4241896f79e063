# TTV: tensor times vector along the last dimension.
#   tamis run examples/ttv.py "B=rand(20,30,10; 0.01)" x=rand -f B=csf

def ttv(B, x):
    A = tensor("dcsr")
    for i, j, k in _:
        A[i,j] += B[i,j,k] * x[k]
    return A
