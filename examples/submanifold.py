# A submanifold convolution of voxels: the result has the pattern of its input.
#   tamis run examples/submanifold.py "V=rand(40,40,40; 0.01)" "F=ones(3,3,3)" -f V=csf
# Sites and windows are intersected by co-iteration, without lookups.

def submanifold(V, F):
    O = tensor("csf")
    for z, p, y, r, x, q in _:
        if V[z,y,x] != 0:
            O[z,y,x] += coalesce(V[~(z+p-1), ~(y+r-1), ~(x+q-1)], 0) * F[p,r,q]
    return O
