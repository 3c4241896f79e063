# A convolution with a stride of 2 and a zero padding of 1.
#   tamis run examples/convolution_strided.py "I=rand(101,101; 0.02)" "F=ones(3,3)" -f I=dcsr

def convolution_strided(I, F):
    O = tensor("dense", shape=((I.shape[0] + 1) // 2, (I.shape[1] + 1) // 2))
    for y, r, x, q in _:
        O[y,x] += coalesce(I[~(2*y + r - 1), ~(2*x + q - 1)], 0) * F[r,q]
    return O
