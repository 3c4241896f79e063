# Erosion of a binary image by a 3x3 square, 64 pixels at a time: bit b of word x is the pixel 64*x + b of its row.
#   tamis run examples/erosion_words.py W=words.npy -o O=eroded.npy
# Horizontal neighbours come from shifts, with a bit carried from the adjacent word. The first and the last row are
# their own neighbours outside of the image, where pixels count as set.

def erosion_words(W):
    O = tensor("dense", dtype="u64")
    for y in _:
        above = max(y - 1, 0)
        below = min(y + 1, W.shape[0] - 1)
        T = tensor("dense", dtype="u64")
        for x in _:
            T[x] = W[above,x] & W[y,x] & W[below,x]
        for x in _:
            before = T[x] << 1 | coalesce(T[~(x-1)], 0xFFFFFFFFFFFFFFFF) >> 63
            after = T[x] >> 1 | coalesce(T[~(x+1)], 0xFFFFFFFFFFFFFFFF) << 63
            O[y,x] = T[x] & before & after
    return O
