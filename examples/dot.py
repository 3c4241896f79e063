# The inner product of two sparse vectors, each skipping ahead to where the other is.
#   tamis run examples/dot.py "a=rand(1000; 0.01)" "b=rand(1000; 0.5; 7)" -f a=sparse -f b=sparse

def dot(a, b):
    s = scalar(0.0)
    for i in _:
        s += a[gallop(i)] * b[gallop(i)]
    return s
