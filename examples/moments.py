# Mean and variance in one pass.
#   tamis run examples/moments.py "x=rand(1000; 0.1)" -f x=sparse

def moments(x):
    s = scalar(0.0)
    q = scalar(0.0)
    for i in _:
        v = x[i]
        s += v
        q += v * v
    n = x.shape[0]
    mean = scalar(0.0)
    variance = scalar(0.0)
    mean = s / n
    variance = q / n - mean * mean
    return mean, variance
