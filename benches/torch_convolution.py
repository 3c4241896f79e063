"""The PyTorch side of convolution.py: dense 3 x 3 layers with a padding of one, on one thread, controlled by commands on standard input.

`load INPUT FILTER` takes arrays of NumPy (rows, columns, channels; rows, columns, channels, results), `run LAYOUT` answers with seconds, where the
layout is `channels_last` or `channels_first`, `result PATH` writes the last result, and `version` prints the version.
"""

import os
import sys
import time

os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"

import numpy as np
import torch

torch.set_num_threads(1)
# On a machine that others use, too, the time that the processor worked.
clock = time.process_time if "--cpu" in sys.argv else time.perf_counter
LAYOUTS = {"channels_last": torch.channels_last, "channels_first": torch.contiguous_format}
held, result = {}, None


def obey(words):
    global result
    match words:
        case ["version"]:
            return torch.__version__
        case ["load", first, second]:
            image = torch.from_numpy(np.load(first)).permute(2, 0, 1).unsqueeze(0)
            weights = torch.from_numpy(np.load(second)).permute(3, 2, 0, 1)
            for name, layout in LAYOUTS.items():
                held[name] = (image.contiguous(memory_format=layout), weights.contiguous(memory_format=layout))
            return "loaded"
        case ["run", layout]:
            image, weights = held[layout]
            start = clock()
            result = torch.nn.functional.conv2d(image, weights, padding=1)
            return str(clock() - start)
        case ["result", path]:
            np.save(path, result.squeeze(0).permute(1, 2, 0).numpy())
            return "written"
    return f"error `{' '.join(words)}` is not known"


with torch.inference_mode():
    for line in sys.stdin:
        print(obey(line.strip().split("\t")), flush=True)
