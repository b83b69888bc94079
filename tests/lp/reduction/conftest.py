"""Gives the tests of this directory the features of the case format."""

import sys

from builders.paths import TESTS

sys.path.append(str(TESTS / "features"))
