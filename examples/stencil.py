# Second differences, with zeros outside of the vector.
#   tamis run examples/stencil.py "x=rand(100; 0.1)" -f x=sparse

def stencil(x):
    y = tensor("dense")
    for i in _:
        y[i] = coalesce(x[~(i-1)], 0) - 2 * x[i] + coalesce(x[~(i+1)], 0)
    return y
