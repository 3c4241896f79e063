# Erosion of a binary image by a 3x3 square: a pixel remains set if all its neighbours are set.
#   tamis run examples/erosion.py I=image.pbm -o O=eroded.pbm

def erosion(I):
    T = tensor("dense; element(False)")
    O = tensor("dense; element(False)")
    for y, x in _:
        T[y,x] = coalesce(I[y, ~(x-1)], True) & I[y,x] & coalesce(I[y, ~(x+1)], True)
    for y, x in _:
        O[y,x] = coalesce(T[~(y-1), x], True) & T[y,x] & coalesce(T[~(y+1), x], True)
    return O
