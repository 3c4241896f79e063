//! The programs that are measured: orders of loops, and formats of inputs and results.

/// A way to compute it: a name, the input's format, and the program.
pub type Way = (&'static str, &'static str, &'static str);

/// One dimension.
pub const ONE: [Way; 3] = [
    (
        "windows, sparse result",
        "sparse",
        "def f(I, F):\n    O = tensor(\"sparse\")\n    for i, k in _:\n        O[i] += I[i+k] * F[k]\n    return O\n",
    ),
    (
        "windows, dense result",
        "sparse",
        "def f(I, F):\n    O = tensor(\"dense\")\n    for i, k in _:\n        O[i] += I[i+k] * F[k]\n    return O\n",
    ),
    (
        "filter first, dense result",
        "sparse",
        "def f(I, F):\n    O = tensor(\"dense\")\n    for k, i in _:\n        O[i] += I[i+k] * F[k]\n    return O\n",
    ),
];

/// Two dimensions.
pub const TWO: [Way; 5] = [
    (
        "windows, sparse result",
        "csr",
        "def f(I, F):\n    O = tensor(\"csr\")\n    for i in _:\n        w = tensor(\"bytemap\")\n        for k, j, l in _:\n            w[j] += I[i+k,j+l] * F[k,l]\n        for j in _:\n            O[i,j] = w[j]\n    return O\n",
    ),
    (
        "filter first, sparse result",
        "csr",
        "def f(I, F):\n    O = tensor(\"csr\")\n    for i in _:\n        w = tensor(\"bytemap\")\n        for k, l, j in _:\n            w[j] += I[i+k,j+l] * F[k,l]\n        for j in _:\n            O[i,j] = w[j]\n    return O\n",
    ),
    (
        "windows, dense result",
        "csr",
        "def f(I, F):\n    O = tensor(\"dense\")\n    for i, k, j, l in _:\n        O[i,j] += I[i+k,j+l] * F[k,l]\n    return O\n",
    ),
    (
        "filter first, dense result",
        "csr",
        "def f(I, F):\n    O = tensor(\"dense\")\n    for i, k, l, j in _:\n        O[i,j] += I[i+k,j+l] * F[k,l]\n    return O\n",
    ),
    (
        "entries first, dense result",
        "csr",
        "def f(I, F):\n    O = tensor(\"dense\", shape=(I.shape[0] - F.shape[0] + 1, I.shape[1] - F.shape[1] + 1))\n    for i, j, k, l in _:\n        O[~(i-k),~(j-l)] += I[i,j] * F[k,l]\n    return O\n",
    ),
];

/// Three dimensions.
pub const THREE: [Way; 6] = [
    (
        "windows, sparse result",
        "csf",
        "def f(I, F):\n    O = tensor(\"csf\")\n    for i in _:\n        w = tensor(\"dense, bytemap\")\n        for k, j, l, m, n in _:\n            w[j,m] += I[i+k,j+l,m+n] * F[k,l,n]\n        for j, m in _:\n            O[i,j,m] = w[j,m]\n    return O\n",
    ),
    (
        "filter first, sparse result",
        "csf",
        "def f(I, F):\n    O = tensor(\"dense, dense, sparse\")\n    for i, j in _:\n        w = tensor(\"bytemap\")\n        for k, l, n, m in _:\n            w[m] += I[i+k,j+l,m+n] * F[k,l,n]\n        for m in _:\n            O[i,j,m] = w[m]\n    return O\n",
    ),
    (
        "windows, dense result",
        "csf",
        "def f(I, F):\n    O = tensor(\"dense\")\n    for i, k, j, l, m, n in _:\n        O[i,j,m] += I[i+k,j+l,m+n] * F[k,l,n]\n    return O\n",
    ),
    (
        "filter first, dense result",
        "dense, dense, sparse",
        "def f(I, F):\n    O = tensor(\"dense\")\n    for i, j, k, l, n, m in _:\n        O[i,j,m] += I[i+k,j+l,m+n] * F[k,l,n]\n    return O\n",
    ),
    (
        "entries first, dense result",
        "csf",
        "def f(I, F):\n    O = tensor(\"dense\", shape=(I.shape[0] - F.shape[0] + 1, I.shape[1] - F.shape[1] + 1, I.shape[2] - F.shape[2] + 1))\n    for i, j, m, k, l, n in _:\n        O[~(i-k),~(j-l),~(m-n)] += I[i,j,m] * F[k,l,n]\n    return O\n",
    ),
    (
        "filter outside, dense result",
        "csf",
        "def f(I, F):\n    O = tensor(\"dense\")\n    for k, i, l, j, n, m in _:\n        O[i,j,m] += I[i+k,j+l,m+n] * F[k,l,n]\n    return O\n",
    ),
];

/// What index notation says of one to three dimensions: orders and formats of results are left to Tamis.
pub const NOTATIONS: [&str; 3] =
    ["O[i] = I[i+k] * F[k]", "O[i,j] = I[i+k,j+l] * F[k,l]", "O[i,j,m] = I[i+k,j+l,m+n] * F[k,l,n]"];

/// The format that inputs are given to index notation in.
pub const GIVEN: [&str; 3] = ["sparse", "csr", "csf"];

/// A way to compute a layer: a name, the formats of the input (rows, columns, channels) and of the filter (rows, columns, channels, results),
/// and the program.
pub type Layer = (&'static str, &'static str, &'static str, &'static str);

/// Layers of three by three with a border of one, where the input is sparse.
pub const SPARSE_INPUTS: [Layer; 4] = [
    (
        "pixels first",
        "dense, dense, sparse",
        "dense",
        "def f(I, F):\n    O = tensor(\"dense\")\n    for h, w, r, q, c, g in _:\n        O[h,w,g] += coalesce(I[~(h+r-1),~(w+q-1),c], 0) * F[r,q,c,g]\n    return O\n",
    ),
    (
        "filter outside",
        "dense, dense, sparse",
        "dense",
        "def f(I, F):\n    O = tensor(\"dense\")\n    for r, q, h, w, c, g in _:\n        O[h,w,g] += coalesce(I[~(h+r-1),~(w+q-1),c], 0) * F[r,q,c,g]\n    return O\n",
    ),
    (
        "entries first",
        "dense, dense, sparse",
        "dense",
        "def f(I, F):\n    O = tensor(\"dense\", shape=(I.shape[0], I.shape[1], F.shape[3]))\n    for h, w, c, r, q, g in _:\n        O[~(h-r+1),~(w-q+1),g] += I[h,w,c] * F[r,q,c,g]\n    return O\n",
    ),
    (
        "channels first",
        "(h,w,c) -> (c,h,w): dense, sparse, sparse",
        "dense",
        "def f(I, F):\n    O = tensor(\"dense\", shape=(I.shape[0], I.shape[1], F.shape[3]))\n    for c, r, q, h, w, g in _:\n        O[~(h-r+1),~(w-q+1),g] += I[h,w,c] * F[r,q,c,g]\n    return O\n",
    ),
];

/// The same layers, where the filter is sparse: rows of pixels run in vectors, so channels are outermost.
pub const SPARSE_FILTERS: [Layer; 2] = [
    (
        "planes",
        "(h,w,c) -> (c,h,w): dense, dense, dense",
        "(r,q,c,g) -> (g,c,r,q): dense, sparse, sparse, sparse",
        "def f(I, F):\n    O = tensor(\"(h,w,g) -> (g,h,w): dense, dense, dense\")\n    for g, c, r, q, h, w in _:\n        O[h,w,g] += coalesce(I[~(h+r-1),~(w+q-1),c], 0) * F[r,q,c,g]\n    return O\n",
    ),
    (
        "rows of planes",
        "(h,w,c) -> (c,h,w): dense, dense, dense",
        "(r,q,c,g) -> (g,c,r,q): dense, sparse, sparse, sparse",
        "def f(I, F):\n    O = tensor(\"(h,w,g) -> (g,h,w): dense, dense, dense\")\n    for g, h, c, r, q, w in _:\n        O[h,w,g] += coalesce(I[~(h+r-1),~(w+q-1),c], 0) * F[r,q,c,g]\n    return O\n",
    ),
];

/// What index notation says of a layer.
pub const LAYER: &str = "O[h,w,g] = coalesce(I[~(h+r-1),~(w+q-1),c], 0) * F[r,q,c,g]";
