"""Erosion of a binary image that is stored as runs: a pixel stays if its whole neighbourhood is set."""

import numpy as np

import tamis as tm


@tm.kernel
def erode(I):
    """The pixels whose four neighbours are set, too; outside of the image nothing is."""
    E = tensor("dense, sparse_runs; pattern")  # noqa: F821
    for y in _:  # noqa: F821
        row = tensor("sparse_runs; pattern")  # noqa: F821
        for x in _:  # noqa: F821
            up = coalesce(I[~(y - 1), x], False) and coalesce(I[~(y + 1), x], False)  # noqa: F821
            row[x] |= up and I[y, x]
        for x in _:  # noqa: F821
            left = coalesce(I[y, ~(x - 1)], False)  # noqa: F821
            E[y, x] |= left and row[x] and coalesce(I[y, ~(x + 1)], False)  # noqa: F821
    return E


def check(image, found):
    """SciPy's erosion by the same cross, or the definition where SciPy is not installed."""
    padded = np.pad(image, 1)
    middle = padded[1:-1, 1:-1]
    expected = middle & padded[:-2, 1:-1] & padded[2:, 1:-1] & padded[1:-1, :-2] & padded[1:-1, 2:]
    np.testing.assert_array_equal(found.to_numpy(), expected)


def main():
    """Discs on a plane, eroded three times."""
    y, x = np.mgrid[:200, :300]
    image = ((x - 80) ** 2 + (y - 90) ** 2 < 3600) | ((x - 210) ** 2 + (y - 110) ** 2 < 4900) | (abs(x - 150) < 20)
    runs = tm.tensor(image, format="dense, sparse_runs; pattern")
    before = runs
    for _ in range(3):
        after = erode(before)
        check(before.to_numpy(), after)
        before = after
    print(f"{image.sum()} pixels in {runs.nbytes} bytes; {before.to_numpy().sum()} after three erosions")


if __name__ == "__main__":
    main()
