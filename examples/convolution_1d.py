# A one-dimensional convolution: windows without entries are not visited, and have no entries in the result.
#   tamis run examples/convolution_1d.py "I=rand(1000; 0.01)" "F=ones(3)" -f I=sparse

def convolution_1d(I, F):
    O = tensor("sparse")
    for i, k in _:
        O[i] += I[i+k] * F[k]
    return O
