"""Makes the strategies importable for tests."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
