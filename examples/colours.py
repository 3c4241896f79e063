# A colour lookup for each pixel: a gather.
#   tamis run examples/colours.py I=image.pbm "palette=rand(2)"

def colours(I, palette):
    O = tensor("dense")
    for y, x in _:
        O[y,x] = palette[i64(I[y,x])]
    return O
