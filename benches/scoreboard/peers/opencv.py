"""The OpenCV side: images as bytes and as dense arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ..measure import Prepared
from .base import Peer, Ways


class OpenCv(Peer):
    name = "opencv"

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        import cv2

        self.cv2 = cv2
        cv2.setNumThreads(threads)
        cv2.ocl.setUseOpenCL(False)
        self.version = cv2.__version__

    def convolution(self, image: sp.csr_array, kernel: Any) -> Ways:
        cv2, dense = self.cv2, image.toarray()
        result = np.empty_like(dense)

        def run() -> Any:
            return cv2.filter2D(dense, -1, kernel, dst=result, borderType=cv2.BORDER_CONSTANT)

        return Prepared(run, lambda found: found[1:-1, 1:-1])

    def erosion(self, image: Any) -> Ways:
        cv2, square, result = self.cv2, np.ones((3, 3), np.uint8), np.empty_like(image)
        return Prepared(lambda: cv2.erode(image, square, dst=result), lambda found: found != 0)

    def histogram(self, image: Any, mask: Any) -> Ways:
        cv2 = self.cv2
        return Prepared(lambda: cv2.calcHist([image], [0], mask, [16], [0, 256]), lambda found: found.ravel().astype(np.int64))
