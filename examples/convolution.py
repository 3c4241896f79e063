# A `valid` two-dimensional convolution.
#   tamis run examples/convolution.py "I=rand(40,40; 0.02)" "F=ones(3,3)" -f I=csr

def convolution(I, F):
    O = tensor("dense")
    for y, x, r, q in _:
        O[y,x] += I[y+r, x+q] * F[r,q]
    return O
