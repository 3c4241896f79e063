"""Conway's game of life on a torus, whose rows are stored as runs of equal cells."""

import numpy as np

import tamis as tm


def step(world):
    """The next generation: cells with three neighbours live, and those with two stay what they are."""
    sides = world + tm.roll(world, 1, axis=1) + tm.roll(world, -1, axis=1)
    block = sides + tm.roll(sides, 1, axis=0) + tm.roll(sides, -1, axis=0)
    return ((block == 3) | ((block == 4) & (world == 1))).astype("i8")


def check(before, after):
    """The definition, cell by cell."""
    rows, columns = before.shape
    for y in range(rows):
        for x in range(columns):
            near = sum(before[(y + v) % rows, (x + u) % columns] for v in (-1, 0, 1) for u in (-1, 0, 1)) - before[y, x]
            assert after[y, x] == (near == 3 or (near == 2 and before[y, x] == 1))


def main():
    """A glider among blocks crosses a small world."""
    cells = np.zeros((24, 32), dtype=np.int8)
    cells[1:4, 1:4] = [[0, 1, 0], [0, 0, 1], [1, 1, 1]]
    cells[15:17, 20:22] = 1
    world = tm.tensor(cells, format="dense, runs")
    for _ in range(8):
        after = step(world)
        check(world.to_numpy(), after.to_numpy())
        world = after
    assert world.format == "dense, runs"
    print(f"after 8 generations {int(world.sum())} cells live; {world.nbytes} bytes for {world.size} cells")


if __name__ == "__main__":
    main()
